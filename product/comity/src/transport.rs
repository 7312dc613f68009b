//! The deadline transport that a session carries, without sockets and clocks.
//!
//! A host with an event loop of its own passes received datagrams to a
//! [`Session`](crate::session::Session), and sends the datagrams that the session produces. The
//! session's [`Transport`] accepts [`Outgoing`] sections and produces each [`Delivery`] and
//! [`TransportEvent`].
//!
//! ```
//! use comity::session::{
//!     Caller, CallerConfig, CallerCredentials, Ecn, Listener, ListenerConfig,
//!     ListenerCredentials, PresharedKey, Randomness,
//! };
//! use comity::parts::{Seed, Time};
//! use comity::transport::{Delivery, Outgoing, Transport};
//! use comity::{Bytes, Config, Importance, Span, StreamId};
//! use std::net::SocketAddr;
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let key = PresharedKey::new([7; 32]);
//! let config = Config::builder().preshared_key(key.clone()).build()?;
//! let mut parameters = Vec::new();
//! config.parameters().encode(&mut parameters)?;
//! // A program takes `Randomness::system()` and seeds from it.
//! let mut randomness = Randomness::seeded(Seed::new(1));
//! let here: SocketAddr = "192.0.2.1:4000".parse()?;
//! let there: SocketAddr = "192.0.2.2:5000".parse()?;
//! let mut now = Time::from_millis(1);
//!
//! let credentials = ListenerCredentials::Shared(key.clone());
//! let mut listener = Listener::new(
//!     now,
//!     ListenerConfig::new(credentials, parameters.clone()),
//!     Transport::opener(config.clone(), Seed::new(2)),
//!     randomness.split(),
//! )?;
//! let mut caller = Caller::new(
//!     now,
//!     there,
//!     CallerConfig::new(CallerCredentials::Shared(key), parameters),
//!     Transport::opener(config, Seed::new(3)),
//!     randomness.split(),
//! )?;
//!
//! let (mut is_submitted, mut received) = (false, None);
//! let mut datagram = Vec::new();
//! while received.is_none() {
//!     if let Some(session) = caller.session_mut()
//!         && !is_submitted
//!     {
//!         let section = Outgoing {
//!             stream: StreamId(0),
//!             importance: Importance(0),
//!             source_time: now,
//!             deadline: now + Span::from_millis(100),
//!             needs: None,
//!             payload: Bytes::from("a frame"),
//!         };
//!         session.protocol_mut().submit(now, section)?;
//!         is_submitted = true;
//!     }
//!     // A program writes to its socket here, and reads from it.
//!     while caller.poll_transmit(now, &mut datagram).is_some() {
//!         listener.handle_datagram(now, here, Ecn::NotCapable, &mut datagram);
//!         datagram.clear();
//!     }
//!     while listener.poll_transmit(now, &mut datagram).is_some() {
//!         caller.handle_datagram(now, there, Ecn::NotCapable, &mut datagram);
//!         datagram.clear();
//!     }
//!     let first = listener.ids().next();
//!     if let Some(id) = first
//!         && let Some(transport) = listener.protocol_mut(id)
//!     {
//!         received = transport.poll_delivery(now);
//!     }
//!     // It then waits for a datagram or until this time.
//!     now = now.max(caller.next_timer().min(listener.next_timer()));
//!     assert!(!now.is_never(), "something is under way");
//!     caller.on_timer(now);
//!     listener.on_timer(now);
//! }
//! assert!(matches!(received, Some(Delivery::Section(section)) if section.payload == "a frame"));
//! # Ok(())
//! # }
//! ```

mod departures;
mod moves;
mod protocol;

use std::net::IpAddr;
use std::sync::Arc;

use bytes::Bytes;
use comity_congestion::Meter;
use comity_congestion::table::{self, Parameters as ControllerParameters, Row, Setup};
pub use comity_transport::datagram::Target;
use comity_transport::datagram::{self, Connection};
pub use comity_transport::timeline::inbox::{
    Gap as MissingSection, Partial as PartialSection, Received as DeliveredSection,
};
use comity_transport::timeline::outbox::{RECORD, SubmitError};
pub use comity_transport::timeline::{Delivery, Meta, Outgoing};
use comity_transport::timeline::{Outcome, Reason, SectionId, StreamId};
pub use comity_transport::wire::parameters::Parameters;
use comity_transport::wire::parameters::Reliability;
use comity_transport::wire::{CloseCode, limits};
use comity_units::{PacketNumber, Seed, Span, Time};

use self::departures::Departures;
use self::moves::Moves;
use crate::config::Config;
use crate::error::{CloseReason, SendError};
use crate::memory::{MemoryBudget, MemoryShare, counted};
use crate::session::{BadParameters, Opener, Role, SessionStatistics};
use crate::statistics::Statistics;
use crate::trace::{Ended, PacketRecord, Record, Settled, Size, Skipped, Submitted, Trace};

/// An event of a [`Transport`].
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum TransportEvent {
    /// The fate of a submitted section.
    Outcome(Outcome),
    /// The bitrate at which the application should submit has changed.
    Target(Target),
    /// The size of the datagrams on the path has changed.
    PathSize(PathSize),
    /// The transport is closed. No event follows.
    Closed(CloseReason),
}

/// The size of datagrams on a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct PathSize {
    /// The length of a full datagram, without UDP and IP headers.
    pub datagram: u32,
    /// The largest datagram that both ends accept.
    pub max: u32,
}

/// The deadline transport of one connection, driven as a session's
/// [`Protocol`](crate::session::Protocol).
///
/// The transport parameters of both ends configure it. The smaller of the two largest datagrams and
/// the larger latency apply. The peer's latency counts up to `max_latency`. The peer's parameters
/// determine its acknowledgement delay, its initial credit, and the meter that this end runs for
/// it.
#[derive(Debug)]
pub struct Transport {
    connection: Connection<Bytes>,
    peer: Parameters,
    latency: Span,
    controller: &'static Row,
    controller_parameters: ControllerParameters,
    setup: Setup,
    /// Whether the application accepts no more sections at present.
    is_stalled: bool,
    /// Whether the waiting packets have waited only for the pacer so far.
    is_paced: bool,
    /// The last time at which it had nothing to send.
    idle_at: Time,
    departures: Departures,
    moves: Moves,
    opened_at: Time,
    /// The latest time of any call. Threads that share a transport read the clock separately.
    latest: Time,
    /// Whether to close as soon as all sections have an outcome.
    is_finishing: bool,
    /// The number of open sections that the peer was last known to accept.
    max_open: u64,
    /// The bytes that sealing adds to a payload.
    sealing: u32,
    /// The bytes by which the headers on this path are shorter than those of IPv6. The transport
    /// assumes IPv6 headers on every path.
    shorter: u32,
    trace: Option<Box<Trace>>,
    /// The share of this connection in the endpoint's memory.
    memory: Arc<MemoryShare>,
    /// The last counters of a connection that panicked.
    failed: Option<Box<datagram::Statistics>>,
}

impl Transport {
    /// Opens a connection between an end with this configuration and a peer with these parameters.
    ///
    /// Sealing adds `overhead` bytes to a payload. `seed` seeds all random streams.
    ///
    /// # Errors
    ///
    /// [`BadParameters`] if the two ends cannot work together.
    pub fn open(
        now: Time,
        role: Role,
        config: &Config,
        overhead: usize,
        peer: Parameters,
        seed: Seed,
    ) -> Result<Self, BadParameters> {
        let budget = MemoryBudget::new(config.settings().memory_budget());
        Self::open_within(now, role, config, overhead, peer, seed, budget.share())
    }

    fn open_within(
        now: Time,
        role: Role,
        config: &Config,
        overhead: usize,
        peer: Parameters,
        seed: Seed,
        memory: Arc<MemoryShare>,
    ) -> Result<Self, BadParameters> {
        if config.settings().require_proofs && !peer.proofs {
            return Err(BadParameters::Unfit);
        }
        let own = config.transport();
        let sealing = u32::try_from(overhead).map_err(|_| BadParameters::Unfit)?;
        let datagram = (own.payload + limits::SEALING).min(peer.max_datagram.into());
        let transport = datagram::Config {
            payload: datagram.checked_sub(sealing).ok_or(BadParameters::Unfit)?,
            overhead: own.overhead - limits::SEALING + sealing,
            expect_deadlines: peer.reliability != Reliability::Full,
            // ECN is useless if the peer cannot read the marks. Its parameters say whether it can.
            ecn: own.ecn && peer.ecn,
            proofs: peer.proofs,
            keep_alive: keep_alive(own.keep_alive, peer.idle_timeout),
            seed,
            ..*own
        };
        let transport = datagram::Config {
            base_payload: Some((limits::MIN_INITIAL as u32).saturating_sub(sealing))
                .filter(|base| *base < transport.payload),
            ..transport
        };
        let setup = Setup {
            seed: seed.derive("controller"),
            ..Setup::new(comity_units::DataSize::new(transport.payload.into()))
        };
        let controller = config
            .row()
            .build(&setup, &config.settings().controller_parameters)
            .map_err(|_| BadParameters::Unfit)?;
        let meter = match &peer.meter {
            None if peer.meter_parameters.is_some() => return Err(BadParameters::Unfit),
            None => None,
            Some(name) => Some(meter(name, peer.meter_parameters.as_deref(), &setup)?),
        };
        let mut connection = Connection::new(transport, peer.max_ack_delay, controller, meter, now)
            .map_err(|_| BadParameters::Unfit)?;
        connection.set_initial_credit(peer.initial_credit, peer.max_open_sections);
        let trace = config
            .qlog()
            .map(|qlog| Box::new(qlog.connection(role, now, config.controller())));
        if trace.is_some() {
            connection.keep_losses();
        }
        // The memory of a sender grows with the latency, and so does the wait at its end.
        let requested = peer.latency.min(own.max_latency);
        Ok(Self {
            latency: Span::from(config.settings().latency).max(requested),
            connection,
            peer,
            controller: config.row(),
            controller_parameters: config.settings().controller_parameters.clone(),
            setup,
            is_stalled: false,
            is_paced: false,
            idle_at: Time::ZERO,
            departures: Departures::default(),
            moves: Moves::default(),
            opened_at: now,
            latest: now,
            is_finishing: false,
            max_open: 0,
            sealing,
            shorter: 0,
            trace,
            memory,
            failed: None,
        })
    }

    /// The opener of connections for an endpoint with this configuration. `seed` seeds the random
    /// streams. All connections of the opener share one memory budget.
    pub fn opener(config: Config, seed: Seed) -> Opener<Self> {
        let budget = MemoryBudget::new(config.settings().memory_budget());
        Self::opener_within(config, seed, budget)
    }

    pub(crate) fn opener_within(
        config: Config,
        seed: Seed,
        budget: Arc<MemoryBudget>,
    ) -> Opener<Self> {
        let mut count = 0;
        Box::new(move |now, role, overhead, parameters| {
            let peer = Parameters::decode(parameters).map_err(|_| BadParameters::Unfit)?;
            let settings = config.settings();
            if role == Role::Listener
                && settings.only_own_stream
                && let Some(requested) = &peer.stream_name
                && *requested != settings.stream_name
            {
                return Err(BadParameters::Stream {
                    requested: requested.clone(),
                    own: settings.stream_name.clone(),
                });
            }
            count += 1;
            let (seed, memory) = (seed.index(count), budget.share());
            Self::open_within(now, role, &config, overhead, peer, seed, memory)
        })
    }

    /// Reports to the endpoint's budget how much memory the peer makes this end hold.
    fn count_memory(&mut self) {
        let was_short = self.connection.take_shortage();
        self.memory.set_held(self.connection.memory(), was_short);
    }

    /// The share of this connection in the endpoint's memory.
    pub(crate) const fn memory(&self) -> &Arc<MemoryShare> {
        &self.memory
    }

    /// Closes the connection, because it holds too much of the endpoint's memory. Discards the
    /// undelivered sections.
    pub(crate) fn evict(&mut self, now: Time) {
        let now = self.advance(now);
        self.connection
            .evict(now, CloseCode::REFUSED, "the memory is needed by others");
        self.memory.leave();
        self.count_memory();
    }

    /// Makes the times of calls monotonic.
    fn advance(&mut self, now: Time) -> Time {
        self.latest = self.latest.max(now);
        self.latest
    }

    /// Submits a section and returns its number. Its times are on the clock of `now`.
    ///
    /// # Errors
    ///
    /// [`SendError`], without any effect.
    pub fn submit(&mut self, now: Time, section: Outgoing<Bytes>) -> Result<SectionId, SendError> {
        let now = self.advance(now);
        let traced = self.trace.is_some().then(|| section.clone());
        let length = section.payload.len();
        let counted = self.counted(section);
        let submitted = counted.and_then(|section| self.connection.submit(now, section));
        let id = submitted.map_err(|error| self.refused(error, length))?;
        self.count_memory();
        if let Some(section) = traced {
            self.trace(now, |trace, _| {
                Record::Submitted(Submitted::new(trace, id, &section))
            });
        }
        Ok(id)
    }

    /// The error for the application, for a section of `length` bytes. The connection's own error
    /// lacks what the send buffer holds, and why the transport is closed.
    pub(crate) fn refused(&self, error: SubmitError, length: usize) -> SendError {
        match error {
            SubmitError::Argument(error) => error.into(),
            SubmitError::TooManyBytes { .. } | SubmitError::TooManySections { .. } => {
                let (sections, held_bytes) = self.connection.held();
                SendError::Full {
                    held_bytes,
                    held_sections: u32::try_from(sections).unwrap_or(u32::MAX),
                    length,
                }
            }
            SubmitError::Finishing => SendError::Finishing,
            SubmitError::Closed => {
                let reason = self.close_reason();
                SendError::Closed(reason.unwrap_or(CloseReason::EndpointClosed))
            }
        }
    }

    /// The section with a payload that counts while it is in the send buffer.
    fn counted(&self, section: Outgoing<Bytes>) -> Result<Outgoing<Bytes>, SubmitError> {
        match counted(&self.memory, section.payload) {
            Ok(payload) => Ok(Outgoing { payload, ..section }),
            Err((payload, bytes)) => {
                let length = u32::try_from(payload.len()).unwrap_or(u32::MAX);
                // A section that is refused anyway needs no memory.
                self.connection.check(&Outgoing { payload, ..section })?;
                self.memory.on_shortage(bytes);
                let (_, held) = self.connection.held();
                Err(SubmitError::TooManyBytes {
                    held,
                    length,
                    limit: held,
                })
            }
        }
    }

    /// Whether the endpoint has memory for a section of `length` bytes, and every stream that has
    /// begun has room for it. Also true if the connection can never carry such a section.
    pub fn has_room(&self, length: usize) -> bool {
        let length = length as u64;
        self.connection.has_room(length)
            && (self.connection.never_fits(length) || self.memory.has_room(length + RECORD))
    }

    /// Whether the peer accepts more open sections than at the last call.
    pub(crate) fn take_more_open(&mut self) -> bool {
        let before = std::mem::replace(&mut self.max_open, self.connection.max_open());
        self.max_open > before
    }

    /// Skips the next section number of a stream. The peer gets a gap with this reason.
    ///
    /// # Errors
    ///
    /// [`SendError`], without any effect.
    pub fn skip(
        &mut self,
        now: Time,
        stream: StreamId,
        reason: Reason,
    ) -> Result<SectionId, SendError> {
        self.skip_run(now, stream, 1, reason)
    }

    /// Skips the next `count` section numbers of a stream, and returns the first of them. The peer
    /// does not receive the reason of a run of more than 64.
    ///
    /// # Errors
    ///
    /// [`SendError`], without any effect.
    pub fn skip_run(
        &mut self,
        now: Time,
        stream: StreamId,
        count: u64,
        reason: Reason,
    ) -> Result<SectionId, SendError> {
        let now = self.advance(now);
        let skipped = self.connection.skip_run(stream, count, reason);
        let first = skipped.map_err(|error| self.refused(error, 0))?;
        self.trace(now, |_, _| {
            Record::Skipped(Skipped::new(stream, first, count, reason))
        });
        Ok(first)
    }

    /// Withdraws a section and all that depend on it. Returns whether it withdrew anything.
    pub fn cancel(&mut self, stream: StreamId, section: SectionId) -> bool {
        self.connection.cancel(stream, section)
    }

    /// Finishes a stream. It accepts no more sections.
    ///
    /// # Errors
    ///
    /// [`SendError`] if the stream is finished already, or if there are too many streams.
    pub fn finish_stream(&mut self, stream: StreamId) -> Result<(), SendError> {
        let ended = self.connection.end(stream);
        ended.map_err(|error| self.refused(error, 0))
    }

    /// Finishes all streams. Closes with [`CloseCode::DONE`] when every section has its outcome and
    /// the peer knows all outcomes.
    pub fn finish(&mut self) {
        if !self.is_finishing && self.connection.is_open() {
            self.is_finishing = true;
            self.connection.finish();
        }
    }

    /// Closes at once. Sections that have not arrived become gaps at the peer.
    pub fn close(&mut self, now: Time, code: CloseCode, reason: &str) {
        let now = self.advance(now);
        self.connection.close(now, code, reason);
    }

    /// Why the transport is closed; `None` while it is open.
    pub fn close_reason(&self) -> Option<CloseReason> {
        self.connection.close_reason().map(|reason| {
            use datagram::CloseReason as Reason;
            match reason.clone() {
                Reason::Idle => CloseReason::Idle {
                    after: self.connection.config().idle_timeout.into(),
                },
                Reason::Local { code, reason } => CloseReason::Local { code, reason },
                Reason::Peer { code, reason } => CloseReason::Peer { code, reason },
                Reason::Violation(violation) => CloseReason::Violation(violation),
            }
        })
    }

    /// The next section or gap. Returns each exactly once, in the order of its stream.
    pub fn poll_delivery(&mut self, now: Time) -> Option<Delivery<Bytes>> {
        let now = self.advance(now);
        let delivery = self.connection.poll_delivery(now)?;
        self.count_memory();
        self.trace(now, |trace, connection| {
            Record::delivery(trace, &delivery, |time| connection.to_local(time))
        });
        Some(delivery)
    }

    /// The next event. A section counts towards the send buffer until its outcome is polled.
    pub fn poll_event(&mut self, now: Time) -> Option<TransportEvent> {
        let now = self.advance(now);
        let event = self.connection.poll_event()?;
        Some(match event {
            datagram::Event::Outcome(outcome) => {
                self.count_memory();
                self.trace(now, |_, _| Record::Settled(Settled::new(&outcome)));
                TransportEvent::Outcome(outcome)
            }
            datagram::Event::TargetBitrate(target) => TransportEvent::Target(target),
            datagram::Event::PathSize { payload, most } => {
                let size = PathSize {
                    datagram: payload.saturating_add(self.sealing),
                    max: most.saturating_add(self.sealing),
                };
                self.trace(now, |_, _| Record::Size(Size { new: size.datagram }));
                TransportEvent::PathSize(size)
            }
            datagram::Event::Closed(_) => TransportEvent::Closed(self.close_reason()?),
        })
    }

    /// Sets the peer's address. Statistics and traces count the headers of its IP version.
    ///
    /// The controller and `maxbw` assume IPv6 headers on every path.
    pub fn set_peer_address(&mut self, address: IpAddr) {
        self.shorter = match address.to_canonical() {
            IpAddr::V4(_) => limits::UDP_IPV6 - limits::UDP_IPV4,
            IpAddr::V6(_) => 0,
        };
    }

    /// The statistics at `now`, with the session's counters `session`.
    pub fn stats(&self, now: Time, session: &SessionStatistics) -> Statistics {
        let mut counted = match &self.failed {
            None => self.connection.statistics(),
            Some(last) => datagram::Statistics::clone(last),
        };
        let shorter = u64::from(self.shorter);
        let (sent, received) = (&mut counted.sent, &mut counted.received);
        sent.wire_bytes -= sent.packets * shorter;
        received.wire_bytes -= received.packets * shorter;
        Statistics {
            pacing: self.departures.errors(),
            ..Statistics::new(
                now.saturating_since(self.opened_at),
                self.controller.name,
                &counted,
                session,
                self.connection.clock_drift_ppm(),
            )
        }
    }

    /// Whether every section has its outcome, and the peer knows all outcomes.
    pub fn is_settled(&self) -> bool {
        self.connection.is_settled()
    }

    /// The bytes of sections that wait to be sent.
    pub fn backlog(&self) -> u64 {
        self.connection.backlog()
    }

    /// The local time at which the peer's clock shows `time`. The times of received sections are on
    /// the peer's clock.
    pub fn to_local(&self, time: Time) -> Time {
        self.connection.to_local(time)
    }

    /// Acknowledges no sections until [`take_sections`](Self::take_sections).
    pub fn await_taker(&mut self) {
        self.connection.await_taker();
    }

    /// Whether it waits for [`take_sections`](Self::take_sections).
    pub fn awaits_taker(&self) -> bool {
        self.connection.awaits_taker()
    }

    /// Accepts sections from now on.
    pub fn take_sections(&mut self, now: Time) {
        let now = self.advance(now);
        self.connection.take_sections(now);
    }

    /// Accepts no more sections: acknowledges none, and reports to the peer that there is no room.
    /// Sections that have arrived can still be polled.
    pub fn refuse_sections(&mut self) {
        self.connection.refuse_sections();
    }

    /// Whether sections or gaps remain to be polled.
    pub fn has_deliveries(&self) -> bool {
        self.connection.has_deliveries()
    }

    /// Whether the controller sets when each packet leaves.
    pub(crate) const fn times_departures(&self) -> bool {
        self.connection.times_departures()
    }

    /// The time at which the handshake ended.
    pub(crate) const fn opened_at(&self) -> Time {
        self.opened_at
    }

    /// The maximum number of section bytes that this end may have to hold.
    pub(crate) const fn receive_buffer(&self) -> u64 {
        self.connection.config().receive_buffer
    }

    /// Records that the packets polled since the last call have just left.
    pub(crate) fn on_sent(&mut self, now: Time) {
        self.departures.on_sent(now);
    }

    /// Records the end in the trace, if there is one.
    pub(crate) fn trace_end(&mut self, now: Time, reason: &CloseReason, statistics: &Statistics) {
        self.trace(now, |_, _| {
            Record::Ended(Box::new(Ended {
                reason: reason.to_string(),
                statistics: statistics.clone(),
            }))
        });
    }

    /// The next packet that may leave now. If all sections of a finishing connection are settled,
    /// this packet closes the connection.
    fn poll_packet(&mut self, now: Time, out: &mut Vec<u8>) -> Option<datagram::Transmit> {
        if let Some(sent) = self.connection.poll_transmit(now, out) {
            return Some(sent);
        }
        if !self.is_finishing || !self.connection.is_open() || !self.connection.is_settled() {
            return None;
        }
        self.connection.close(now, CloseCode::DONE, "");
        self.connection.poll_transmit(now, out)
    }

    /// Handles the system's refusal to send a datagram of this size to the peer, because it is too
    /// large.
    pub(crate) fn on_too_large(&mut self, now: Time, datagram: usize) {
        let now = self.advance(now);
        let payload = u32::try_from(datagram)
            .unwrap_or(u32::MAX)
            .saturating_sub(self.sealing);
        self.connection.on_too_large(now, payload);
    }

    /// The peer's transport parameters.
    pub fn peer(&self) -> &Parameters {
        &self.peer
    }

    /// The latency of the connection: the larger one of both ends.
    pub fn latency(&self) -> Span {
        self.latency
    }

    /// The least round-trip time; `None` before the first measurement.
    pub(crate) fn min_rtt(&self) -> Option<Span> {
        self.connection.min_rtt()
    }

    /// Sets whether the application accepts no more sections at present. Meanwhile no delivery
    /// timer runs, and a closed connection is kept for its undelivered sections. Has no effect if
    /// the application has abandoned the connection (`is_abandoned`).
    pub(crate) fn set_stalled(&mut self, is_stalled: bool, is_abandoned: bool) {
        self.is_stalled = is_stalled && !is_abandoned;
    }

    /// Adds a record to the trace, if there is one.
    fn trace(&mut self, now: Time, record: impl FnOnce(&Trace, &Connection<Bytes>) -> Record) {
        if let Some(trace) = &mut self.trace {
            let record = record(trace, &self.connection);
            trace.record(now, record);
        }
    }

    /// Records the state of the path after an event.
    fn trace_state(&mut self, now: Time) {
        let Some(trace) = &mut self.trace else { return };
        for lost in self.connection.take_losses() {
            trace.record(now, Record::Lost(lost));
        }
        let path = Box::new(self.connection.statistics().path);
        trace.record(now, Record::Path(path));
    }

    /// Records a packet that leaves. `planned` is its planned departure, if pacing held it back.
    fn trace_sent(
        &mut self,
        now: Time,
        number: PacketNumber,
        payload: &[u8],
        planned: Option<Time>,
    ) {
        let shorter = self.shorter;
        self.trace(now, |trace, connection| {
            let overhead = connection.config().overhead - shorter;
            let planned = planned.map(|time| trace.since_epoch(time));
            Record::Sent(PacketRecord::read(number, payload, overhead).planned_at(planned))
        });
    }

    #[cfg(test)]
    pub(crate) fn set_controller(
        &mut self,
        now: Time,
        controller: Box<dyn comity_congestion::Controller>,
    ) {
        self.connection.on_new_path(now, controller);
    }

    /// Whether paced packets were polled since the last call of [`Self::on_sent`].
    pub(crate) fn has_planned(&self) -> bool {
        self.departures.are_planned()
    }
}

/// The interval of keep-alive packets: `own`, or a third of the peer's idle timeout if that is
/// less. The connection thus survives the loss of two keep-alive packets in a row. A peer with an
/// idle timeout of zero never times out.
fn keep_alive(own: Span, idle_timeout: Span) -> Span {
    match idle_timeout {
        Span::ZERO => own,
        timeout => own.min(timeout / 3),
    }
    .max(Span::from_millis(10))
}

/// The meter that the peer requests. Its parameters are checked against the table like any others.
fn meter(
    name: &str,
    parameters: Option<&str>,
    setup: &Setup,
) -> Result<Box<dyn Meter>, BadParameters> {
    let row = table::find(name).map_err(|_| BadParameters::Unfit)?;
    let parameters = row
        .parse_list(parameters.unwrap_or_default())
        .map_err(|_| BadParameters::Unfit)?;
    row.build_meter(setup, &parameters)
        .and_then(Result::ok)
        .ok_or(BadParameters::Unfit)
}
