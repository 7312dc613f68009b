//! The sleep and the wake-up of the endpoint's thread.

use loom::sync::{Arc, Mutex};
use loom::thread;

use super::system::System;
use crate::check;
use crate::sleep::{IsScheduled, Sleep};

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

#[test]
fn a_submitted_section_wakes_the_thread() {
    check(3, || {
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
    check(3, || {
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
    check(3, || {
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
    check(3, || {
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
