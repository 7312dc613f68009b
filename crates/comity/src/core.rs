//! The deadline transport as what a session carries.

use bytes::Bytes;
use comity_congestion::table::{self, Parameters as ControllerParameters, Row, Setup};
use comity_congestion::{Controller, Meter};
use comity_transport::datagram::{self, Connection};
use comity_transport::wire::parameters::{Parameters, Reliability};
use comity_transport::wire::{CloseCode, limits};
use comity_units::{PacketNumber, Seed, Span, Time};

use crate::config::Config;
use crate::session::{BadParameters, Core, Ecn, Opener, PathFrame, Role, Transmit};
use crate::trace::{PacketRecord, Record, Trace};

/// How many planned releases are remembered until the packets have left: more than one batch has.
const MAX_PLANNED: usize = 256;

/// How soon a connection is asked again that wants to be, though it had nothing to do just before.
const SOON: Span = Span::from_micros(100);

/// One [`Connection`] of [`comity_transport::datagram`], driven as a session's [`Core`].
///
/// It is built from both ends' transport parameters: the smaller datagram and the larger latency
/// hold, the peer says how it acknowledges, how much it takes at first, and which meter it wants.
#[derive(Debug)]
pub struct Transport {
    connection: Connection<Bytes>,
    peer: Parameters,
    latency: Span,
    controller: &'static Row,
    controller_parameters: ControllerParameters,
    setup: Setup,
    /// Whether the application takes no more sections at present.
    is_stalled: bool,
    /// Whether the pacer has held back what waits to be sent, without interruption by anything
    /// else.
    is_paced: bool,
    /// When it last had nothing to send.
    idle_at: Time,
    /// When the packets that were polled last were to leave.
    planned: Vec<Time>,
    /// What sealing adds to a payload.
    sealing: u32,
    trace: Option<Box<Trace>>,
}

impl Transport {
    /// A connection between an end configured so and one with the parameters `peer`.
    ///
    /// `overhead` is what sealing adds to a payload, in bytes, and `seed` that of everything random
    /// in it.
    ///
    /// # Errors
    ///
    /// [`BadParameters`] when the two cannot work together.
    pub fn open(
        now: Time,
        role: Role,
        config: &Config,
        overhead: usize,
        peer: Parameters,
        seed: Seed,
    ) -> Result<Self, BadParameters> {
        let own = config.transport();
        let sealing = u32::try_from(overhead).map_err(|_| BadParameters)?;
        let datagram = (own.payload + limits::SEALING).min(peer.max_datagram.into());
        let transport = datagram::Config {
            payload: datagram.checked_sub(sealing).ok_or(BadParameters)?,
            overhead: own.overhead - limits::SEALING + sealing,
            expect_deadlines: peer.reliability != Reliability::Full,
            // The handshake said whether the peer sees marks: without that, asking for them is
            // pointless.
            ecn: own.ecn && peer.ecn,
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
            ..Setup::new(comity_units::Bytes::new(transport.payload.into()))
        };
        let controller = config
            .row()
            .build(&setup, &config.settings().controller_parameters)
            .map_err(|_| BadParameters)?;
        let meter = match &peer.meter {
            None if peer.meter_parameters.is_some() => return Err(BadParameters),
            None => None,
            Some(name) => Some(meter(name, peer.meter_parameters.as_deref(), &setup)?),
        };
        let mut connection = Connection::new(transport, peer.max_ack_delay, controller, meter, now)
            .map_err(|_| BadParameters)?;
        connection.set_initial_credit(peer.initial_credit, peer.max_open_sections);
        let trace = config
            .qlog()
            .map(|qlog| Box::new(qlog.connection(role, now, config.controller())));
        if trace.is_some() {
            connection.keep_losses();
        }
        Ok(Self {
            latency: Span::from(config.settings().latency).max(peer.latency),
            connection,
            peer,
            controller: config.row(),
            controller_parameters: config.settings().controller_parameters.clone(),
            setup,
            is_stalled: false,
            is_paced: false,
            idle_at: Time::ZERO,
            planned: Vec::new(),
            sealing,
            trace,
        })
    }

    /// What makes the connections of an endpoint configured so; `seed` names their random streams.
    pub fn opener(config: Config, seed: Seed) -> Opener<Self> {
        let mut count = 0;
        Box::new(move |now, role, overhead, parameters| {
            let peer = Parameters::decode(parameters).map_err(|_| BadParameters)?;
            count += 1;
            Self::open(now, role, &config, overhead, peer, seed.index(count))
        })
    }

    /// The connection.
    pub fn connection(&self) -> &Connection<Bytes> {
        &self.connection
    }

    /// The connection, to be given something.
    pub fn connection_mut(&mut self) -> &mut Connection<Bytes> {
        &mut self.connection
    }

    /// The size of a datagram with so much protected payload.
    pub(crate) const fn datagram_of(&self, payload: u32) -> u32 {
        payload.saturating_add(self.sealing)
    }

    /// The system refused to send a datagram of this size to the peer, as too large.
    pub(crate) fn on_too_large(&mut self, now: Time, datagram: usize) {
        let payload = u32::try_from(datagram)
            .unwrap_or(u32::MAX)
            .saturating_sub(self.sealing);
        self.connection.on_too_large(now, payload);
    }

    /// What the peer said of itself.
    pub fn peer(&self) -> &Parameters {
        &self.peer
    }

    /// The latency that holds: the larger one of both ends.
    pub fn latency(&self) -> Span {
        self.latency
    }

    /// Whether the application takes no more sections at present: then nothing wakes up for their
    /// sake, and the core lasts until they are taken, unless nobody ever will.
    pub(crate) fn set_stalled(&mut self, is_stalled: bool, is_abandoned: bool) {
        self.is_stalled = is_stalled && !is_abandoned;
    }

    /// Puts what `record` makes into the trace, if one is kept.
    pub(crate) fn trace(
        &mut self,
        now: Time,
        record: impl FnOnce(&Trace, &Connection<Bytes>) -> Record,
    ) {
        if let Some(trace) = &mut self.trace {
            let record = record(trace, &self.connection);
            trace.record(now, record);
        }
    }

    /// What the connection knows after something happened to it.
    fn trace_state(&mut self, now: Time) {
        let Some(trace) = &mut self.trace else { return };
        for lost in self.connection.take_losses() {
            trace.record(now, Record::Lost(lost));
        }
        let path = Box::new(self.connection.statistics().path);
        trace.record(now, Record::Path(path));
    }

    /// `planned`: when it was to leave, if pacing held it back.
    fn trace_sent(
        &mut self,
        now: Time,
        number: PacketNumber,
        payload: &[u8],
        planned: Option<Time>,
    ) {
        self.trace(now, |trace, connection| {
            let overhead = connection.config().overhead;
            let planned = planned.map(|time| trace.since_epoch(time));
            Record::Sent(PacketRecord::read(number, payload, overhead).planned_at(planned))
        });
    }

    /// Whether paced packets were polled since the last call of [`Self::take_planned`].
    pub(crate) fn has_planned(&self) -> bool {
        !self.planned.is_empty()
    }

    /// When the paced packets that were polled since the last call were to leave.
    pub(crate) fn take_planned(&mut self) -> std::vec::Drain<'_, Time> {
        self.planned.drain(..)
    }
}

/// How often an end says something that wants to itself every `own`, to a peer that gives up after
/// `idle_timeout` (zero: never): two of three packets may be lost on the way.
fn keep_alive(own: Span, idle_timeout: Span) -> Span {
    match idle_timeout {
        Span::ZERO => own,
        timeout => own.min(timeout / 3),
    }
    .max(Span::from_millis(10))
}

/// The meter that a peer asks for. Its parameters are held against the table like anybody's.
fn meter(
    name: &str,
    parameters: Option<&str>,
    setup: &Setup,
) -> Result<Box<dyn Meter>, BadParameters> {
    let row = table::find(name).map_err(|_| BadParameters)?;
    let parameters = row
        .parse_list(parameters.unwrap_or_default())
        .map_err(|_| BadParameters)?;
    row.build_meter(setup, &parameters)
        .and_then(Result::ok)
        .ok_or(BadParameters)
}

impl Core for Transport {
    fn on_established(&mut self, _: Time) {
        // It asks for an answer, and the probe timer repeats it until there is one.
        self.connection.ping();
    }

    fn on_packet(&mut self, now: Time, number: PacketNumber, ecn: Ecn, payload: &[u8]) {
        let before = self.connection.received_packets();
        // A violation closes the connection by itself, and is told as its end.
        let _ = self.connection.on_packet(now, number, ecn, payload);
        // What came again, or after the end, is not counted either.
        if self.trace.is_some() && self.connection.received_packets() > before {
            self.trace(now, |_, connection| {
                let overhead = connection.config().overhead;
                Record::Received(PacketRecord::read(number, payload, overhead))
            });
            self.trace_state(now);
        }
    }

    fn on_duplicate(&mut self) {
        self.connection.on_duplicate();
    }

    fn poll_transmit(&mut self, now: Time, out: &mut Vec<u8>) -> Option<Transmit> {
        // Only what has waited for its pacer leaves at a planned time.
        let planned = match self.is_paced {
            true => self.connection.release_at(),
            false => None,
        };
        let backlog = self.connection.backlog();
        let start = out.len();
        let Some(sent) = self.connection.poll_transmit(now, out) else {
            match self.connection.release_at() {
                None => self.is_paced = false,
                Some(time) if time > now => self.is_paced = true,
                Some(_) => {}
            }
            self.idle_at = now;
            return None;
        };
        let carries_data = self.connection.backlog() < backlog;
        let planned = planned.filter(|time| carries_data && *time <= now);
        if self.planned.len() < MAX_PLANNED {
            self.planned.extend(planned);
        }
        self.trace_sent(
            now,
            sent.number,
            out.get(start..).unwrap_or_default(),
            planned,
        );
        Some(Transmit {
            number: sent.number,
            ecn: sent.ecn,
            leave_by: sent.leave_by,
        })
    }

    fn write_path_frame(
        &mut self,
        now: Time,
        frame: PathFrame,
        length: usize,
        out: &mut Vec<u8>,
    ) -> Option<Transmit> {
        let start = out.len();
        let sent = self.connection.write_path_frame(now, frame, length, out)?;
        let payload = out.get(start..).unwrap_or_default();
        self.trace_sent(now, sent.number, payload, None);
        Some(Transmit {
            number: sent.number,
            ecn: Ecn::NotCapable,
            leave_by: sent.leave_by,
        })
    }

    fn poll_path_frame(&mut self) -> Option<PathFrame> {
        self.connection.poll_path_frame()
    }

    fn on_path_changed(&mut self, now: Time) {
        let fresh: Result<Box<dyn Controller>, _> = self
            .controller
            .build(&self.setup, &self.controller_parameters);
        if let Ok(controller) = fresh {
            self.connection.on_new_path(now, controller);
        }
    }

    fn probe_timeout(&self) -> Span {
        self.connection.probe_timeout()
    }

    fn close(&mut self, now: Time, code: u64, reason: &str) {
        self.connection.close(now, CloseCode::new(code), reason);
    }

    fn is_closed(&self) -> bool {
        self.connection.is_closed() && !self.is_stalled && !self.connection.has_deliveries()
    }

    fn next_timer(&self) -> Time {
        let next = if self.is_stalled {
            self.connection.next_protocol_timer()
        } else {
            self.connection.next_timer()
        };
        // Whatever it waits for then is not time: nothing spins for it.
        if next <= self.idle_at {
            self.idle_at + SOON
        } else {
            next
        }
    }

    fn on_timer(&mut self, now: Time) {
        self.connection.on_timer(now);
        self.trace_state(now);
    }
}
