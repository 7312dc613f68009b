//! The receiving half of a connection: order, window, acknowledgements.

use alloc::boxed::Box;
use core::ops::Range;

use comity_congestion::{Ecn, Ranges};
use comity_units::{SeqNo, Time};

use super::config::Config;
use super::segment::{Flags, SackBlock, SackBlocks};
use super::timeline::{GapStatistics, Gaps, MAX_REACH, Piece};

/// The maximum number of ranges kept out of order when the peer names another void. Beyond it, a
/// void is ignored: later segments name it again.
const MAX_RANGES: usize = 256;

/// The maximum number of ranges kept out of order. A segment that would begin another one counts as
/// lost: its sender retransmits it, since no acknowledgement names it. Otherwise a peer that sends
/// single bytes far apart would cost memory and time without end (CVE-2018-5390).
const MAX_DISORDER: usize = 512;

/// Ranges that arrived out of order, or that will never arrive. Never empty.
#[derive(Debug, Default)]
struct Disorder {
    /// Each range with the count of its latest arrival, which orders SACK blocks by recency.
    ranges: Ranges<u64, u32>,
    /// The number of out-of-order arrivals.
    arrivals: u32,
}

/// Puts payload in order, keeps the window, and decides when to acknowledge.
///
/// Offsets are positions in the peer's stream, unwrapped: 0 is its SYN, data begins at 1.
#[derive(Debug)]
pub(super) struct Receiver {
    /// The next offset expected.
    pub(super) next: u64,
    /// The highest right edge of any window on the wire: the limit of acceptable data.
    pub(super) edge: u64,
    /// The intended right edge, before rounding to the unit of the wire: the promised window. Never
    /// moves left, and never exceeds the buffer.
    limit: u64,
    /// Payload bytes put in order since the beginning.
    pub(super) delivered: u64,
    /// Payload bytes in order that the application has not read.
    pub(super) unread: u64,
    /// The peer's first sequence number.
    pub(super) initial: SeqNo,
    /// The shift of this end's window on the wire, in bits.
    pub(super) scale: u8,
    /// Whether an acknowledgement must leave now.
    pub(super) ack_now: bool,
    /// Full segments that await an acknowledgement.
    held: u8,
    /// The offset of the peer's FIN; `u64::MAX` while unknown.
    fin: u64,
    /// When a delayed acknowledgement is due.
    pub(super) ack_at: Time,
    /// Boxed, because most connections have no disorder most of the time.
    disorder: Option<Box<Disorder>>,
    /// Present once the peer jumped.
    gaps: Option<Box<Gaps>>,
    /// Payload bytes that the application has read.
    bytes_read: u64,
    /// The latest duplicate range since the last acknowledgement, which the next one reports.
    duplicate: Option<Box<(u64, u64)>>,
    /// When payload arrived last.
    data_at: Time,
    /// How many acknowledgements leave without delay.
    quick: u8,
    /// Whether acknowledgements echo a congestion mark, until the peer reports that it reacted.
    pub(super) echoes_mark: bool,
}

impl Receiver {
    pub(super) fn new(config: &Config) -> Self {
        Self {
            next: 0,
            edge: 0,
            limit: 0,
            delivered: 0,
            unread: 0,
            initial: SeqNo::ZERO,
            scale: 0,
            ack_now: false,
            held: 0,
            fin: u64::MAX,
            ack_at: Time::MAX,
            disorder: None,
            gaps: None,
            bytes_read: 0,
            duplicate: None,
            data_at: Time::MAX,
            quick: 0,
            echoes_mark: false,
        }
        .with_scale(config)
    }

    fn with_scale(mut self, config: &Config) -> Self {
        if config.window_scaling {
            // RFC 7323, section 2.3: at most a shift of 14.
            while self.scale < 14
                && (config.receive_buffer.get() >> self.scale) > u64::from(u16::MAX)
            {
                self.scale += 1;
            }
        }
        self
    }

    /// The sequence number expected next.
    #[inline]
    pub(super) fn expected(&self) -> SeqNo {
        self.initial + self.next as u32
    }

    /// The stream offset of a sequence number near the expected one.
    pub(super) fn offset(&self, sequence: SeqNo) -> Option<u64> {
        self.next
            .checked_add_signed(i64::from(sequence.distance_from(self.expected())))
    }

    /// Handles the peer's SYN: its stream begins, and windows offered earlier have no meaning.
    pub(super) fn begin(&mut self, initial: SeqNo) {
        self.initial = initial;
        self.next = 1;
        self.edge = 0;
        self.limit = 0;
    }

    /// How far the right edge of the window could move with the present buffer.
    fn room_beyond_limit(&self, config: &Config) -> u64 {
        let free = config.receive_buffer.get().saturating_sub(self.unread);
        let ahead = self.gaps_ahead();
        (self.next + ahead + free).saturating_sub(self.limit.max(self.next + ahead))
    }

    /// The window field of a header; records the offered edge.
    ///
    /// The edge stays until it can move by a segment or by half of the buffer. This avoids inviting
    /// small segments (RFC 9293, section 3.8.6.2.2). The field is rounded up to the scale's unit:
    /// rounding down would cost up to a whole segment of a window that is a multiple of the segment
    /// size. The edge on the wire may therefore move left by less than a unit. Data up to its
    /// highest position remains acceptable (RFC 7323, section 2.4).
    pub(super) fn offer(&mut self, config: &Config, scaled: bool) -> u16 {
        let scale = if scaled { self.scale } else { 0 };
        let opened = self.room_beyond_limit(config);
        let ahead = self.gaps_ahead();
        if opened >= u64::from(config.mss).min(config.receive_buffer.get() / 2) {
            self.limit = self.limit.max(self.next + ahead) + opened;
        }
        let window = self.limit.saturating_sub(self.next + ahead);
        let field = (window + (1 << scale) - 1) >> scale;
        let field = u16::try_from(field).unwrap_or(u16::MAX);
        self.edge = self
            .edge
            .max(self.next + ahead + (u64::from(field) << scale));
        field
    }

    /// Processes payload `[start, start + length)`. Returns the part that it accepted.
    pub(super) fn on_data(
        &mut self,
        now: Time,
        start: u64,
        length: u64,
        config: &Config,
    ) -> Range<u64> {
        // Nothing follows a FIN.
        let end = (start + length).min(self.edge).min(self.fin);
        self.note_arrival(now, config);
        if config.duplicate_sack && self.arrived_before(start, start + length) {
            self.duplicate = Some(Box::new((start, start + length)));
            self.be_quick(config);
        }
        if end <= self.next || start >= end {
            // Old, or beyond the window or the end of the stream: an acknowledgement reports the
            // expected number (RFC 9293, 3.10.7.4).
            self.ack_now = true;
            return 0..0;
        }
        if start > self.next {
            self.ack_now = true;
            if !self.has_room(end - start, config) || self.has_too_many_holes(start..end) {
                return 0..0;
            }
            self.disorder.get_or_insert_default().insert(start, end);
            return start..end;
        }
        let accepted = self.next..end;
        if self.disorder.is_some() {
            // RFC 5681, section 4.2: a segment that fills a gap is acknowledged at once.
            self.ack_now = true;
        } else {
            self.hold_or_answer(now, config);
        }
        self.advance_to(end);
        accepted
    }

    /// Moves the expected number to `end`, and over the out-of-order data behind it. Everything
    /// below `end` arrived or was abandoned. The application can then read that data.
    #[inline]
    fn advance_to(&mut self, end: u64) {
        let before = self.next;
        self.next = end;
        if let Some(disorder) = &mut self.disorder {
            self.next = disorder.absorb(end);
            if disorder.ranges.as_slice().is_empty() {
                self.disorder = None;
            }
        }
        let mut arrived = self.next - before;
        if let Some(gaps) = &mut self.gaps {
            arrived -= gaps.pass(before, self.next);
        }
        self.delivered += arrived;
        self.unread += arrived;
    }

    // ---------------------------------------------------------------- time-lined streams

    /// Bytes of gaps beyond the expected number. They need no memory, so windows exclude them.
    #[inline]
    fn gaps_ahead(&self) -> u64 {
        self.gaps.as_ref().map_or(0, |gaps| gaps.ahead)
    }

    /// Whether the buffer has room for `length` bytes out of order. The edge decides while no data
    /// is abandoned; [`Receiver::abandon`] may have moved it too far.
    fn has_room(&self, length: u64, config: &Config) -> bool {
        let (Some(gaps), Some(disorder)) = (&self.gaps, &self.disorder) else {
            return true;
        };
        let ahead = disorder.ranges.covered(0..u64::MAX);
        let held = self.unread + ahead.saturating_sub(gaps.ahead);
        held + length <= self.in_units(config.receive_buffer.get())
    }

    /// Whether this data would begin one range too many.
    fn has_too_many_holes(&self, data: Range<u64>) -> bool {
        let with = |disorder: &Disorder| disorder.ranges.len_with(data) > MAX_DISORDER;
        self.disorder.as_deref().is_some_and(with)
    }

    /// Rounds up to the unit of windows on the wire.
    const fn in_units(&self, bytes: u64) -> u64 {
        bytes.next_multiple_of(1 << self.scale)
    }

    /// The promised bytes beyond the in-order data.
    fn window(&self) -> u64 {
        self.in_units(self.limit.saturating_sub(self.next + self.gaps_ahead()))
    }

    /// Handles an update on a segment at `start`: the peer sends nothing below `expected` any more
    /// and nothing in `void`. Returns whether the expected number moved.
    ///
    /// The update is ignored if the segment would still lie beyond the window, or if one of the
    /// numbers is further ahead than any sender may reach. Such a segment is not the peer's, or so
    /// old that its numbers were reused.
    pub(super) fn on_update(&mut self, start: u64, expected: u64, void: (u64, u64)) -> bool {
        let before = self.next;
        let (void_start, void_end) = (void.0.max(expected).max(before), void.1);
        if start.max(expected).max(void_end) > before + MAX_REACH {
            return false;
        }
        let mut edge = self.edge + self.missing(before, expected);
        if void_start < void_end {
            edge = (edge + self.missing(void_start, void_end)).max(void_end + self.window());
        }
        if start > edge.max(expected) {
            return false;
        }
        self.abandon(before, expected);
        self.abandon(void_start, void_end);
        let has_jumped = self.next > before;
        if let Some(gaps) = &mut self.gaps
            && has_jumped
        {
            gaps.statistics.jumps += 1;
        }
        has_jumped
    }

    /// The numbers in `[start, end)` about which nothing is known.
    fn missing(&self, start: u64, end: u64) -> u64 {
        let length = end.saturating_sub(start);
        match &self.disorder {
            Some(disorder) if length > 0 => length - disorder.ranges.covered(start..end),
            _ => length,
        }
    }

    /// Records the missing parts of `[start, end)` as gaps and passes over them.
    fn abandon(&mut self, start: u64, end: u64) {
        let (start, end) = (start.max(self.next), end.min(self.fin));
        let missing = self.missing(start, end);
        let is_ahead = start > self.next;
        let is_full = |disorder: &Disorder| disorder.ranges.as_slice().len() >= MAX_RANGES;
        if missing == 0 || is_ahead && self.disorder.as_deref().is_some_and(is_full) {
            return;
        }
        let gaps = self
            .gaps
            .get_or_insert_with(|| Box::new(Gaps::new(self.bytes_read + 1)));
        let mut at = start;
        if let Some(disorder) = &self.disorder {
            for &(from, to, _) in disorder.ranges.ending_after(at) {
                if from >= end {
                    break;
                }
                if at < from {
                    gaps.record(at, from);
                }
                at = to;
            }
        }
        if at < end {
            gaps.record(at, end);
        }
        // The window offered for the missing bytes applies to their successors.
        self.limit += missing;
        self.edge += missing;
        self.ack_now = true;
        if is_ahead {
            // More gaps may precede this one, still unknown: the whole offered window may lie
            // behind it.
            self.edge = self.edge.max(end + self.window());
            self.disorder.get_or_insert_default().insert(start, end);
        } else {
            self.advance_to(end);
        }
    }

    /// Whether a piece is ready to read: data, or a gap.
    pub(super) fn has_piece(&self) -> bool {
        self.unread > 0 || self.is_at_gap()
    }

    /// Whether the next piece is a gap.
    pub(super) fn is_at_gap(&self) -> bool {
        let gaps = self.gaps.as_ref();
        gaps.is_some_and(|gaps| gaps.has_next(self.next))
    }

    pub(super) fn read_piece(&mut self, limit: u64, config: &Config) -> Option<Piece> {
        let piece = match &mut self.gaps {
            Some(gaps) => gaps.read(limit, self.next, self.unread),
            None => {
                let length = limit.min(self.unread);
                (length > 0).then_some(Piece::Data {
                    offset: self.bytes_read,
                    length,
                })
            }
        }?;
        if let Piece::Data { length, .. } = piece {
            self.take(length, config);
        }
        Some(piece)
    }

    pub(super) fn gap_statistics(&self) -> GapStatistics {
        self.gaps
            .as_ref()
            .map_or(GapStatistics::default(), |gaps| gaps.statistics)
    }

    /// Records the peer's FIN at `at`. Ignores it below data that arrived, beyond the window, or
    /// after a different FIN.
    pub(super) fn on_fin(&mut self, at: u64) {
        self.ack_now = true;
        let disorder = self.disorder.as_ref();
        let last = disorder.and_then(|it| it.ranges.as_slice().last());
        let highest = last.map_or(self.next, |range| range.1);
        if self.fin == u64::MAX && highest <= at && at <= self.edge {
            self.fin = at;
        }
    }

    /// Passes the peer's FIN once everything before it has arrived; `true` at that moment.
    pub(super) fn consume_fin(&mut self) -> bool {
        let is_next = self.fin == self.next;
        if is_next {
            self.next += 1;
            self.ack_now = true;
        }
        is_next
    }

    /// Lets the next acknowledgements leave without delay.
    const fn be_quick(&mut self, config: &Config) {
        if let Some(policy) = &config.delayed_ack {
            self.quick = policy.quick;
        }
    }

    /// Records an arrival of payload. The first arrival, and the first after a pause, are
    /// acknowledged quickly, because the sender is in slow start.
    #[inline]
    fn note_arrival(&mut self, now: Time, config: &Config) {
        if self.data_at.is_never() || now.saturating_since(self.data_at) > config.rtt.min_timeout {
            self.be_quick(config);
        }
        self.data_at = now;
    }

    /// Whether all of `[start, end)` had arrived, or was acknowledged, before.
    fn arrived_before(&self, start: u64, end: u64) -> bool {
        let is_ahead = |disorder: &Disorder| {
            let length = end.saturating_sub(start);
            length > 0 && disorder.ranges.covered(start..end) == length
        };
        end <= self.next || start >= self.next && self.disorder.as_deref().is_some_and(is_ahead)
    }

    /// Processes the congestion marks of a segment. A mark is echoed until the peer reports that it
    /// reduced its window (RFC 3168, section 6.1.3).
    pub(super) fn on_marks(&mut self, flags: Flags, ecn: Ecn, config: &Config) {
        if flags.contains(Flags::CWR) {
            self.echoes_mark = false;
        }
        if ecn == Ecn::CongestionExperienced {
            self.echoes_mark = true;
            self.be_quick(config);
        }
    }

    fn hold_or_answer(&mut self, now: Time, config: &Config) {
        match config.delayed_ack {
            None => self.ack_now = true,
            Some(policy) => {
                self.held = self.held.saturating_add(1);
                if self.held >= policy.segments || self.quick > 0 {
                    self.ack_now = true;
                } else if self.ack_at.is_never() {
                    self.ack_at = now + policy.timeout;
                }
            }
        }
    }

    /// Handles a segment of `length` bytes with the PSH flag. A full one ends a group, and its
    /// acknowledgement keeps later ones in step with groups (Linux: `tcp_measure_rcv_mss`, and
    /// `tcp_cleanup_rbuf` for a reader that waits).
    pub(super) fn on_pushed(&mut self, length: u32, config: &Config) {
        self.ack_now |= config.segmentation_offload && length >= config.mss && self.held > 0;
    }

    /// The SACK blocks to report, a duplicate range first.
    #[inline]
    pub(super) fn sack_blocks(&mut self, limit: usize) -> SackBlocks {
        let mut blocks = SackBlocks::EMPTY;
        if let Some(duplicate) = self.duplicate.take()
            && limit > 0
        {
            blocks.push(SackBlock {
                start: self.initial + duplicate.0 as u32,
                end: self.initial + duplicate.1 as u32,
            });
        }
        if let Some(disorder) = &self.disorder {
            let ahead = disorder.sack_blocks(self.initial, limit.saturating_sub(blocks.len()));
            for block in ahead.as_slice() {
                blocks.push(*block);
            }
        }
        blocks
    }

    /// Whether SACK blocks have anything to report.
    pub(super) fn has_blocks(&self) -> bool {
        self.disorder.is_some() || self.duplicate.is_some()
    }

    pub(super) fn heap_memory(&self) -> usize {
        let gaps = self.gaps.as_ref().map_or(0, |gaps| gaps.heap_memory());
        let disorder = self.disorder.as_ref().map_or(0, |disorder| {
            size_of::<Disorder>() + disorder.ranges.heap_memory()
        });
        gaps + disorder
    }

    /// Whether anything arrived out of order.
    pub(super) fn has_gap(&self) -> bool {
        self.disorder.is_some()
    }

    /// Records that an acknowledgement left.
    pub(super) fn on_acknowledged(&mut self) {
        // A segment that leaves before any arrival is not an acknowledgement.
        if self.held > 0 || self.ack_now {
            self.quick = self.quick.saturating_sub(1);
        }
        self.ack_now = false;
        self.held = 0;
        self.ack_at = Time::MAX;
    }

    /// Reads up to `limit` bytes, which opens the window. Requests an acknowledgement if the window
    /// opened by half of the buffer, or by the segments of a delayed acknowledgement and at least
    /// two (RFC 9293, section 3.8.6.2.2).
    pub(super) fn read(&mut self, limit: u64, config: &Config) -> u64 {
        if self.gaps.is_none() {
            return self.take(limit.min(self.unread), config);
        }
        let mut length_read = 0;
        while length_read < limit
            && let Some(piece) = self.read_piece(limit - length_read, config)
        {
            if let Piece::Data { length, .. } = piece {
                length_read += length;
            }
        }
        length_read
    }

    /// Passes `length` bytes to the application.
    fn take(&mut self, length: u64, config: &Config) -> u64 {
        self.unread -= length;
        self.bytes_read += length;
        let opened = self.room_beyond_limit(config);
        let segments = config
            .delayed_ack
            .map_or(2, |policy| policy.segments.max(2));
        let worth =
            (u64::from(segments) * u64::from(config.mss)).min(config.receive_buffer.get() / 2);
        if length > 0 && opened >= worth.max(1) && self.fin == u64::MAX {
            self.ack_now = true;
        }
        length
    }
}

impl Disorder {
    fn insert(&mut self, start: u64, end: u64) {
        self.arrivals = self.arrivals.wrapping_add(1);
        self.ranges.insert(start..end, self.arrivals);
    }

    /// Removes the ranges that follow `next` without a gap; returns their end.
    fn absorb(&mut self, next: u64) -> u64 {
        let mut end = next;
        for range in self.ranges.as_slice() {
            if range.0 > end {
                break;
            }
            end = end.max(range.1);
        }
        self.ranges.drop_below(end);
        end
    }

    /// The blocks, the one with the latest arrival first (RFC 2018, section 4).
    #[inline(never)]
    fn sack_blocks(&self, initial: SeqNo, limit: usize) -> SackBlocks {
        let mut blocks = SackBlocks::EMPTY;
        let mut below = u64::MAX;
        for _ in 0..limit {
            // Arrival counts differ between ranges, so each round finds the next older one. Ranges
            // are few, and this runs only while data is missing.
            let age = |range: &(u64, u64, u32)| u64::from(self.arrivals.wrapping_sub(range.2));
            let newer = if below == u64::MAX { None } else { Some(below) };
            let next = self
                .ranges
                .as_slice()
                .iter()
                .filter(|range| newer.is_none_or(|newer| age(range) > newer))
                .min_by_key(|range| age(range));
            let Some(range) = next else { break };
            below = age(range);
            let wire = |offset: u64| initial + offset as u32;
            if !blocks.push(SackBlock {
                start: wire(range.0),
                end: wire(range.1),
            }) {
                break;
            }
        }
        blocks
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Single bytes with holes between them, the furthest first. What is kept stays small, and data
    /// that fills the holes is accepted.
    #[test]
    fn ranges_out_of_order_are_bounded() {
        let config = Config {
            handshake: false,
            ..Config::MODERN
        };
        let mut receiver = Receiver::new(&config);
        receiver.begin(SeqNo::ZERO);
        receiver.offer(&config, true);
        let mut accepted = 0;
        for at in (0..10_000).rev() {
            let start = 2 + 2 * at;
            let taken = receiver.on_data(Time::ZERO, start, 1, &config);
            accepted += taken.end - taken.start;
        }
        assert_eq!(accepted, 512);
        assert!(
            receiver.heap_memory() <= 16 << 10,
            "{}",
            receiver.heap_memory()
        );
        // A byte that joins a range is no further one.
        let last = 2 + 2 * 9_999;
        assert_eq!(
            receiver.on_data(Time::ZERO, last + 1, 1, &config),
            last + 1..last + 2
        );
        assert_eq!(receiver.on_data(Time::ZERO, 1, 30_000, &config), 1..30_001);
        assert!(!receiver.has_gap());
        assert_eq!(receiver.next, 30_001);
    }
}
