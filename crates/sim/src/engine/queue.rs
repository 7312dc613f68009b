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

    /// After all others.
    const NEVER: Self = Self(u128::MAX);

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
/// each packet. Packets and timers have a heap each: timers lie far ahead and are many, packets are near and
/// few, so that the heap in which nearly everything happens stays a handful deep.
///
/// Handling an event usually makes the next one of its kind. The event being handled therefore stays at the
/// top of its heap, [spent](EventQueue::begin), until the next one takes its place.
#[derive(Debug, Default)]
pub(super) struct EventQueue {
    packets: Heap,
    timers: Heap,
    spent: Spent,
}

/// Whether the top of a heap is the event that is being handled.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Spent {
    #[default]
    None,
    Packet,
    Timer,
}

impl EventQueue {
    /// The earliest event. It stays in the queue, to be replaced by the first event scheduled of its kind or
    /// taken off by [`EventQueue::end`].
    #[inline]
    pub(super) fn begin(&mut self) -> Option<Event> {
        let (packet, timer) = (self.packets.first(), self.timers.first());
        let (event, kind) = if packet <= timer {
            (packet, Spent::Packet)
        } else {
            (timer, Spent::Timer)
        };
        if event == Event::NEVER {
            return None;
        }
        self.spent = kind;
        Some(event)
    }

    /// Adds an event, not before the spent one, in the place of the spent one if that is of its kind.
    #[inline]
    pub(super) fn schedule(&mut self, event: Event) {
        let (heap, spent) = match event.class() {
            Class::Arrival | Class::Service => (&mut self.packets, Spent::Packet),
            Class::Timer | Class::Application | Class::Control => (&mut self.timers, Spent::Timer),
        };
        if self.spent == spent {
            self.spent = Spent::None;
            heap.replace_top(event);
        } else {
            heap.push(event);
        }
    }

    /// The event given by [`EventQueue::begin`] is dealt with.
    #[inline]
    pub(super) fn end(&mut self) {
        match core::mem::take(&mut self.spent) {
            Spent::None => {}
            Spent::Packet => self.packets.pop(),
            Spent::Timer => self.timers.pop(),
        }
    }

    pub(super) fn memory(&self) -> usize {
        (self.packets.events.capacity() + self.timers.events.capacity()) * size_of::<Event>()
    }
}

/// A heap in which each event has up to four children, behind each other in memory.
#[derive(Debug, Default)]
struct Heap {
    events: Vec<Event>,
}

const ARITY: usize = 4;

impl Heap {
    /// The earliest event, or one after all others.
    #[inline]
    fn first(&self) -> Event {
        self.events.first().copied().unwrap_or(Event::NEVER)
    }

    fn push(&mut self, event: Event) {
        self.events.push(event);
        let events = self.events.as_mut_slice();
        let mut at = events.len() - 1;
        while at > 0 {
            let parent = (at - 1) / ARITY;
            if events[parent] <= event {
                break;
            }
            events[at] = events[parent];
            at = parent;
        }
        events[at] = event;
    }

    fn pop(&mut self) {
        if let Some(last) = self.events.pop()
            && !self.events.is_empty()
        {
            self.replace_top(last);
        }
    }

    /// Puts `event` in the place of the earliest one.
    fn replace_top(&mut self, event: Event) {
        let events = self.events.as_mut_slice();
        let mut at = 0;
        loop {
            let first = at * ARITY + 1;
            let Some(children) = events.get(first..) else {
                break;
            };
            // A knockout of four leaves the compiler nothing to branch on; only the last parent may have
            // fewer.
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
            events[at] = least;
            at = first + winner;
        }
        events[at] = event;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn drain(queue: &mut EventQueue) -> Vec<Event> {
        let mut events = Vec::new();
        while let Some(event) = queue.begin() {
            events.push(event);
            queue.end();
        }
        events
    }

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
            queue.schedule(order[index]);
        }
        assert_eq!(drain(&mut queue), order);
        queue.end();
        let event = Event::new(at(77), Class::Service, u32::MAX);
        assert_eq!(
            (event.time(), event.class(), event.source()),
            (at(77), Class::Service, u32::MAX)
        );
    }

    #[test]
    fn the_queue_agrees_with_a_sorted_list() {
        use proptest::prelude::*;
        let classes = [Class::Arrival, Class::Timer, Class::Application];
        proptest!(|(plan in prop::collection::vec((0u64..50, 0u32..20, 0usize..3, 0usize..4), 1..300))| {
            let mut queue = EventQueue::default();
            let mut sorted: Vec<Event> = Vec::new();
            for (time, source, class, followers) in plan {
                // Each step handles the earliest event, which schedules up to three others.
                sorted.sort();
                let first = sorted.first().copied();
                prop_assert_eq!(queue.begin(), first);
                let now = first.map_or(0, |first| first.time().as_nanos());
                if first.is_some() {
                    sorted.remove(0);
                }
                for follower in 0..followers {
                    let time = Time::from_nanos(now + time + 7 * follower as u64);
                    let event = Event::new(time, classes[(class + follower) % 3], source);
                    queue.schedule(event);
                    sorted.push(event);
                }
                queue.end();
            }
            sorted.sort();
            prop_assert_eq!(drain(&mut queue), sorted);
        });
    }
}
