//! Whole transport packets from bytes in any pieces.

use super::SYNC;
use crate::header::PACKET;

/// How far apart packets stand: alone; each behind a time stamp of 4 bytes (M2TS); each before 16 bytes of parity.
pub(super) const STRIDES: [usize; 3] = [PACKET, 192, 204];

/// How many packets in a row are looked at where packets are searched for.
pub(super) const RUN: usize = 5;

/// So many bytes without rhythm are held, to be left out when it comes back; with one more, they are bytes to be given.
pub(super) const PATIENCE: usize = 64 * PACKET;

/// Of the first `places` where packets begin that stand `stride` apart: how many are there, and how many of them have a
/// sync byte.
pub(super) fn rhythm(bytes: &[u8], stride: usize, places: usize) -> (usize, usize) {
    let begins = bytes.iter().step_by(stride).take(places);
    let present = begins.len();
    (present, begins.filter(|&&byte| byte == SYNC).count())
}

/// Holds what does not make a packet yet, and finds where packets begin.
///
/// In step, a packet is what begins with a sync byte, whatever stands behind it. A place without one is a break, and
/// packets begin again at the first place that has
///
/// - a sync byte and another where the next packet begins, up to one stride behind the beginning of the break: a few
///   bytes too many or too few, or a damaged sync byte, cost no more than the packet that they stand in;
/// - a sync byte and three in the four places behind it, later: two in a row are found in noise once in 65,536 places,
///   these once in 10^9.
///
/// At the end of the source there may be fewer places, at least two: all of them have one then.
#[derive(Debug)]
pub(super) struct Framing {
    stride: usize,
    /// What has made no packet yet; in a break, all of it from its beginning on, as long as that is held.
    held: Vec<u8>,
    /// How much of what stands beside the packets is still to come.
    beside: usize,
    step: Step,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Step {
    /// No packet was found yet, in so many bytes that are gone.
    Beginning(u64),
    Locked,
    /// No packet begins in so many of the held bytes.
    Break(usize),
    /// A break that is too long to be held.
    Raw,
}

/// What framing gives.
#[derive(Clone, Copy)]
pub(super) enum Framed<'a> {
    Packet(&'a [u8; PACKET]),
    /// So many bytes were left out before the next packet.
    Lost(u64),
    /// The source ends within a packet, of which so many bytes are left out.
    Cut(u64),
    /// The next bytes of a break that is longer than [`PATIENCE`].
    Raw(&'a [u8]),
}

/// Where the next packet begins, as far as it is known.
enum Search {
    Found(usize),
    /// Not before this place.
    Beyond(usize),
}

impl Framing {
    /// At the beginning of a stream whose packets stand `stride` apart.
    pub(super) fn new(stride: usize) -> Self {
        Self {
            stride,
            held: Vec::new(),
            // Time stamps stand before their packets, parity behind.
            beside: if stride == 192 { stride - PACKET } else { 0 },
            step: Step::Beginning(0),
        }
    }

    /// Takes bytes and gives the packets that are whole, and what is known to be none.
    pub(super) fn push(&mut self, bytes: &[u8], mut take: impl FnMut(Framed<'_>)) {
        self.held.extend(bytes);
        self.frame(false, &mut take);
    }

    /// Gives what there is, as no more will come.
    pub(super) fn finish(&mut self, mut take: impl FnMut(Framed<'_>)) {
        self.frame(true, &mut take);
        let gone = match self.step {
            Step::Beginning(gone) => gone,
            Step::Locked | Step::Break(_) | Step::Raw => 0,
        };
        let left = gone + self.held.len() as u64;
        if self.step == Step::Locked && self.held.first() == Some(&SYNC) {
            take(Framed::Cut(left));
        } else if left > 0 {
            take(Framed::Lost(left));
        }
        *self = Self::new(self.stride);
    }

    fn frame(&mut self, is_end: bool, take: &mut impl FnMut(Framed<'_>)) {
        let mut held = core::mem::take(&mut self.held);
        let mut rest = &held[..];
        loop {
            let beside = self.beside.min(rest.len());
            rest = rest.get(beside..).unwrap_or_default();
            self.beside -= beside;
            let is_packet = match (self.step, rest.first()) {
                (_, None) => break,
                (Step::Locked | Step::Beginning(0), Some(&first)) => first == SYNC,
                _ => false,
            };
            if is_packet {
                let Some((packet, behind)) = rest.split_first_chunk::<PACKET>() else {
                    break;
                };
                take(Framed::Packet(packet));
                rest = behind;
                self.beside = self.stride - PACKET;
                self.step = Step::Locked;
                continue;
            }
            match self.search(rest, is_end) {
                Search::Found(at) => {
                    let (gone, behind) = rest.split_at(at);
                    let before = match self.step {
                        Step::Beginning(before) => before,
                        Step::Locked | Step::Break(_) | Step::Raw => 0,
                    };
                    if self.is_raw(at) {
                        take(Framed::Raw(gone));
                    } else {
                        take(Framed::Lost(before + at as u64));
                    }
                    rest = behind;
                    self.step = Step::Locked;
                }
                Search::Beyond(at) => {
                    let (gone, behind) = rest.split_at(at);
                    self.step = match self.step {
                        Step::Beginning(before) => Step::Beginning(before + at as u64),
                        _ if self.is_raw(at) => Step::Raw,
                        Step::Locked | Step::Break(_) | Step::Raw => Step::Break(at),
                    };
                    if self.step == Step::Raw && at > 0 {
                        take(Framed::Raw(gone));
                    }
                    if !matches!(self.step, Step::Break(_)) {
                        rest = behind;
                    }
                    break;
                }
            }
        }
        let done = held.len() - rest.len();
        held.drain(..done);
        self.held = held;
    }

    /// Whether a break of which so much is held, and that is no packet, is given. What lies before the first packet is not.
    fn is_raw(&self, held: usize) -> bool {
        match self.step {
            Step::Beginning(_) => false,
            Step::Locked | Step::Break(_) => held > PATIENCE,
            Step::Raw => true,
        }
    }

    fn search(&self, bytes: &[u8], is_end: bool) -> Search {
        let (before, mut at) = match self.step {
            Step::Beginning(before) => (before, 0),
            Step::Locked => (0, 0),
            Step::Break(searched) => (0, searched),
            Step::Raw => (u64::MAX, 0),
        };
        loop {
            let behind = bytes.get(at..).unwrap_or_default();
            let Some(next) = behind.iter().position(|&byte| byte == SYNC) else {
                return Search::Beyond(bytes.len());
            };
            at += next;
            let is_near = before.saturating_add(at as u64) <= self.stride as u64;
            let (places, missing) = if is_near { (2, 0) } else { (RUN, 1) };
            let run = bytes.get(at..).unwrap_or_default();
            let (present, synchronised) = rhythm(run, self.stride, places);
            let is_complete = present == places;
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

    fn frame(pieces: &[&[u8]]) -> (Vec<u8>, Vec<u64>, Option<u64>) {
        let parts = parts(PACKET, pieces);
        let (mut packets, mut lost) = (Vec::new(), Vec::new());
        for part in &parts {
            match part {
                Part::Packet(packet) => packets.push(packet[1]),
                Part::Lost(bytes) | Part::Cut(bytes) => lost.push(*bytes),
                Part::Raw(bytes) => panic!("{} bytes given", bytes.len()),
            }
        }
        let at_end = match parts.last() {
            Some(Part::Lost(_) | Part::Cut(_)) => lost.pop(),
            _ => None,
        };
        (packets, lost, at_end)
    }

    #[derive(Debug, PartialEq)]
    enum Part {
        Packet(Vec<u8>),
        Lost(u64),
        Cut(u64),
        Raw(Vec<u8>),
    }

    /// All that is given, with the bytes of a break in one piece.
    fn parts(stride: usize, pieces: &[&[u8]]) -> Vec<Part> {
        let (mut framing, mut parts) = (Framing::new(stride), Vec::new());
        let mut take = |framed: Framed<'_>| match (framed, parts.last_mut()) {
            (Framed::Raw(more), Some(Part::Raw(bytes))) => bytes.extend(more),
            (Framed::Raw(bytes), _) => parts.push(Part::Raw(bytes.to_vec())),
            (Framed::Packet(packet), _) => parts.push(Part::Packet(packet.to_vec())),
            (Framed::Lost(bytes), _) => parts.push(Part::Lost(bytes)),
            (Framed::Cut(bytes), _) => parts.push(Part::Cut(bytes)),
        };
        for piece in pieces {
            framing.push(piece, &mut take);
            assert!(
                framing.held.len() <= PATIENCE + RUN * stride,
                "{}",
                framing.held.len()
            );
        }
        framing.finish(&mut take);
        parts
    }

    fn packet(mark: u8) -> Vec<u8> {
        [&[0x47, mark][..], &[0; PACKET - 2]].concat()
    }

    #[test]
    fn what_is_no_packet_is_counted_and_left_out() {
        let stream = [
            packet(1),
            vec![9; 3],
            packet(2),
            packet(3),
            // A false sync byte, with nothing where the next packet would be.
            vec![0x47, 9],
            packet(4),
            packet(5),
            vec![0x47; 5],
        ]
        .concat();
        let whole = frame(&[&stream]);
        // Before 4, the false start cannot be told from a packet that is followed by garbage: it is out of
        // step only at its end, and takes 4 with it.
        assert_eq!(whole.1.first(), Some(&3));
        assert!(
            whole.0.starts_with(&[1, 2, 3]) && whole.0.ends_with(&[5]),
            "{whole:?}"
        );
        for cut in 0..=stream.len() {
            let (start, end) = stream.split_at(cut);
            assert_eq!(frame(&[start, end]), whole);
        }
    }

    #[test]
    fn a_break_is_given_from_its_first_byte_when_it_is_longer_than_what_is_held() {
        let marked = |marks: core::ops::Range<u8>| marks.flat_map(packet).collect::<Vec<_>>();
        for length in [PATIENCE - 1, PATIENCE, PATIENCE + 1, PATIENCE + 5_000] {
            // Two sync bytes in rhythm, here and there, are no packets so far from the beginning of the break.
            let junk: Vec<u8> = (0..length)
                .map(|at| {
                    if at % 1_000 > 500 && at % 188 == 17 {
                        0x47
                    } else {
                        0x11
                    }
                })
                .collect();
            let stream = [marked(0..8), junk.clone(), marked(8..20)].concat();
            let whole = parts(PACKET, &[&stream]);
            let expected = match length > PATIENCE {
                true => Part::Raw(junk),
                false => Part::Lost(length as u64),
            };
            assert_eq!(whole.len(), 21, "{length}");
            assert_eq!(whole[8], expected);
            let pieces: Vec<&[u8]> = stream.chunks(97).collect();
            assert_eq!(parts(PACKET, &pieces), whole);
        }
    }

    #[test]
    fn an_end_within_a_packet_is_told_from_bytes_behind_the_last_one() {
        for (stride, before) in [(PACKET, 0), (192, 4), (204, 0)] {
            let whole = [
                vec![0x11; before],
                packet(1),
                vec![0; stride - PACKET - before],
            ]
            .concat();
            let packets = [&whole[..], &whole].concat();
            let end = |behind: &[u8]| parts(stride, &[&packets, behind]).split_off(2);
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
    fn far_into_a_break_four_sync_bytes_of_five_are_asked_for() {
        let found = |damaged: &[usize]| {
            let mut behind: Vec<u8> = (0..9).flat_map(packet).collect();
            for &place in damaged {
                behind[place * PACKET] = 0;
            }
            let stream = [packet(0x70), packet(0x71), vec![0; 400], behind].concat();
            match &parts(PACKET, &[&stream])[2..4] {
                [Part::Lost(bytes), Part::Packet(first)] => (*bytes, first[1]),
                other => panic!("{other:?}"),
            }
        };
        assert_eq!(found(&[]), (400, 0));
        assert_eq!(found(&[2]), (400, 0));
        assert_eq!(found(&[2, 4]), (400 + 3 * 188, 3));
    }

    #[test]
    fn what_stands_beside_the_packets_is_left_out() {
        for (stride, before) in [(192, 4), (204, 0)] {
            let stream: Vec<u8> = (0..9)
                .flat_map(|mark| {
                    let behind = stride - PACKET - before;
                    [vec![0x47; before], packet(mark), vec![0x47; behind]].concat()
                })
                .collect();
            let expected: Vec<Part> = (0..9).map(|mark| Part::Packet(packet(mark))).collect();
            assert_eq!(parts(stride, &[&stream]), expected);
            let pieces: Vec<&[u8]> = stream.chunks(1).collect();
            assert_eq!(parts(stride, &pieces), expected);
        }
    }
}
