//! A descriptor for `poll` whose two directions the library sets one by one.
//!
//! It is one end of a pair of stream sockets. The user's end is readable while a byte waits in it,
//! and writable unless it is filled up. The user never reads or writes it.

use std::io;
use std::os::fd::{AsFd as _, BorrowedFd, IntoRawFd as _, OwnedFd, RawFd};
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Wake, Waker};

use rustix::event::{PollFd, PollFlags, poll};
use rustix::fs::{OFlags, fcntl_getfl, fcntl_setfl, fstat};
use rustix::io::{Errno, fcntl_dupfd_cloexec};
use rustix::net::{
    AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType, recv, send, socketpair, sockopt,
};

use crate::failure::Failure;

/// The size of the writes that fill a direction up.
const BLOCK: usize = 1_024;

/// What a descriptor is ready for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Direction {
    /// There is something to receive or to accept, or nothing more will come.
    In,
    /// There is room to send.
    Out,
}

/// The descriptor of an object.
#[derive(Debug)]
pub(crate) struct Readiness {
    /// The number that the user polls, of a descriptor that belongs to the user.
    number: RawFd,
    /// Another descriptor of the user's end: the user may close and reuse the number at any time.
    users: OwnedFd,
    ours: OwnedFd,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    is_readable: bool,
    is_writable: bool,
    is_closed: bool,
}

impl Readiness {
    /// A descriptor that is not ready.
    pub(crate) fn new(is_nonblocking: bool) -> io::Result<Arc<Self>> {
        let flags = SocketFlags::CLOEXEC;
        let (users, ours) = socketpair(AddressFamily::UNIX, SocketType::STREAM, flags, None)?;
        if is_nonblocking {
            fcntl_setfl(&users, OFlags::NONBLOCK)?;
        }
        // The system raises it to its least.
        sockopt::set_socket_send_buffer_size(&users, 1)?;
        let kept = fcntl_dupfd_cloexec(&users, 3)?;
        let readiness = Self {
            number: users.into_raw_fd(),
            users: kept,
            ours,
            state: Mutex::new(State {
                is_readable: false,
                is_writable: true,
                is_closed: false,
            }),
        };
        readiness.set(Direction::Out, false);
        Ok(Arc::new(readiness))
    }

    /// The number that the user polls.
    pub(crate) const fn number(&self) -> RawFd {
        self.number
    }

    /// Whether the user wants calls that fail instead of waiting.
    pub(crate) fn is_nonblocking(&self) -> bool {
        fcntl_getfl(&self.users).is_ok_and(|flags| flags.contains(OFlags::NONBLOCK))
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Sets one direction. It makes system calls only if it changes.
    pub(crate) fn set(&self, direction: Direction, is_ready: bool) {
        let mut state = self.state();
        let is_ready = is_ready || state.is_closed;
        let before = match direction {
            Direction::In => std::mem::replace(&mut state.is_readable, is_ready),
            Direction::Out => std::mem::replace(&mut state.is_writable, is_ready),
        };
        if before == is_ready {
            return;
        }
        match (direction, is_ready) {
            (Direction::In, true) => write(self.ours.as_fd(), &[0]),
            (Direction::In, false) => drain(self.users.as_fd()),
            (Direction::Out, true) => drain(self.ours.as_fd()),
            (Direction::Out, false) => write(self.users.as_fd(), &[0; BLOCK]),
        }
    }

    /// Wakes all waits, now and later.
    pub(crate) fn close(&self) {
        self.state().is_closed = true;
        self.set(Direction::In, true);
        self.set(Direction::Out, true);
    }

    pub(crate) fn is_closed(&self) -> bool {
        self.state().is_closed
    }

    /// Whether the number still stands for this descriptor: a user can have closed it with `close`.
    pub(crate) fn owns_number(&self) -> bool {
        // SAFETY: only the identity of its file is read; if it is closed, the call fails.
        let number = unsafe { BorrowedFd::borrow_raw(self.number) };
        match (fstat(number), fstat(&self.users)) {
            (Ok(found), Ok(own)) => (found.st_dev, found.st_ino) == (own.st_dev, own.st_ino),
            _ => false,
        }
    }

    /// Waits until one direction is ready.
    ///
    /// # Errors
    ///
    /// [`io::ErrorKind::Interrupted`] by a signal.
    pub(crate) fn wait(&self, direction: Direction) -> io::Result<()> {
        let flags = match direction {
            Direction::In => PollFlags::IN,
            Direction::Out => PollFlags::OUT,
        };
        poll(&mut [PollFd::new(&self.users, flags)], None)?;
        Ok(())
    }

    /// Attempts something until it is done, or once if the user does not want to wait.
    pub(crate) fn until<T>(
        &self,
        direction: Direction,
        dont_wait: bool,
        mut attempt: impl FnMut() -> Result<Option<T>, Failure>,
    ) -> Result<T, Failure> {
        loop {
            if self.is_closed() {
                return Err(Failure::new(
                    libc::EBADF,
                    "the descriptor was closed meanwhile",
                ));
            }
            if let Some(done) = attempt()? {
                return Ok(done);
            }
            if dont_wait || self.is_nonblocking() {
                return Err(Failure::new(
                    libc::EAGAIN,
                    match direction {
                        Direction::In => "nothing is here yet; wait until it is readable",
                        Direction::Out => "there is no room; wait until it is writable",
                    },
                ));
            }
            self.wait(direction)?;
        }
    }
}

/// Makes a direction ready when a future can go on.
struct Signal(Arc<Readiness>, Direction);

impl Wake for Signal {
    fn wake(self: Arc<Self>) {
        self.0.set(self.1, true);
    }
}

/// A future whose progress shows in one direction of a descriptor.
pub(crate) struct Awaited<T> {
    readiness: Arc<Readiness>,
    direction: Direction,
    waker: Waker,
    future: Option<Pin<Box<dyn Future<Output = T> + Send>>>,
}

impl<T> Awaited<T> {
    pub(crate) fn new(readiness: Arc<Readiness>, direction: Direction) -> Self {
        let waker = Waker::from(Arc::new(Signal(readiness.clone(), direction)));
        Self {
            readiness,
            direction,
            waker,
            future: None,
        }
    }

    /// Returns what the future gives, and makes the direction ready. Otherwise makes it not ready
    /// until the future can go on. `begin` makes a future if none is under way.
    pub(crate) fn poll<F>(&mut self, begin: impl FnOnce() -> F) -> Option<T>
    where
        F: Future<Output = T> + Send + 'static,
    {
        let future = self.future.get_or_insert_with(|| Box::pin(begin()));
        let mut context = Context::from_waker(&self.waker);
        let mut done = future.as_mut().poll(&mut context);
        if done.is_pending() {
            self.readiness.set(self.direction, false);
            // It may have been woken before it was made not ready.
            done = future.as_mut().poll(&mut context);
        }
        match done {
            Poll::Ready(value) => {
                self.future = None;
                self.readiness.set(self.direction, true);
                Some(value)
            }
            Poll::Pending => None,
        }
    }

    /// Drops a future that is under way.
    pub(crate) fn forget(&mut self) {
        self.future = None;
    }
}

/// Writes until the other end's buffer is full, or once if the bytes are a single one.
fn write(to: BorrowedFd<'_>, bytes: &[u8]) {
    loop {
        match send(to, bytes, SendFlags::NOSIGNAL | SendFlags::DONTWAIT) {
            Err(Errno::INTR) => {}
            Ok(_) if bytes.len() > 1 => {}
            Ok(_) | Err(_) => break,
        }
    }
}

fn drain(from: BorrowedFd<'_>) {
    let mut bytes = [0; BLOCK];
    loop {
        match recv(from, &mut bytes, RecvFlags::DONTWAIT) {
            Ok((0, _)) => break,
            Ok(_) | Err(Errno::INTR) => {}
            Err(_) => break,
        }
    }
}

#[cfg(test)]
mod tests {
    use rustix::event::Timespec;

    use super::*;

    /// What `poll` says of the user's descriptor: readable, and writable.
    fn polled(readiness: &Readiness) -> (bool, bool) {
        let flags = PollFlags::IN | PollFlags::OUT;
        let mut polled = [PollFd::new(&readiness.users, flags)];
        poll(&mut polled, Some(&Timespec::default())).unwrap();
        let found = polled[0].revents();
        let [readable, writable] = [PollFlags::IN, PollFlags::OUT].map(|flag| found.contains(flag));
        (readable, writable)
    }

    #[test]
    fn each_direction_is_set_alone() {
        let readiness = Readiness::new(false).unwrap();
        assert!(!readiness.is_nonblocking());
        assert_eq!(polled(&readiness), (false, false));
        for (readable, writable) in [
            (true, true),
            (true, false),
            (false, false),
            (true, false),
            (false, true),
            (false, false),
            (true, true),
        ] {
            readiness.set(Direction::In, readable);
            readiness.set(Direction::Out, writable);
            readiness.set(Direction::Out, writable);
            assert_eq!(polled(&readiness), (readable, writable));
        }
        readiness.set(Direction::In, false);
        readiness.close();
        readiness.set(Direction::Out, false);
        assert_eq!(polled(&readiness), (true, true), "for ever");
        assert!(readiness.owns_number());
    }

    #[test]
    fn a_future_shows_when_it_can_go_on() {
        let readiness = Readiness::new(true).unwrap();
        assert!(readiness.is_nonblocking());
        let mut awaited = Awaited::new(readiness.clone(), Direction::In);
        let (sender, receiver) = tokio::sync::oneshot::channel();
        assert_eq!(awaited.poll(|| receiver), None);
        assert_eq!(polled(&readiness), (false, false));
        sender.send(7).unwrap();
        assert_eq!(polled(&readiness), (true, false));
        let none = || tokio::sync::oneshot::channel().1;
        assert_eq!(awaited.poll(none), Some(Ok(7)));
        assert_eq!(polled(&readiness), (true, false), "there may be more");
        let (_sender, receiver) = tokio::sync::oneshot::channel();
        assert_eq!(awaited.poll(|| receiver), None);
        assert_eq!(polled(&readiness), (false, false));
    }
}
