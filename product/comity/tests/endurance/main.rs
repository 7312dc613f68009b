//! Two whole ends for hours of virtual time over a changing path, with suspended and restarted
//! ends, moves, key updates and idle phases. No section is lost silently, and the memory use stays
//! constant.
//!
//! ```sh
//! make endurance HOURS=24
//! ```

mod counts;
mod faults;
#[path = "../common/side.rs"]
mod side;
mod world;

use comity_testkit::memory::{Counting, held};
use comity_units::Span;

use counts::Totals;
use world::{START, World};

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// How much more memory a later check may find than the first one: the ends may know a worse path
/// by then.
const SPREAD: isize = 64 << 10;

/// A part of the run, at whose end everything is settled.
struct Part {
    ends_at: Span,
    memory: isize,
    totals: Totals,
}

/// Runs parts of this length, and returns them.
fn run(seed: u64, parts: u64, length: Span) -> Vec<Part> {
    let before = held();
    let mut world = World::new(seed);
    let mut found = Vec::new();
    for part in 1..=parts {
        let until = START + length * part;
        world.live(until);
        world.settle_all();
        let totals = world.totals();
        found.push(Part {
            ends_at: world.now().saturating_since(START),
            memory: held() - before,
            totals,
        });
    }
    found
}

/// The conditions at the end of a run.
fn check(parts: &[Part]) {
    let [first, .., last] = parts else {
        panic!("at least two parts");
    };
    let Totals {
        submitted,
        on_time,
        late,
        gaps,
        unreported,
        ..
    } = last.totals;
    assert_eq!(submitted, on_time + late + gaps + unreported);
    assert!(on_time > submitted / 2 && gaps > 0, "{:?}", last.totals);
    for part in parts {
        let grown = part.memory - first.memory;
        assert!(
            grown < SPREAD,
            "{grown} bytes more after {} than after {}",
            part.ends_at,
            first.ends_at
        );
    }
}

#[test]
fn twenty_minutes_lose_no_section_silently_and_hold_no_more_memory() {
    let parts = run(1, 4, Span::from_secs(300));
    check(&parts);
    let Totals {
        connections,
        key_updates,
        moves,
        black_holes,
        killed,
        ..
    } = parts[3].totals;
    let faults = [connections, key_updates, moves, black_holes, killed];
    assert!(
        faults.iter().all(|&count| count > 1),
        "{:?}",
        parts[3].totals
    );
}

/// For the hours in `COMITY_ENDURANCE_HOURS`.
#[test]
#[ignore = "it takes minutes: make endurance"]
#[expect(clippy::print_stdout, reason = "a run of hours that reports each")]
fn a_day_loses_no_section_silently_and_holds_no_more_memory() {
    let hours = std::env::var("COMITY_ENDURANCE_HOURS").unwrap_or_else(|_| "24".into());
    let hours = hours.parse().expect("COMITY_ENDURANCE_HOURS: a number");
    let parts = run(2, hours, Span::from_secs(3_600));
    println!(
        "| hour | sections | on time | late | named as gaps | with an end that was killed or lost | connections | key updates \
         | moves | black holes | suspended | bytes held |"
    );
    println!("|---|---|---|---|---|---|---|---|---|---|---|---|");
    for (part, hour) in parts.iter().zip(1..) {
        let totals = &part.totals;
        println!(
            "| {hour} | {} | {} | {} | {} | {} | {} | {} | {} | {} | {} | {} |",
            totals.submitted,
            totals.on_time,
            totals.late,
            totals.gaps,
            totals.unreported,
            totals.connections,
            totals.key_updates,
            totals.moves,
            totals.black_holes,
            totals.suspended,
            part.memory,
        );
    }
    check(&parts);
}
