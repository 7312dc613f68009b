//! The end that answers: many connections behind one address.
//!
//! The effects of a caller's messages, by what the caller has proved:
//!
//! ```text
//! nothing                      a Retry: one HMAC, no memory
//! that it receives (cookie)    an Answer: one key exchange, no memory, within the budget
//! that it has the keys         a connection: memory, within the bounds of the listener
//! ```
//!
//! A caller that has not proved itself takes no memory. So any number of unproved callers excludes
//! nobody.

mod callers;
mod door;

use std::collections::{BTreeSet, VecDeque};
use std::net::SocketAddr;
use std::sync::Arc;

use comity_transport::wire::header::{self, Packet};
use comity_transport::wire::limits::{MAX_PARAMETERS, RESET, VERSION};
use comity_units::{Span, Time};
use thiserror::Error;

use self::callers::{Callers, Identity};
use super::budget::Budget;
use super::cookie::Cookies;
use super::failed::FailedTickets;
use super::handshake::described;
use super::ids::{IdChange, IdMap, LaterIds, change_id};
use super::protection::{Cipher, KeyLimits};
use super::protocol::other_stream;
use super::reset::Resets;
use super::session::{Event, Session};
use super::spent::Spent;
use super::ticket::Tickets;
use super::{
    Addresses, ConnectionId, Datagram, Ecn, ListenerCredentials, Opener, Pattern, Protocol,
    PublicKey, Randomness,
};
use crate::key_log::KeyLog;

/// The maximum number of waiting replies to unknown addresses. Further ones are dropped.
const MAX_REPLIES: usize = 256;
/// The maximum number of events that wait to be polled. Beyond it, those of refused callers and
/// moving peers are dropped.
const MAX_EVENTS: usize = 4096;
/// The configuration of a listener.
#[derive(Clone, Debug)]
pub struct ListenerConfig {
    /// The credentials, and the accepted callers.
    pub credentials: ListenerCredentials,
    /// The transport's parameters, at most [`MAX_PARAMETERS`] bytes.
    pub parameters: Vec<u8>,
    /// The cipher that is fast on this machine.
    pub cipher: Cipher,
    /// When keys change.
    pub key_limits: KeyLimits,
    /// The maximum number of connections, at least 1.
    pub max_connections: usize,
    /// The number of open connections at which callers are refused as busy, at least 1. Values
    /// above [`max_connections`](Self::max_connections) have no effect.
    pub max_served: usize,
    /// Identifies this listener among others with the same credentials, also after a restart.
    /// Callers then accept the Resets of the restarted listener. With `None`, they accept only
    /// those of this listener, until it ends. Two listeners with the same credentials and instance
    /// reveal the Reset tokens of each other's connections.
    pub instance: Option<Vec<u8>>,
    /// How long a connection may be half open: the caller has proved the keys, and has sent no data
    /// yet.
    pub half_open_for: Span,
    /// Where the secrets of connections are written; nowhere by default.
    pub key_log: Option<KeyLog>,
}

/// The default maximum number of connections.
pub(crate) const USUAL_CONNECTIONS: usize = 4_096;

impl ListenerConfig {
    /// At most 4096 connections, half open for at most 5 s each.
    pub fn new(credentials: ListenerCredentials, parameters: Vec<u8>) -> Self {
        Self {
            credentials,
            parameters,
            cipher: Cipher::of_this_machine(),
            key_limits: KeyLimits::default(),
            max_connections: USUAL_CONNECTIONS,
            max_served: usize::MAX,
            instance: None,
            half_open_for: Span::from_secs(5),
            key_log: None,
        }
    }
}

/// Why a configuration is invalid.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum ListenerConfigError {
    /// The parameters are too long.
    #[error("parameters: {0} bytes; expected at most {MAX_PARAMETERS}")]
    ParametersLong(usize),
    /// A limit is zero, which would allow no connection.
    #[error("{0}: is 0; expected at least 1")]
    Zero(&'static str),
}

/// Why a listener refused a caller with a proved address. The event reports it to the listener's
/// host; a caller that has not proved itself does not learn it.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum RefusedCaller {
    /// The caller has another passphrase or another key of the listener, or sent invalid bytes.
    #[error("the caller did not prove that it has the passphrase or key of this listener")]
    Unproven,
    /// The key is not on the list.
    #[error("the key {0} is not on the list of accepted keys")]
    UnknownKey(PublicKey),
    /// The caller uses another kind of credentials.
    #[error("the caller uses {}", described(*.0))]
    Pattern(Pattern),
    /// The first message is authentic, but malformed.
    #[error("the first message is authentic but malformed")]
    Malformed,
    /// The caller did not name the highest common version: somebody has interfered.
    #[error("downgrade: somebody removed a version from the caller's first message")]
    Downgrade,
    /// The maximum number of connections is open.
    #[error("the listener has reached its limit of connections")]
    Busy,
    /// The caller's transport parameters were not accepted.
    #[error("the caller's transport parameters were not accepted")]
    Parameters,
    /// The caller requests another stream than that of this listener.
    #[error("{}", other_stream(.requested, .own))]
    Stream {
        /// The stream that the caller requests.
        requested: String,
        /// The stream of the listener; empty if it has no name.
        own: String,
    },
}

/// An event of a listener.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ListenerEvent {
    /// An event of a connection.
    Session(ConnectionId, Event),
    /// The listener refused a caller. Anybody can cause these events: report them at a bounded
    /// rate.
    Refused {
        /// The caller's address.
        from: SocketAddr,
        /// The reason.
        why: RefusedCaller,
    },
}

/// The counters of a listener.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct ListenerStatistics {
    /// Retries sent for Initials without a valid cookie.
    pub retries: u64,
    /// Answers sent, including repeated ones.
    pub answers: u64,
    /// Initials with a valid cookie and Confirms with a valid ticket that the budget did not cover.
    /// Their callers retransmit them.
    pub deferred: u64,
    /// Refused callers with a proved address.
    pub refused: u64,
    /// Initials answered by a list of supported versions.
    pub other_versions: u64,
    /// Half-open connections that timed out.
    pub given_up: u64,
    /// Datagrams that are not packets, or belong to no known connection.
    pub unknown: u64,
    /// Data packets of unknown connections that were answered by a Reset.
    pub resets: u64,
    /// Replies dropped because too many were waiting.
    pub replies_dropped: u64,
}

/// A connection whose caller has not used its keys yet.
struct HalfOpen {
    /// The packet that may have to be retransmitted.
    accept: Vec<u8>,
    until: Time,
    /// The bytes that came from the caller's address and were not sent back: Confirm packets may be
    /// replays.
    credit: usize,
}

struct Entry<C> {
    session: Session<C>,
    half_open: Option<HalfOpen>,
    /// The time until which its ticket could open it again.
    ticket_until: Time,
    /// The caller's static key, or else its host and its transport parameters.
    identity: Arc<Identity>,
    /// The key of the connection in `timers`.
    timer: Time,
    /// Whether the connection is in the queue of those that may have something to send.
    is_ready: bool,
}

/// Answers callers and routes datagrams to their connections. See [`super`] for the order of calls.
pub struct Listener<C> {
    config: ListenerConfig,
    opener: Opener<C>,
    randomness: Randomness,
    cookies: Cookies,
    tickets: Tickets,
    budget: Budget,
    resets: Resets,
    spent: Spent,
    failed: FailedTickets,
    /// Boxed: entries are large, and a map of them by value would waste memory and move them.
    sessions: IdMap<Box<Entry<C>>>,
    /// The connections by their callers.
    callers: Callers,
    /// The connections by their later ids: at most three for each.
    later_ids: LaterIds,
    /// In order of age.
    half_open: BTreeSet<(Time, ConnectionId)>,
    timers: BTreeSet<(Time, ConnectionId)>,
    ready: VecDeque<ConnectionId>,
    replies: VecDeque<(Addresses, Vec<u8>)>,
    events: VecDeque<ListenerEvent>,
    statistics: ListenerStatistics,
    /// Whether the listener answers callers.
    answers: bool,
    /// The `now` of the last call.
    latest: Time,
}

impl<C: Protocol> Listener<C> {
    /// A listener without connections.
    ///
    /// # Errors
    ///
    /// [`ListenerConfigError`].
    pub fn new(
        now: Time,
        config: ListenerConfig,
        opener: Opener<C>,
        mut randomness: Randomness,
    ) -> Result<Self, ListenerConfigError> {
        if config.parameters.len() > MAX_PARAMETERS {
            return Err(ListenerConfigError::ParametersLong(config.parameters.len()));
        }
        if config.max_connections == 0 {
            return Err(ListenerConfigError::Zero("max_connections"));
        }
        if config.max_served == 0 {
            return Err(ListenerConfigError::Zero("max_served"));
        }
        Ok(Self {
            cookies: Cookies::new(now, &mut randomness),
            tickets: Tickets::new(),
            budget: Budget::new(now, &mut randomness),
            resets: Resets::new(
                &config.credentials,
                config.instance.as_deref(),
                &mut randomness,
            ),
            spent: Spent::new(),
            failed: FailedTickets::new(),
            config,
            opener,
            randomness,
            sessions: IdMap::default(),
            callers: Callers::default(),
            later_ids: LaterIds::new(),
            half_open: BTreeSet::new(),
            timers: BTreeSet::new(),
            ready: VecDeque::new(),
            replies: VecDeque::new(),
            events: VecDeque::new(),
            statistics: ListenerStatistics::default(),
            answers: true,
            latest: now,
        })
    }

    /// Answers no more callers. Existing connections stay open.
    pub fn stop_answering(&mut self) {
        self.answers = false;
    }

    /// The number of connections, including half-open ones.
    pub fn connections(&self) -> usize {
        self.sessions.len()
    }

    /// The number of half-open connections.
    pub fn half_open(&self) -> usize {
        self.half_open.len()
    }

    /// The counters.
    pub fn statistics(&self) -> ListenerStatistics {
        self.statistics
    }

    /// The ids of all connections, including half-open ones.
    pub fn ids(&self) -> impl Iterator<Item = ConnectionId> + '_ {
        self.sessions.keys().copied()
    }

    /// A connection.
    pub fn session(&self, id: ConnectionId) -> Option<&Session<C>> {
        self.sessions.get(&id).map(|entry| &entry.session)
    }

    /// The transport of a connection. After using it, poll for datagrams.
    pub fn protocol_mut(&mut self, id: ConnectionId) -> Option<&mut C> {
        let entry = self.sessions.get_mut(&id)?;
        make_ready(&mut self.ready, id, entry);
        Some(entry.session.protocol_mut())
    }

    /// The next connection with something to send or to report, for hosts that serve connections
    /// one by one instead of calling [`Self::poll_transmit`]. Poll its [`Self::session_mut`], then
    /// call [`Self::settle`].
    pub fn next_ready(&mut self) -> Option<ConnectionId> {
        while let Some(id) = self.ready.pop_front() {
            if let Some(entry) = self.sessions.get_mut(&id) {
                entry.is_ready = false;
                return Some(id);
            }
        }
        None
    }

    /// A connection to poll. Call [`Self::settle`] afterwards.
    pub fn session_mut(&mut self, id: ConnectionId) -> Option<&mut Session<C>> {
        self.sessions.get_mut(&id).map(|entry| &mut entry.session)
    }

    /// Appends a connection to the queue of [`Self::next_ready`].
    pub fn make_ready(&mut self, id: ConnectionId) {
        if let Some(entry) = self.sessions.get_mut(&id) {
            make_ready(&mut self.ready, id, entry);
        }
    }

    /// Whether [`Self::next_ready`] has a connection, or a reply waits.
    pub fn is_busy(&self) -> bool {
        !self.ready.is_empty() || !self.replies.is_empty()
    }

    /// Appends the next reply to an address without a connection.
    pub fn poll_reply(&mut self, out: &mut Vec<u8>) -> Option<Datagram> {
        let (to, reply) = self.replies.pop_front()?;
        out.extend(&reply);
        Some(Datagram {
            to: to.peer,
            source: to.local,
            ecn: Ecn::NotCapable,
            length: reply.len(),
            leave_by: Time::MAX,
        })
    }

    /// Handles a datagram.
    pub fn handle_datagram(
        &mut self,
        now: Time,
        from: impl Into<Addresses>,
        ecn: Ecn,
        datagram: &mut [u8],
    ) {
        let from = from.into();
        self.latest = now;
        let length = datagram.len();
        match header::decode(datagram) {
            Ok(Packet::Data { header, .. }) => {
                let destination = header.destination;
                let connection = match self.later_ids.get(&destination) {
                    Some(first) if !self.sessions.contains_key(&destination) => *first,
                    _ => destination,
                };
                let Some(entry) = self.sessions.get_mut(&connection) else {
                    self.statistics.unknown += 1;
                    // Waiting replies mean a flood. A caller that needs a Reset continues to send,
                    // and gets one later.
                    if datagram.len() > RESET && self.replies.is_empty() {
                        let reset = header::Reset {
                            source: connection,
                            token: *self.resets.token(connection).bytes(),
                        };
                        self.statistics.resets += u64::from(self.reply(from, reset.encode()));
                    }
                    return;
                };
                entry.session.handle_datagram(now, from, ecn, datagram);
                if entry.session.is_confirmed()
                    && let Some(half_open) = entry.half_open.take()
                {
                    self.half_open.remove(&(half_open.until, connection));
                }
                while let Some(change) = entry.session.poll_id_change() {
                    change_id(&mut self.later_ids, connection, change);
                }
                make_ready(&mut self.ready, connection, entry);
            }
            Ok(Packet::Initial(initial)) => self.on_initial(now, from, &initial),
            Ok(Packet::Confirm(confirm)) => self.on_confirm(now, from, &confirm, length),
            Ok(Packet::UnknownVersion { source, .. }) => {
                self.statistics.other_versions += 1;
                let mut reply = Vec::new();
                header::encode_version_negotiation(source, &[VERSION], &mut reply)
                    .expect("one version is within the limits of the format");
                self.reply(from, reply);
            }
            Ok(
                Packet::Retry(_)
                | Packet::Answer(_)
                | Packet::Accept(_)
                | Packet::Reset(_)
                | Packet::VersionNegotiation { .. },
            )
            | Err(_) => self.statistics.unknown += 1,
        }
    }

    fn give_up(&mut self, id: ConnectionId) {
        self.statistics.given_up += 1;
        self.remove(id);
    }

    fn remove(&mut self, id: ConnectionId) {
        let Some(mut entry) = self.sessions.swap_remove(&id) else {
            return;
        };
        for later in entry.session.later_ids() {
            change_id(&mut self.later_ids, id, IdChange::Remove(later));
        }
        if self.latest < entry.ticket_until {
            self.spent.insert(id, entry.ticket_until);
        }
        self.callers.remove(entry.identity.clone(), id);
        self.timers.remove(&(entry.timer, id));
        if let Some(half_open) = entry.half_open {
            self.half_open.remove(&(half_open.until, id));
        }
    }

    /// Queues a reply; `false` if the queue is full and the reply was dropped.
    fn reply(&mut self, to: Addresses, reply: Vec<u8>) -> bool {
        let has_room = self.replies.len() < MAX_REPLIES;
        match has_room {
            true => self.replies.push_back((to, reply)),
            false => self.statistics.replies_dropped += 1,
        }
        has_room
    }

    fn push_event(&mut self, event: ListenerEvent) {
        // These events are never dropped: the number of connections bounds them between two polls.
        // Anybody can cause the others.
        let lasting = matches!(
            event,
            ListenerEvent::Session(_, Event::Established { .. } | Event::Closed(_))
        );
        if lasting || self.events.len() < MAX_EVENTS {
            self.events.push_back(event);
        }
    }

    /// Collects the events of a connection, arms its timer, and removes it if it is closed.
    pub fn settle(&mut self, id: ConnectionId) {
        let Some(entry) = self.sessions.get_mut(&id) else {
            return;
        };
        let timer = entry.session.next_timer();
        if timer != entry.timer {
            self.timers.remove(&(entry.timer, id));
            if !timer.is_never() {
                self.timers.insert((timer, id));
            }
            entry.timer = timer;
        }
        let is_over = entry.session.closed().is_some();
        while let Some(event) = self
            .sessions
            .get_mut(&id)
            .and_then(|e| e.session.poll_event())
        {
            self.push_event(ListenerEvent::Session(id, event));
        }
        if is_over {
            self.remove(id);
        }
    }

    /// Appends the next datagram that may leave now. Connections take turns.
    pub fn poll_transmit(&mut self, now: Time, out: &mut Vec<u8>) -> Option<Datagram> {
        self.latest = now;
        if let Some(reply) = self.poll_reply(out) {
            return Some(reply);
        }
        while let Some(id) = self.ready.pop_front() {
            let Some(entry) = self.sessions.get_mut(&id) else {
                continue;
            };
            if let Some(datagram) = entry.session.poll_transmit(now, out) {
                self.ready.push_back(id);
                return Some(datagram);
            }
            entry.is_ready = false;
            self.settle(id);
        }
        None
    }

    /// When [`Self::on_timer`] is due; `Time::MAX` for never.
    pub fn next_timer(&self) -> Time {
        let first =
            |set: &BTreeSet<(Time, ConnectionId)>| set.first().map_or(Time::MAX, |&(time, _)| time);
        { first(&self.timers).min(first(&self.half_open)) }
            .min(self.tickets.next_timer())
            .min(self.cookies.next_timer())
            .min(self.spent.next_timer())
    }

    /// Handles the expiry of the timer.
    pub fn on_timer(&mut self, now: Time) {
        self.latest = now;
        self.tickets.on_timer(now);
        self.cookies.on_timer(now, &mut self.randomness);
        self.spent.on_timer(now);
        while let Some(&(until, id)) = self.half_open.first()
            && until <= now
        {
            self.give_up(id);
        }
        while let Some(&(timer, id)) = self.timers.first()
            && timer <= now
        {
            self.timers.remove(&(timer, id));
            let Some(entry) = self.sessions.get_mut(&id) else {
                continue;
            };
            // The connection gets a timer again after it was polled.
            entry.timer = Time::MAX;
            entry.session.on_timer(now);
            make_ready(&mut self.ready, id, entry);
        }
    }

    /// The next event.
    pub fn poll_event(&mut self) -> Option<ListenerEvent> {
        self.events.pop_front()
    }
}

fn make_ready<C>(ready: &mut VecDeque<ConnectionId>, id: ConnectionId, entry: &mut Entry<C>) {
    if !entry.is_ready {
        entry.is_ready = true;
        ready.push_back(id);
    }
}
