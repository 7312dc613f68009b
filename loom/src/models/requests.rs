//! Calls that are requested while the endpoint ends.

use std::sync::Arc as Handles;

use loom::sync::atomic::{AtomicBool, Ordering};
use loom::sync::{Arc, Condvar, Mutex};
use loom::thread;

use super::system::System;
use crate::check;
use crate::requests::Requests;
use crate::sleep::Sleep;

struct Endpoint {
    requests: Requests<Request>,
    sleep: Sleep<(), System>,
    is_shut_down: AtomicBool,
}

/// The last handle ends the endpoint's thread.
struct Handle(Arc<Endpoint>);

/// A call. Its task holds a handle, and learns of a request that is dropped.
struct Request {
    reply: Arc<Reply>,
    _handle: Handles<Handle>,
}

#[derive(Default)]
struct Reply {
    is_made: Mutex<Option<bool>>,
    changed: Condvar,
}

impl Reply {
    fn say(&self, is_made: bool) {
        self.is_made.lock().unwrap().get_or_insert(is_made);
        self.changed.notify_all();
    }

    /// The task waits until the call is made or dropped.
    fn wait(&self) -> bool {
        let mut is_made = self.is_made.lock().unwrap();
        loop {
            match *is_made {
                Some(is_made) => return is_made,
                None => is_made = self.changed.wait(is_made).unwrap(),
            }
        }
    }
}

impl Drop for Request {
    fn drop(&mut self) {
        self.reply.say(false);
    }
}

impl Drop for Handle {
    fn drop(&mut self) {
        self.0.shut_down();
    }
}

impl Endpoint {
    fn new() -> Arc<Self> {
        Arc::new(Self {
            requests: Requests::default(),
            sleep: Sleep::new(System::new()),
            is_shut_down: AtomicBool::new(false),
        })
    }

    fn shut_down(&self) {
        self.is_shut_down.store(true, Ordering::SeqCst);
        self.sleep.request();
    }

    fn call(&self, handle: &Handles<Handle>) -> Arc<Reply> {
        let reply = Arc::new(Reply::default());
        self.requests.push(Request {
            reply: reply.clone(),
            _handle: handle.clone(),
        });
        self.sleep.request();
        reply
    }

    /// The endpoint's thread, until it is shut down.
    fn run(&self) {
        let mut scheduled = Vec::new();
        loop {
            if self.sleep.take(&mut scheduled) {
                for request in self.requests.take() {
                    request.reply.say(true);
                }
                if self.is_shut_down.load(Ordering::SeqCst) {
                    break;
                }
            }
            if self.sleep.fall_asleep() {
                let state = self.sleep.signal().poll();
                self.sleep.wake_up(state.is_signalled);
            }
        }
        self.requests.end();
    }
}

/// A task calls, and another one closes the endpoint.
#[test]
fn a_call_is_made_or_dropped() {
    check(3, || {
        let endpoint = Endpoint::new();
        let handle = Handles::new(Handle(endpoint.clone()));
        let [calling, closing] = [(); 2].map(|()| endpoint.clone());
        let tasks = [
            thread::spawn(move || {
                calling.call(&handle).wait();
            }),
            thread::spawn(move || closing.shut_down()),
        ];
        endpoint.run();
        for task in tasks {
            task.join().unwrap();
        }
    });
}

/// A task gives up its call and its handle: the request has the last one, which the endpoint's own
/// thread drops.
#[test]
fn the_last_handle_ends_the_thread_wherever_it_is() {
    check(3, || {
        let endpoint = Endpoint::new();
        let calling = endpoint.clone();
        let task = thread::spawn(move || {
            let handle = Handles::new(Handle(calling.clone()));
            calling.call(&handle);
        });
        endpoint.run();
        task.join().unwrap();
    });
}
