//! Finds the packets of a transport stream by their sync bytes, and the loss of sync.

use crate::header::PACKET;

const SYNC: u8 = 0x47;
/// The distances between the beginnings of packets: without extra bytes, with 4 bytes of time stamp
/// before each packet (M2TS), or with 16 bytes of parity after each.
const STRIDES: [usize; 3] = [PACKET, 192, 204];
/// The number of bytes of time stamp before a packet of M2TS.
const STAMP: u64 = 4;
/// The number of consecutive sync bytes that establish sync (ISO/IEC 13818-1, annex G.1).
const ACQUIRED: usize = 5;
/// The number of bytes that decide whether packets begin at a position.
const DECISIVE: usize = (ACQUIRED - 1) * 204 + 1;

/// What was found in the bytes.
#[derive(Clone, Copy)]
pub(super) enum Found<'a> {
    /// A packet, with its sync byte repaired.
    Packet(&'a [u8; PACKET]),
    /// The sync byte of the next packet was wrong.
    SyncByteError,
    /// Two consecutive sync bytes were wrong.
    SyncLoss,
    /// This many bytes before the next packet belong to no packet.
    Skipped(u64),
}

/// Finds packets. Sync is established by five consecutive sync bytes, and lost by two consecutive
/// wrong ones. A packet with a single wrong sync byte still counts.
#[derive(Debug, Default)]
pub(super) struct Sync {
    /// The distance between packets; `None` while out of sync.
    stride: Option<usize>,
    /// The distance between the latest packets.
    latest: Option<usize>,
    /// Bytes that are not decided yet. In sync, a packet begins with them.
    held: Vec<u8>,
    /// The number of bytes skipped in the present search.
    skipped: u64,
}

/// The position of the first packet.
#[derive(Debug, PartialEq)]
enum Search {
    Found {
        at: usize,
        stride: usize,
    },
    /// The first packet does not begin before this position.
    Beyond(usize),
}

impl Sync {
    /// The distance between the latest packets.
    pub(super) const fn packet_distance(&self) -> Option<usize> {
        self.latest
    }

    /// Adds bytes, and passes their content to `take`.
    pub(super) fn push(&mut self, bytes: &[u8], take: &mut impl FnMut(Found<'_>)) {
        self.held.extend(bytes);
        self.advance(false, take);
    }

    /// Passes the rest to `take` at the end of the source.
    pub(super) fn finish(&mut self, take: &mut impl FnMut(Found<'_>)) {
        self.advance(true, take);
        self.skipped += self.held.len() as u64;
        self.held.clear();
        self.end_search(take);
    }

    fn advance(&mut self, is_end: bool, take: &mut impl FnMut(Found<'_>)) {
        let mut held = core::mem::take(&mut self.held);
        let mut at = 0;
        loop {
            let rest = held.get(at..).unwrap_or_default();
            let Some(stride) = self.stride else {
                let is_first = self.latest.is_none() && self.skipped == 0;
                let search = search(rest, is_end, is_first);
                let (Search::Found { at: passed, .. } | Search::Beyond(passed)) = search;
                at += passed;
                self.skipped += passed as u64;
                let Search::Found { stride, .. } = search else {
                    break;
                };
                self.stride = Some(stride);
                self.latest = Some(stride);
                self.end_search(take);
                continue;
            };
            let Some(packet) = rest.first_chunk::<PACKET>() else {
                break;
            };
            match (packet[0] == SYNC, rest.get(stride)) {
                (true, _) if rest.len() >= stride || is_end => take(Found::Packet(packet)),
                (true, _) => break,
                (false, None) if !is_end => break,
                (false, None | Some(&SYNC)) => {
                    take(Found::SyncByteError);
                    let mut repaired = *packet;
                    repaired[0] = SYNC;
                    take(Found::Packet(&repaired));
                }
                (false, Some(_)) => {
                    take(Found::SyncByteError);
                    take(Found::SyncByteError);
                    take(Found::SyncLoss);
                    self.stride = None;
                    continue;
                }
            }
            at = (at + stride).min(held.len());
        }
        held.drain(..at);
        self.held = held;
    }

    /// Reports the skipped bytes after a search.
    fn end_search(&mut self, take: &mut impl FnMut(Found<'_>)) {
        let mut skipped = core::mem::take(&mut self.skipped);
        if self.stride == Some(PACKET + STAMP as usize) {
            skipped = skipped.saturating_sub(STAMP);
        }
        if skipped > 0 {
            take(Found::Skipped(skipped));
        }
    }
}

/// Searches for five consecutive sync bytes. At the end of the source, fewer positions may remain:
/// at least two, or one at the first byte of the source. All of them must then have a sync byte.
fn search(bytes: &[u8], is_end: bool, is_first: bool) -> Search {
    let mut at = 0;
    loop {
        let behind = bytes.get(at..).unwrap_or_default();
        let Some(next) = behind.iter().position(|&byte| byte == SYNC) else {
            return Search::Beyond(bytes.len());
        };
        at += next;
        let run = bytes.get(at..).unwrap_or_default();
        if run.len() < DECISIVE && !is_end {
            return Search::Beyond(at);
        }
        let is_whole = |stride: &usize| {
            let mut begins = run.iter().step_by(*stride).take(ACQUIRED);
            let present = begins.len();
            let is_enough = present == ACQUIRED || present >= 2 || is_first && at == 0;
            is_enough && run.len() >= PACKET && begins.all(|&byte| byte == SYNC)
        };
        if let Some(&stride) = STRIDES.iter().find(|stride| is_whole(stride)) {
            return Search::Found { at, stride };
        }
        at += 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, PartialEq)]
    enum Part {
        Packet(u8),
        SyncByteError,
        SyncLoss,
        Skipped(u64),
    }

    fn parts(pieces: &[&[u8]]) -> Vec<Part> {
        let (mut sync, mut parts) = (Sync::default(), Vec::new());
        let mut take = |found: Found<'_>| {
            parts.push(match found {
                Found::Packet(packet) => {
                    assert_eq!(packet[0], SYNC);
                    Part::Packet(packet[1])
                }
                Found::SyncByteError => Part::SyncByteError,
                Found::SyncLoss => Part::SyncLoss,
                Found::Skipped(bytes) => Part::Skipped(bytes),
            });
        };
        for piece in pieces {
            sync.push(piece, &mut take);
            assert!(sync.held.len() < DECISIVE + PACKET, "{}", sync.held.len());
        }
        sync.finish(&mut take);
        parts
    }

    /// Packets with these marks, `before` and `behind` bytes around each.
    fn stream(marks: core::ops::Range<u8>, before: usize, behind: usize) -> Vec<u8> {
        let packet = |mark| {
            let body = [&[SYNC, mark][..], &[0; PACKET - 2]].concat();
            [vec![1; before], body, vec![2; behind]].concat()
        };
        marks.flat_map(packet).collect()
    }

    fn packets(marks: core::ops::Range<u8>) -> Vec<Part> {
        marks.map(Part::Packet).collect()
    }

    #[test]
    fn each_stride_is_found_and_extra_bytes_are_no_fault() {
        for (before, behind) in [(0, 0), (4, 0), (0, 16)] {
            for count in [5, 9] {
                let bytes = stream(0..count, before, behind);
                assert_eq!(parts(&[&bytes]), packets(0..count));
                let pieces: Vec<&[u8]> = bytes.chunks(7).collect();
                assert_eq!(parts(&pieces), packets(0..count));
            }
        }
        // Fewer packets than establish sync.
        assert_eq!(parts(&[&stream(0..1, 0, 0)]), packets(0..1));
        assert_eq!(parts(&[&stream(0..3, 0, 0)]), packets(0..3));
    }

    #[test]
    fn a_stream_that_begins_and_ends_within_a_packet_loses_only_these() {
        let bytes = stream(0..9, 0, 0);
        let part = &bytes[100..bytes.len() - 50];
        let expected = [
            vec![Part::Skipped(88)],
            packets(1..8),
            vec![Part::Skipped(138)],
        ];
        let expected: Vec<Part> = expected.into_iter().flatten().collect();
        assert_eq!(parts(&[part]), expected);
        for cut in 0..part.len() {
            let (start, end) = part.split_at(cut);
            assert_eq!(parts(&[start, end]), expected, "cut at {cut}");
        }
    }

    #[test]
    fn one_wrong_sync_byte_is_an_error_and_two_in_a_row_are_a_loss() {
        let damaged = |indices: &[usize]| {
            let mut bytes = stream(0..20, 0, 0);
            for &index in indices {
                bytes[index * PACKET] = 0xff;
            }
            let whole = parts(&[&bytes]);
            let pieces: Vec<&[u8]> = bytes.chunks(61).collect();
            assert_eq!(parts(&pieces), whole);
            whole
        };
        let mut expected = packets(0..20);
        expected.insert(7, Part::SyncByteError);
        assert_eq!(damaged(&[7]), expected);
        let mut expected = packets(0..19);
        expected.extend([Part::SyncByteError, Part::Packet(19)]);
        assert_eq!(damaged(&[19]), expected);
        let mut expected = packets(0..7);
        expected.extend([Part::SyncByteError, Part::SyncByteError, Part::SyncLoss]);
        expected.push(Part::Skipped(2 * PACKET as u64));
        expected.extend(packets(9..20));
        assert_eq!(damaged(&[7, 8]), expected);
    }

    #[test]
    fn inserted_and_missing_bytes_are_a_loss() {
        let bytes = stream(0..20, 0, 0);
        let (start, end) = bytes.split_at(7 * PACKET);
        let loss = || [Part::SyncByteError, Part::SyncByteError, Part::SyncLoss];
        let mut expected = packets(0..7);
        expected.extend(loss());
        expected.push(Part::Skipped(3));
        expected.extend(packets(7..20));
        assert_eq!(parts(&[start, &[9; 3], end]), expected);
        // Ten bytes of the eighth packet are missing, so 178 remain.
        let mut expected = packets(0..7);
        expected.extend(loss());
        expected.push(Part::Skipped(178));
        expected.extend(packets(8..20));
        assert_eq!(parts(&[start, &end[10..]]), expected);
    }

    #[test]
    fn noise_has_no_packets() {
        let noise: Vec<u8> = (0..100_000_u32)
            .map(|at| (at.wrapping_mul(2_654_435_761) >> 13) as u8)
            .collect();
        assert_eq!(parts(&[&noise]), [Part::Skipped(100_000)]);
    }
}
