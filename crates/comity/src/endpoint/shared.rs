//! What the driver's thread and the application's tasks have in common.
//!
//! A connection's commands wait in its own queue, and its id in the endpoint's list of those that
//! have any; the thread sleeps in the system and is woken through an eventfd, and only if it
//! sleeps. Everything the other way waits in bounded queues, with a notification for the task that
//! waits for it.

use std::collections::{BTreeMap, VecDeque};
use std::net::SocketAddr;
use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use bytes::Bytes;
use comity_transport::datagram::Target;
use comity_transport::timeline::Outgoing;
use comity_transport::wire::CloseCode;
use comity_units::{Span, Time};
use tokio::sync::{Notify, broadcast, mpsc, oneshot, watch};

use super::clock::Clock;
use super::connection::{Connection, Event, PathSize};
use super::{EndpointEvent, Handle};
use crate::config::Config;
use crate::error::{CloseReason, ConnectError};
use crate::section::{Item, Reason, SectionId, StreamId};
use crate::session::{Cipher, ConnectionId, PublicKey};
use crate::statistics::{EndpointStatistics, Statistics};

/// A lock whose holders do not panic; if one did, what it left is still consistent enough to end
/// with.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// What the endpoint's thread is asked for.
pub(crate) enum Request {
    Call {
        address: SocketAddr,
        config: Box<Config>,
        handle: Arc<Handle>,
        reply: oneshot::Sender<Result<Connection, ConnectError>>,
    },
    /// Close all connections and end.
    Shutdown,
}

/// The endpoint, as its thread and its handles see it.
#[derive(Debug)]
pub(crate) struct EndpointShared {
    pub(crate) clock: Clock,
    pub(crate) address: SocketAddr,
    /// `None` once the thread has ended: nobody answers any more.
    requests: Mutex<Option<Vec<Request>>>,
    /// Connections with commands.
    scheduled: Mutex<Vec<ConnectionId>>,
    is_asleep: AtomicBool,
    wake: OwnedFd,
    pub(crate) events: broadcast::Sender<EndpointEvent>,
    /// As they were when the thread looked for requests last.
    pub(crate) statistics: Mutex<EndpointStatistics>,
    /// Whether the thread has ended.
    pub(crate) is_over: watch::Sender<bool>,
}

impl std::fmt::Debug for Request {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Call { .. } => "Call",
            Self::Shutdown => "Shutdown",
        })
    }
}

/// Events of an endpoint that wait for a slow listener to them.
const MAX_ENDPOINT_EVENTS: usize = 256;

impl EndpointShared {
    pub(crate) fn new(address: SocketAddr, wake: OwnedFd) -> Self {
        Self {
            clock: Clock::start(),
            address,
            requests: Mutex::new(Some(Vec::new())),
            scheduled: Mutex::default(),
            is_asleep: AtomicBool::new(false),
            wake,
            events: broadcast::Sender::new(MAX_ENDPOINT_EVENTS),
            statistics: Mutex::default(),
            is_over: watch::Sender::new(false),
        }
    }

    pub(crate) fn wake_descriptor(&self) -> &OwnedFd {
        &self.wake
    }

    /// Asks the thread for something. When it has ended the request is dropped, and with it the way
    /// back: whoever waits for an answer learns that none comes.
    pub(crate) fn request(&self, request: Request) {
        let refused = match lock(&self.requests).as_mut() {
            Some(requests) => {
                requests.push(request);
                None
            }
            None => Some(request),
        };
        // Not under the lock: the last handle goes with a request, and asks for the end itself.
        drop(refused);
        self.wake();
    }

    /// The thread ends: requests that came too late are dropped, as those that follow will be.
    pub(crate) fn end(&self) {
        let late = lock(&self.requests).take();
        drop(late);
        self.is_over.send_replace(true);
    }

    pub(crate) fn schedule(&self, id: ConnectionId) {
        lock(&self.scheduled).push(id);
        self.wake();
    }

    fn wake(&self) {
        if self.is_asleep.swap(false, Ordering::SeqCst) {
            // It can fail only when the counter is full, and then the thread is awake.
            let _ = rustix::io::write(&self.wake, &1_u64.to_ne_bytes());
        }
    }

    /// Says that the thread is about to wait; `false` when there is something to do first.
    pub(crate) fn fall_asleep(&self) -> bool {
        self.is_asleep.store(true, Ordering::SeqCst);
        let has_requests = lock(&self.requests)
            .as_ref()
            .is_some_and(|requests| !requests.is_empty());
        let is_idle = !has_requests && lock(&self.scheduled).is_empty();
        if !is_idle {
            self.is_asleep.store(false, Ordering::SeqCst);
        }
        is_idle
    }

    /// The thread is awake again.
    pub(crate) fn wake_up(&self, was_woken: bool) {
        if was_woken {
            let _ = rustix::io::read(&self.wake, &mut [0; 8]);
        }
        self.is_asleep.store(false, Ordering::SeqCst);
    }

    pub(crate) fn take_requests(&self) -> Vec<Request> {
        lock(&self.requests)
            .as_mut()
            .map(std::mem::take)
            .unwrap_or_default()
    }

    /// Swaps the connections that have commands into `into`, which is empty.
    pub(crate) fn take_scheduled(&self, into: &mut Vec<ConnectionId>) {
        std::mem::swap(&mut *lock(&self.scheduled), into);
    }
}

/// What a connection's driver is told.
#[derive(Debug)]
pub(crate) enum Command {
    Submit(Outgoing<Bytes>),
    /// Uses up the next number of the stream without a section.
    Skip(StreamId, Reason),
    Cancel(StreamId, SectionId),
    End(StreamId),
    /// Close when everything is settled.
    Finish,
    Close(CloseCode, String),
    /// Somebody has accepted the connection.
    Take,
    /// Nobody takes sections any more.
    Refuse,
}

/// A stream, as far as it was given to the connection.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct GivenStream {
    pub(crate) next: u64,
    pub(crate) has_ended: bool,
}

/// The way from the application to the driver.
#[derive(Debug, Default)]
pub(crate) struct Outbound {
    pub(crate) commands: Vec<Command>,
    pub(crate) streams: BTreeMap<StreamId, GivenStream>,
    /// Sections without an outcome yet, and their bytes.
    pub(crate) held_sections: u32,
    pub(crate) held_bytes: u64,
    /// Whether a task waits for room.
    pub(crate) is_waited_for: bool,
    pub(crate) is_finishing: bool,
    /// Nobody will receive anything any more.
    pub(crate) is_abandoned: bool,
    pub(crate) end: Option<CloseReason>,
}

/// The way from the driver to the application.
#[derive(Debug, Default)]
pub(crate) struct Inbound {
    pub(crate) items: VecDeque<Item>,
    pub(crate) bytes: usize,
    /// Nothing comes after what is there.
    pub(crate) is_over: bool,
    /// The driver holds sections back because this is full.
    pub(crate) is_stalled: bool,
}

/// What is known of a connection from its beginning on.
#[derive(Clone, Debug)]
pub(crate) struct Facts {
    pub(crate) id: ConnectionId,
    pub(crate) peer_address: SocketAddr,
    pub(crate) peer_key: Option<PublicKey>,
    pub(crate) cipher: Option<Cipher>,
    pub(crate) stream_name: Option<String>,
    pub(crate) latency: Span,
    pub(crate) opened_at: Time,
    pub(crate) send_buffer: u64,
    /// The longest section that can be given: both ends have to hold it.
    pub(crate) longest: u64,
    pub(crate) send_sections: u32,
    pub(crate) receive_buffer: u64,
}

/// What the application may send, and whether that is the last word.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Advice {
    pub(crate) target: Option<Target>,
    pub(crate) is_over: bool,
}

/// A connection, as the driver and its handle see it.
#[derive(Debug)]
pub(crate) struct ConnectionShared {
    pub(crate) facts: Facts,
    pub(crate) outbound: Mutex<Outbound>,
    /// As they were when the driver served the connection last.
    pub(crate) statistics: Mutex<Statistics>,
    pub(crate) room: Notify,
    pub(crate) inbound: Mutex<Inbound>,
    pub(crate) arrived: Notify,
    pub(crate) end: watch::Sender<Option<CloseReason>>,
    pub(crate) target: watch::Sender<Advice>,
    pub(crate) address: watch::Sender<SocketAddr>,
    /// What the path was found to carry, where that was not to be expected.
    pub(crate) size: watch::Sender<Option<PathSize>>,
    /// Made when somebody asks for events.
    pub(crate) events: OnceLock<broadcast::Sender<Event>>,
    /// Whether the id stands in the endpoint's list.
    is_scheduled: AtomicBool,
}

/// Events of a connection that wait for a slow listener to them.
const MAX_EVENTS: usize = 1_024;

impl ConnectionShared {
    pub(crate) fn new(facts: Facts) -> Self {
        Self {
            address: watch::Sender::new(facts.peer_address),
            facts,
            outbound: Mutex::default(),
            statistics: Mutex::default(),
            room: Notify::new(),
            inbound: Mutex::default(),
            arrived: Notify::new(),
            end: watch::Sender::new(None),
            target: watch::Sender::new(Advice::default()),
            size: watch::Sender::new(None),
            events: OnceLock::new(),
            is_scheduled: AtomicBool::new(false),
        }
    }

    /// Makes the driver look at the connection.
    pub(crate) fn schedule(&self, endpoint: &EndpointShared) {
        if !self.is_scheduled.swap(true, Ordering::SeqCst) {
            endpoint.schedule(self.facts.id);
        }
    }

    /// The driver is about to take the commands.
    pub(crate) fn unschedule(&self) {
        self.is_scheduled.store(false, Ordering::SeqCst);
    }

    /// The events from now on.
    pub(crate) fn subscribe(&self) -> broadcast::Receiver<Event> {
        self.events
            .get_or_init(|| broadcast::Sender::new(MAX_EVENTS))
            .subscribe()
    }

    pub(crate) fn tell(&self, event: Event) {
        if let Some(events) = self.events.get() {
            // It fails when nobody listens.
            let _ = events.send(event);
        }
    }

    /// Why it is over, if it is.
    pub(crate) fn ended(&self) -> Option<CloseReason> {
        self.end.borrow().clone()
    }
}

/// Open connections that wait to be accepted.
pub(crate) type Accepting = mpsc::Sender<Connection>;
