//! The endpoint's sleep and wake-up under every interleaving: `make loom`.
//!
//! The code is that of the endpoint, with loom's atomics and locks in place of std's. A wake-up
//! that is lost leaves the thread waiting for ever, which loom reports as a deadlock. Loom takes
//! `SeqCst` for `AcqRel`: what passes here does not depend on a total order of all accesses.
#![cfg(test)]

#[path = "../../crates/comity/src/endpoint/sleep.rs"]
mod sleep;

mod sync {
    pub(super) use loom::sync::atomic::{AtomicBool, Ordering};
    pub(super) use loom::sync::{Mutex, MutexGuard};
}

use loom::model::Builder;
use loom::sync::{Arc, Condvar, Mutex};
use loom::thread;

use sleep::{IsScheduled, Signal, Sleep};

/// What `ppoll` waits for: the eventfd, and the socket.
struct System {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Clone, Copy, Default)]
struct State {
    is_signalled: bool,
    has_datagram: bool,
}

impl System {
    fn new() -> Self {
        Self {
            state: Mutex::new(State::default()),
            changed: Condvar::new(),
        }
    }

    fn change(&self, change: impl FnOnce(&mut State)) {
        change(&mut self.state.lock().unwrap());
        self.changed.notify_all();
    }

    /// Waits for the eventfd or the socket, and returns the state of both.
    fn poll(&self) -> State {
        let mut state = self.state.lock().unwrap();
        while !state.is_signalled && !state.has_datagram {
            state = self.changed.wait(state).unwrap();
        }
        *state
    }
}

impl Signal for System {
    fn send(&self) {
        self.change(|state| state.is_signalled = true);
    }

    fn clear(&self) {
        self.change(|state| state.is_signalled = false);
    }
}

struct Endpoint {
    sleep: Sleep<usize, System>,
    /// Whether each connection is scheduled, and the sections in its transport.
    connections: [(IsScheduled, Mutex<u32>); 2],
    calls: Mutex<u32>,
}

impl Endpoint {
    fn new() -> Arc<Self> {
        let connection = || (IsScheduled::new(), Mutex::new(0));
        Arc::new(Self {
            sleep: Sleep::new(System::new()),
            connections: [connection(), connection()],
            calls: Mutex::new(0),
        })
    }

    /// A handle submits a section.
    fn submit(&self, connection: usize) {
        let (is_scheduled, sections) = &self.connections[connection];
        *sections.lock().unwrap() += 1;
        if is_scheduled.set() {
            self.sleep.schedule(connection);
        }
    }

    /// A handle opens a connection.
    fn call(&self) {
        *self.calls.lock().unwrap() += 1;
        self.sleep.request();
    }

    /// The endpoint's thread, until it has seen these sections and calls, and a datagram.
    fn run(&self, sections: u32, calls: u32, mut datagrams: u32) {
        let (mut sections_seen, mut calls_seen) = (0, 0);
        let mut scheduled = Vec::new();
        loop {
            if self.sleep.take(&mut scheduled) {
                calls_seen += std::mem::take(&mut *self.calls.lock().unwrap());
            }
            for connection in scheduled.drain(..) {
                let (is_scheduled, sections) = &self.connections[connection];
                is_scheduled.clear();
                sections_seen += std::mem::take(&mut *sections.lock().unwrap());
            }
            if (sections_seen, calls_seen, datagrams) == (sections, calls, 0) {
                return;
            }
            if !self.sleep.fall_asleep() {
                continue;
            }
            let state = self.sleep.signal().poll();
            self.sleep.wake_up(state.is_signalled);
            if state.has_datagram {
                self.sleep
                    .signal()
                    .change(|state| state.has_datagram = false);
                datagrams -= 1;
            }
        }
    }
}

/// Every interleaving with up to three switches away from a thread that could go on: more take
/// minutes, and a lost wake-up needs two.
fn check(model: impl Fn() + Send + Sync + 'static) {
    let mut builder = Builder::new();
    builder.preemption_bound = Some(3);
    builder.check(model);
}

#[test]
fn a_submitted_section_wakes_the_thread() {
    check(|| {
        let endpoint = Endpoint::new();
        let handle = endpoint.clone();
        let handle = thread::spawn(move || {
            handle.submit(0);
            handle.submit(0);
        });
        endpoint.run(2, 0, 0);
        handle.join().unwrap();
    });
}

#[test]
fn two_handles_of_two_connections_wake_the_thread() {
    check(|| {
        let endpoint = Endpoint::new();
        let handles = [0, 1].map(|connection| {
            let handle = endpoint.clone();
            thread::spawn(move || handle.submit(connection))
        });
        endpoint.run(2, 0, 0);
        for handle in handles {
            handle.join().unwrap();
        }
    });
}

#[test]
fn a_section_and_a_call_wake_the_thread() {
    check(|| {
        let endpoint = Endpoint::new();
        let (submitting, calling) = (endpoint.clone(), endpoint.clone());
        let handles = [
            thread::spawn(move || submitting.submit(0)),
            thread::spawn(move || calling.call()),
        ];
        endpoint.run(1, 1, 0);
        for handle in handles {
            handle.join().unwrap();
        }
    });
}

/// The thread also wakes for a datagram, while a handle is about to signal.
#[test]
fn a_section_beside_a_datagram_wakes_the_thread() {
    check(|| {
        let endpoint = Endpoint::new();
        let (submitting, network) = (endpoint.clone(), endpoint.clone());
        let handles = [
            thread::spawn(move || submitting.submit(0)),
            thread::spawn(move || {
                let system = network.sleep.signal();
                system.change(|state| state.has_datagram = true);
            }),
        ];
        endpoint.run(1, 0, 1);
        for handle in handles {
            handle.join().unwrap();
        }
    });
}
