//! A model of `tokio::sync::Notify`: what its documentation promises, and no more.

use std::collections::VecDeque;
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll, Waker};

use loom::sync::{Mutex, MutexGuard};

#[derive(Debug)]
pub(crate) struct Notify(Mutex<State>);

#[derive(Debug)]
struct State {
    /// A call of `notify_one` that nobody waited for.
    has_permit: bool,
    /// The calls of `notify_waiters`: a future learns of all since it was made.
    broadcasts: usize,
    made: usize,
    waiting: VecDeque<Waiting>,
}

#[derive(Debug)]
struct Waiting {
    id: usize,
    waker: Option<Waker>,
    notification: Option<Notification>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Notification {
    Alone,
    WithAll,
}

#[derive(Debug)]
pub(crate) struct Notified<'a> {
    notify: &'a Notify,
    broadcasts: usize,
    step: Step,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Step {
    New,
    Waiting(usize),
    Done,
}

impl Notify {
    pub(crate) fn new() -> Self {
        Self(Mutex::new(State {
            has_permit: false,
            broadcasts: 0,
            made: 0,
            waiting: VecDeque::new(),
        }))
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().expect("no thread unwinds")
    }

    pub(crate) fn notified(&self) -> Notified<'_> {
        Notified {
            notify: self,
            broadcasts: self.state().broadcasts,
            step: Step::New,
        }
    }

    /// Wakes the first that waits, or leaves a permit for the next.
    pub(crate) fn notify_one(&self) {
        let mut state = self.state();
        let Some(first) =
            { state.waiting.iter_mut() }.find(|waiting| waiting.notification.is_none())
        else {
            state.has_permit = true;
            return;
        };
        first.notification = Some(Notification::Alone);
        let waker = first.waker.take();
        drop(state);
        waker.into_iter().for_each(Waker::wake);
    }

    /// Wakes all that wait, and leaves no permit.
    pub(crate) fn notify_waiters(&self) {
        let mut state = self.state();
        state.broadcasts += 1;
        let mut wakers = Vec::new();
        for waiting in state
            .waiting
            .iter_mut()
            .filter(|waiting| waiting.notification.is_none())
        {
            waiting.notification = Some(Notification::WithAll);
            wakers.extend(waiting.waker.take());
        }
        drop(state);
        wakers.into_iter().for_each(Waker::wake);
    }
}

impl Notified<'_> {
    /// From now on it is among those that wait. Returns whether it was notified already.
    pub(crate) fn enable(mut self: Pin<&mut Self>) -> bool {
        self.advance(None)
    }

    fn advance(&mut self, waker: Option<&Waker>) -> bool {
        let mut state = self.notify.state();
        match self.step {
            Step::Done => {}
            Step::New if state.broadcasts != self.broadcasts => self.step = Step::Done,
            Step::New if state.has_permit => {
                state.has_permit = false;
                self.step = Step::Done;
            }
            Step::New => {
                let id = state.made;
                state.made += 1;
                state.waiting.push_back(Waiting {
                    id,
                    waker: waker.cloned(),
                    notification: None,
                });
                self.step = Step::Waiting(id);
            }
            Step::Waiting(id) => {
                let at = { state.waiting.iter() }.position(|waiting| waiting.id == id);
                let at = at.expect("it waits until it has seen its notification");
                match state.waiting[at].notification {
                    Some(_) => {
                        state.waiting.remove(at);
                        self.step = Step::Done;
                    }
                    None => state.waiting[at].waker = waker.cloned(),
                }
            }
        }
        self.step == Step::Done
    }
}

impl Future for Notified<'_> {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        match self.advance(Some(context.waker())) {
            true => Poll::Ready(()),
            false => Poll::Pending,
        }
    }
}

/// A notification for it alone goes on to the next one.
impl Drop for Notified<'_> {
    fn drop(&mut self) {
        let Step::Waiting(id) = self.step else {
            return;
        };
        let mut state = self.notify.state();
        let at = { state.waiting.iter() }.position(|waiting| waiting.id == id);
        let gone = at.and_then(|at| state.waiting.remove(at));
        drop(state);
        if gone.is_some_and(|gone| gone.notification == Some(Notification::Alone)) {
            self.notify.notify_one();
        }
    }
}
