//! The event queue: a 4-ary heap of sixteen-byte keys.

use comity_units::Time;

/// What an event is about. At one instant events run in this order, then by source.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(super) enum Class {
    /// A flow starts or stops, or measuring begins.
    Control = 0,
    /// A packet comes out of a link.
    Arrival = 1,
    /// A link that serves its queue packet by packet has work.
    Service = 2,
    /// A transport's timer.
    Timer = 3,
    /// A workload or a reader acts.
    Application = 4,
}

impl Class {
    const ALL: [Self; 5] = [
        Self::Control,
        Self::Arrival,
        Self::Service,
        Self::Timer,
        Self::Application,
    ];
}

/// An entry: when, and whose turn it is. Ordered by (time, class, source), never by insertion, so that the
/// order of a run does not depend on how its packets were computed.
///
/// One number, the time in its upper half, the class in the byte below, the source at the bottom: one
/// comparison orders two events.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Event(u128);

impl Event {
    #[inline]
    pub(super) fn new(time: Time, class: Class, source: u32) -> Self {
        let tie = ((class as u64) << 56) | u64::from(source);
        Self((u128::from(time.as_nanos()) << 64) | u128::from(tie))
    }

    #[inline]
    pub(super) fn time(self) -> Time {
        Time::from_nanos((self.0 >> 64) as u64)
    }

    #[inline]
    pub(super) fn class(self) -> Class {
        let index = (self.0 as u64 >> 56) as usize;
        Class::ALL.get(index).copied().unwrap_or(Class::Control)
    }

    #[inline]
    pub(super) fn source(self) -> u32 {
        self.0 as u32
    }
}

/// A priority queue of events.
///
/// The population is one entry for each link with packets on it and one or two for each flow, not one for
/// each packet. Handling an event usually makes the next one of the same source, so the top entry is
/// replaced rather than removed and inserted.
#[derive(Debug, Default)]
pub(super) struct EventQueue {
    heap: Vec<Event>,
}

const ARITY: usize = 4;

impl EventQueue {
    #[inline]
    pub(super) fn peek(&self) -> Option<Event> {
        self.heap.first().copied()
    }

    pub(super) fn push(&mut self, event: Event) {
        self.heap.push(event);
        let mut at = self.heap.len() - 1;
        while at > 0 {
            let parent = (at - 1) / ARITY;
            if self.heap[parent] <= event {
                break;
            }
            self.heap[at] = self.heap[parent];
            at = parent;
        }
        self.heap[at] = event;
    }

    /// Takes the earliest event off.
    pub(super) fn pop(&mut self) {
        if let Some(last) = self.heap.pop()
            && !self.heap.is_empty()
        {
            self.replace_top(last);
        }
    }

    /// Puts `event` in the place of the earliest one.
    pub(super) fn replace_top(&mut self, event: Event) {
        let heap = self.heap.as_mut_slice();
        let mut at = 0;
        loop {
            let first = at * ARITY + 1;
            let Some(children) = heap.get(first..) else {
                break;
            };
            // A knockout of four leaves the compiler nothing to branch on; only the last parent may have fewer.
            let (winner, least) = match children.first_chunk::<ARITY>() {
                Some(&[a, b, c, d]) => {
                    let left = if b < a { (1, b) } else { (0, a) };
                    let right = if d < c { (3, d) } else { (2, c) };
                    if right.1 < left.1 { right } else { left }
                }
                None => match children.iter().enumerate().min_by_key(|(_, child)| **child) {
                    Some((index, child)) => (index, *child),
                    None => break,
                },
            };
            if event <= least {
                break;
            }
            heap[at] = least;
            at = first + winner;
        }
        heap[at] = event;
    }

    pub(super) fn memory(&self) -> usize {
        self.heap.capacity() * size_of::<Event>()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_come_out_by_time_then_class_then_source() {
        let mut queue = EventQueue::default();
        let at = Time::from_nanos;
        let order = [
            Event::new(at(1), Class::Timer, 9),
            Event::new(at(2), Class::Control, 7),
            Event::new(at(2), Class::Arrival, 3),
            Event::new(at(2), Class::Arrival, 4),
            Event::new(at(2), Class::Application, 0),
            Event::new(at(3), Class::Service, 0),
        ];
        for index in [3, 0, 5, 1, 4, 2] {
            queue.push(order[index]);
        }
        for expected in order {
            assert_eq!(queue.peek(), Some(expected));
            queue.pop();
        }
        assert_eq!(queue.peek(), None);
        queue.pop();
        let event = Event::new(at(77), Class::Service, u32::MAX);
        assert_eq!(
            (event.time(), event.class(), event.source()),
            (at(77), Class::Service, u32::MAX)
        );
    }

    #[test]
    fn a_heap_agrees_with_a_sorted_list() {
        use proptest::prelude::*;
        proptest!(|(times in prop::collection::vec((0u64..50, 0u32..20), 1..200))| {
            let mut queue = EventQueue::default();
            let mut sorted = Vec::new();
            for (index, &(time, source)) in times.iter().enumerate() {
                let event = Event::new(Time::from_nanos(time), Class::Arrival, source);
                if index % 3 == 2 {
                    // Replacing the top is taking it and putting another.
                    sorted.sort();
                    prop_assert_eq!(queue.peek(), sorted.first().copied());
                    sorted[0] = event;
                    queue.replace_top(event);
                } else {
                    queue.push(event);
                    sorted.push(event);
                }
            }
            sorted.sort();
            for event in sorted {
                prop_assert_eq!(queue.peek(), Some(event));
                queue.pop();
            }
        });
    }
}
