//! The event queue: a tournament of links, and a heap of timers.

use comity_units::Time;

use super::event::{Class, Event};
use super::tournament::Tournament;

/// A priority queue of events.
///
/// A link has at most one event for its packets, the next arrival, and one for its service. So
/// these events have a [`Tournament`] with a leaf for each. Timers are far ahead, and most of their
/// sources have none, so they have a heap.
///
/// Handling a timer usually sets the next one. So its event stays at the top of the heap,
/// [spent](EventQueue::begin), until the next one replaces it.
#[derive(Debug)]
pub(super) struct EventQueue {
    links: usize,
    packets: Tournament,
    timers: Heap,
    is_timer_spent: bool,
}

impl EventQueue {
    /// Creates a queue for the events of `links` links. `any_serves` says whether any link serves
    /// its queue packet by packet.
    pub(super) fn new(links: usize, any_serves: bool) -> Self {
        Self {
            links,
            packets: Tournament::new(if any_serves { 2 * links } else { links }),
            timers: Heap::default(),
            is_timer_spent: false,
        }
    }

    /// The earliest event, or [`Event::NEVER`] if there is none. A timer stays in the queue until
    /// the first scheduled one replaces it, or [`EventQueue::end`] removes it. A link's event stays
    /// until [`EventQueue::set`] sets the next one.
    #[inline]
    pub(super) fn begin(&mut self) -> Event {
        let (packet, timer) = (self.packets.first(), self.timers.first());
        if packet < timer {
            return packet;
        }
        self.is_timer_spent = timer != Event::NEVER;
        timer
    }

    /// Sets the time of a link's next event; [`Time::MAX`] if it has none.
    #[inline]
    pub(super) fn set(&mut self, class: Class, link: u32, time: Time) {
        let event = Event::new(time, class, link);
        self.packets.set(self.leaf(class, link), event);
    }

    /// Moves a link's next event to an earlier time.
    #[inline]
    pub(super) fn advance(&mut self, class: Class, link: u32, time: Time) {
        let event = Event::new(time, class, link);
        self.packets.advance(self.leaf(class, link), event);
    }

    #[inline]
    fn leaf(&self, class: Class, link: u32) -> usize {
        match class {
            Class::Service => self.links + link as usize,
            _ => link as usize,
        }
    }

    /// Adds an event that does not belong to a link. It is not before the current one.
    #[inline]
    pub(super) fn schedule(&mut self, event: Event) {
        if core::mem::take(&mut self.is_timer_spent) {
            self.timers.replace_top(event);
        } else {
            self.timers.push(event);
        }
    }

    /// Ends the handling of the event that [`EventQueue::begin`] returned.
    #[inline]
    pub(super) fn end(&mut self) {
        if core::mem::take(&mut self.is_timer_spent) {
            self.timers.pop();
        }
    }

    pub(super) fn memory(&self) -> usize {
        self.packets.memory() + self.timers.events.capacity() * size_of::<Event>()
    }
}

/// A heap in which each event has up to four children, adjacent in memory.
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

    /// Replaces the earliest event with `event`.
    fn replace_top(&mut self, event: Event) {
        let events = self.events.as_mut_slice();
        let mut at = 0;
        loop {
            let first = at * ARITY + 1;
            let Some(children) = events.get(first..) else {
                break;
            };
            // A knockout of four compiles without branches. Only the last parent may have fewer
            // children.
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

    /// The events of three links and of other sources. Each link's events are kept as in the
    /// engine.
    struct Model {
        queue: EventQueue,
        next: [[Time; 3]; 2],
    }

    impl Model {
        fn new() -> Self {
            Self {
                queue: EventQueue::new(3, true),
                next: [[Time::MAX; 3]; 2],
            }
        }

        /// Adds an event, and returns it if it counts. Of a link's events only the earliest counts.
        fn schedule(&mut self, event: Event) -> Option<Event> {
            let (bank, link) = match event.class() {
                Class::Arrival => (0, event.source() as usize),
                Class::Service => (1, event.source() as usize),
                _ => {
                    self.queue.schedule(event);
                    return None;
                }
            };
            let next = &mut self.next[bank][link];
            let before = core::mem::replace(next, event.time().min(*next));
            if event.time() < before {
                self.queue
                    .advance(event.class(), event.source(), event.time());
                return Some(Event::new(before, event.class(), event.source()));
            }
            Some(event)
        }

        fn step(&mut self) -> Option<Event> {
            let event = self.queue.begin();
            if event.time().is_never() {
                return None;
            }
            let (class, link) = (event.class(), event.source());
            if matches!(class, Class::Arrival | Class::Service) {
                let bank = usize::from(class == Class::Service);
                self.next[bank][link as usize] = Time::MAX;
                self.queue.set(class, link, Time::MAX);
            }
            Some(event)
        }

        fn drain(&mut self) -> Vec<Event> {
            let mut events = Vec::new();
            while let Some(event) = self.step() {
                events.push(event);
                self.queue.end();
            }
            events
        }
    }

    #[test]
    fn events_come_out_by_time_then_class_then_source() {
        let mut model = Model::new();
        let at = Time::from_nanos;
        let order = [
            Event::new(at(1), Class::Timer, 9),
            Event::new(at(2), Class::Control, 7),
            Event::new(at(2), Class::Arrival, 1),
            Event::new(at(2), Class::Arrival, 2),
            Event::new(at(2), Class::Service, 0),
            Event::new(at(2), Class::Application, 0),
            Event::new(at(3), Class::Service, 1),
        ];
        for index in [3, 0, 5, 1, 6, 4, 2] {
            model.schedule(order[index]);
        }
        assert_eq!(model.drain(), order);
        model.queue.end();
        let event = Event::new(at(77), Class::Service, u32::MAX);
        assert_eq!(
            (event.time(), event.class(), event.source()),
            (at(77), Class::Service, u32::MAX)
        );
    }

    #[test]
    fn the_queue_agrees_with_a_sorted_list() {
        use proptest::prelude::*;
        let classes = [
            Class::Arrival,
            Class::Timer,
            Class::Service,
            Class::Application,
            Class::Control,
        ];
        proptest!(|(plan in prop::collection::vec((0u64..50, 0u32..3, 0usize..5, 0usize..4), 1..300))| {
            let mut model = Model::new();
            let mut sorted: Vec<Event> = Vec::new();
            for (time, source, class, followers) in plan {
                // Each step handles the earliest event, which schedules up to three others.
                sorted.sort();
                let first = sorted.first().copied();
                prop_assert_eq!(model.step(), first);
                let now = first.map_or(0, |first| first.time().as_nanos());
                if first.is_some() {
                    sorted.remove(0);
                }
                for follower in 0..followers {
                    let time = Time::from_nanos(now + time + 7 * follower as u64);
                    let event = Event::new(time, classes[(class + follower) % 5], source);
                    let superseded = model.schedule(event);
                    sorted.push(event);
                    if let Some(at) = sorted.iter().position(|&e| Some(e) == superseded) {
                        sorted.remove(at);
                    }
                }
                model.queue.end();
            }
            sorted.sort();
            prop_assert_eq!(model.drain(), sorted);
        });
    }
}
