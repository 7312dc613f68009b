//! Received items on their way to the tasks of the application.

use loom::future::block_on;
use loom::sync::Arc;
use loom::thread;

use super::system::System;
use crate::check;
use crate::inbound::{Inbound, Next};
use crate::memory::MemoryBudget;
use crate::sleep::{IsScheduled, Sleep};

struct Connection {
    inbound: Inbound<u32>,
    is_scheduled: IsScheduled,
    sleep: Sleep<(), System>,
}

impl Connection {
    fn new() -> Arc<Self> {
        Arc::new(Self {
            inbound: Inbound::new(MemoryBudget::new(1_000).share()),
            is_scheduled: IsScheduled::new(),
            sleep: Sleep::new(System::new()),
        })
    }

    /// A task receives until the end.
    fn receive(&self) -> Vec<u32> {
        let resume = || {
            if self.is_scheduled.set() {
                self.sleep.schedule(());
            }
        };
        let mut items = Vec::new();
        while let Some(item) = block_on(self.inbound.recv(resume)) {
            items.push(item);
        }
        items
    }

    /// The endpoint's thread: it has so many items, and serves the connection when that is
    /// scheduled.
    fn drive(&self, items: u32, max_items: usize) {
        let mut items = 0..items;
        let mut scheduled = vec![()];
        loop {
            if scheduled.pop().is_some() {
                self.is_scheduled.clear();
                let next = || match items.next() {
                    Some(item) => Next::Item(item, 1),
                    None => Next::End,
                };
                let filled = self.inbound.fill(max_items, 1_000, next);
                if filled.is_news {
                    self.inbound.notify();
                }
                if !filled.is_stalled {
                    return;
                }
            }
            if self.sleep.fall_asleep() {
                let state = self.sleep.signal().poll();
                self.sleep.wake_up(state.is_signalled);
            }
            self.sleep.take(&mut scheduled);
        }
    }
}

#[test]
fn a_full_queue_is_filled_again() {
    check(3, || {
        let connection = Connection::new();
        let task = connection.clone();
        let task = thread::spawn(move || task.receive());
        connection.drive(2, 1);
        assert_eq!(task.join().unwrap(), [0, 1]);
    });
}

#[test]
fn each_item_reaches_one_task_and_the_end_both() {
    check(2, || {
        let connection = Connection::new();
        let tasks = [(); 2].map(|()| {
            let task = connection.clone();
            thread::spawn(move || task.receive())
        });
        connection.drive(2, 3);
        let mut items = tasks.map(|task| task.join().unwrap()).concat();
        items.sort_unstable();
        assert_eq!(items, [0, 1]);
    });
}

/// A task that has an item may be done: what is left is for the other one.
#[test]
fn a_task_that_stops_leaves_the_rest_to_the_other() {
    check(2, || {
        let connection = Connection::new();
        let tasks = [(); 2].map(|()| {
            let task = connection.clone();
            thread::spawn(move || block_on(task.inbound.recv(|| {})))
        });
        connection.drive(2, 3);
        let mut items = tasks.map(|task| task.join().unwrap());
        items.sort_unstable();
        assert_eq!(items, [Some(0), Some(1)]);
    });
}

/// The endpoint forgets the connection while tasks wait.
#[test]
fn both_tasks_learn_of_the_end() {
    check(3, || {
        let connection = Connection::new();
        let tasks = [(); 2].map(|()| {
            let task = connection.clone();
            thread::spawn(move || task.receive())
        });
        connection.inbound.end();
        assert!(
            tasks
                .into_iter()
                .all(|task| task.join().unwrap().is_empty())
        );
    });
}
