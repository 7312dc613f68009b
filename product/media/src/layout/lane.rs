//! The bytes of one PID, and the sections found in them.

use std::collections::VecDeque;

use bytes::Bytes;
use comity_units::{Span, Time};

use super::model::{Run, SectionRef};
use crate::header::Unit;

/// A section located in the bytes of its PID.
#[derive(Clone, Debug)]
pub(super) struct Found {
    pub(super) section: SectionRef,
    /// The description of an access unit, from which the header of its PES packet is made.
    pub(super) unit: Option<Unit>,
    /// Its payload after the media header.
    pub(super) content: Bytes,
    pub(super) source_time: Time,
    /// Whether it is sent to receivers.
    pub(super) is_sent: bool,
}

#[derive(Debug)]
struct Piece {
    from: u64,
    found: Found,
}

impl Piece {
    fn end(&self) -> u64 {
        self.from + self.found.content.len() as u64
    }
}

/// The bytes of one PID without the headers of its packets and PES packets, from the first byte
/// that is in no layout yet. Positions count from the beginning of the source.
#[derive(Debug, Default)]
pub(super) struct Lane {
    bytes: Vec<u8>,
    begin: u64,
    /// The position up to which it is known which bytes are in sections.
    known: u64,
    pieces: VecDeque<Piece>,
    /// Positions, and when the bytes from each position on arrived.
    arrivals: VecDeque<(u64, Time)>,
    /// The position from which on packets were passed before their section was found, and when its
    /// bytes arrived. They end at `known`.
    passed: Option<(u64, Time)>,
    /// When its packets were found to wait too long for their sections, in a live source.
    slow: Option<Time>,
}

/// After this time, packets of a slow lane wait for their sections again.
const AGAIN: Span = Span::from_secs(1);

impl Lane {
    pub(super) fn end(&self) -> u64 {
        self.begin + self.bytes.len() as u64
    }

    pub(super) const fn known(&self) -> u64 {
        self.known
    }

    pub(super) fn push(&mut self, bytes: &[u8], now: Time) {
        if self.arrivals.back().is_none_or(|&(_, last)| last != now) {
            self.arrivals.push_back((self.end(), now));
        }
        self.bytes.extend(bytes);
    }

    /// When the byte at this position arrived.
    fn arrival(&self, position: u64) -> Option<Time> {
        let behind = self.arrivals.partition_point(|&(from, _)| from <= position);
        let (_, when) = self.arrivals.get(behind.checked_sub(1)?)?;
        Some(*when)
    }

    /// Records that its packets wait too long for their sections.
    pub(super) const fn slow_down(&mut self, now: Time) {
        self.slow = Some(now);
    }

    /// Whether its packets do not wait for their sections.
    pub(super) const fn is_slow(&self) -> bool {
        self.slow.is_some()
    }

    /// Lets its packets wait again where a section begins, if they have not waited for long.
    pub(super) fn try_again(&mut self, now: Time) {
        self.slow = self
            .slow
            .filter(|&since| now.saturating_since(since) < AGAIN);
    }

    /// Declares that all sections with bytes before this position have been found.
    pub(super) fn know(&mut self, to: u64) {
        let known = to.min(self.end());
        if known > self.known {
            (self.known, self.passed) = (known, None);
        }
    }

    /// Locates the next section in the bytes, or its end behind passed packets. Returns when its
    /// first byte arrived. The bytes before it belong to no section.
    pub(super) fn find(&mut self, found: Found) -> Option<Time> {
        let at = usize::try_from(self.known - self.begin).unwrap_or(usize::MAX);
        let unknown = self.bytes.get(at..).unwrap_or_default();
        let offset = match unknown.starts_with(&found.content) {
            true => Some(0),
            false => memchr::memmem::find(unknown, &found.content),
        };
        let offset = offset.filter(|_| !found.content.is_empty());
        let (from, arrival) = match (offset, self.passed.take()) {
            (Some(offset), _) => {
                let from = self.known + offset as u64;
                (from, self.arrival(from))
            }
            (None, Some((from, arrival))) => {
                let passed = usize::try_from(self.known - from).unwrap_or(usize::MAX);
                let rest = found.content.get(passed..)?;
                let is_its = !rest.is_empty() && unknown.starts_with(rest);
                (is_its.then_some(from)?, Some(arrival))
            }
            (None, None) => return None,
        };
        let piece = Piece { from, found };
        self.known = piece.end();
        self.pieces.push_back(piece);
        self.slow = None;
        arrival
    }

    /// The consecutive parts of sections from position `from` up to position `to`.
    pub(super) fn runs(&self, from: u64, to: u64) -> Vec<Run> {
        let mut runs = Vec::new();
        let mut at = from;
        for piece in &self.pieces {
            if at >= to || piece.from > at {
                break;
            }
            let end = piece.end().min(to);
            let within = |position: u64| u32::try_from(position - piece.from).ok();
            if end > at
                && let (Some(from), Some(to)) = (within(at), within(end))
            {
                let section = piece.found.section;
                runs.push(Run { section, from, to });
                at = end;
            }
        }
        runs
    }

    /// Whether all sections with bytes between these positions are sent.
    pub(super) fn is_sent(&self, from: u64, to: u64) -> bool {
        let mut inside =
            { self.pieces.iter() }.filter(|piece| piece.from < to && from < piece.end());
        inside.all(|piece| piece.found.is_sent)
    }

    /// The section of a run.
    pub(super) fn section(&self, run: &Run) -> Option<&Found> {
        let is_it = |piece: &&Piece| piece.found.section == run.section;
        Some(&self.pieces.iter().find(is_it)?.found)
    }

    /// Drops everything before this position.
    pub(super) fn pass(&mut self, to: u64) {
        if to > self.known {
            let begun = || Some((self.known, self.arrival(self.known)?));
            // The packets of a slow lane do not wait, so nothing is found behind them.
            let passed = self.passed.or_else(begun).filter(|_| !self.is_slow());
            self.know(to);
            self.passed = passed;
        }
        while self.pieces.front().is_some_and(|piece| piece.end() <= to) {
            self.pieces.pop_front();
        }
        while self.arrivals.get(1).is_some_and(|&(from, _)| from <= to) {
            self.arrivals.pop_front();
        }
        let passed = usize::try_from(to.saturating_sub(self.begin)).unwrap_or(usize::MAX);
        // There can be thousands of lanes, so none keeps more memory than its packets need.
        if passed >= self.bytes.len() {
            self.begin = self.end();
            (self.bytes, self.arrivals) = (Vec::new(), VecDeque::new());
            if self.pieces.is_empty() {
                self.pieces = VecDeque::new();
            }
        } else if passed * 2 >= self.bytes.len() {
            self.bytes.drain(..passed);
            self.bytes.shrink_to_fit();
            self.begin = to;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(number: u64, content: &'static [u8]) -> Found {
        Found {
            section: SectionRef::new(1, number, content, content.len()),
            unit: None,
            content: Bytes::from_static(content),
            source_time: Time::ZERO,
            is_sent: true,
        }
    }

    fn parts(lane: &Lane, from: u64, to: u64) -> Vec<(u16, u32, u32)> {
        { lane.runs(from, to).into_iter() }
            .map(|run| (run.section.number, run.from, run.to))
            .collect()
    }

    #[test]
    fn sections_are_found_in_order_and_behind_what_is_in_none() {
        let mut lane = Lane::default();
        lane.push(b"abcde", Time::from_millis(1));
        lane.push(b"fghij", Time::from_millis(2));
        let first = lane.find(found(0, b"abc"));
        assert_eq!(first, Some(Time::from_millis(1)));
        assert_eq!(lane.known(), 3);
        // "de" belongs to no section.
        let second = lane.find(found(1, b"fgh"));
        assert_eq!(second, Some(Time::from_millis(2)));
        // This section is not in the bytes that follow.
        assert_eq!(lane.find(found(2, b"abc")), None);
        assert_eq!(lane.known(), 8);
        assert_eq!(parts(&lane, 0, 10), [(0, 0, 3)]);
        assert_eq!(parts(&lane, 3, 10), []);
        assert_eq!(parts(&lane, 6, 7), [(1, 1, 2)]);
        lane.pass(6);
        assert_eq!(parts(&lane, 6, 10), [(1, 1, 3)]);
        lane.find(found(3, b"ij"));
        assert_eq!(parts(&lane, 7, 10), [(1, 2, 3), (3, 0, 2)]);
        assert_eq!(parts(&lane, 7, 9), [(1, 2, 3), (3, 0, 1)]);
    }

    /// Packets with the beginning of a section waited too long for its end.
    #[test]
    fn the_end_of_a_section_is_found_behind_its_passed_beginning() {
        let passed = || {
            let mut lane = Lane::default();
            lane.push(b"ab", Time::from_millis(1));
            lane.find(found(0, b"ab"));
            for (millis, bytes) in [(2, b"cde"), (3, b"fgh"), (4, b"ijk")] {
                lane.push(bytes, Time::from_millis(millis));
            }
            lane.pass(5);
            lane.pass(8);
            lane
        };
        // Other sections have none of these bytes, and the next one is found behind them.
        for other in [&b"xxxxxxyjk"[..], b"cdefgh", b"cd"] {
            let mut lane = passed();
            assert_eq!(lane.find(found(1, other)), None);
            assert_eq!(lane.find(found(2, b"jk")), Some(Time::from_millis(4)));
        }
        let mut lane = passed();
        let begun = lane.find(found(1, b"cdefghij"));
        assert_eq!(begun, Some(Time::from_millis(2)));
        assert_eq!(lane.known(), 10);
        assert_eq!(parts(&lane, 8, 11), [(1, 6, 8)]);
        // The next one begins where it ends.
        lane.push(b"l", Time::from_millis(5));
        assert_eq!(lane.find(found(2, b"kl")), Some(Time::from_millis(4)));
        assert_eq!(parts(&lane, 8, 12), [(1, 6, 8), (2, 0, 2)]);
    }

    #[test]
    fn positions_outlive_the_bytes() {
        const LONG: usize = 64 << 10;
        let mut lane = Lane::default();
        for round in 0..10 {
            let end = lane.end();
            lane.push(&vec![7; LONG], Time::from_millis(round));
            lane.push(b"end", Time::from_millis(round));
            lane.know(lane.end() - 3);
            let when = lane.find(found(round, b"end"));
            assert_eq!(when, Some(Time::from_millis(round)));
            assert_eq!(
                parts(&lane, end + LONG as u64, lane.end()),
                [(round as u16, 0, 3)]
            );
            lane.pass(lane.end());
            assert!(lane.bytes.len() <= 2 * LONG + 6);
            assert!(lane.arrivals.len() <= 1);
        }
        assert_eq!(lane.end(), 10 * (LONG as u64 + 3));
    }
    /// A unit is in progress on each of 8,000 PIDs, and its last packet waits.
    #[test]
    fn thousands_of_lanes_keep_little_more_than_what_waits() {
        const LANES: usize = 8_000;
        let mut lanes: Vec<Lane> = (0..LANES).map(|_| Lane::default()).collect();
        for round in 0..300 {
            for lane in &mut lanes {
                let end = lane.end();
                lane.push(&[7; 184], Time::from_millis(round));
                lane.pass(end);
            }
        }
        let memory = |lane: &Lane| {
            let found = lane.pieces.capacity() * size_of::<Piece>();
            let times = lane.arrivals.capacity() * size_of::<(u64, Time)>();
            lane.bytes.capacity() + found + times
        };
        let capacity: usize = lanes.iter().map(memory).sum();
        let waiting = LANES * 184;
        assert!((waiting..8 * waiting).contains(&capacity), "{capacity}");
    }
}
