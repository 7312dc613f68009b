//! The feasibility plan: which sections to drop so that the most important ones arrive in time.
//!
//! Sections leave in one order. A section arrives one one-way delay after its last byte left, and
//! that byte leaves after all bytes before it. If a section would be late, it or an earlier one
//! must be dropped. [`plan`] keeps the most important sections first, and as many as possible among
//! equally important ones.
//!
//! Source: J. M. Moore, "An n job, one machine sequencing algorithm for minimizing the number of
//! late jobs", Management Science 15 (1968), in Hodgson's form: go through the sections by
//! deadline, and when one is late, drop the longest so far.
//!
//! Differs from the source in:
//! 1. Each importance has a pass of its own, the highest first, and no pass drops a section of a
//!    higher importance. A single pass over all would drop unimportant sections in favour of
//!    important ones that it later drops itself.
//! 2. Sections may need others. A section counts as important as the most important one that needs
//!    it. Among equally important sections, the one with the fewest dependents is dropped first,
//!    and among those the longest.
//! 3. At the end, each dropped section that fits after all is restored, most important first.

use alloc::collections::BinaryHeap;
use alloc::vec::Vec;
use core::cmp::Reverse;

use comity_units::{DataSize, Rate, Span, Time};

use super::section::Importance;
use super::tokens::{Borrowing, Tokens};

/// The remaining work for one section.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Work {
    /// Bytes to send for the first time or to retransmit.
    pub left: u64,
    /// The time by which the last of them has to arrive.
    pub deadline: Time,
    /// Its importance.
    pub importance: Importance,
    /// The debt that it may cause.
    pub borrowing: Borrowing,
    /// The index in the queue of the section that it needs.
    pub needs: Option<usize>,
}

/// The forecast of the path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Forecast {
    /// The rate at which bytes leave.
    pub rate: Rate,
    /// The growth of the rate in a second, in bit/s, while nothing is lost.
    pub growth: Rate,
    /// The rate at which they may leave for a short time.
    pub peak: Rate,
    /// The controller's token bucket, if it has one.
    pub tokens: Option<Tokens>,
    /// The delay from departure to arrival.
    pub one_way: Span,
    /// The part of `one_way` that is a safety margin.
    pub caution: Span,
    /// How far the predicted time of a section may exceed the time to its deadline, in hundredths.
    pub tolerance_percent: u32,
}

impl Forecast {
    /// The number of bytes that may leave up to the end of a section with this deadline and
    /// borrowing if it is to arrive in time.
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

    /// Whether data that leaves now can arrive in time, at any rate.
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

    /// The maximum rate at which a budget shrinks while nothing leaves.
    fn fastest(&self) -> Rate {
        if self.peak == Rate::MAX {
            self.rate
        } else {
            self.peak.max(self.rate)
        }
    }

    /// How long all departures could pause so that the whole queue, in this order, still arrives in
    /// time; `None` if a section is late even without a pause. Costs O(n).
    pub fn slack(&self, now: Time, queue: impl Iterator<Item = Work>) -> Option<Span> {
        let (mut before, mut slack) = (0_u64, u64::MAX);
        for work in queue {
            before = before.saturating_add(work.left);
            let budget = self.budget(now, work.deadline, work.borrowing);
            slack = slack.min(budget.checked_sub(before)?);
        }
        Some(self.fastest().transmission_time(DataSize::new(slack)))
    }
}

/// The sections to drop, and how long this plan holds.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Plan {
    /// Indices in the queue, ascending. Sections that need a listed one are listed too.
    pub dropped: Vec<usize>,
    /// How long all departures could pause before a kept section would be late.
    pub slack: Span,
}

/// Finds the sections to drop from a queue that leaves in its order. That is the order of
/// deadlines, except that the most important sections may have a head start.
///
/// Afterwards every kept section, and each that it needs, fits its budget, and no dropped section
/// could be added. If no section needs another, the plan keeps the maximum number of sections of
/// the highest importance. For each lower importance, it keeps the maximum number besides those
/// kept before. Both hold for a queue in the order of its deadlines whose budgets do not differ by
/// importance. Costs O(n) if no section is dropped, else O(n log n).
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
    for index in selection.order() {
        selection.decide(index);
    }
    selection.take_back();
    let slack = u64::try_from(selection.room.least()).unwrap_or(0);
    Plan {
        dropped: (0..queue.len())
            .filter(|&index| !selection.is_kept(index))
            .collect(),
        slack: forecast.fastest().transmission_time(DataSize::new(slack)),
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
    /// The section that this one needs, if it has the same class.
    parent: Option<usize>,
    /// The number of sections of the same class that depend on it, including itself.
    family: usize,
    /// The undecided ones among these, excluding itself.
    undecided: usize,
    /// The kept sections of the same class that need it directly.
    kept_children: usize,
    kept: bool,
    /// Its position in an order in which every section follows the one that it needs.
    rank: (usize, usize),
}

struct Selection {
    nodes: Vec<Node>,
    room: Room,
    /// The class under decision, and its candidates for dropping.
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
        for &index in &upward {
            if let Some(&child) = nodes.get(index)
                && let Some(needed) = child.needs.and_then(|needs| nodes.get_mut(needs))
            {
                needed.class = needed.class.max(child.class);
            }
        }
        for &index in &upward {
            let Some(&child) = nodes.get(index) else {
                continue;
            };
            let Some(needs) = child.needs else { continue };
            let Some(needed) = nodes.get_mut(needs) else {
                continue;
            };
            if needed.class == child.class {
                needed.family += child.family;
                needed.undecided += child.family;
                if let Some(child) = nodes.get_mut(index) {
                    child.parent = Some(needs);
                }
            }
        }
        for (topological, &index) in upward.iter().rev().enumerate() {
            let parent = nodes.get(index).and_then(|node| node.parent);
            let after = parent.and_then(|parent| nodes.get(parent));
            let after = after.map_or(0, |parent| parent.rank.0);
            if let Some(node) = nodes.get_mut(index) {
                node.rank = (index.max(after), topological);
            }
        }
        Self {
            nodes,
            room: Room::new(budgets),
            class: Importance(u8::MAX),
            candidates: BinaryHeap::new(),
        }
    }

    /// All indices, the highest class first, and every section after the one that it needs.
    fn order(&self) -> Vec<usize> {
        let mut order: Vec<usize> = (0..self.nodes.len()).collect();
        order.sort_by_key(|&index| {
            let node = self.nodes.get(index).copied().unwrap_or_default();
            (Reverse(node.class), node.rank)
        });
        order
    }

    fn is_kept(&self, index: usize) -> bool {
        self.nodes.get(index).is_some_and(|node| node.kept)
    }

    fn has_what_it_needs(&self, index: usize) -> bool {
        let needs = self.nodes.get(index).and_then(|node| node.needs);
        needs.is_none_or(|needs| self.is_kept(needs))
    }

    /// Keeps a section, at the cost of others of its class, or drops it.
    fn decide(&mut self, index: usize) {
        let Some(&node) = self.nodes.get(index) else {
            return;
        };
        if node.class != self.class {
            self.class = node.class;
            self.candidates.clear();
        }
        if let Some(parent) = node.parent.and_then(|parent| self.nodes.get_mut(parent)) {
            parent.undecided -= node.family;
        }
        if !self.has_what_it_needs(index) {
            return;
        }
        self.keep(index);
        while let Some(late) = self.room.first_exceeded() {
            let Some(candidate) = self.cheapest() else {
                break;
            };
            if candidate > late {
                // Dropping it would not help: it leaves after the late one.
                self.offer(candidate);
                self.drop_again(index);
            } else {
                self.drop_again(candidate);
            }
        }
    }

    /// Removes the candidate with the smallest loss whose record is up to date.
    fn cheapest(&mut self) -> Option<usize> {
        while let Some((Reverse(family), _, index)) = self.candidates.pop() {
            if let Some(node) = self.nodes.get(index)
                && node.kept
                && node.kept_children == 0
                && family == 1 + node.undecided
            {
                return Some(index);
            }
        }
        None
    }

    fn offer(&mut self, index: usize) {
        if let Some(node) = self.nodes.get(index) {
            self.candidates
                .push((Reverse(1 + node.undecided), node.left, index));
        }
    }

    fn keep(&mut self, index: usize) {
        let Some(node) = self.nodes.get_mut(index) else {
            return;
        };
        node.kept = true;
        let (left, parent) = (node.left, node.parent);
        self.room.keep(index, left);
        if let Some(parent) = parent.and_then(|parent| self.nodes.get_mut(parent)) {
            parent.kept_children += 1;
        }
        self.offer(index);
    }

    fn drop_again(&mut self, index: usize) {
        let Some(node) = self.nodes.get_mut(index) else {
            return;
        };
        node.kept = false;
        let (left, parent) = (node.left, node.parent);
        self.room.release(index, left);
        if let Some(parent) = parent
            && let Some(node) = self.nodes.get_mut(parent)
        {
            node.kept_children -= 1;
            if node.kept_children == 0 {
                self.offer(parent);
            }
        }
    }

    /// Restores dropped sections that fit after all.
    fn take_back(&mut self) {
        for index in self.order() {
            if !self.is_kept(index) && self.has_what_it_needs(index) {
                self.keep(index);
                if self.room.first_exceeded().is_some() {
                    self.drop_again(index);
                }
            }
        }
    }
}

/// All indices, each section before the one that it needs. Circular dependencies are left out.
fn leaves_first(queue: &[Work]) -> Vec<usize> {
    let mut waiting = alloc::vec![0_usize; queue.len()];
    for work in queue {
        if let Some(count) = work.needs.and_then(|needs| waiting.get_mut(needs)) {
            *count += 1;
        }
    }
    let mut order: Vec<usize> = (0..queue.len())
        .filter(|&index| waiting.get(index) == Some(&0))
        .collect();
    let mut next = 0;
    while let Some(&index) = order.get(next) {
        next += 1;
        let needs = queue.get(index).and_then(|work| work.needs);
        if let Some((needs, count)) = needs.and_then(|at| Some((at, waiting.get_mut(at)?))) {
            *count -= 1;
            if *count == 0 {
                order.push(needs);
            }
        }
    }
    order
}

/// The budget minus the work up to and including each kept section: a tree of minima with additions
/// to suffixes.
struct Room {
    /// The minimum below each node, without additions above it; the leaves begin at `leaves`.
    least: Vec<i128>,
    added: Vec<i128>,
    leaves: usize,
}

/// Added to sections that are not kept, so that they exceed every budget.
const NOT_KEPT: i128 = 1 << 80;

impl Room {
    fn new(budgets: &[u64]) -> Self {
        let leaves = budgets.len().next_power_of_two();
        let mut least = alloc::vec![NOT_KEPT; 2 * leaves];
        for (leaf, &budget) in least.iter_mut().skip(leaves).zip(budgets) {
            *leaf += i128::from(budget);
        }
        // Nothing is kept, so every minimum exceeds any budget. The exact value does not matter.
        Self {
            added: alloc::vec![0; 2 * leaves],
            least,
            leaves,
        }
    }

    fn at(values: &[i128], node: usize) -> i128 {
        values.get(node).copied().unwrap_or(NOT_KEPT)
    }

    /// Adds `own` to one leaf, and `behind` to all later leaves.
    fn add(&mut self, index: usize, own: i128, behind: i128) {
        let mut node = self.leaves + index;
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

    fn keep(&mut self, index: usize, left: u64) {
        let left = i128::from(left);
        self.add(index, -left - NOT_KEPT, -left);
    }

    fn release(&mut self, index: usize, left: u64) {
        let left = i128::from(left);
        self.add(index, left + NOT_KEPT, left);
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
