//! A socket between two endpoints that records the system's time stamps of passing datagrams, and
//! may be a narrow link.

use std::collections::VecDeque;
use std::io::{self, IoSliceMut};
use std::net::{SocketAddr, UdpSocket};
use std::os::fd::AsRawFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use nix::sys::socket::sockopt::{RcvBuf, ReceiveTimestampns};
use nix::sys::socket::{ControlMessageOwned, MsgFlags, SockaddrStorage, recvmsg, setsockopt};
use rustix::event::{PollFd, PollFlags, Timespec, poll};

use crate::common::{Failure, loopback};

/// The headers of IPv4 and UDP.
const HEADERS: usize = 28;
const NANOS: i64 = 1_000_000_000;
/// The longest wait of the tap before it checks for the end.
const PATIENCE: i64 = NANOS / 10;

/// A datagram of the caller, as it reached the tap.
#[derive(Clone, Copy, Debug)]
pub(super) struct Arrival {
    /// Nanoseconds on the system's clock, from `SO_TIMESTAMPNS`.
    pub(super) at: i64,
    pub(super) length: usize,
}

/// A link towards the target with a drop-tail queue. The reverse path has the same delay and no
/// limit of rate.
#[derive(Clone, Copy, Debug)]
pub(super) struct Narrow {
    pub(super) megabits: u32,
    /// In either direction.
    pub(super) delay: Duration,
    pub(super) queue: i64,
}

pub(super) struct Tap {
    pub(super) address: SocketAddr,
    is_over: Arc<AtomicBool>,
    thread: JoinHandle<Result<Vec<Arrival>, Failure>>,
}

impl Tap {
    /// Without a link, passes everything on at once.
    pub(super) fn start(target: SocketAddr, narrow: Option<Narrow>) -> Result<Self, Failure> {
        let socket = UdpSocket::bind(loopback())?;
        setsockopt(&socket, ReceiveTimestampns, &true)?;
        // The system may grant less. A dropped datagram shows when the two records are compared.
        setsockopt(&socket, RcvBuf, &(8 << 20))?;
        let address = socket.local_addr()?;
        let is_over = Arc::new(AtomicBool::new(false));
        let stopped = is_over.clone();
        let passage = Passage {
            socket,
            target,
            caller: target,
            narrow,
            free_at: 0,
            ahead: VecDeque::new(),
            back: VecDeque::new(),
            arrivals: Vec::new(),
        };
        Ok(Self {
            address,
            is_over,
            thread: std::thread::spawn(move || passage.serve(&stopped)),
        })
    }

    pub(super) fn end(self) -> Result<Vec<Arrival>, Failure> {
        self.is_over.store(true, Ordering::Relaxed);
        self.thread.join().map_err(|_| "the tap has panicked")?
    }
}

/// A datagram in flight, and its arrival.
type Held = (i64, Vec<u8>);

struct Passage {
    socket: UdpSocket,
    target: SocketAddr,
    caller: SocketAddr,
    narrow: Option<Narrow>,
    /// The time at which the link is idle again.
    free_at: i64,
    ahead: VecDeque<Held>,
    back: VecDeque<Held>,
    arrivals: Vec<Arrival>,
}

impl Passage {
    fn serve(mut self, is_over: &AtomicBool) -> Result<Vec<Arrival>, Failure> {
        let _ = rustix::thread::set_current_timer_slack(std::num::NonZeroU64::new(1));
        while !is_over.load(Ordering::Relaxed) {
            let due = self.release()?;
            let wait = (due - now()).clamp(0, PATIENCE);
            let wait = Timespec {
                tv_sec: 0,
                tv_nsec: wait as _,
            };
            let mut polled = [PollFd::new(&self.socket, PollFlags::IN)];
            poll(&mut polled, Some(&wait))?;
            while self.receive()? {}
        }
        Ok(self.arrivals)
    }

    /// Sends the datagrams that have arrived, and returns the time of the next arrival.
    fn release(&mut self) -> io::Result<i64> {
        let mut next = i64::MAX;
        for (held, to) in [
            (&mut self.ahead, self.target),
            (&mut self.back, self.caller),
        ] {
            while held.front().is_some_and(|(due, _)| *due <= now()) {
                if let Some((_, bytes)) = held.pop_front() {
                    self.socket.send_to(&bytes, to)?;
                }
            }
            next = held.front().map_or(next, |(due, _)| next.min(*due));
        }
        Ok(next)
    }

    /// Takes one datagram, if there is one.
    fn receive(&mut self) -> Result<bool, Failure> {
        let mut bytes = vec![0; 2_048];
        let mut space = nix::cmsg_space!(nix::sys::time::TimeSpec);
        let mut slices = [IoSliceMut::new(&mut bytes)];
        let received = recvmsg::<SockaddrStorage>(
            self.socket.as_raw_fd(),
            &mut slices,
            Some(&mut space),
            MsgFlags::MSG_DONTWAIT,
        );
        let received = match received {
            Err(nix::Error::EAGAIN) => return Ok(false),
            received => received?,
        };
        let from = received
            .address
            .as_ref()
            .and_then(SockaddrStorage::as_sockaddr_in)
            .map(|&from| SocketAddr::V4(from.into()))
            .ok_or("a datagram from nowhere")?;
        let length = received.bytes;
        let stamp = received.cmsgs()?.find_map(|message| match message {
            ControlMessageOwned::ScmTimestampns(time) => Some(time),
            _ => None,
        });
        let stamp = stamp.ok_or("a datagram without its time")?;
        let at = stamp.tv_sec() * NANOS + stamp.tv_nsec();
        bytes.truncate(length);
        let delay = self.narrow.map_or(0, |narrow| nanos(narrow.delay));
        if from == self.target {
            self.back.push_back((at + delay, bytes));
            return Ok(true);
        }
        self.caller = from;
        self.arrivals.push(Arrival { at, length });
        if let Some(narrow) = self.narrow {
            let bits = 8 * (length + HEADERS) as i64;
            let takes = bits * 1_000 / i64::from(narrow.megabits);
            let backlog = (self.free_at - at).max(0);
            if backlog > narrow.queue * takes {
                return Ok(true);
            }
            self.free_at = at + backlog + takes;
            self.ahead.push_back((self.free_at + delay, bytes));
        } else {
            self.ahead.push_back((at, bytes));
        }
        Ok(true)
    }
}

fn nanos(duration: Duration) -> i64 {
    i64::try_from(duration.as_nanos()).unwrap_or(i64::MAX)
}

fn now() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    nanos(since.unwrap_or_default())
}
