//! One connection of a host: the state machine, its bytes, and the host's records of it.

mod sections;

use std::sync::Arc;

use comity_tcp::{self as tcp, Connection, Flags, Options, SackBlocks, Segment, State};
use comity_units::{DataSize, Seed, SeqNo, Time};

use crate::budget::Budget;
use crate::buffer::{FIRST, ReceiveBuffer, SendBuffer};
use crate::config::{Config, Control, KeepAlive, MIN_SHARE};
use crate::error::End;
use crate::icmp::min_mtu;
use crate::id::ListenerId;
use crate::mtu::{Due, PathMtu};
use crate::packet::ip_header;
use crate::sections::Sections;
use crate::tuple::Tuple;

/// The length of the TCP header without options.
const TCP_HEADER: u32 = tcp::codec::MIN_HEADER as u32;
/// The length of the timestamps option with its padding.
const TIMESTAMPS: u32 = 12;
/// The maximum length of the `seq_update` option of a time-lined stream.
const SEQ_UPDATE: u32 = 16;
/// The length of the wave option of TCP-Real.
const WAVE: u32 = 8;
/// The minimum segment size that a peer can request, including options. With a smaller one, a peer
/// could make the host send a packet for every byte.
const MIN_PEER_MSS: u16 = 88;
/// The payload that every IPv4 and every IPv6 host accepts (RFC 9293, section 3.7.1).
const DEFAULT_MSS_V4: u16 = 536;
const DEFAULT_MSS_V6: u16 = 1_220;
/// The maximum number of acknowledgements per second that answer segments without acceptable
/// content (RFC 5961, section 7).
const ANSWERS_PER_SECOND: u32 = 32;

/// The owner of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Owner {
    /// A listener, until its application accepts it.
    Listener(ListenerId),
    Application,
    /// None: the application released it, and it closes without one.
    Nobody,
}

#[derive(Debug)]
pub(crate) struct Socket {
    pub(crate) tuple: Tuple,
    pub(crate) tcp: Connection,
    pub(crate) send: SendBuffer,
    pub(crate) receive: ReceiveBuffer,
    pub(crate) sections: Sections,
    pub(crate) owner: Owner,
    /// The maximum IP packet size of the interface.
    mtu: u32,
    /// The maximum IP packet size of the path.
    path: PathMtu,
    /// The offset that is added to the state machine's timestamps on the wire.
    timestamp_offset: u32,
    /// Whether the handshake is complete.
    pub(crate) is_connected: bool,
    /// Whether the peer's FIN has arrived, and all data before it.
    pub(crate) has_finished: bool,
    /// Whether it is in TIME-WAIT.
    pub(crate) is_waiting: bool,
    /// Whether a new connection between the same ends replaced it in TIME-WAIT.
    pub(crate) is_replaced: bool,
    /// Whether it has ended, and no segment reaches it.
    pub(crate) is_detached: bool,
    /// Why it ended; `None` if by two FINs.
    pub(crate) end: Option<End>,
    /// Whether the network reported that it cannot reach the peer.
    pub(crate) is_unreachable: bool,
    /// Whether it waits for [`crate::Host::poll_transmit`].
    pub(crate) is_ready: bool,
    /// Whether the application found no room to write.
    pub(crate) wants_room: bool,
    /// Whether the application waits until everything is acknowledged.
    pub(crate) wants_acknowledgement: bool,
    /// The entry in the host's timers; [`Time::MAX`] for none.
    pub(crate) scheduled: Time,
    /// When the host ends it, because the handshake, or the wait for a FIN, takes too long.
    pub(crate) deadline: Time,
    /// The first byte that the peer had not acknowledged when it last made progress, and how many
    /// bytes from there on are progress again.
    progress_from: u64,
    pub(crate) progress_step: u64,
    /// The number of bytes in its send buffer at the last count.
    pub(crate) counted: usize,
    /// The number of bytes that its receive buffer may hold.
    pub(crate) promised: usize,
    /// The receive buffer of a connection that has a whole one.
    receive_buffer: DataSize,
    /// The number of bytes in order, including gaps, at the last event for the application.
    pub(crate) announced: u64,
    /// The peer's initial sequence number.
    peer_initial: SeqNo,
    /// The sequence number after the highest one sent: SND.NXT.
    pub(crate) next_sequence: SeqNo,
    /// The last acknowledgement number that was sent.
    acknowledged: Option<SeqNo>,
    /// When the last acceptable segment of the peer arrived, and the number of probes since. Others
    /// may be a stranger's.
    received_at: Time,
    probes: u32,
    keep_alive: Option<KeepAlive>,
    /// Whether the last segment had no acceptable content, so that an acknowledgement that repeats
    /// the last one would answer it.
    is_challenged: bool,
    answers: Budget,
}

/// The parameters of a new connection.
pub(crate) struct Beginning {
    pub(crate) tuple: Tuple,
    pub(crate) owner: Owner,
    pub(crate) initial_sequence: SeqNo,
    pub(crate) timestamp_offset: u32,
    /// The seed that selects the skipped segments.
    pub(crate) skip_seed: Seed,
    pub(crate) path_mtu: u32,
    /// The payload length of a full segment.
    pub(crate) mss: u32,
    pub(crate) deadline: Time,
}

/// The payload length of a full segment in packets of `mtu` bytes.
pub(crate) fn mss(mtu: u32, tuple: &Tuple, tcp: &tcp::Config) -> u32 {
    let headers = ip_header(tuple.remote.ip()) + TCP_HEADER;
    mtu.saturating_sub(headers + option_space(tcp.timestamps, tcp.timeline.is_some(), tcp.metered))
}

/// The length of the options that most data segments have.
const fn option_space(timestamps: bool, timeline: bool, metered: bool) -> u32 {
    (if timestamps { TIMESTAMPS } else { 0 })
        + (if timeline { SEQ_UPDATE } else { 0 })
        + (if metered { WAVE } else { 0 })
}

impl Socket {
    pub(crate) fn new(now: Time, beginning: &Beginning, config: &Config, control: Control) -> Self {
        let Beginning {
            tuple,
            owner,
            initial_sequence,
            timestamp_offset,
            skip_seed,
            path_mtu,
            mss,
            deadline,
        } = *beginning;
        let settings = Arc::new(tcp::Config {
            mss,
            initial_sequence,
            metered: control.meter.is_some(),
            skip_segments: config.tcp.skip_segments.map(|_| skip_seed),
            ..config.tcp
        });
        let mut connection = match owner {
            Owner::Listener(_) => Connection::listen(settings, control.controller),
            _ => Connection::connect(settings, control.controller),
        };
        // Until the handshake is complete, there is room for an initial window.
        let initial = u64::from(mss * 10).max(MIN_SHARE as u64);
        connection.set_receive_buffer(config.tcp.receive_buffer.min(DataSize::new(initial)));
        Self {
            tuple,
            tcp: match control.meter {
                Some(meter) => connection.with_meter(meter),
                None => connection,
            },
            send: SendBuffer::new(config.send_buffer),
            receive: ReceiveBuffer::new(),
            sections: Sections::new(config),
            owner,
            mtu: config.mtu,
            path: PathMtu::new(now, path_mtu, config.mtu, min_mtu(tuple.remote.ip())),
            timestamp_offset,
            is_connected: false,
            has_finished: false,
            is_waiting: false,
            is_replaced: false,
            is_detached: false,
            end: None,
            is_unreachable: false,
            is_ready: false,
            wants_room: false,
            wants_acknowledgement: false,
            scheduled: Time::MAX,
            deadline,
            progress_from: FIRST,
            progress_step: mss.into(),
            counted: 0,
            promised: 0,
            receive_buffer: config.tcp.receive_buffer,
            announced: 0,
            peer_initial: SeqNo::ZERO,
            next_sequence: initial_sequence,
            acknowledged: None,
            received_at: now,
            probes: 0,
            keep_alive: config.keep_alive,
            is_challenged: false,
            answers: Budget::default(),
        }
    }

    /// Whether the state machine has ended.
    pub(crate) fn is_over(&self) -> bool {
        self.end.is_some() || self.is_replaced || self.tcp.state() == State::Closed
    }

    /// The number of bytes in order since the beginning, including gaps.
    pub(crate) fn progress(&self) -> u64 {
        self.tcp.delivered() + self.tcp.gap_statistics().bytes
    }

    /// Lets the peer send up to `share` bytes before the application reads them, and at least as
    /// much as the window of the SYN said. Returns how many.
    pub(crate) fn promise_room(&mut self, share: usize) -> usize {
        let offered = self.tcp.config().receive_buffer;
        let share = DataSize::new(share as u64).min(self.receive_buffer);
        self.tcp.set_receive_buffer(share.max(offered));
        self.promised = share.max(offered).get() as usize;
        self.promised
    }

    /// Whether the peer has acknowledged a whole step, or all data, since this last returned true.
    /// Single bytes are no progress: a peer could otherwise hold the connection for ever.
    pub(crate) fn has_progressed(&mut self) -> bool {
        let start = self.send.start();
        let is_step = start >= self.progress_from + self.progress_step;
        let is_rest = start > self.progress_from && self.is_all_acknowledged();
        let has = is_step || is_rest;
        if has {
            self.progress_from = start;
        }
        has
    }

    /// Whether data waits for a peer whose window is closed, or that acknowledges less than a step.
    pub(crate) fn is_stalled(&self) -> bool {
        let is_slow = self.tcp.peer_window() == 0 || self.send.start() > self.progress_from;
        is_slow && !self.is_all_acknowledged()
    }

    /// The reason for the end of a connection whose peer did not respond.
    pub(crate) const fn silence(&self) -> End {
        if self.is_unreachable {
            End::Unreachable
        } else {
            End::TimedOut
        }
    }

    // ---------------------------------------------------------------- input

    pub(crate) fn on_segment(&mut self, now: Time, segment: &Segment, payload: &[u8]) {
        let before = self.tcp.state();
        let mut received = *segment;
        if segment.flags.contains(Flags::SYN) {
            let mss = self.peer_mss(&segment.options);
            if matches!(before, State::Listen | State::SynSent) {
                let headers = ip_header(self.tuple.remote.ip()) + TCP_HEADER;
                self.path.limit_largest(u32::from(mss) + headers);
            }
            let options = self.options_beside_data(&segment.options);
            received.options.mss = Some(mss - options as u16);
        }
        self.take_probe_answer(now, &mut received.options.sack);
        if let Some(timestamps) = &mut received.options.timestamps
            && segment.flags.contains(Flags::ACK)
        {
            timestamps.echo = timestamps.echo.wrapping_sub(self.timestamp_offset);
        }
        let accepted = self.tcp.on_segment(now, &received);
        if self.tcp.was_accepted() || self.tcp.state() != before {
            (self.received_at, self.probes) = (now, 0);
        }
        if matches!(before, State::Listen | State::SynSent) && self.tcp.is_synchronized() {
            self.peer_initial = segment.sequence;
            if self.tcp.config().timeline.is_some() {
                self.receive.allow_gaps();
            }
        }
        self.is_challenged = accepted.is_empty();
        if !accepted.is_empty() {
            let first = self.peer_initial + accepted.start as u32;
            // The accepted range is within the segment.
            let from = first.distance_from(segment.sequence).unsigned_abs() as usize;
            let length = (accepted.end - accepted.start) as usize;
            let bytes = payload.get(from..from + length).unwrap_or_default();
            self.receive.insert(accepted.start, bytes);
        }
        self.receive.advance(self.tcp.expected());
    }

    /// The maximum segment size of the peer's SYN: it counts payload and options (RFC 9293, section
    /// 3.7.1).
    fn peer_mss(&self, options: &Options) -> u16 {
        let default = if self.tuple.remote.is_ipv4() {
            DEFAULT_MSS_V4
        } else {
            DEFAULT_MSS_V6
        };
        options.mss.unwrap_or(default).max(MIN_PEER_MSS)
    }

    /// The length of the options of data segments, if the peer's SYN has `options`.
    fn options_beside_data(&self, options: &Options) -> u32 {
        let own = self.tcp.config();
        let has_timestamps = own.timestamps && options.timestamps.is_some();
        let has_timeline = own.timeline.is_some() && options.seq_update.is_some();
        option_space(has_timestamps, has_timeline, own.metered)
    }

    /// Whether a SYN opens a new connection instead of this one, which is in TIME-WAIT: it is newer
    /// than all segments that arrived (RFC 9293, section 3.10.7.4; RFC 6191).
    pub(crate) fn is_replaced_by(&self, segment: &Segment) -> bool {
        let flags = segment.flags;
        let is_request =
            flags.contains(Flags::SYN) && !flags.intersects(Flags::ACK | Flags::RST | Flags::FIN);
        let expected = self.acknowledged.unwrap_or(self.peer_initial);
        is_request && self.tcp.state() == State::TimeWait && !segment.sequence.precedes(expected)
    }

    pub(crate) const fn path_mtu(&self) -> u32 {
        self.path.current()
    }

    /// Handles a router's report that the path carries packets of at most `mtu` bytes.
    pub(crate) fn limit_mtu(&mut self, now: Time, mtu: u32) {
        if self.path.on_report(now, mtu) {
            self.resize();
        }
    }

    /// Handles a retransmission timeout. Returns whether the path seems to drop large packets.
    pub(crate) fn on_timeout(&mut self, now: Time) -> bool {
        let consecutive = self.tcp.consecutive_timeouts();
        let is_black_hole = self.path.on_timeout(now, consecutive, self.tcp.in_flight());
        if is_black_hole {
            self.resize();
        }
        is_black_hole
    }

    /// Adapts the segment size to the path.
    fn resize(&mut self) {
        let mss = mss(self.path.current(), &self.tuple, self.tcp.config());
        self.tcp.set_mss(mss);
    }

    /// The due probe of the path MTU, or the MTU that a search found.
    pub(crate) fn search(&mut self, now: Time) -> Option<Search> {
        // Smaller packets must arrive before larger ones are tried.
        if self.tcp.consecutive_timeouts() > 0 {
            return None;
        }
        let mtu = match self.path.due(now) {
            Due::Nothing => return None,
            Due::Settled => return Some(Search::Found(self.path.current())),
            Due::Probe(mtu) => mtu,
        };
        let length = mss(mtu, &self.tuple, self.tcp.config());
        let segment = self.tcp.path_probe(now, length)?;
        let round_trip = self
            .tcp
            .rtt()
            .and_then(|rtt| rtt.smoothed(&self.tcp.config().rtt));
        let round_trip = round_trip.unwrap_or_default();
        self.path
            .on_probe(now, segment.sequence, length, mtu, round_trip);
        Some(Search::Probe(self.as_sent(segment)))
    }

    /// Removes the answer to a probe from an acknowledgement, because it is no sign of losses.
    fn take_probe_answer(&mut self, now: Time, sack: &mut SackBlocks) {
        let Some((first, rest)) = sack.as_slice().split_first() else {
            return;
        };
        if self.path.on_duplicate(now, first.start, first.end) {
            let mut others = SackBlocks::EMPTY;
            for block in rest {
                others.push(*block);
            }
            *sack = others;
            self.resize();
        }
    }

    /// Whether an error about a segment with this number is plausible: the segment is in flight
    /// (RFC 5927, section 4.1).
    pub(crate) fn is_in_flight(&self, sequence: SeqNo) -> bool {
        let first = self.tcp.oldest_in_flight();
        !sequence.precedes(first) && sequence.precedes(self.next_sequence)
    }

    // ---------------------------------------------------------------- timers

    /// When the host must act on the connection.
    pub(crate) fn next_timer(&self) -> Time {
        if self.is_over() {
            return Time::MAX;
        }
        let timer = self.tcp.next_timer().min(self.deadline);
        let timer = timer.min(self.sections.next_timer());
        self.keep_alive_at().map_or(timer, |at| timer.min(at))
    }

    fn keep_alive_at(&self) -> Option<Time> {
        let keep_alive = self.keep_alive.filter(|_| self.is_connected)?;
        if self.tcp.state() == State::TimeWait {
            return None;
        }
        Some(self.received_at + keep_alive.idle + keep_alive.interval * u64::from(self.probes))
    }

    /// The due keep-alive probe; `Err` if too many were not answered.
    pub(crate) fn keep_alive(&mut self, now: Time) -> Result<Option<Segment>, End> {
        let Some(keep_alive) = self.keep_alive else {
            return Ok(None);
        };
        if self.keep_alive_at().is_none_or(|at| at > now) {
            return Ok(None);
        }
        if self.tcp.in_flight() > 0 {
            // While data is in flight, the retransmission timer watches the peer.
            (self.received_at, self.probes) = (now, 0);
            return Ok(None);
        }
        if self.probes >= keep_alive.probes {
            return Err(End::TimedOut);
        }
        self.probes += 1;
        Ok(self.tcp.keep_alive(now))
    }

    // ---------------------------------------------------------------- output

    /// A reset of the connection (RFC 9293, section 3.10.5).
    pub(crate) fn reset(&self) -> Segment {
        Segment {
            sequence: self.next_sequence,
            acknowledgement: self.acknowledged.unwrap_or_default(),
            flags: match self.acknowledged {
                Some(_) => Flags::RST | Flags::ACK,
                None => Flags::RST,
            },
            ..Segment::default()
        }
    }

    /// The next segment to send; `Err` if it would only repeat the last acknowledgement, and the
    /// limit of such answers is reached.
    pub(crate) fn poll_transmit(&mut self, now: Time) -> Option<Result<Segment, Suppressed>> {
        self.number_sections(now);
        if self.tcp.config().skip_segments.is_some() {
            self.tcp.set_upcoming(self.upcoming());
        }
        let segment = self.tcp.poll_transmit(now)?;
        let is_pure = segment.payload == 0 && segment.flags == Flags::ACK;
        let is_repeated = self.acknowledged == Some(segment.acknowledgement);
        if is_pure
            && is_repeated
            && self.is_challenged
            && !self.answers.take(now, ANSWERS_PER_SECOND)
        {
            return Some(Err(Suppressed));
        }
        self.is_challenged = false;
        Some(Ok(self.as_sent(segment)))
    }

    /// Records a segment that is sent, and completes it for the wire: with the segment size of the
    /// interface on a SYN, and with the offset of timestamps.
    pub(crate) fn as_sent(&mut self, mut segment: Segment) -> Segment {
        if segment.flags.contains(Flags::SYN) {
            let mss = self.mtu - ip_header(self.tuple.remote.ip()) - TCP_HEADER;
            segment.options.mss = Some(u16::try_from(mss).unwrap_or(u16::MAX));
        }
        if let Some(timestamps) = &mut segment.options.timestamps {
            timestamps.value = timestamps.value.wrapping_add(self.timestamp_offset);
        }
        if segment.flags.contains(Flags::ACK) {
            self.acknowledged = Some(segment.acknowledgement);
        }
        if !segment.flags.contains(Flags::RST) {
            self.next_sequence = self.next_sequence.latest(segment.sequence_end());
        }
        segment
    }

    /// The identification for the packet of the last segment. A packet that must not be fragmented
    /// needs none (RFC 6864, section 4.1). But the kernel increments it within a train, so the peer
    /// sees a gap in the numbers if a segment is lost. A skipped segment leaves the same gap.
    pub(crate) fn number(&self) -> u16 {
        self.tcp.statistics().segments as u16
    }

    /// Records that the application read or wrote: the next acknowledgement may contain new
    /// information.
    pub(crate) const fn on_call(&mut self) {
        self.is_challenged = false;
    }

    /// The maximum payload that fits into a packet with the headers of `segment`.
    fn room(&self, segment: &Segment) -> u32 {
        let headers = ip_header(self.tuple.remote.ip()) + segment.header_length();
        self.path.current().saturating_sub(headers).max(1)
    }

    /// Whether the path carries a segment in one packet.
    pub(crate) fn fits(&self, segment: &Segment) -> bool {
        segment.payload <= self.room(segment)
    }

    /// Cuts a segment that does not fit into several that do.
    ///
    /// SACK blocks may take the room of data, so a separate acknowledgement before it carries them.
    /// Data that was sent before the path's MTU fell is cut.
    pub(crate) fn cut(&self, mut rest: Segment) -> Vec<Segment> {
        let mut parts = Vec::new();
        if !rest.options.sack.is_empty() {
            parts.push(Segment {
                payload: 0,
                flags: Flags::ACK,
                ..rest
            });
            rest.options.sack.truncate(0);
        }
        let last_only = Flags::FIN.bits() | Flags::PSH.bits();
        while !self.fits(&rest) {
            let payload = self.room(&rest);
            parts.push(Segment {
                payload,
                flags: Flags::from_bits(rest.flags.bits() & !last_only),
                ..rest
            });
            rest.sequence += payload;
            rest.payload -= payload;
        }
        parts.push(rest);
        parts
    }

    /// The payload of a segment.
    pub(crate) fn payload(&self, segment: &Segment) -> Option<[&[u8]; 2]> {
        if segment.payload == 0 {
            return Some([&[], &[]]);
        }
        let start = self.send.start();
        let first = self.tcp.config().initial_sequence + start as u32;
        let ahead = u64::try_from(segment.sequence.distance_from(first)).ok()?;
        self.send.slice(start + ahead, segment.payload as usize)
    }
}

/// An acknowledgement was suppressed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Suppressed;

/// A step of the search for the path MTU.
pub(crate) enum Search {
    Probe(Segment),
    Found(u32),
}
