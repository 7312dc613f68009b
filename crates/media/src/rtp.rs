//! MPEG media in RTP packets (RFC 3550, RFC 2250), in both directions: packets to ordered bytes,
//! and bytes to packets.

use std::collections::BTreeMap;
use std::fmt;

use comity_units::{Span, Time};

/// The fixed header, RFC 3550 section 5.1.
const HEADER: usize = 12;
/// A transport stream (RFC 3551, table 5).
const MP2T: u8 = 33;
/// MPEG-1 or MPEG-2 video.
const MPV: u8 = 32;

/// The maximum number of packets that wait for an earlier one.
const MAX_HELD: usize = 64;
/// For how long.
const PATIENCE: Span = Span::from_millis(50);
/// A larger jump in the sequence numbers means another sender, not a loss (RFC 3550, appendix A.1).
const MAX_DROPOUT: u16 = 3_000;

/// Why a packet was refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum RtpError {
    /// It ends within a header, or within its claimed padding.
    Truncated,
    /// It has another version.
    Version(u8),
    /// Its payload is neither a transport stream nor MPEG video.
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
                "RTP: payload type {number}, expected {MP2T} (transport stream) or {MPV} (MPEG video)"
            ),
        }
    }
}

/// The relevant parts of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Packet<'a> {
    sequence: u16,
    source: u32,
    media: &'a [u8],
}

impl<'a> Packet<'a> {
    fn read(bytes: &'a [u8]) -> Result<Self, RtpError> {
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
            MP2T => {}
            MPV => {
                // RFC 2250, section 3.4: four bytes, and four more for MPEG-2 if T is set.
                let extended = media.first().ok_or(RtpError::Truncated)? & 0x04 != 0;
                let length = if extended { 8 } else { 4 };
                media = media.get(length..).ok_or(RtpError::Truncated)?;
            }
            other => return Err(RtpError::PayloadType(other)),
        }
        Ok(Self {
            sequence: u16::from_be_bytes([high, low]),
            source: u32::from_be_bytes(source),
            media,
        })
    }
}

/// Puts packets in order. An early packet waits for those before it, up to 50 ms or 64 packets.
/// Late and duplicate packets are dropped.
///
/// Packets from another source, or with numbers that jump by 3000 or more, start a new stream: the
/// waiting packets are returned at once.
///
/// ```
/// use comity_media::rtp::{Packetiser, Reorder};
/// use comity_units::{Span, Time};
///
/// let mut sender = Packetiser::new(65_535, 7);
/// let packets = [b"a", b"b", b"c"].map(|media| sender.packet(Span::ZERO, media));
/// let mut receiver = Reorder::default();
/// let mut media = Vec::new();
/// for turn in [0, 2, 1] {
///     receiver.push(Time::ZERO, &packets[turn], &mut media)?;
/// }
/// assert_eq!(media, b"abc");
/// # Ok::<(), comity_media::rtp::RtpError>(())
/// ```
#[derive(Debug, Default)]
pub struct Reorder {
    source: Option<u32>,
    /// The next expected sequence number, extended to 64 bits.
    next: u64,
    held: BTreeMap<u64, (Time, Vec<u8>)>,
    /// Packets whose turn was passed over.
    pub lost: u64,
    /// Late and duplicate packets.
    pub late: u64,
}

impl Reorder {
    /// Adds a packet that arrived at `now`, and appends to `out` the media that is in order now.
    ///
    /// # Errors
    /// [`RtpError`]; the packet is left out.
    pub fn push(&mut self, now: Time, bytes: &[u8], out: &mut Vec<u8>) -> Result<(), RtpError> {
        let packet = Packet::read(bytes)?;
        let distance = packet.sequence.wrapping_sub(self.next as u16);
        let is_near = !(MAX_DROPOUT..=u16::MAX - MAX_DROPOUT).contains(&distance);
        if self.source != Some(packet.source) || !is_near {
            self.flush(out);
            self.source = Some(packet.source);
            // One whole cycle above zero, so packets earlier than the first have positive numbers.
            self.next = (1 << 16) + u64::from(packet.sequence);
        }
        let distance = packet.sequence.wrapping_sub(self.next as u16);
        if distance >= MAX_DROPOUT {
            self.late += 1;
            return Ok(());
        }
        let number = self.next + u64::from(distance);
        if self.held.contains_key(&number) {
            self.late += 1;
            return Ok(());
        }
        self.held.insert(number, (now, packet.media.to_vec()));
        self.release(out);
        while self.held.len() > MAX_HELD {
            self.skip(out);
        }
        self.expire(now, out);
        Ok(())
    }

    /// Stops waiting for packets that are overdue.
    pub fn expire(&mut self, now: Time, out: &mut Vec<u8>) {
        while self
            .held
            .values()
            .any(|(came, _)| now.saturating_since(*came) >= PATIENCE)
        {
            self.skip(out);
        }
    }

    /// Appends all waiting packets.
    pub fn flush(&mut self, out: &mut Vec<u8>) {
        while !self.held.is_empty() {
            self.skip(out);
        }
    }

    /// Skips the missing packets before the first waiting one.
    fn skip(&mut self, out: &mut Vec<u8>) {
        if let Some((&first, _)) = self.held.first_key_value() {
            self.lost += first - self.next;
            self.next = first;
        }
        self.release(out);
    }

    fn release(&mut self, out: &mut Vec<u8>) {
        while let Some((_, media)) = self.held.remove(&self.next) {
            out.extend(media);
            self.next += 1;
        }
    }
}

/// Writes media as RTP packets of payload type 33.
#[derive(Debug)]
pub struct Packetiser {
    sequence: u16,
    source: u32,
}

impl Packetiser {
    /// Creates a packetiser with the first sequence number and the source identifier. Both should
    /// be random (RFC 3550, section 5.1).
    pub const fn new(sequence: u16, source: u32) -> Self {
        Self { sequence, source }
    }

    /// A packet with `media`, sent `elapsed` after the first.
    pub fn packet(&mut self, elapsed: Span, media: &[u8]) -> Vec<u8> {
        let mut packet = Vec::with_capacity(HEADER + media.len());
        packet.extend([0x80, MP2T]);
        packet.extend(self.sequence.to_be_bytes());
        // The lower 32 bits of the time in 90 kHz ticks.
        let ticks = u128::from(elapsed.as_nanos()) * 9 / 100_000;
        packet.extend((ticks as u32).to_be_bytes());
        packet.extend(self.source.to_be_bytes());
        packet.extend(media);
        self.sequence = self.sequence.wrapping_add(1);
        packet
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
    }

    #[test]
    fn headers_are_removed() {
        let media = |bytes: &[u8]| Packet::read(bytes).map(|packet| packet.media.to_vec());
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
        plain[0] = 0x47;
        assert_eq!(media(&plain), Err(RtpError::Version(1)));
        for length in 0..full.len() - 8 {
            assert_eq!(media(&full[..length.min(27)]), Err(RtpError::Truncated));
        }
    }

    #[test]
    fn packets_are_put_in_order_and_counted() {
        let now = Time::from_secs(1);
        let mut reorder = Reorder::default();
        let mut out = Vec::new();
        for (sequence, byte) in [(65_534, b'a'), (0, b'c'), (65_535, b'b'), (65_535, b'x')] {
            reorder
                .push(now, &packet(sequence, &[byte]), &mut out)
                .unwrap();
        }
        assert_eq!(out, b"abc");
        assert_eq!((reorder.lost, reorder.late), (0, 1));
        // 1 is missing: 2 waits until its time is over.
        reorder.push(now, &packet(2, b"e"), &mut out).unwrap();
        assert_eq!(out, b"abc");
        reorder.expire(now + PATIENCE / 2, &mut out);
        assert_eq!(out, b"abc");
        reorder.expire(now + PATIENCE, &mut out);
        assert_eq!(out, b"abce");
        reorder.push(now, &packet(1, b"d"), &mut out).unwrap();
        assert_eq!(out, b"abce");
        assert_eq!((reorder.lost, reorder.late), (1, 2));
    }

    #[test]
    fn another_source_starts_over_and_memory_is_bounded() {
        let now = Time::from_secs(1);
        let mut reorder = Reorder::default();
        let mut out = Vec::new();
        reorder.push(now, &packet(10, b"a"), &mut out).unwrap();
        reorder.push(now, &packet(12, b"c"), &mut out).unwrap();
        let other = Packetiser::new(50_000, 8).packet(Span::ZERO, b"x");
        reorder.push(now, &other, &mut out).unwrap();
        assert_eq!(out, b"acx");
        for number in 0..=MAX_HELD as u16 {
            let early = Packetiser::new(50_002 + number, 8).packet(Span::ZERO, b"y");
            reorder.push(now, &early, &mut out).unwrap();
        }
        assert_eq!(out.len(), 3 + MAX_HELD + 1);
        assert!(reorder.held.is_empty());
    }
}
