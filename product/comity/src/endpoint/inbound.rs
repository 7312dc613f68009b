//! The queue of received items, from the driver to the application.
//!
//! The driver fills the queue up to a limit. If it holds items back, the task that empties the
//! queue schedules the connection again. Each item reaches one task, and the end reaches all.
//! `loom/` checks every interleaving of these steps.

use std::collections::VecDeque;
use std::sync::Arc;

use crate::memory::MemoryShare;
use crate::session::lock;
use crate::sync::{Mutex, Notify};

#[derive(Debug)]
pub(crate) struct Inbound<T> {
    queue: Mutex<Queue<T>>,
    arrived: Notify,
    /// Counts the bytes of the queue, under its lock.
    memory: Arc<MemoryShare>,
}

#[derive(Debug)]
struct Queue<T> {
    /// Each with its size in bytes.
    items: VecDeque<(T, usize)>,
    bytes: usize,
    /// No items follow those in the queue.
    is_over: bool,
    /// The driver holds items back because the queue is full.
    is_stalled: bool,
}

/// The next item that the driver offers to the queue, if any.
#[derive(Debug)]
pub(crate) enum Next<T> {
    /// An item and its size in bytes.
    Item(T, usize),
    /// Nothing now.
    Nothing,
    /// No more items.
    End,
}

/// The state of the queue after it was filled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Filled {
    /// It is full, and items may be left.
    pub(crate) is_stalled: bool,
    /// A task may be waiting for these items: call [`Inbound::notify`].
    pub(crate) is_news: bool,
}

impl<T> Inbound<T> {
    pub(crate) fn new(memory: Arc<MemoryShare>) -> Self {
        Self {
            queue: Mutex::new(Queue {
                items: VecDeque::new(),
                bytes: 0,
                is_over: false,
                is_stalled: false,
            }),
            arrived: Notify::new(),
            memory,
        }
    }

    /// Adds items until none is left, or the queue has reached a limit of items or bytes.
    pub(crate) fn fill(
        &self,
        max_items: usize,
        max_bytes: usize,
        mut next: impl FnMut() -> Next<T>,
    ) -> Filled {
        let mut queue = lock(&self.queue);
        let before = queue.items.len();
        queue.is_over = false;
        queue.is_stalled = loop {
            if queue.items.len() >= max_items || queue.bytes >= max_bytes {
                break true;
            }
            match next() {
                Next::Item(item, size) => {
                    queue.bytes += size;
                    queue.items.push_back((item, size));
                }
                Next::Nothing => break false,
                Next::End => {
                    queue.is_over = true;
                    break false;
                }
            }
        };
        self.memory.set_queued(queue.bytes as u64);
        Filled {
            is_stalled: queue.is_stalled,
            is_news: queue.items.len() > before || queue.is_over,
        }
    }

    /// Discards all items, since the application accepts no more. `is_over`: no items follow.
    pub(crate) fn discard(&self, is_over: bool) {
        let mut queue = lock(&self.queue);
        queue.items.clear();
        queue.bytes = 0;
        queue.is_stalled = false;
        queue.is_over = is_over;
        self.memory.set_queued(0);
    }

    /// Wakes a task that waits.
    pub(crate) fn notify(&self) {
        self.arrived.notify_one();
    }

    /// No items follow those in the queue.
    pub(crate) fn end(&self) {
        lock(&self.queue).is_over = true;
        self.notify();
    }

    pub(crate) fn is_over(&self) -> bool {
        lock(&self.queue).is_over
    }

    /// Waits for the next item; `None` after the last one. `resume` schedules the connection.
    pub(crate) async fn recv(&self, resume: impl Fn()) -> Option<T> {
        loop {
            if let Some(item) = self.take(&resume)? {
                return Some(item);
            }
            // This does not miss a notification since the check, which leaves a permit.
            self.arrived.notified().await;
        }
    }

    /// The next item, if the queue has one.
    pub(crate) fn try_recv(&self, resume: impl Fn()) -> Option<T> {
        self.take(&resume).flatten()
    }

    /// Returns `None` if no more items will come, and `Some(None)` if none waits now.
    fn take(&self, resume: &impl Fn()) -> Option<Option<T>> {
        let mut queue = lock(&self.queue);
        let Some((item, size)) = queue.items.pop_front() else {
            if !queue.is_over {
                return Some(None);
            }
            drop(queue);
            // Other waiting tasks must be woken too, one after the other.
            self.notify();
            return None;
        };
        queue.bytes -= size;
        self.memory.set_queued(queue.bytes as u64);
        let has_more = !queue.items.is_empty();
        let resumes = queue.is_stalled && !has_more;
        if resumes {
            queue.is_stalled = false;
        }
        drop(queue);
        if resumes {
            resume();
        }
        if has_more {
            // Another task may be waiting for the next one.
            self.notify();
        }
        Some(Some(item))
    }
}
