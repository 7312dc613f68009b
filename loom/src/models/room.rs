//! Tasks that wait for room in the send buffer.

use loom::future::block_on;
use loom::sync::Arc;
use loom::thread;

use crate::check;
use crate::room::Room;
use crate::session::lock;
use crate::sync::Mutex;

#[derive(Default)]
struct Transport {
    room: u32,
    is_closed: bool,
}

struct Connection {
    room: Room,
    transport: Mutex<Transport>,
}

impl Connection {
    fn new() -> Arc<Self> {
        Arc::new(Self {
            room: Room::new(),
            transport: Mutex::default(),
        })
    }

    /// A task sends a section. Returns `false` if the connection is closed.
    fn send(&self) -> bool {
        let submit = || {
            let mut transport = lock(&self.transport);
            if transport.is_closed {
                return Some(false);
            }
            match transport.room.checked_sub(1) {
                None => {
                    self.room.want();
                    None
                }
                Some(left) => {
                    transport.room = left;
                    Some(true)
                }
            }
        };
        block_on(self.room.wait(submit))
    }

    /// The driver learns of outcomes.
    fn make_room(&self) {
        let mut transport = lock(&self.transport);
        transport.room += 1;
        let is_wanted = self.room.take_wanted();
        drop(transport);
        if is_wanted {
            self.room.notify();
        }
    }

    /// The connection ends.
    fn close(&self) {
        lock(&self.transport).is_closed = true;
        self.room.notify();
    }
}

#[test]
fn a_task_learns_of_room() {
    check(3, || {
        let connection = Connection::new();
        let task = connection.clone();
        let task = thread::spawn(move || (task.send(), task.send()));
        connection.make_room();
        connection.make_room();
        assert_eq!(task.join().unwrap(), (true, true));
    });
}

/// Both may hear of the first room, and one of them finds it taken: it hears of the next.
#[test]
fn two_tasks_share_the_room() {
    check(2, || {
        let connection = Connection::new();
        let tasks = [(); 2].map(|()| {
            let task = connection.clone();
            thread::spawn(move || task.send())
        });
        connection.make_room();
        connection.make_room();
        assert!(tasks.into_iter().all(|task| task.join().unwrap()));
    });
}

#[test]
fn a_task_learns_of_the_end() {
    check(3, || {
        let connection = Connection::new();
        let task = connection.clone();
        let task = thread::spawn(move || task.send());
        connection.close();
        assert!(!task.join().unwrap());
    });
}
