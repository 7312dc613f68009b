//! What the endpoint's thread waits for in the system.

use loom::sync::{Condvar, Mutex};

use crate::sleep::Signal;

/// What `ppoll` waits for: the eventfd, and the socket.
pub(super) struct System {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Clone, Copy, Default)]
pub(super) struct State {
    pub(super) is_signalled: bool,
    pub(super) has_datagram: bool,
}

impl System {
    pub(super) fn new() -> Self {
        Self {
            state: Mutex::new(State::default()),
            changed: Condvar::new(),
        }
    }

    pub(super) fn change(&self, change: impl FnOnce(&mut State)) {
        change(&mut self.state.lock().unwrap());
        self.changed.notify_all();
    }

    /// Waits for the eventfd or the socket, and returns the state of both.
    pub(super) fn poll(&self) -> State {
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
