use super::*;
use alloc::collections::BTreeMap;
use proptest::prelude::*;

/// 8 Mb/s: one byte in a microsecond.
const FORECAST: Forecast = Forecast {
    rate: Rate::from_mbps(8),
    growth: Rate::ZERO,
    peak: Rate::MAX,
    tokens: None,
    one_way: Span::ZERO,
    caution: Span::ZERO,
    tolerance_percent: 0,
};

/// A section of `left` bytes that must leave within `deadline` microseconds.
fn work(left: u64, deadline: u64, importance: u8, needs: Option<usize>) -> Work {
    Work {
        left,
        deadline: Time::from_micros(deadline),
        importance: Importance(importance),
        borrowing: Borrowing::NONE,
        needs,
    }
}

fn dropped(queue: &[Work]) -> Vec<usize> {
    plan(queue, Time::ZERO, &FORECAST).dropped
}

fn fits(queue: &[Work], kept: u32) -> bool {
    let is_kept = |index: usize| kept >> index & 1 == 1;
    let mut before = 0;
    queue.iter().enumerate().all(|(index, work)| {
        if !is_kept(index) {
            return true;
        }
        before += work.left;
        before <= work.deadline.as_nanos() / 1_000 && work.needs.is_none_or(is_kept)
    })
}

/// The number of kept sections of each importance, the highest first.
fn value(queue: &[Work], kept: u32) -> Vec<usize> {
    let mut counts: BTreeMap<Reverse<Importance>, usize> = BTreeMap::new();
    for (index, work) in queue.iter().enumerate() {
        *counts.entry(Reverse(work.importance)).or_default() += (kept >> index & 1) as usize;
    }
    counts.into_values().collect()
}

/// The best of all subsets.
fn best(queue: &[Work]) -> Vec<usize> {
    (0..1_u32 << queue.len())
        .filter(|&kept| fits(queue, kept))
        .map(|kept| value(queue, kept))
        .max()
        .unwrap()
}

fn kept(queue: &[Work]) -> u32 {
    let dropped = dropped(queue);
    (0..queue.len())
        .filter(|index| !dropped.contains(index))
        .fold(0, |kept, index| kept | 1 << index)
}

#[test]
fn the_longest_of_equal_sections_is_dropped() {
    // 3 + 4 + 2 = 9 > 8: without the second all others are in time; Moore's rule.
    let queue = [
        work(3, 5, 1, None),
        work(4, 7, 1, None),
        work(2, 8, 1, None),
        work(2, 9, 1, None),
    ];
    assert_eq!(dropped(&queue), [1]);
}

#[test]
fn the_least_important_section_is_dropped_even_if_shorter() {
    let queue = [
        work(2, 3, 0, None),
        work(6, 7, 9, None),
        work(4, 11, 5, None),
    ];
    assert_eq!(dropped(&queue), [0]);
}

#[test]
fn a_needed_section_counts_as_important_as_its_dependents() {
    // Section 0 is unimportant by itself, but 2 needs it.
    let needed = [
        work(4, 10, 0, None),
        work(4, 10, 5, None),
        work(4, 10, 9, Some(0)),
    ];
    assert_eq!(dropped(&needed), [1]);
    // No section needs it: it is dropped.
    let alone = [
        work(4, 10, 0, None),
        work(4, 10, 5, None),
        work(4, 10, 9, None),
    ];
    assert_eq!(dropped(&alone), [0]);
}

#[test]
fn dependents_of_a_dropped_section_are_dropped_too() {
    // 0 is too long for its deadline; 1 and 2 depend on it.
    let queue = [
        work(20, 10, 9, None),
        work(1, 20, 5, Some(0)),
        work(1, 30, 1, Some(1)),
        work(1, 40, 0, None),
    ];
    assert_eq!(dropped(&queue), [0, 1, 2]);
}

#[test]
fn a_chain_loses_its_end_and_not_its_beginning() {
    // Six of equal importance, each needing its predecessor, with room for four.
    let queue: Vec<Work> = (0..6)
        .map(|index: usize| work(10, 40, 3, index.checked_sub(1)))
        .collect();
    assert_eq!(dropped(&queue), [4, 5]);
}

#[test]
fn slack_is_the_longest_pause_without_lateness() {
    let queue = [work(100, 150, 1, None), work(100, 900, 1, None)];
    let plan = plan(&queue, Time::ZERO, &FORECAST);
    assert_eq!((plan.dropped.len(), plan.slack), (0, Span::from_micros(50)));
}

#[test]
fn the_budget_is_rate_times_the_time_that_is_left() {
    // 100 ms left, 30 ms of delay, 8 Mb/s: 70 kB; with 10 % tolerance 80 kB.
    let mut forecast = Forecast {
        rate: Rate::from_mbps(8),
        growth: Rate::ZERO,
        peak: Rate::MAX,
        tokens: None,
        one_way: Span::from_millis(30),
        caution: Span::ZERO,
        tolerance_percent: 0,
    };
    let (now, deadline) = (Time::from_millis(900), Time::from_secs(1));
    assert_eq!(forecast.budget(now, deadline, Borrowing::NONE), 70_000);
    forecast.tolerance_percent = 10;
    assert_eq!(forecast.budget(now, deadline, Borrowing::NONE), 80_000);
    assert_eq!(forecast.budget(now, Time::MAX, Borrowing::NONE), u64::MAX);
    // 80 ms at 12 Mb/s are 120 kB; 50 kB in debt. The highest may be 100 kB in debt, the
    // lowest not at all.
    let of = |importance| Borrowing::of(Importance(importance), Importance(1), Importance(9));
    forecast.peak = Rate::from_mbps(12);
    forecast.tokens = Some(Tokens {
        level: -50_000,
        depth: 100_000,
    });
    assert_eq!(forecast.budget(now, deadline, of(9)), 120_000);
    assert_eq!(forecast.budget(now, deadline, of(5)), 70_000);
    assert_eq!(forecast.budget(now, deadline, of(1)), 30_000);
    assert!(forecast.is_within_reach(now, deadline));
    assert!(!forecast.is_within_reach(Time::from_millis(980), deadline));
    assert!(!forecast.is_within_reach(deadline, deadline));
}

#[test]
fn sections_that_need_each_other_in_a_circle_are_dropped_without_harm() {
    let queue = [
        work(1, 10, 1, Some(1)),
        work(1, 10, 1, Some(0)),
        work(1, 10, 1, Some(2)),
        work(9, 10, 1, None),
        work(9, 10, 1, None),
    ];
    assert_eq!(dropped(&queue), [0, 1, 2, 4]);
}

fn queues(classes: u8, with_needs: bool) -> impl Strategy<Value = Vec<Work>> {
    let section = (
        1_u64..12,
        0_u64..40,
        0..classes,
        any::<bool>(),
        any::<usize>(),
    );
    prop::collection::vec(section, 0..10).prop_map(move |mut sections| {
        sections.sort_by_key(|&(_, deadline, ..)| deadline);
        let build = |(index, &(left, deadline, importance, needs, of)): (
            usize,
            &(u64, u64, u8, bool, usize),
        )| {
            let needs = (with_needs && needs && index > 0).then(|| of % index);
            work(left, deadline, importance, needs)
        };
        sections.iter().enumerate().map(build).collect()
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]

    #[test]
    #[cfg_attr(miri, ignore = "too many subsets for an interpreter")]
    fn one_class_without_needs_keeps_as_many_as_any_subset(queue in queues(1, false)) {
        let kept = kept(&queue);
        prop_assert!(fits(&queue, kept));
        prop_assert_eq!(value(&queue, kept), best(&queue));
    }

    #[test]
    #[cfg_attr(miri, ignore = "too many subsets for an interpreter")]
    fn the_highest_class_keeps_as_many_as_any_subset(queue in queues(4, false)) {
        let kept = kept(&queue);
        prop_assert!(fits(&queue, kept));
        prop_assert_eq!(value(&queue, kept).first().copied(), best(&queue).first().copied());
    }

    #[test]
    fn kept_sections_fit_and_none_could_be_added(queue in queues(4, true)) {
        let kept = kept(&queue);
        prop_assert!(fits(&queue, kept), "{:b}", kept);
        for index in (0..queue.len()).filter(|index| kept >> index & 1 == 0) {
            prop_assert!(!fits(&queue, kept | 1 << index), "{} fits beside {:b}", index, kept);
        }
    }
}

/// How often the plan equals the best of all subsets, comparing all classes in order.
#[test]
#[cfg_attr(miri, ignore = "too many cases for an interpreter")]
fn the_plan_is_mostly_the_best_subset() {
    use proptest::strategy::ValueTree;
    use proptest::test_runner::TestRunner;
    let mut runner = TestRunner::deterministic();
    for (classes, with_needs, least) in [(3, false, 980), (1, true, 980), (3, true, 960)] {
        let strategy = queues(classes, with_needs);
        let equal = (0..1_000)
            .filter(|_| {
                let queue = strategy.new_tree(&mut runner).unwrap().current();
                value(&queue, kept(&queue)) == best(&queue)
            })
            .count();
        assert!(equal >= least, "{classes} {with_needs}: {equal}");
    }
}
