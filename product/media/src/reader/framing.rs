//! Finds whole transport packets in bytes that arrive in pieces.

use super::error::{ReadError, SEARCHED};
use crate::header::PACKET;

/// The first byte of a transport packet.
pub(super) const SYNC: u8 = 0x47;

/// The distances between the beginnings of packets: without extra bytes, with 4 bytes of time stamp
/// before each packet (M2TS), or with 16 bytes of parity after each.
pub(super) const STRIDES: [usize; 3] = [PACKET, 192, 204];

/// How many consecutive packets a search checks.
pub(super) const RUN: usize = 5;

/// Of the first `count` positions that are `stride` bytes apart, counts those within the bytes, and
/// those of them with a sync byte.
pub(super) fn rhythm(bytes: &[u8], stride: usize, count: usize) -> (usize, usize) {
    let begins = bytes.iter().step_by(stride).take(count);
    let present = begins.len();
    (present, begins.filter(|&&byte| byte == SYNC).count())
}

/// Holds incomplete packets, and finds the beginning of packets.
///
/// In sync, a packet begins with a sync byte, whatever its content. A position without a sync byte
/// is a break. Packets begin again at the first position that has
///
/// - a sync byte and another one packet later, at most one stride after the beginning of the break.
///   A few inserted or missing bytes, or a damaged sync byte, therefore cost only one packet;
/// - further away: a sync byte, and three more at the next four positions. Noise has two in a row
///   once in 65,536 positions, and these four once in 10^9.
///
/// At the end of the source, fewer positions may remain, at least two. All of them must then have a
/// sync byte. A break of more than [`SEARCHED`] bytes is an error in a stored source. In a live
/// source it is reported after each [`SEARCHED`] bytes, because packets may come again.
#[derive(Debug)]
pub(super) struct Framing {
    stride: usize,
    /// Bytes that do not form a packet yet, and their position in the source.
    held: Vec<u8>,
    at: u64,
    /// The number of bytes still to skip between packets.
    beside: usize,
    lost: Option<Break>,
    is_live: bool,
}

/// A range of bytes without the expected packet.
#[derive(Clone, Copy, Debug)]
struct Break {
    at: u64,
    found: u8,
    /// How many of its bytes were reported.
    reported: u64,
}

/// The output of framing.
#[derive(Clone, Copy)]
pub(super) enum Framed<'a> {
    /// A packet, and its position in the source.
    Packet(&'a [u8; PACKET], u64),
    /// Bytes outside of packets, in the order of the source.
    Outside(&'a [u8]),
    /// This many bytes, before the next packet or so far, are in no packet.
    Lost(u64),
    /// The source ends within a packet: its last bytes, this many, are dropped.
    Cut(u64),
}

/// The position of the next packet, as far as known.
enum Search {
    Found(usize),
    /// The next packet does not begin before this position.
    Beyond(usize),
}

impl Break {
    /// Passes bytes of the break on that are `before` bytes behind its beginning. Reports each
    /// [`SEARCHED`] bytes that are followed by more.
    fn hand_on(
        &mut self,
        mut outside: &[u8],
        mut before: u64,
        take: &mut impl FnMut(Framed<'_>) -> Result<(), ReadError>,
    ) -> Result<(), ReadError> {
        loop {
            let room = usize::try_from(self.reported + SEARCHED - before).unwrap_or(usize::MAX);
            let Some((piece, rest)) = outside
                .split_at_checked(room)
                .filter(|(_, rest)| !rest.is_empty())
            else {
                return take(Framed::Outside(outside));
            };
            take(Framed::Outside(piece))?;
            take(Framed::Lost(SEARCHED))?;
            self.reported += SEARCHED;
            (outside, before) = (rest, before + piece.len() as u64);
        }
    }
}

impl Framing {
    /// Begins a stream with packets `stride` bytes apart.
    pub(super) fn new(stride: usize) -> Self {
        Self {
            stride,
            held: Vec::new(),
            at: 0,
            // Time stamps precede their packets, and parity follows them.
            beside: if stride == 192 { stride - PACKET } else { 0 },
            lost: None,
            is_live: false,
        }
    }

    /// The same for a live source, which has breaks of any length.
    pub(super) const fn of_live(mut self, is_live: bool) -> Self {
        self.is_live = is_live;
        self
    }

    /// Adds bytes. Passes packets, and bytes outside of packets, to `take`.
    pub(super) fn push(
        &mut self,
        bytes: &[u8],
        mut take: impl FnMut(Framed<'_>) -> Result<(), ReadError>,
    ) -> Result<(), ReadError> {
        self.held.extend(bytes);
        self.frame(false, &mut take)
    }

    /// Passes the rest to `take` at the end of the source.
    pub(super) fn finish(
        &mut self,
        mut take: impl FnMut(Framed<'_>) -> Result<(), ReadError>,
    ) -> Result<(), ReadError> {
        self.frame(true, &mut take)?;
        let end = self.at + self.held.len() as u64;
        take(Framed::Outside(&self.held))?;
        match self.lost {
            Some(lost) => take(Framed::Lost(end - lost.at - lost.reported)),
            None if self.held.is_empty() => Ok(()),
            None => take(Framed::Cut(self.held.len() as u64)),
        }
    }

    fn frame(
        &mut self,
        is_end: bool,
        take: &mut impl FnMut(Framed<'_>) -> Result<(), ReadError>,
    ) -> Result<(), ReadError> {
        let mut held = core::mem::take(&mut self.held);
        let mut done = 0;
        let framed = loop {
            let beside = self.beside.min(held.len() - done);
            if beside > 0 {
                let bytes = held.get(done..done + beside).unwrap_or_default();
                self.beside -= beside;
                done += beside;
                if let Err(error) = take(Framed::Outside(bytes)) {
                    break Err(error);
                }
            }
            let rest = held.get(done..).unwrap_or_default();
            let Some(&first) = rest.first() else {
                break Ok(());
            };
            let offset = self.at + done as u64;
            if self.lost.is_none() && first == SYNC {
                let Some(packet) = rest.first_chunk::<PACKET>() else {
                    break Ok(());
                };
                done += PACKET;
                self.beside = self.stride - PACKET;
                match take(Framed::Packet(packet, offset)) {
                    Ok(()) => continue,
                    failed => break failed,
                }
            }
            let mut lost = *self.lost.get_or_insert(Break {
                at: offset,
                found: first,
                reported: 0,
            });
            let before = offset - lost.at;
            let search = self.search(rest, before, is_end);
            let (Search::Found(passed) | Search::Beyond(passed)) = search;
            let outside = rest.get(..passed).unwrap_or_default();
            done += passed;
            let skipped = before + passed as u64;
            let handed = match self.is_live {
                true => lost.hand_on(outside, before, take),
                false => take(Framed::Outside(outside)),
            };
            if let Err(error) = handed {
                break Err(error);
            }
            self.lost = Some(lost);
            if skipped > SEARCHED && !self.is_live {
                break Err(ReadError::NoPacket {
                    at: lost.at,
                    found: lost.found,
                });
            }
            if matches!(search, Search::Beyond(_)) {
                break Ok(());
            }
            self.lost = None;
            if let Err(error) = take(Framed::Lost(skipped - lost.reported)) {
                break Err(error);
            }
        };
        held.drain(..done);
        self.at += done as u64;
        self.held = held;
        framed
    }

    /// Searches for a packet. `before` is the distance of `bytes` from the beginning of the break.
    fn search(&self, bytes: &[u8], before: u64, is_end: bool) -> Search {
        let mut at = 0;
        loop {
            let behind = bytes.get(at..).unwrap_or_default();
            let Some(next) = behind.iter().position(|&byte| byte == SYNC) else {
                return Search::Beyond(bytes.len());
            };
            at += next;
            let is_near = before + at as u64 <= self.stride as u64;
            let (count, missing) = if is_near { (2, 0) } else { (RUN, 1) };
            let run = bytes.get(at..).unwrap_or_default();
            let (present, synchronised) = rhythm(run, self.stride, count);
            let is_complete = present == count;
            if present - synchronised > missing {
                at += 1;
            } else if is_complete || is_end && present >= 2 && present == synchronised {
                return Search::Found(at);
            } else if is_end {
                at += 1;
            } else {
                return Search::Beyond(at);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, PartialEq)]
    enum Part {
        Packet(u8, u64),
        Lost(u64),
        Cut(u64),
    }

    /// The output: for each packet, its second byte and its position; and whether an error ended
    /// it.
    fn parts(stride: usize, pieces: &[&[u8]]) -> (Vec<Part>, Result<(), ReadError>) {
        parts_of(Framing::new(stride), pieces)
    }

    fn parts_of(mut framing: Framing, pieces: &[&[u8]]) -> (Vec<Part>, Result<(), ReadError>) {
        let (stride, mut parts) = (framing.stride, Vec::new());
        let mut outside = 0;
        let mut take = |framed: Framed<'_>| {
            // The output contains every byte of the source.
            outside += match framed {
                Framed::Packet(..) => PACKET,
                Framed::Outside(bytes) => bytes.len(),
                Framed::Lost(_) | Framed::Cut(_) => 0,
            };
            parts.push(match framed {
                Framed::Packet(packet, at) => Part::Packet(packet[1], at),
                Framed::Lost(bytes) => Part::Lost(bytes),
                Framed::Cut(bytes) => Part::Cut(bytes),
                Framed::Outside(_) => return Ok(()),
            });
            Ok(())
        };
        for piece in pieces {
            if let Err(error) = framing.push(piece, &mut take) {
                return (parts, Err(error));
            }
            assert!(framing.held.len() <= RUN * stride);
        }
        let ended = framing.finish(&mut take);
        assert_eq!(outside, pieces.concat().len());
        (parts, ended)
    }

    fn packet(mark: u8) -> Vec<u8> {
        [&[0x47, mark][..], &[0; PACKET - 2]].concat()
    }

    #[test]
    fn bytes_between_packets_are_counted_and_dropped() {
        let stream = [
            packet(1),
            vec![9; 3],
            packet(2),
            packet(3),
            // A false sync byte without another one packet later.
            vec![0x47, 9],
            packet(4),
            packet(5),
            vec![0x47; 5],
        ]
        .concat();
        let whole = parts(PACKET, &[&stream]);
        // Before 4, a false start looks like a packet followed by garbage. It loses sync only at
        // its end, and swallows 4.
        let begin = [
            Part::Packet(1, 0),
            Part::Lost(3),
            Part::Packet(2, 191),
            Part::Packet(3, 379),
        ];
        assert!(whole.0.starts_with(&begin), "{whole:?}");
        let [.., Part::Packet(5, _), Part::Cut(5)] = whole.0[..] else {
            panic!("{whole:?}")
        };
        for cut in 0..=stream.len() {
            let (start, end) = stream.split_at(cut);
            assert_eq!(parts(PACKET, &[start, end]), whole);
        }
    }

    #[test]
    fn a_mebibyte_without_a_packet_is_searched_and_no_more() {
        let marked = |marks: core::ops::Range<u8>| marks.flat_map(packet).collect::<Vec<_>>();
        let searched = usize::try_from(SEARCHED).expect("a mebibyte");
        for length in [searched - 1, searched, searched + 1, searched + 5_000] {
            // Scattered pairs of sync bytes do not count as packets this far from the beginning of
            // the break.
            let junk: Vec<u8> = (0..length)
                .map(|at| {
                    if at % 1_000 > 500 && at % 188 == 17 {
                        0x47
                    } else {
                        0x11
                    }
                })
                .collect();
            let stream = [marked(0..8), junk, marked(8..20)].concat();
            let whole = parts(PACKET, &[&stream]);
            match length > searched {
                true => {
                    let (at, found) = (8 * PACKET as u64, 0x11);
                    assert_eq!(whole.1, Err(ReadError::NoPacket { at, found }));
                    assert_eq!(whole.0.len(), 8);
                }
                false => {
                    assert_eq!((whole.0.len(), whole.1), (21, Ok(())));
                    assert_eq!(whole.0[8], Part::Lost(length as u64));
                }
            }
            let pieces: Vec<&[u8]> = stream.chunks(97).collect();
            assert_eq!(parts(PACKET, &pieces), whole);
        }
    }

    #[test]
    fn a_live_source_may_have_any_length_without_a_packet() {
        let marked = |marks: core::ops::Range<u8>| marks.flat_map(packet).collect::<Vec<_>>();
        let searched = usize::try_from(SEARCHED).expect("a mebibyte");
        for (length, reports) in [
            (searched, vec![SEARCHED]),
            (searched + 1, vec![SEARCHED, 1]),
            (3 * searched + 500, vec![SEARCHED, SEARCHED, SEARCHED, 500]),
        ] {
            let reports: Vec<Part> = reports.into_iter().map(Part::Lost).collect();
            let stream = [marked(0..8), vec![0x11; length], marked(8..20)].concat();
            let live = || Framing::new(PACKET).of_live(true);
            let whole = parts_of(live(), &[&stream]);
            assert_eq!((whole.0.len(), &whole.1), (20 + reports.len(), &Ok(())));
            assert_eq!(whole.0[8..8 + reports.len()], reports);
            let pieces: Vec<&[u8]> = stream.chunks(1_316).collect();
            assert_eq!(parts_of(live(), &pieces), whole);
            // The same at the end of the source.
            let ended = parts_of(live(), &[&stream[..8 * PACKET + length]]);
            assert_eq!(ended.0[8..], reports);
        }
    }

    #[test]
    fn an_end_within_a_packet_differs_from_bytes_after_the_last_one() {
        for (stride, before) in [(PACKET, 0), (192, 4), (204, 0)] {
            let whole = [
                vec![0x11; before],
                packet(1),
                vec![0; stride - PACKET - before],
            ]
            .concat();
            let packets = [&whole[..], &whole].concat();
            let end = |behind: &[u8]| parts(stride, &[&packets, behind]).0.split_off(2);
            assert_eq!(end(&[]), []);
            assert_eq!(end(&whole[..before]), []);
            let inside = [&whole[..before], &packet(2)[..187]].concat();
            assert_eq!(end(&inside), [Part::Cut(187)]);
            assert_eq!(end(&inside[..=before]), [Part::Cut(1)]);
            assert_eq!(
                end(&[&whole[..before], &[0; 187]].concat()),
                [Part::Lost(187)]
            );
        }
    }

    #[test]
    fn far_into_a_break_four_sync_bytes_of_five_are_required() {
        let found = |damaged: &[usize]| {
            let mut behind: Vec<u8> = (0..9).flat_map(packet).collect();
            for &offset in damaged {
                behind[offset * PACKET] = 0;
            }
            let stream = [packet(0x70), packet(0x71), vec![0; 400], behind].concat();
            match parts(PACKET, &[&stream]).0[2..4] {
                [Part::Lost(bytes), Part::Packet(first, _)] => (bytes, first),
                ref other => panic!("{other:?}"),
            }
        };
        assert_eq!(found(&[]), (400, 0));
        assert_eq!(found(&[2]), (400, 0));
        assert_eq!(found(&[2, 4]), (400 + 3 * 188, 3));
    }

    #[test]
    fn bytes_between_packets_at_a_wider_stride_are_dropped() {
        for (stride, before) in [(192, 4), (204, 0)] {
            let stream: Vec<u8> = (0..9)
                .flat_map(|mark| {
                    let behind = stride - PACKET - before;
                    [vec![0x47; before], packet(mark), vec![0x47; behind]].concat()
                })
                .collect();
            let offset = |mark: u8| (stride * usize::from(mark) + before) as u64;
            let expected: Vec<Part> = (0..9)
                .map(|mark| Part::Packet(mark, offset(mark)))
                .collect();
            assert_eq!(parts(stride, &[&stream]).0, expected);
            let pieces: Vec<&[u8]> = stream.chunks(1).collect();
            assert_eq!(parts(stride, &pieces).0, expected);
        }
    }
}
