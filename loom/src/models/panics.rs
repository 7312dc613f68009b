//! A panic while the transport is locked.

use loom::sync::Arc;
use loom::thread;

use crate::check;
use crate::contain;
use crate::session::{lock, lock_or_fail, recover, use_locked};
use crate::sleep::IsScheduled;
use crate::sync::Mutex;

#[derive(Debug, Default)]
struct Transport {
    is_broken: bool,
    has_failed: bool,
}

impl Transport {
    fn fail(&mut self) {
        *self = Self {
            is_broken: false,
            has_failed: true,
        };
    }

    /// Does something, and panics in between.
    fn work(&mut self, panics: bool) {
        assert!(!self.is_broken, "it is used after a panic");
        if panics && !self.has_failed {
            self.is_broken = true;
            contain::panic();
        }
    }
}

struct Connection {
    transport: Mutex<Transport>,
    is_scheduled: IsScheduled,
}

impl Connection {
    /// A call of the application.
    fn act(&self, panics: bool) {
        let schedule = || {
            self.is_scheduled.set();
        };
        let work = |transport: &mut Transport| transport.work(panics);
        use_locked(&self.transport, Transport::fail, schedule, work);
    }

    /// The driver serves the connection. Returns whether its session learns of a panic.
    fn serve(&self) -> bool {
        recover(&self.transport, || lock(&self.transport).fail());
        self.is_scheduled.clear();
        let mut transport = lock_or_fail(&self.transport, Transport::fail);
        transport.work(false);
        transport.has_failed
    }
}

/// One task panics beside another one and the driver.
#[test]
fn nobody_uses_what_a_panic_left() {
    check(4, || {
        let connection = Arc::new(Connection {
            transport: Mutex::default(),
            is_scheduled: IsScheduled::new(),
        });
        let tasks = [true, false].map(|panics| {
            let task = connection.clone();
            thread::spawn(move || task.act(panics))
        });
        let mut is_known = connection.serve();
        for task in tasks {
            task.join().unwrap();
        }
        let was_scheduled = !connection.is_scheduled.set();
        if was_scheduled {
            is_known |= connection.serve();
        }
        assert!(is_known, "the session learns of the panic");
        let transport = lock(&connection.transport);
        assert!(transport.has_failed && !transport.is_broken);
    });
}
