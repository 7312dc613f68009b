//! MPEG media in RTP packets (RFC 3550, RFC 2250), in both directions: converts packets to ordered
//! bytes, and bytes to packets.

use std::collections::BTreeMap;
use std::fmt;
use std::mem::{Discriminant, discriminant};

use comity_units::{Span, Time};

use crate::header::is_packets;

/// The fixed header, RFC 3550 section 5.1.
const HEADER: usize = 12;
/// A transport stream (RFC 3551, table 5).
pub const TRANSPORT_STREAM: u8 = 33;
/// MPEG-1 or MPEG-2 video.
const MPV: u8 = 32;

/// The maximum number of packets that wait for an earlier one.
const MAX_HELD: usize = 64;
/// How long packets wait for an earlier one.
const PATIENCE: Span = Span::from_millis(50);
/// A larger jump in the sequence numbers means another sender, not a loss (RFC 3550, appendix A.1).
const MAX_DROPOUT: u16 = 3_000;
/// After a pause of this length without progress, earlier numbers mean that a source has restarted,
/// not that packets are late.
const PAUSE: Span = Span::from_secs(1);

/// If two sources send at the same time, the second one takes the place of the first after this
/// silence of the first. A radio programme of 32 kb/s sends a packet every 330 ms.
const SILENT: Span = Span::from_millis(500);
/// A source that returns this soon after it was replaced has not ended: two sources send at the
/// same time. So they do until this time without packets of the second one.
const CONTEST: Span = Span::from_secs(1);

/// Why a packet was refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum RtpError {
    /// It ends within a header, or within its claimed padding.
    Truncated,
    /// It has another version.
    Version(u8),
    /// Its payload type is neither that of a transport stream nor that of MPEG video.
    PayloadType(u8),
}

impl core::error::Error for RtpError {}

impl fmt::Display for RtpError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Truncated => f.write_str("RTP: a packet that ends within its header"),
            Self::Version(version) => write!(
                f,
                "RTP: version {version}, expected 2; bare transport streams are read by udp://"
            ),
            Self::PayloadType(number) => write!(
                f,
                "RTP: payload type {number}, expected {TRANSPORT_STREAM} (transport stream) or {MPV} (MPEG video); if it has a transport \
                 stream: rtp://..?pt={number}"
            ),
        }
    }
}

/// The kinds of errors that were reported. Each kind is reported once.
#[derive(Clone, Debug, Default)]
pub struct Reported(Vec<Discriminant<RtpError>>);

impl Reported {
    /// Whether an error is the first of its kind. From then on, its kind counts as reported.
    pub fn is_first(&mut self, error: RtpError) -> bool {
        let kind = discriminant(&error);
        let is_first = !self.0.contains(&kind);
        if is_first {
            self.0.push(kind);
        }
        is_first
    }
}

/// The relevant parts of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Packet<'a> {
    sequence: u16,
    source: u32,
    media: &'a [u8],
}

/// The first and the last packet type of RTCP, which may share the port (RFC 5761, section 4).
const RTCP: core::ops::RangeInclusive<u8> = 192..=223;

impl<'a> Packet<'a> {
    /// Reads a packet; `None` for RTCP. The payload types `own` and [`TRANSPORT_STREAM`] are a
    /// transport stream.
    fn read(bytes: &'a [u8], own: u8) -> Result<Option<Self>, RtpError> {
        if let [flags, kind, ..] = bytes
            && flags >> 6 == 2
            && RTCP.contains(kind)
        {
            return Ok(None);
        }
        let (header, rest) = bytes
            .split_first_chunk::<HEADER>()
            .ok_or(RtpError::Truncated)?;
        let [flags, kind, high, low, _, _, _, _, source @ ..] = *header;
        if flags >> 6 != 2 {
            return Err(RtpError::Version(flags >> 6));
        }
        let contributors = 4 * usize::from(flags & 0x0f);
        let mut media = rest.get(contributors..).ok_or(RtpError::Truncated)?;
        if flags & 0x10 != 0 {
            let ([_, _, high, low], rest) =
                media.split_first_chunk::<4>().ok_or(RtpError::Truncated)?;
            let words = usize::from(u16::from_be_bytes([*high, *low]));
            media = rest.get(4 * words..).ok_or(RtpError::Truncated)?;
        }
        if flags & 0x20 != 0 {
            let padding = usize::from(*media.last().ok_or(RtpError::Truncated)?);
            let length = media.len().checked_sub(padding.max(1));
            media = length
                .and_then(|length| media.get(..length))
                .ok_or(RtpError::Truncated)?;
        }
        match kind & 0x7f {
            kind if kind == TRANSPORT_STREAM || kind == own => {}
            MPV => {
                // RFC 2250, section 3.4: four bytes, and four more for MPEG-2 if T is set.
                let extended = media.first().ok_or(RtpError::Truncated)? & 0x04 != 0;
                let length = if extended { 8 } else { 4 };
                media = media.get(length..).ok_or(RtpError::Truncated)?;
            }
            other => return Err(RtpError::PayloadType(other)),
        }
        Ok(Some(Self {
            sequence: u16::from_be_bytes([high, low]),
            source: u32::from_be_bytes(source),
            media,
        }))
    }
}

/// After this many datagrams of RTP in a row, a source is known to send RTP.
const ROW: u8 = 3;

/// Recognises RTP packets with whole transport packets among datagrams that should be bare media.
#[derive(Clone, Copy, Debug, Default)]
pub struct Recogniser {
    in_row: u8,
    is_known: bool,
}

impl Recogniser {
    /// Adds a datagram. Returns the payload type once the source is known to send RTP; once.
    pub fn see(&mut self, datagram: &[u8]) -> Option<u8> {
        if self.is_known {
            return None;
        }
        let payload_type = datagram.get(1)? & 0x7f;
        let is_rtp = match Packet::read(datagram, payload_type) {
            Ok(Some(packet)) => !packet.media.is_empty() && is_packets(packet.media),
            _ => false,
        };
        self.in_row = if is_rtp { self.in_row + 1 } else { 0 };
        self.is_known = self.in_row >= ROW;
        self.is_known.then_some(payload_type)
    }
}

/// Puts packets in order. A packet waits for earlier ones, for at most 50 ms or 64 packets; this
/// holds for the first packet too. Late and duplicate packets are dropped, and RTCP is ignored.
///
/// Packets from another source start a new stream: the waiting packets are returned at once. If the
/// source before it returns within a second, two sources send at the same time, as a main and a
/// backup encoder do. From then on the packets of one of them are dropped, until the present one is
/// silent for half a second. Two
/// packets of the same source also start a new stream if their numbers are near each other and,
/// compared with the others, either 3000 or more away (RFC 3550, appendix A.1), or earlier, after a
/// second without progress.
///
/// ```
/// use comity_media::rtp::{Packetiser, Reorder};
/// use comity_units::{Span, Time};
///
/// let mut sender = Packetiser::new(65_535, 7);
/// let packets = [b"a", b"b", b"c"].map(|media| sender.packet(Span::ZERO, media));
/// let mut receiver = Reorder::default();
/// let mut media = Vec::new();
/// for turn in [1, 0, 2] {
///     receiver.push(Time::ZERO, &packets[turn], &mut media)?;
/// }
/// receiver.flush(&mut media);
/// assert_eq!(media, b"abc");
/// # Ok::<(), comity_media::rtp::RtpError>(())
/// ```
#[derive(Debug)]
pub struct Reorder {
    payload_type: u8,
    source: Option<u32>,
    /// The previous source, and when it was replaced.
    replaced: Option<(u32, Time)>,
    /// When the latest packet of the present source arrived, and, while two sources send, the
    /// latest one of another source.
    present_at: Time,
    contested: Option<Time>,
    /// The next expected sequence number, extended to 64 bits.
    next: u64,
    /// When the first packet of the stream arrived; `None` once no packet before it may follow.
    began: Option<Time>,
    held: BTreeMap<u64, (Time, Vec<u8>)>,
    /// When the last packet arrived that was neither late nor a duplicate.
    advanced: Time,
    /// A packet whose number does not continue the others.
    stray: Option<(u16, Vec<u8>)>,
    /// The number of packets that were skipped.
    pub lost: u64,
    /// The number of packets that were late or duplicates.
    pub late: u64,
    /// The number of packets that were dropped because another source sends at the same time.
    pub rival: u64,
}

/// Whether two sequence numbers may belong to one stream.
const fn is_near(a: u16, b: u16) -> bool {
    let distance = a.wrapping_sub(b);
    distance < MAX_DROPOUT || distance > u16::MAX - MAX_DROPOUT
}

impl Default for Reorder {
    fn default() -> Self {
        Self::new(TRANSPORT_STREAM)
    }
}

impl Reorder {
    /// Also accepts packets of this payload type as a transport stream.
    pub const fn new(payload_type: u8) -> Self {
        Self {
            payload_type,
            source: None,
            replaced: None,
            present_at: Time::ZERO,
            contested: None,
            next: 0,
            began: None,
            held: BTreeMap::new(),
            advanced: Time::ZERO,
            stray: None,
            lost: 0,
            late: 0,
            rival: 0,
        }
    }

    /// Adds a packet that arrived at `now`, and appends the media that is now in order to `out`.
    ///
    /// # Errors
    /// [`RtpError`]; the packet is ignored.
    pub fn push(&mut self, now: Time, bytes: &[u8], out: &mut Vec<u8>) -> Result<(), RtpError> {
        let Some(packet) = Packet::read(bytes, self.payload_type)? else {
            return Ok(());
        };
        if self.source != Some(packet.source) {
            let is_late = |&(source, when): &(u32, Time)| {
                source == packet.source && now.saturating_since(when) < PATIENCE
            };
            if self.replaced.as_ref().is_some_and(is_late) {
                self.late += 1;
                return Ok(());
            }
            if self.is_rival(now, packet.source) {
                self.rival += 1;
                return Ok(());
            }
            self.replaced = self.source.map(|source| (source, now));
            self.begin(now, packet.source, packet.sequence, out);
        } else if self.is_stray(now, packet.sequence) {
            match self.stray.take() {
                Some((first, media)) if is_near(packet.sequence, first) => {
                    self.begin(now, packet.source, first, out);
                    self.hold(now, first, media);
                }
                last => {
                    self.late += u64::from(last.is_some());
                    self.stray = Some((packet.sequence, packet.media.to_vec()));
                    return Ok(());
                }
            }
        }
        self.present_at = now;
        self.hold(now, packet.sequence, packet.media.to_vec());
        self.release(out);
        while self.held.len() > MAX_HELD {
            self.skip(out);
        }
        self.expire(now, out);
        Ok(())
    }

    /// Whether this other source sends at the same time as the present one, and has to wait.
    fn is_rival(&mut self, now: Time, source: u32) -> bool {
        let is_recent = |when: Time| now.saturating_since(when) < CONTEST;
        if !self.contested.is_some_and(is_recent) {
            let is_back = |&(before, when): &(u32, Time)| before == source && is_recent(when);
            self.contested = self.replaced.as_ref().is_some_and(is_back).then_some(now);
            return false;
        }
        self.contested = Some(now);
        now.saturating_since(self.present_at) < SILENT
    }

    fn is_stray(&self, now: Time, sequence: u16) -> bool {
        let next = self.next as u16;
        let is_earlier = self.began.is_none() && sequence.wrapping_sub(next).cast_signed() < 0;
        let has_paused = now.saturating_since(self.advanced) >= PAUSE;
        !is_near(sequence, next) || is_earlier && has_paused
    }

    fn begin(&mut self, now: Time, source: u32, sequence: u16, out: &mut Vec<u8>) {
        self.flush(out);
        self.source = Some(source);
        self.stray = None;
        self.began = Some(now);
        // One whole cycle above zero, so that packets before the first have positive numbers.
        self.next = (1 << 16) + u64::from(sequence);
    }

    fn hold(&mut self, now: Time, sequence: u16, media: Vec<u8>) {
        let distance = sequence.wrapping_sub(self.next as u16) as i16;
        let number = self.next.saturating_add_signed(distance.into());
        if self.began.is_some() {
            self.next = self.next.min(number);
        }
        if number < self.next || self.held.contains_key(&number) {
            self.late += 1;
            return;
        }
        self.advanced = now;
        self.held.insert(number, (now, media));
    }

    /// Stops waiting for packets whose time is over.
    pub fn expire(&mut self, now: Time, out: &mut Vec<u8>) {
        let is_over = |came: Time| now.saturating_since(came) >= PATIENCE;
        if self.began.is_some_and(is_over) {
            self.began = None;
            self.release(out);
        }
        while self.held.values().any(|(came, _)| is_over(*came)) {
            self.skip(out);
        }
    }

    /// Appends all waiting packets.
    pub fn flush(&mut self, out: &mut Vec<u8>) {
        while !self.held.is_empty() {
            self.skip(out);
        }
    }

    /// Skips the missing packets before the first waiting packet.
    fn skip(&mut self, out: &mut Vec<u8>) {
        self.began = None;
        if let Some((&first, _)) = self.held.first_key_value() {
            self.lost += first - self.next;
            self.next = first;
        }
        self.release(out);
    }

    fn release(&mut self, out: &mut Vec<u8>) {
        if self.began.is_some() {
            return;
        }
        while let Some((_, media)) = self.held.remove(&self.next) {
            out.extend(media);
            self.next += 1;
        }
    }
}

/// Writes media as RTP packets, by default of payload type 33.
#[derive(Debug)]
pub struct Packetiser {
    sequence: u16,
    source: u32,
    payload_type: u8,
    /// The time stamp at time zero.
    first_stamp: u32,
}

impl Packetiser {
    /// Creates a packetiser with the first sequence number and the source identifier. Both should
    /// be random (RFC 3550, section 5.1).
    pub const fn new(sequence: u16, source: u32) -> Self {
        Self {
            sequence,
            source,
            payload_type: TRANSPORT_STREAM,
            first_stamp: 0,
        }
    }

    /// The same with the time stamp of time zero, in ticks of 90 kHz. It should be random, too.
    pub const fn from_stamp(self, first_stamp: u32) -> Self {
        Self {
            first_stamp,
            ..self
        }
    }

    /// The same with another payload type, from 0 to 127.
    pub const fn of_type(self, payload_type: u8) -> Self {
        Self {
            payload_type: payload_type & 0x7f,
            ..self
        }
    }

    /// A packet with `media` that is to be sent `elapsed` after time zero (RFC 2250, section 2).
    pub fn packet(&mut self, elapsed: Span, media: &[u8]) -> Vec<u8> {
        let mut packet = Vec::with_capacity(HEADER + media.len());
        packet.extend([0x80, self.payload_type]);
        packet.extend(self.sequence.to_be_bytes());
        // The lower 32 bits of the time in 90 kHz ticks.
        let ticks = u128::from(elapsed.as_nanos()) * 9 / 100_000;
        packet.extend(self.first_stamp.wrapping_add(ticks as u32).to_be_bytes());
        packet.extend(self.source.to_be_bytes());
        packet.extend(media);
        self.sequence = self.sequence.wrapping_add(1);
        packet
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::header::PACKET;

    fn packet(sequence: u16, media: &[u8]) -> Vec<u8> {
        Packetiser::new(sequence, 7).packet(Span::ZERO, media)
    }

    #[test]
    fn a_packet_has_the_bytes_of_the_rfc() {
        let mut packetiser = Packetiser::new(0xffff, 0x0102_0304);
        let first = packetiser.packet(Span::from_secs(2), b"ab");
        assert_eq!(
            first,
            [
                0x80, 33, 0xff, 0xff, 0, 0x02, 0xbf, 0x20, 1, 2, 3, 4, b'a', b'b'
            ]
        );
        assert_eq!(packetiser.packet(Span::ZERO, b"")[2..4], [0, 0]);
        let mut packetiser = packetiser.from_stamp(u32::MAX);
        let packet = packetiser.packet(Span::from_secs(2), b"");
        assert_eq!(packet[4..8], [0, 0x02, 0xbf, 0x1f]);
    }

    #[test]
    fn headers_are_removed() {
        let of_type = |bytes: &[u8], own| {
            let packet = Packet::read(bytes, own)?;
            Ok(packet.map_or_else(|| b"RTCP".to_vec(), |packet| packet.media.to_vec()))
        };
        let media = |bytes: &[u8]| of_type(bytes, TRANSPORT_STREAM);
        let mut plain = packet(1, b"media");
        assert_eq!(media(&plain), Ok(b"media".to_vec()));
        // Two contributing sources, an extension of one word, three bytes of padding.
        let mut full = vec![0xb2, 0x80 | 33, 0, 1, 0, 0, 0, 0, 0, 0, 0, 7];
        full.extend([9; 8]);
        full.extend([0, 0, 0, 1, 8, 8, 8, 8]);
        full.extend(b"media");
        full.extend([0, 0, 3]);
        assert_eq!(media(&full), Ok(b"media".to_vec()));
        // MPEG video: T, the sixth bit, announces the extension for MPEG-2.
        for (first, header) in [(0, 4), (4, 8)] {
            let mut video = packet(1, &[first, 0, 0, 0, 0, 0, 0, 0, 7]);
            video[1] = 32;
            assert_eq!(media(&video).unwrap().len(), 9 - header);
        }
        plain[1] = 96;
        assert_eq!(media(&plain), Err(RtpError::PayloadType(96)));
        assert_eq!(of_type(&plain, 96), Ok(b"media".to_vec()));
        assert_eq!(of_type(&plain, 97), Err(RtpError::PayloadType(96)));
        // A sender report on the same port.
        plain[1] = 200;
        assert_eq!(media(&plain), Ok(b"RTCP".to_vec()));
        plain[0] = 0x47;
        assert_eq!(media(&plain), Err(RtpError::Version(1)));
        for length in 0..full.len() - 8 {
            assert_eq!(media(&full[..length.min(27)]), Err(RtpError::Truncated));
        }
    }

    #[test]
    fn rtp_is_recognised_where_bare_media_are_expected() {
        let media = vec![0x47; 7 * PACKET];
        let mut plain = packet(1, &media);
        let seen = |datagrams: &[Vec<u8>]| -> Vec<u8> {
            let mut recogniser = Recogniser::default();
            let seen = datagrams.iter().filter_map(|one| recogniser.see(one));
            seen.collect()
        };
        let nine = |datagram: &[u8]| vec![datagram.to_vec(); 9];
        assert_eq!(seen(&nine(&plain)), [33], "once");
        let mixed = [&plain, &plain, &media, &plain, &plain].map(Vec::clone);
        assert_eq!(seen(&mixed), []);
        assert_eq!(seen(&nine(&media)), []);
        // Bytes of another kind, even of the same version, and RTP with other media.
        assert_eq!(seen(&nine(&[0x80; 1_328])), []);
        assert_eq!(seen(&nine(&packet(1, b"media"))), []);
        assert_eq!(seen(&[vec![], vec![0x80]]), []);
        // The marker is set, and the type is dynamic.
        plain[1] = 0x80 | 96;
        assert_eq!(seen(&nine(&plain)), [96]);
    }

    /// Pushes packets of this source, one per millisecond from `at` on. The media of each packet is
    /// its number.
    fn push(reorder: &mut Reorder, at: u64, source: u32, numbers: &[u16]) -> Vec<u16> {
        let mut out = Vec::new();
        for (&number, millis) in numbers.iter().zip(at..) {
            let packet = Packetiser::new(number, source).packet(Span::ZERO, &number.to_be_bytes());
            reorder
                .push(Time::from_millis(millis), &packet, &mut out)
                .unwrap();
        }
        let (numbers, []) = out.as_chunks::<2>() else {
            panic!("half a packet");
        };
        numbers
            .iter()
            .map(|bytes| u16::from_be_bytes(*bytes))
            .collect()
    }

    /// A stream in which no packet before the first may follow.
    fn begun(first: u16) -> Reorder {
        let mut reorder = Reorder::default();
        assert_eq!(push(&mut reorder, 0, 7, &[first]), []);
        let mut out = Vec::new();
        reorder.expire(Time::from_millis(50), &mut out);
        assert_eq!(out, first.to_be_bytes());
        reorder
    }

    #[test]
    fn packets_are_put_in_order_and_counted() {
        let mut reorder = begun(65_534);
        assert_eq!(
            push(&mut reorder, 60, 7, &[0, 65_535, 65_535, 1]),
            [65_535, 0, 1]
        );
        assert_eq!((reorder.lost, reorder.late), (0, 1));
        // 2 is missing: 3 waits until its time is over.
        assert_eq!(push(&mut reorder, 100, 7, &[3]), []);
        let mut out = Vec::new();
        reorder.expire(Time::from_millis(149), &mut out);
        assert_eq!(out, []);
        reorder.expire(Time::from_millis(150), &mut out);
        assert_eq!(out, [0, 3]);
        assert_eq!(push(&mut reorder, 151, 7, &[2, 4]), [4]);
        assert_eq!((reorder.lost, reorder.late), (1, 2));
    }

    #[test]
    fn the_first_packets_are_put_in_order_too() {
        for arrivals in [
            [1_u16, 0, 2, 3, 4],
            [4, 3, 2, 1, 0],
            [2, 65_535, 0, 3, 1],
            [65_534, 65_533, 1, 0, 65_535],
        ] {
            let mut reorder = Reorder::default();
            assert_eq!(push(&mut reorder, 0, 7, &arrivals), []);
            let mut out = Vec::new();
            reorder.expire(Time::from_millis(50), &mut out);
            let mut sorted = arrivals.map(|number| number.wrapping_add(10));
            sorted.sort_unstable();
            let expected = sorted.map(|number| number.wrapping_sub(10).to_be_bytes());
            assert_eq!(out, expected.as_flattened());
            assert_eq!(reorder.late, 0);
        }
        // A full window does not wait for the time.
        let mut reorder = Reorder::default();
        let numbers: Vec<u16> = (0..100).collect();
        let now = [0; 100].map(|_| 0_u64);
        let mut given = Vec::new();
        for (number, at) in numbers.iter().zip(now) {
            given.extend(push(&mut reorder, at, 7, &[*number]));
        }
        assert_eq!(given, numbers);
    }

    #[test]
    fn another_source_starts_over_and_late_packets_of_the_one_before_do_not() {
        let mut reorder = begun(10);
        assert_eq!(push(&mut reorder, 60, 7, &[11, 13]), [11]);
        // 12 is skipped, and the new stream begins with 49 999.
        assert_eq!(push(&mut reorder, 70, 8, &[50_000]), [13]);
        assert_eq!(push(&mut reorder, 71, 7, &[12, 14]), []);
        assert_eq!(push(&mut reorder, 73, 8, &[49_999, 50_001]), []);
        assert_eq!(
            push(&mut reorder, 130, 8, &[50_002]),
            [49_999, 50_000, 50_001, 50_002]
        );
        assert_eq!((reorder.lost, reorder.late), (1, 2));
        // The first source may return.
        assert_eq!(push(&mut reorder, 200, 7, &[20]), []);
        assert_eq!(push(&mut reorder, 260, 7, &[21]), [20, 21]);
    }

    /// A main and a backup encoder: both send a packet in turn, each second millisecond.
    #[test]
    fn of_two_sources_that_send_at_the_same_time_one_is_used() {
        let mut reorder = Reorder::default();
        let mut given: Vec<(u64, u16)> = Vec::new();
        let mut at = |reorder: &mut Reorder, millis: u64, source: u32, number: u16| {
            let out = push(reorder, millis, source, &[number]);
            given.extend(out.into_iter().map(|number| (millis, number)));
        };
        // The numbers of source 8 are above 10,000.
        for number in 0..1_000 {
            let millis = 2 * u64::from(number);
            at(&mut reorder, millis, 7, number);
            at(&mut reorder, millis + 1, 8, 10_000 + number);
        }
        // The first source stops, and comes back after 3 s as the backup of the second.
        for number in 1_000..4_000 {
            let millis = 2 * u64::from(number);
            at(&mut reorder, millis, 8, 10_000 + number);
            if number >= 2_500 {
                at(&mut reorder, millis + 1, 7, number);
            }
        }
        let of = |from: u64, to: u64| -> Vec<u16> {
            let within = given.iter().filter(|(at, _)| (from..to).contains(at));
            within.map(|&(_, number)| number).collect()
        };
        // The second takes over once, until the first one is known to go on.
        let first = of(200, 2_000);
        assert!(first.len() > 895, "{}", first.len());
        assert!(first.iter().all(|&number| number < 10_000));
        assert!(first.windows(2).all(|pair| pair[1] == pair[0] + 1));
        // Half a second of silence, and the time for which the first packet waits.
        assert_eq!(of(2_050, 2_498), []);
        let second = of(2_600, 5_000);
        assert!(second.len() > 1_190, "{}", second.len());
        assert!(second.iter().all(|&number| number >= 10_000));
        // After the return of the first, one of them again.
        let last = of(5_200, 8_000);
        assert!(last.len() > 1_390, "{}", last.len());
        assert!(last.windows(2).all(|pair| pair[1] == pair[0] + 1));
        assert!(reorder.rival > 2_000, "{}", reorder.rival);
    }

    #[test]
    fn one_number_far_away_changes_nothing_and_two_start_over() {
        let mut reorder = begun(10);
        assert_eq!(push(&mut reorder, 60, 7, &[11, 40_000, 12]), [11, 12]);
        assert_eq!(push(&mut reorder, 70, 7, &[30_001, 30_000, 30_002]), []);
        assert_eq!(
            push(&mut reorder, 130, 7, &[30_003]),
            [30_000, 30_001, 30_002, 30_003]
        );
        assert_eq!((reorder.lost, reorder.late), (0, 1));
    }

    #[test]
    fn a_source_that_begins_anew_with_its_own_numbers_is_no_late_packet() {
        let mut reorder = begun(0);
        let first: Vec<u16> = (1..=1_000).collect();
        assert_eq!(push(&mut reorder, 60, 7, &first), first);
        // Copies that are half a second late; the last of them arrive after a pause of the source.
        assert_eq!(push(&mut reorder, 1_560, 7, &[400, 401, 402]), []);
        assert_eq!((reorder.lost, reorder.late), (0, 3));
        assert_eq!(push(&mut reorder, 3_000, 7, &[0, 1, 2]), []);
        assert_eq!(push(&mut reorder, 3_060, 7, &[3]), [0, 1, 2, 3]);
        assert_eq!((reorder.lost, reorder.late), (0, 3));
        // A single packet changes nothing.
        assert_eq!(push(&mut reorder, 6_000, 7, &[1, 4, 5]), [4, 5]);
        assert_eq!(reorder.lost, 0);
    }

    #[test]
    fn memory_is_bounded() {
        let mut reorder = begun(10);
        let numbers: Vec<u16> = (12..=12 + MAX_HELD as u16).collect();
        let mut given = Vec::new();
        for number in &numbers {
            given.extend(push(&mut reorder, 60, 7, &[*number]));
        }
        assert_eq!(given, numbers);
        assert!(reorder.held.is_empty());
    }
}
