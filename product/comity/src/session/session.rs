//! One open connection: its keys, its peer's address and its transport.

use std::collections::VecDeque;
use std::net::SocketAddr;

use comity_transport::wire::frame::{Close, Frame, encode_departure};
use comity_transport::wire::limits::{DATA_HEADER, TAG};
use comity_transport::wire::{CloseCode, Stamp, header};
use comity_units::{PacketNumber, Span, Time};
use thiserror::Error;

use super::ids::{IdChange, Ids, Receiving};
use super::path::{News, Path};
use super::protection::{IdSecrets, KeyUsedUp, OpenError, Protection, Role};
use super::replay::Stale;
use super::reset::ResetToken;
use super::{
    Addresses, Cipher, ConnectionId, Datagram, Ecn, PathFrame, Protocol, PublicKey, Randomness,
    Transmit,
};
use crate::contain::contain;
use crate::counter::counters;

/// The length of a datagram with a challenge or response, within the anti-amplification limit. It
/// proves that the new path carries packets of the usual size.
const PATH_DATAGRAM: usize = 1200;
/// The minimum interval between padded path frames to addresses of the peer, unless a quarter of
/// the probe timeout is longer. The shortest wait between two challenges is twice as long.
const MIN_PADDED_INTERVAL: Span = Span::from_millis(50);
/// The shortest payload with a path frame, in bytes: departure (4), type (1), frame (8).
const MIN_PATH_PAYLOAD: usize = 13;
/// The maximum number of events that wait to be polled. Beyond it, only the end is kept.
const MAX_EVENTS: usize = 64;

/// An event of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    /// Both ends have proved that they have the keys.
    Established {
        /// The key that the peer has proved to own, if static keys are used.
        peer_key: Option<PublicKey>,
        /// The cipher of packets; `None` without protection, and then the host must warn the user.
        cipher: Option<Cipher>,
    },
    /// The peer has moved, and has proved that it receives at its new address.
    PathChanged {
        /// The old address.
        from: SocketAddr,
        /// The new one.
        to: SocketAddr,
    },
    /// Packets came from another address that did not respond, or the peer is still at its old one.
    /// The path stays at the old address.
    PathUnanswered {
        /// The other address.
        address: SocketAddr,
    },
    /// The connection is over. The last event.
    Closed(Closed),
}

/// Why a connection is closed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum Closed {
    /// The transport closed it, and has the reason.
    #[error("closed by the transport")]
    ByProtocol,
    /// The current key is used up, and the peer has not followed to the next one.
    #[error("keys: the current key is used up, and the peer did not follow the key update")]
    KeyUsedUp,
    /// With so many forged packets, the next forgery might succeed.
    #[error("keys: too many forged packets")]
    TooManyForged,
    /// The listener does not know this connection.
    #[error("the listener does not know the connection any more: it was restarted")]
    Reset,
    /// The same caller has opened a new connection, and does not respond on this one.
    #[error("the caller does not answer, and has opened a new connection")]
    Replaced,
    /// The listener is full, and another caller with fewer connections needs room.
    #[error("the listener is full, and this caller has the most connections")]
    Displaced,
    /// The peer requested two key updates at once.
    #[error("keys: the peer requested a key update before it had seen the last one in use")]
    UpdateTooEarly,
    /// This end panicked while serving the connection, which is a defect of the program.
    #[error("internal error; please report it together with the message above")]
    Internal,
}

counters! {
    /// The counters of a session.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
    #[non_exhaustive]
    pub struct SessionStatistics {
        /// Packets refused because they are not from the peer, or were changed.
        pub forged_packets: u64 = "pktRecvForged", Counter, Count;
        /// Packets refused because they had arrived before, or are too old to check.
        pub stale_packets: u64 = "pktRecvStale", Counter, Count;
        /// Key updates, requested by either end.
        pub key_updates: u64 = "keyUpdates", Counter, Count;
    }
}

/// One open connection.
pub struct Session<C> {
    role: Role,
    own: Receiving,
    peer: Ids,
    /// The generation of the identifiers in a caller's packets.
    generation: u64,
    peer_key: Option<PublicKey>,
    /// The round-trip time of the handshake, for the transport.
    round_trip: Option<Span>,
    /// The token of this connection's Reset packets; `None` at the listener.
    reset_token: Option<ResetToken>,
    /// When the connection began.
    opened_at: Time,
    /// When the last authentic packet arrived, or the connection began.
    received_at: Time,
    /// When a challenge left to test whether the peer is alive.
    asked_at: Option<Time>,
    /// Whether that challenge must still be sent.
    asks: bool,
    path: Path,
    protection: Protection,
    protocol: C,
    randomness: Randomness,
    /// Whether the peer has proved that it has the keys.
    confirmed: bool,
    response: Option<(SocketAddr, [u8; 8])>,
    /// When the next path frame to an address of the peer may be padded.
    pads_at: Time,
    /// The number of the next packet. This end needs it if the transport fails.
    next_number: PacketNumber,
    /// The code and reason that must still be sent to the peer.
    owes_close: Option<(CloseCode, &'static str)>,
    events: VecDeque<Event>,
    closed: Option<Closed>,
    statistics: SessionStatistics,
}

impl<C> core::fmt::Debug for Session<C> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("Session")
            .field("role", &self.role)
            .field("own", &self.own.first())
            .field("peer", &self.peer.first())
            .field("path", &self.path)
            .field("protection", &self.protection)
            .field("closed", &self.closed)
            .finish_non_exhaustive()
    }
}

/// Both ids of a connection, and the role of this end.
#[derive(Clone, Copy, Debug)]
pub(super) struct Names {
    pub(super) role: Role,
    pub(super) own: ConnectionId,
    pub(super) peer: ConnectionId,
}

impl<C: Protocol> Session<C> {
    /// A session with fresh keys. A listener's session is silent until the caller has proved that
    /// it has the keys.
    pub(super) fn new(
        now: Time,
        names: Names,
        addresses: Addresses,
        peer_key: Option<PublicKey>,
        mut protection: Protection,
        mut protocol: C,
        randomness: Randomness,
    ) -> Self {
        let role = names.role;
        protocol.on_peer(peer_key, addresses.peer);
        let (own, peer) = match protection.take_ids() {
            Some(IdSecrets { own, peer }) => (Some(own), Some(peer)),
            None => (None, None),
        };
        let mut session = Self {
            role,
            own: Receiving::new(Ids::new(names.own, own)),
            peer: Ids::new(names.peer, peer),
            generation: 0,
            peer_key,
            round_trip: None,
            reset_token: None,
            opened_at: now,
            received_at: now,
            asked_at: None,
            pads_at: Time::ZERO,
            asks: false,
            path: Path::new(addresses),
            protection,
            protocol,
            randomness,
            confirmed: false,
            response: None,
            next_number: PacketNumber::new(0),
            owes_close: None,
            events: VecDeque::new(),
            closed: None,
            statistics: SessionStatistics::default(),
        };
        if role == Role::Caller {
            session.confirm();
        }
        session
    }

    fn confirm(&mut self) {
        self.confirmed = true;
        self.push(Event::Established {
            peer_key: self.peer_key,
            cipher: self.protection.cipher(),
        });
    }

    fn push(&mut self, event: Event) {
        if self.events.len() < MAX_EVENTS {
            self.events.push_back(event);
        }
    }

    fn end(&mut self, closed: Closed) {
        if self.closed.is_none() {
            self.closed = Some(closed);
            self.events.push_back(Event::Closed(closed));
            if self.owes_close.is_none() {
                self.protection.erase();
            }
        }
    }

    /// The connection id in packets to this end: that of the handshake. It does not change when the
    /// peer moves.
    pub fn id(&self) -> ConnectionId {
        self.own.first()
    }

    /// Whether a packet with this id is for this end.
    pub fn accepts(&mut self, id: ConnectionId) -> bool {
        self.own.generation(id).is_some()
    }

    /// The ids besides [`Self::id`] that packets to this end may have now.
    pub(crate) fn later_ids(&mut self) -> Vec<ConnectionId> {
        self.own.later()
    }

    /// The next change of [`Self::later_ids`].
    pub(crate) fn poll_id_change(&mut self) -> Option<IdChange> {
        self.own.poll_change()
    }

    /// Prepares this end to send from another address. A caller then uses ids that no packet had
    /// before, so that an observer of both addresses cannot link them. Returns whether the ids
    /// change.
    ///
    /// They do not change without protection, or if the listener has not answered since the last
    /// change: the listener accepts only the next ids. If a translator on the path changes the
    /// caller's address, the caller does not notice, and keeps its ids.
    pub fn on_moved(&mut self) -> bool {
        let rotates = self.role == Role::Caller
            && self.peer.rotate()
            && self.own.highest() == self.generation;
        self.generation += u64::from(rotates);
        rotates
    }

    /// This end's role.
    pub fn role(&self) -> Role {
        self.role
    }

    /// The validated address of the peer.
    pub fn address(&self) -> SocketAddr {
        self.path.address()
    }

    /// The key that the peer has proved to own, if static keys are used.
    pub fn peer_key(&self) -> Option<PublicKey> {
        self.peer_key
    }

    /// The state of the keys.
    pub fn protection(&self) -> &Protection {
        &self.protection
    }

    /// Whether the peer has proved that it has the keys.
    pub fn is_confirmed(&self) -> bool {
        self.confirmed
    }

    /// Why the connection is closed; `None` while it is open.
    pub fn closed(&self) -> Option<Closed> {
        self.closed
    }

    /// The transport.
    pub fn protocol(&self) -> &C {
        &self.protocol
    }

    /// The transport. After using it, poll for datagrams and the next timer.
    pub fn protocol_mut(&mut self) -> &mut C {
        &mut self.protocol
    }

    /// The counters.
    pub fn statistics(&self) -> SessionStatistics {
        SessionStatistics {
            forged_packets: self.protection.forged(),
            key_updates: self.protection.phase(),
            ..self.statistics
        }
    }

    /// Handles a Data packet with this connection's id.
    pub fn handle_datagram(
        &mut self,
        now: Time,
        from: impl Into<Addresses>,
        ecn: Ecn,
        datagram: &mut [u8],
    ) {
        let from = from.into();
        if self.closed.is_none() {
            self.contain(now, |session| session.handle(now, from, ecn, datagram));
        }
    }

    /// Does a part of the connection's work. A panic ends this connection only.
    pub(crate) fn contain<T>(&mut self, now: Time, work: impl FnOnce(&mut Self) -> T) -> Option<T> {
        let done = contain(|| work(self));
        if done.is_none() {
            self.fail(now);
        }
        done
    }

    /// Ends the connection after a panic. The transport is no longer used.
    #[cold]
    pub(crate) fn fail(&mut self, now: Time) {
        if self.closed.is_none() {
            self.end_internally();
        }
        // The broken state may panic again.
        let _ = contain(|| self.protocol.fail(now));
    }

    fn end_internally(&mut self) {
        self.owes_close = self.confirmed.then_some((CloseCode::INTERNAL, ""));
        self.end(Closed::Internal);
    }

    /// Ends the connection because others need its room.
    pub(super) fn displace(&mut self) {
        if self.closed.is_none() {
            let why = (
                CloseCode::REFUSED,
                "the listener is full, and other callers have fewer connections",
            );
            self.owes_close = self.confirmed.then_some(why);
            self.end(Closed::Displaced);
        }
    }

    /// The packet with the reason of the end. It is sent once: if it is lost, the peer waits for
    /// its idle timeout, or gets a Reset.
    #[cold]
    fn send_close(
        &mut self,
        now: Time,
        code: CloseCode,
        reason: &str,
        out: &mut Vec<u8>,
    ) -> Option<Datagram> {
        let transmit = Transmit {
            number: self.next_number,
            ecn: Ecn::NotCapable,
            leave_by: Time::MAX,
        };
        let start = begin(out);
        let age = now.saturating_since(self.opened_at);
        encode_departure(Stamp::of(Time::ZERO + age), out);
        Frame::Close(Close::new(code, reason))
            .encode(out)
            .expect("a frame with a short reason is within the limits of the format");
        self.seal(now, self.path.address(), transmit, out, start)
    }

    fn handle(&mut self, now: Time, from: Addresses, ecn: Ecn, datagram: &mut [u8]) {
        let length = datagram.len();
        // The id is authenticated: the header is associated data.
        let destination = header::destination(datagram);
        let generation = destination.and_then(|id| self.own.generation(id));
        let (number, payload) = match self.protection.open(now, datagram) {
            Ok(opened) => opened,
            Err(OpenError::Stale(stale)) => return self.on_stale(now, from, stale, datagram),
            Err(error) => return self.on_forged(error),
        };
        self.received_at = now;
        let highest = self.protection.highest() == Some(number);
        self.note_address(now, from, length, (number, highest));
        if let Some(generation) = generation {
            self.own.on_genuine(generation);
            if highest {
                self.path.on_generation(from.peer, generation);
            }
        }
        if !self.confirmed {
            self.confirm();
            self.protocol.on_established(now, self.round_trip);
        }
        self.protocol.on_packet(now, number, ecn, payload);
        while let Some(frame) = self.protocol.poll_path_frame() {
            match frame {
                PathFrame::Challenge(challenge) => self.response = Some((from.peer, challenge)),
                PathFrame::Response(response) => {
                    let news = self.path.on_response(now, response);
                    self.on_path_news(now, news);
                }
            }
        }
        self.notice_the_protocol();
    }

    fn on_stale(&mut self, now: Time, from: Addresses, stale: Stale, datagram: &mut [u8]) {
        if stale == Stale::Repeated {
            if self.path.counts_copies(from.peer) {
                match self.protection.copied(datagram) {
                    Ok(number) => self.note_address(now, from, 0, (number, false)),
                    Err(OpenError::Stale(_)) => {}
                    // It has the number of a packet of the peer, but is not a copy of it.
                    Err(error) => return self.on_forged(error),
                }
            }
            self.protocol.on_duplicate();
        }
        self.statistics.stale_packets += 1;
    }

    /// Handles a packet that the protection has refused and counted.
    fn on_forged(&mut self, error: OpenError) {
        match error {
            OpenError::Forged | OpenError::Stale(_) => {}
            OpenError::TooManyForged => self.end(Closed::TooManyForged),
            OpenError::UpdateTooEarly => self.end(Closed::UpdateTooEarly),
        }
    }

    /// The round-trip time of the handshake.
    pub(super) fn set_round_trip(&mut self, round_trip: Option<Span>) {
        self.round_trip = round_trip;
    }

    /// The token from message 4.
    pub(super) fn set_reset_token(&mut self, token: ResetToken) {
        self.reset_token = Some(token);
    }

    /// Handles a Reset: the peer may not know the connection.
    pub(super) fn on_reset(&mut self, reset: &header::Reset) {
        // The peer has ended the connection with a reason, and has forgotten it. Its Resets answer
        // packets that this end had sent before.
        if self.protocol.has_ended() {
            return;
        }
        let is_genuine = |token: &ResetToken| token.is(&reset.token);
        if reset.source == self.peer.first() && self.reset_token.as_ref().is_some_and(is_genuine) {
            self.end(Closed::Reset);
        }
    }

    /// The caller requests a new connection in place of this one. Returns whether to replace this
    /// one: the peer has not answered a challenge on it for two probe timeouts. The first call
    /// sends the challenge.
    pub(super) fn replace(&mut self, now: Time) -> bool {
        self.contain(now, |session| session.is_replaced(now))
            .unwrap_or(true)
    }

    fn is_replaced(&mut self, now: Time) -> bool {
        let wait = self.protocol.probe_timeout() * 2;
        match self.asked_at {
            Some(asked_at) if now < asked_at + wait => false,
            Some(asked_at) if self.received_at < asked_at => {
                self.end(Closed::Replaced);
                true
            }
            _ => {
                self.asked_at = Some(now);
                self.asks = true;
                false
            }
        }
    }

    /// The peer's id in packets of this connection, before this end moves.
    pub(crate) fn peer_id(&self) -> ConnectionId {
        self.peer.first()
    }

    /// Handles the address of an authentic packet, or of a copy of one.
    fn note_address(
        &mut self,
        now: Time,
        from: Addresses,
        length: usize,
        number: (PacketNumber, bool),
    ) {
        if from.peer == self.path.address() && !self.path.counts_copies(from.peer) {
            return;
        }
        let probe_timeout = self.protocol.probe_timeout();
        let news = self
            .path
            .on_genuine(now, from, length, number, probe_timeout);
        self.on_path_news(now, news);
    }

    fn on_path_news(&mut self, now: Time, news: Option<News>) {
        match news {
            Some(News::Moved { from }) => {
                let to = self.path.address();
                self.push(Event::PathChanged { from, to });
                self.protocol.on_path_changed(now, from, to);
            }
            Some(News::Stays(address)) => self.push(Event::PathUnanswered { address }),
            None => {}
        }
    }

    fn notice_the_protocol(&mut self) {
        match self.protocol.is_closed() {
            // A thread of the application panicked.
            true if self.protocol.has_failed() => self.end_internally(),
            true => self.end(Closed::ByProtocol),
            // An output may be stuck for long.
            false if self.protocol.is_silent() => self.protection.erase(),
            false => {}
        }
    }

    /// Appends the next datagram that may leave now.
    pub fn poll_transmit(&mut self, now: Time, out: &mut Vec<u8>) -> Option<Datagram> {
        if self.closed.is_none() && self.confirmed {
            let start = out.len();
            match self.contain(now, |session| session.transmit(now, out)) {
                Some(transmitted) => return transmitted,
                None => out.truncate(start),
            }
        }
        let (code, reason) = self.owes_close.take()?;
        let sent = self.send_close(now, code, reason, out);
        self.protection.erase();
        sent
    }

    fn transmit(&mut self, now: Time, out: &mut Vec<u8>) -> Option<Datagram> {
        if self.protection.is_erased() {
            // Challenges and responses have no purpose any more.
            self.notice_the_protocol();
            return None;
        }
        if let Some((to, bytes)) = self.response.take()
            && let Some(sent) = self.send_path_frame(now, to, PathFrame::Response(bytes), out)
        {
            return Some(sent);
        }
        if core::mem::take(&mut self.asks) {
            let challenge = PathFrame::Challenge(self.randomness.bytes());
            let to = self.path.address();
            let length = self.shortest_path_datagram();
            if let Some(sent) = self.write_path_frame(now, to, challenge, length, out) {
                return Some(sent);
            }
        }
        while let Some((to, bytes)) = self.path.poll_challenge(now, &mut self.randomness) {
            if let Some(sent) = self.send_path_frame(now, to, PathFrame::Challenge(bytes), out) {
                return Some(sent);
            }
        }
        let start = begin(out);
        let Some(transmit) = self.protocol.poll_transmit(now, out) else {
            out.truncate(start);
            self.notice_the_protocol();
            return None;
        };
        self.seal(now, self.path.address(), transmit, out, start)
    }

    /// Appends a challenge or response. It is padded to [`PATH_DATAGRAM`] as far as the
    /// anti-amplification limit allows. That limit does not hold for the addresses of the peer, and
    /// nothing else limits these datagrams, so only one in a while is padded.
    fn send_path_frame(
        &mut self,
        now: Time,
        to: SocketAddr,
        frame: PathFrame,
        out: &mut Vec<u8>,
    ) -> Option<Datagram> {
        let allowance = self.path.allowance(to)?;
        let length = match allowance {
            u64::MAX if now < self.pads_at => self.shortest_path_datagram(),
            _ => usize::try_from(allowance).unwrap_or(usize::MAX),
        };
        let length = length.min(PATH_DATAGRAM);
        let sent = self.write_path_frame(now, to, frame, length, out)?;
        if allowance == u64::MAX && length == PATH_DATAGRAM {
            let interval = (self.protocol.probe_timeout() / 4).max(MIN_PADDED_INTERVAL);
            self.pads_at = now + interval;
        }
        Some(sent)
    }

    fn shortest_path_datagram(&self) -> usize {
        MIN_PATH_PAYLOAD + self.protection.overhead()
    }

    /// Appends a datagram of `length` bytes with this frame.
    fn write_path_frame(
        &mut self,
        now: Time,
        to: SocketAddr,
        frame: PathFrame,
        length: usize,
        out: &mut Vec<u8>,
    ) -> Option<Datagram> {
        let length = length.checked_sub(self.protection.overhead())?;
        if length < MIN_PATH_PAYLOAD {
            return None;
        }
        let start = begin(out);
        let Some(transmit) = self.protocol.write_path_frame(now, frame, length, out) else {
            out.truncate(start);
            return None;
        };
        self.seal(now, to, transmit, out, start)
    }

    fn seal(
        &mut self,
        now: Time,
        to: SocketAddr,
        transmit: Transmit,
        out: &mut Vec<u8>,
        start: usize,
    ) -> Option<Datagram> {
        let generation = match self.role {
            Role::Caller => self.generation,
            Role::Listener => self.path.generation(to),
        };
        let peer = self.peer.get(generation);
        match self.protection.seal(now, peer, transmit.number, out, start) {
            Ok(()) => {}
            Err(KeyUsedUp) => {
                self.end(Closed::KeyUsedUp);
                return None;
            }
        }
        self.next_number = transmit.number.next();
        let length = out.len() - start;
        self.path.on_sent(to, length);
        Some(Datagram {
            to,
            source: self.path.source(to),
            ecn: transmit.ecn,
            length,
            leave_by: transmit.leave_by,
        })
    }

    /// When [`Self::on_timer`] is due; `Time::MAX` for never.
    pub fn next_timer(&self) -> Time {
        if self.closed.is_some() || !self.confirmed {
            return Time::MAX;
        }
        // A panic recurs in `on_timer`, which ends the connection.
        contain(|| self.protocol.next_timer().min(self.path.next_timer()))
            .unwrap_or(Time::ZERO)
            .min(self.protection.next_timer())
    }

    /// Handles the expiry of the timer.
    pub fn on_timer(&mut self, now: Time) {
        if self.closed.is_none() && self.confirmed {
            self.contain(now, |session| session.handle_timer(now));
        }
    }

    fn handle_timer(&mut self, now: Time) {
        self.protection.on_timer(now);
        let news = self.path.on_timer(now);
        self.on_path_news(now, news);
        if self.protocol.next_timer() <= now {
            self.protocol.on_timer(now);
        }
        self.notice_the_protocol();
    }

    /// The next event.
    pub fn poll_event(&mut self) -> Option<Event> {
        self.events.pop_front()
    }
}

/// Reserves room for the header, and memory for the tag after the payload.
fn begin(out: &mut Vec<u8>) -> usize {
    let start = out.len();
    out.reserve(PATH_DATAGRAM + DATA_HEADER + TAG);
    out.resize(start + DATA_HEADER, 0);
    start
}
