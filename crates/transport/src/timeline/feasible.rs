//! The feasibility plan: which sections to drop so that the most important ones arrive in time.
//!
//! Sections leave in one order. A section arrives one one-way delay after its last byte left, and
//! that byte leaves after all bytes before it. If this is after the deadline, that section or an
//! earlier one has to go. [`plan`] keeps the most important sections first, and as many as possible
//! among equally important ones.
//!
//! Source: J. M. Moore, "An n job, one machine sequencing algorithm for minimizing the number of
//! late jobs", Management Science 15 (1968), with Hodgson's form of it: walk by deadline, and when
//! one is late drop the longest so far.
//!
//! Differs from the source in:
//! 1. The walk is done once for each importance, highest first, and a lower importance drops
//!    nothing of a higher one. A single walk over all importances would drop unimportant sections
//!    in favour of important ones that it drops later itself.
//! 2. Sections may need others. A section counts as important as the most important one that needs
//!    it. Among equally important sections, the one with the fewest dependents goes first, and
//!    among those the longest.
//! 3. At the end, each dropped section that fits after all is restored, most important first.

use alloc::collections::BinaryHeap;
use alloc::vec::Vec;
use core::cmp::Reverse;

use comity_units::{Bytes, Rate, Span, Time};

use super::section::Importance;
use super::tokens::{Borrowing, Tokens};

/// What is left to send of one section.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Work {
    /// Bytes to send for the first time or to retransmit.
    pub left: u64,
    /// The time by which the last of them has to arrive.
    pub deadline: Time,
    /// How much it matters.
    pub importance: Importance,
    /// The debt that it may cause.
    pub borrowing: Borrowing,
    /// The place in the queue of the section that it needs.
    pub needs: Option<usize>,
}

/// What is expected of the path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Forecast {
    /// How fast bytes leave.
    pub rate: Rate,
    /// The growth of the rate in a second, in bit/s, while nothing is lost.
    pub growth: Rate,
    /// How fast they may leave for a while.
    pub peak: Rate,
    /// The controller's token bucket, if it has one.
    pub tokens: Option<Tokens>,
    /// From leaving to arriving.
    pub one_way: Span,
    /// How much of that is caution.
    pub caution: Span,
    /// How far the predicted time of a section may exceed the time to its deadline, in hundredths.
    pub tolerance_percent: u32,
}

impl Forecast {
    /// How many bytes may leave up to the end of a section with this deadline and borrowing, so
    /// that it arrives in time.
    ///
    /// ```text
    /// time   = (deadline − now) · (1 + tolerance) − one_way
    /// budget = min( (rate · time + growth · time² / 2) / 8 + tokens(borrowing),  peak · time / 8 )
    /// ```
    pub fn budget(&self, now: Time, deadline: Time, borrowing: Borrowing) -> u64 {
        if deadline.is_never() {
            return u64::MAX;
        }
        let sending = self.tolerated(now, deadline).saturating_sub(self.one_way);
        let grown = self.growth.mul_f64(sending.as_secs_f64() / 2.0);
        let earned = self
            .rate
            .amount_in(sending)
            .get()
            .saturating_add(grown.amount_in(sending).get());
        let tokens = self.tokens.map_or(0, |tokens| tokens.available(borrowing));
        let peak = self.peak.amount_in(sending).get();
        earned.saturating_add_signed(tokens).min(peak)
    }

    /// Whether what leaves now can arrive in time, at any rate.
    pub fn is_within_reach(&self, now: Time, deadline: Time) -> bool {
        let least = self.one_way.saturating_sub(self.caution);
        deadline.is_never() || deadline > now && self.tolerated(now, deadline) >= least
    }

    /// The time to the deadline, stretched by the tolerance.
    fn tolerated(&self, now: Time, deadline: Time) -> Span {
        let left = u128::from(deadline.saturating_since(now).as_nanos());
        let tolerated = left * (100 + u128::from(self.tolerance_percent)) / 100;
        Span::from_nanos(u64::try_from(tolerated).unwrap_or(u64::MAX))
    }

    /// How fast a budget shrinks at the most while nothing leaves.
    fn fastest(&self) -> Rate {
        if self.peak == Rate::MAX {
            self.rate
        } else {
            self.peak.max(self.rate)
        }
    }

    /// If everything arrives in time that leaves in this order: how long nothing at all could leave
    /// without changing that. Costs O(n).
    pub fn slack(&self, now: Time, queue: impl Iterator<Item = Work>) -> Option<Span> {
        let (mut before, mut slack) = (0_u64, u64::MAX);
        for work in queue {
            before = before.saturating_add(work.left);
            let budget = self.budget(now, work.deadline, work.borrowing);
            slack = slack.min(budget.checked_sub(before)?);
        }
        Some(self.fastest().transmission_time(Bytes::new(slack)))
    }
}

/// The sections to drop, and how long this plan holds.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Plan {
    /// Places in the queue, ascending. Whatever needs a section of the list is in the list too.
    pub dropped: Vec<usize>,
    /// Even if nothing left for this long, no kept section would be late.
    pub slack: Span,
}

/// Finds the sections to drop from a queue that leaves in the given order. That is the order of
/// deadlines, except that the most important sections may have a head start.
///
/// Afterwards every kept section, and each that it needs, fits its budget, and no dropped section
/// could be added. If no section needs another, the plan keeps the greatest possible number of the
/// highest importance. For each lower importance, it keeps the greatest possible number beside
/// those that it kept above. Both hold for a queue in the order of its deadlines whose budgets do
/// not differ by importance. Costs O(n) if nothing has to go, else O(n log n).
pub fn plan(queue: &[Work], now: Time, forecast: &Forecast) -> Plan {
    if let Some(slack) = forecast.slack(now, queue.iter().copied()) {
        return Plan {
            dropped: Vec::new(),
            slack,
        };
    }
    let budgets: Vec<u64> = queue
        .iter()
        .map(|work| forecast.budget(now, work.deadline, work.borrowing))
        .collect();
    let mut selection = Selection::new(queue, &budgets);
    for place in selection.order() {
        selection.decide(place);
    }
    selection.take_back();
    let slack = u64::try_from(selection.room.least()).unwrap_or(0);
    Plan {
        dropped: (0..queue.len())
            .filter(|&place| !selection.is_kept(place))
            .collect(),
        slack: forecast.fastest().transmission_time(Bytes::new(slack)),
    }
}

/// A section that may be dropped: least loss first, then longest, then last.
type Candidate = (Reverse<usize>, u64, usize);

#[derive(Clone, Copy, Debug, Default)]
struct Node {
    /// The importance, or that of the most important section that needs this one.
    class: Importance,
    left: u64,
    needs: Option<usize>,
    /// The section that this one needs, if that is of the same class.
    parent: Option<usize>,
    /// Sections of the same class that go with it, itself counted.
    family: usize,
    /// The undecided ones among those, without itself.
    undecided: usize,
    /// Sections of the same class that need it directly and are kept.
    kept_children: usize,
    kept: bool,
    /// Where it stands when every section comes after what it needs.
    rank: (usize, usize),
}

struct Selection {
    nodes: Vec<Node>,
    room: Room,
    /// The class that is being decided, and those of it that may go.
    class: Importance,
    candidates: BinaryHeap<Candidate>,
}

impl Selection {
    fn new(queue: &[Work], budgets: &[u64]) -> Self {
        let mut nodes: Vec<Node> = queue
            .iter()
            .map(|work| Node {
                class: work.importance,
                left: work.left,
                needs: work.needs,
                family: 1,
                ..Node::default()
            })
            .collect();
        let upward = leaves_first(queue);
        for &place in &upward {
            if let Some(&child) = nodes.get(place)
                && let Some(needed) = child.needs.and_then(|needs| nodes.get_mut(needs))
            {
                needed.class = needed.class.max(child.class);
            }
        }
        for &place in &upward {
            let Some(&child) = nodes.get(place) else {
                continue;
            };
            let Some(needs) = child.needs else { continue };
            let Some(needed) = nodes.get_mut(needs) else {
                continue;
            };
            if needed.class == child.class {
                needed.family += child.family;
                needed.undecided += child.family;
                if let Some(child) = nodes.get_mut(place) {
                    child.parent = Some(needs);
                }
            }
        }
        for (topological, &place) in upward.iter().rev().enumerate() {
            let parent = nodes.get(place).and_then(|node| node.parent);
            let after = parent.and_then(|parent| nodes.get(parent));
            let after = after.map_or(0, |parent| parent.rank.0);
            if let Some(node) = nodes.get_mut(place) {
                node.rank = (place.max(after), topological);
            }
        }
        Self {
            nodes,
            room: Room::new(budgets),
            class: Importance(u8::MAX),
            candidates: BinaryHeap::new(),
        }
    }

    /// All places, the highest class first, and every section after what it needs.
    fn order(&self) -> Vec<usize> {
        let mut order: Vec<usize> = (0..self.nodes.len()).collect();
        order.sort_by_key(|&place| {
            let node = self.nodes.get(place).copied().unwrap_or_default();
            (Reverse(node.class), node.rank)
        });
        order
    }

    fn is_kept(&self, place: usize) -> bool {
        self.nodes.get(place).is_some_and(|node| node.kept)
    }

    fn has_what_it_needs(&self, place: usize) -> bool {
        let needs = self.nodes.get(place).and_then(|node| node.needs);
        needs.is_none_or(|needs| self.is_kept(needs))
    }

    /// Keeps a section, at the cost of others of its class, or drops it.
    fn decide(&mut self, place: usize) {
        let Some(&node) = self.nodes.get(place) else {
            return;
        };
        if node.class != self.class {
            self.class = node.class;
            self.candidates.clear();
        }
        if let Some(parent) = node.parent.and_then(|parent| self.nodes.get_mut(parent)) {
            parent.undecided -= node.family;
        }
        if !self.has_what_it_needs(place) {
            return;
        }
        self.keep(place);
        while let Some(late) = self.room.first_exceeded() {
            let Some(candidate) = self.cheapest() else {
                break;
            };
            if candidate > late {
                // Dropping it would not help: it leaves after the one that is late.
                self.offer(candidate);
                self.drop_again(place);
            } else {
                self.drop_again(candidate);
            }
        }
    }

    /// The candidate whose loss costs least, unless its record is out of date.
    fn cheapest(&mut self) -> Option<usize> {
        while let Some((Reverse(family), _, place)) = self.candidates.pop() {
            if let Some(node) = self.nodes.get(place)
                && node.kept
                && node.kept_children == 0
                && family == 1 + node.undecided
            {
                return Some(place);
            }
        }
        None
    }

    fn offer(&mut self, place: usize) {
        if let Some(node) = self.nodes.get(place) {
            self.candidates
                .push((Reverse(1 + node.undecided), node.left, place));
        }
    }

    fn keep(&mut self, place: usize) {
        let Some(node) = self.nodes.get_mut(place) else {
            return;
        };
        node.kept = true;
        let (left, parent) = (node.left, node.parent);
        self.room.keep(place, left);
        if let Some(parent) = parent.and_then(|parent| self.nodes.get_mut(parent)) {
            parent.kept_children += 1;
        }
        self.offer(place);
    }

    fn drop_again(&mut self, place: usize) {
        let Some(node) = self.nodes.get_mut(place) else {
            return;
        };
        node.kept = false;
        let (left, parent) = (node.left, node.parent);
        self.room.release(place, left);
        if let Some(parent) = parent
            && let Some(node) = self.nodes.get_mut(parent)
        {
            node.kept_children -= 1;
            if node.kept_children == 0 {
                self.offer(parent);
            }
        }
    }

    /// Keeps what fits after all.
    fn take_back(&mut self) {
        for place in self.order() {
            if !self.is_kept(place) && self.has_what_it_needs(place) {
                self.keep(place);
                if self.room.first_exceeded().is_some() {
                    self.drop_again(place);
                }
            }
        }
    }
}

/// All places, each section before what it needs. Sections that need each other in a circle are
/// left out.
fn leaves_first(queue: &[Work]) -> Vec<usize> {
    let mut waiting = alloc::vec![0_usize; queue.len()];
    for work in queue {
        if let Some(count) = work.needs.and_then(|needs| waiting.get_mut(needs)) {
            *count += 1;
        }
    }
    let mut order: Vec<usize> = (0..queue.len())
        .filter(|&place| waiting.get(place) == Some(&0))
        .collect();
    let mut next = 0;
    while let Some(&place) = order.get(next) {
        next += 1;
        let needs = queue.get(place).and_then(|work| work.needs);
        if let Some((needs, count)) = needs.and_then(|at| Some((at, waiting.get_mut(at)?))) {
            *count -= 1;
            if *count == 0 {
                order.push(needs);
            }
        }
    }
    order
}

/// Budget minus work up to and including each kept section: a tree of minima under additions to
/// suffixes.
struct Room {
    /// Minimum below each node, without what was added above it; the leaves begin at `leaves`.
    least: Vec<i128>,
    added: Vec<i128>,
    leaves: usize,
}

/// Lifts what is not kept above every budget.
const NOT_KEPT: i128 = 1 << 80;

impl Room {
    fn new(budgets: &[u64]) -> Self {
        let leaves = budgets.len().next_power_of_two();
        let mut least = alloc::vec![NOT_KEPT; 2 * leaves];
        for (leaf, &budget) in least.iter_mut().skip(leaves).zip(budgets) {
            *leaf += i128::from(budget);
        }
        // Nothing is kept, so every minimum is beyond any budget. The exact value does not matter.
        Self {
            added: alloc::vec![0; 2 * leaves],
            least,
            leaves,
        }
    }

    fn at(values: &[i128], node: usize) -> i128 {
        values.get(node).copied().unwrap_or(NOT_KEPT)
    }

    /// Adds to one leaf, and to all leaves behind it.
    fn add(&mut self, place: usize, own: i128, behind: i128) {
        let mut node = self.leaves + place;
        if let Some(leaf) = self.least.get_mut(node) {
            *leaf += own;
        }
        while node > 1 {
            if node.is_multiple_of(2) {
                for values in [&mut self.least, &mut self.added] {
                    if let Some(value) = values.get_mut(node + 1) {
                        *value += behind;
                    }
                }
            }
            node /= 2;
            let below = Self::at(&self.least, 2 * node).min(Self::at(&self.least, 2 * node + 1));
            let added = Self::at(&self.added, node);
            if let Some(least) = self.least.get_mut(node) {
                *least = below + added;
            }
        }
    }

    fn keep(&mut self, place: usize, left: u64) {
        let left = i128::from(left);
        self.add(place, -left - NOT_KEPT, -left);
    }

    fn release(&mut self, place: usize, left: u64) {
        let left = i128::from(left);
        self.add(place, left + NOT_KEPT, left);
    }

    fn least(&self) -> i128 {
        Self::at(&self.least, 1).min(i128::from(u64::MAX))
    }

    /// The first kept section that does not fit its budget.
    fn first_exceeded(&self) -> Option<usize> {
        if Self::at(&self.least, 1) >= 0 {
            return None;
        }
        let (mut node, mut above) = (1, 0);
        while node < self.leaves {
            above += Self::at(&self.added, node);
            node *= 2;
            if Self::at(&self.least, node) + above >= 0 {
                node += 1;
            }
        }
        Some(node - self.leaves)
    }
}

#[cfg(test)]
mod tests;
