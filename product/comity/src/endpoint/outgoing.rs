//! Datagrams that wait for the system.

use std::collections::VecDeque;
use std::io;

use comity_units::Time;

use crate::session::{ConnectionId, Datagram};

/// The maximum number of bytes in one system call.
const MAX_BYTES: usize = 65_000;
/// Retries of a datagram that the system refused: a call may return the network's error about an
/// earlier datagram, and the next call may do so too.
const TRIES_AGAIN: usize = 2;
/// Beyond this many waiting bytes, gathering more gains nothing.
const LARGE: usize = 4 * MAX_BYTES;

/// Sealed datagrams that wait for the system, gathered into runs for one call each.
#[derive(Debug, Default)]
pub(super) struct Outgoing {
    pub(super) bytes: Vec<u8>,
    runs: VecDeque<Run>,
    /// The `leave_by` of each datagram in the runs.
    leave_by: VecDeque<Time>,
    pub(super) counts: Counts,
}

/// Datagrams that were sent, and those that were not.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Counts {
    pub(super) datagrams: u64,
    pub(super) batches: u64,
    pub(super) unsent: u64,
    pub(super) expired: u64,
}

/// Datagrams of one length with the same addresses; the last may be shorter.
#[derive(Debug)]
struct Run {
    /// The first datagram, with the earliest `leave_by` of all.
    datagram: Datagram,
    /// The connection of the first datagram.
    connection: Option<ConnectionId>,
    start: usize,
    length: usize,
    segments: usize,
    /// Whether the last one is shorter, so that no other may follow.
    is_complete: bool,
}

impl Outgoing {
    pub(super) fn is_empty(&self) -> bool {
        self.runs.is_empty()
    }

    /// Whether enough bytes wait for a system call.
    pub(super) fn is_large(&self) -> bool {
        self.bytes.len() >= LARGE
    }

    /// Adds a datagram whose bytes are the last ones of [`Self::bytes`].
    pub(super) fn push(
        &mut self,
        connection: Option<ConnectionId>,
        datagram: Datagram,
        max_segments: usize,
    ) {
        let start = self.bytes.len() - datagram.length;
        self.leave_by.push_back(datagram.leave_by);
        if let Some(run) = self.runs.back_mut()
            && !run.is_complete
            && run.datagram.to == datagram.to
            && run.datagram.source == datagram.source
            && run.datagram.ecn == datagram.ecn
            && datagram.length <= run.datagram.length
            && run.segments < max_segments
            && run.length + datagram.length <= MAX_BYTES
        {
            run.length += datagram.length;
            run.segments += 1;
            run.datagram.leave_by = run.datagram.leave_by.min(datagram.leave_by);
            run.is_complete = datagram.length < run.datagram.length;
            return;
        }
        self.runs.push_back(Run {
            datagram,
            connection,
            start,
            length: datagram.length,
            segments: 1,
            is_complete: false,
        });
    }

    /// Sends datagrams with `send`; returns `false` if the system has no room now. Drops datagrams
    /// that have waited beyond their time. Datagrams that the system refuses for other reasons are
    /// lost, as the network may lose them too. `complain` receives each reason, with the connection
    /// of the first datagram of the run. All datagrams of a run have one destination.
    pub(super) fn flush(
        &mut self,
        now: impl Fn() -> Time,
        mut send: impl FnMut(&Datagram, &[u8]) -> io::Result<()>,
        mut complain: impl FnMut(Option<ConnectionId>, &Datagram, io::Error),
    ) -> bool {
        while let Some(run) = self.runs.front() {
            if run.datagram.leave_by <= now() {
                match run.segments {
                    1 => {
                        self.counts.expired += 1;
                        self.pop();
                    }
                    _ => self.split(),
                }
                continue;
            }
            let contents = &self.bytes[run.start..run.start + run.length];
            let mut result = send(&run.datagram, contents);
            for _ in 0..TRIES_AGAIN {
                match &result {
                    // The error may be about an earlier datagram; the system reports it once.
                    Err(reason) if reason.kind() != io::ErrorKind::WouldBlock => {
                        result = send(&run.datagram, contents);
                    }
                    _ => break,
                }
            }
            match result {
                Ok(()) => {
                    self.counts.datagrams += run.segments as u64;
                    self.counts.batches += 1;
                }
                Err(reason) if reason.kind() == io::ErrorKind::WouldBlock => return false,
                // The system refused the batch, and may not support batches: send one by one.
                Err(_) if run.segments > 1 => {
                    self.split();
                    continue;
                }
                Err(reason) => {
                    self.counts.unsent += 1;
                    complain(run.connection, &run.datagram, reason);
                }
            }
            self.pop();
        }
        self.bytes.clear();
        true
    }

    fn pop(&mut self) {
        if let Some(run) = self.runs.pop_front() {
            self.leave_by.drain(..run.segments);
        }
    }

    /// Splits the first run into runs of one datagram.
    fn split(&mut self) {
        let Some(run) = self.runs.pop_front() else {
            return;
        };
        let each = run.datagram.length;
        for segment in (0..run.segments).rev() {
            let begin = segment * each;
            let length = each.min(run.length - begin);
            self.runs.push_front(Run {
                datagram: Datagram {
                    length,
                    leave_by: self.leave_by[segment],
                    ..run.datagram
                },
                start: run.start + begin,
                length,
                segments: 1,
                ..run
            });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::session::Ecn;

    fn push(outgoing: &mut Outgoing, port: u16, length: usize, ecn: Ecn) {
        push_until(outgoing, port, length, ecn, Time::MAX);
    }

    /// The first byte identifies the datagram.
    fn push_until(outgoing: &mut Outgoing, port: u16, length: usize, ecn: Ecn, leave_by: Time) {
        let name = outgoing.leave_by.len() as u8;
        outgoing.bytes.resize(outgoing.bytes.len() + length, name);
        let to = ([127, 0, 0, 1], port).into();
        outgoing.push(
            None,
            Datagram {
                to,
                source: None,
                ecn,
                length,
                leave_by,
            },
            4,
        );
    }

    /// The datagrams of one call: the identifying byte and the length of each.
    fn datagrams(first: &Datagram, contents: &[u8]) -> Vec<(u8, usize)> {
        let each = contents.chunks(first.length);
        each.map(|bytes| (bytes[0], bytes.len())).collect()
    }

    fn never() -> impl FnMut(Option<ConnectionId>, &Datagram, io::Error) {
        |_, _, reason| panic!("nothing is refused here: {reason}")
    }

    #[test]
    fn datagrams_that_wait_beyond_their_deadline_are_dropped() {
        let at = Time::from_millis;
        let mut outgoing = Outgoing::default();
        // One run of four, then a run of one.
        for (length, leave_by) in [
            (1_000, at(30)),
            (1_000, at(10)),
            (1_000, Time::MAX),
            (200, at(20)),
            (1_000, at(20)),
        ] {
            push_until(&mut outgoing, 1, length, Ecn::Capable0, leave_by);
        }
        let full = |_: &Datagram, _: &[u8]| Err(io::ErrorKind::WouldBlock.into());
        assert!(!outgoing.flush(|| at(9), full, never()));
        assert_eq!(outgoing.counts.expired, 0);

        // The first call has room, and later ones have none until 20 ms.
        let mut calls = Vec::new();
        let mut room = 1;
        let is_flushed = outgoing.flush(
            || at(10),
            |first, contents| {
                if room == 0 {
                    return Err(io::ErrorKind::WouldBlock.into());
                }
                room -= 1;
                calls.push(datagrams(first, contents));
                Ok(())
            },
            never(),
        );
        assert!(!is_flushed);
        assert_eq!(calls, [[(0, 1_000)]]);
        assert_eq!(outgoing.counts.expired, 1);

        let is_flushed = outgoing.flush(
            || at(20),
            |first, contents| {
                calls.push(datagrams(first, contents));
                Ok(())
            },
            never(),
        );
        assert!(is_flushed && outgoing.is_empty());
        assert_eq!(calls, [[(0, 1_000)], [(2, 1_000)]]);
        let Counts {
            datagrams, expired, ..
        } = outgoing.counts;
        assert_eq!((datagrams, expired), (2, 3));
        assert!(outgoing.bytes.is_empty() && outgoing.leave_by.is_empty());
    }

    #[test]
    fn a_refused_batch_is_sent_one_by_one_and_waits_without_room() {
        let mut outgoing = Outgoing::default();
        for length in [1_000, 1_000, 600] {
            push(&mut outgoing, 1, length, Ecn::Capable0);
        }
        let mut sent = Vec::new();
        let mut refused = Vec::new();
        let mut room = 1;
        let mut flush = |outgoing: &mut Outgoing, now_room: usize| {
            room = now_room;
            outgoing.flush(
                || Time::ZERO,
                |first, contents| match datagrams(first, contents).as_slice() {
                    [_, _, ..] => Err(io::ErrorKind::InvalidInput.into()),
                    [(1, _)] => Err(io::ErrorKind::PermissionDenied.into()),
                    _ if room == 0 => Err(io::ErrorKind::WouldBlock.into()),
                    one => {
                        room -= 1;
                        sent.extend_from_slice(one);
                        Ok(())
                    }
                },
                |_, datagram, reason| refused.push((datagram.length, reason.kind())),
            )
        };
        assert!(!flush(&mut outgoing, 1));
        assert!(flush(&mut outgoing, 1));
        assert_eq!(sent, [(0, 1_000), (2, 600)]);
        assert_eq!(refused, [(1_000, io::ErrorKind::PermissionDenied)]);
        assert_eq!(outgoing.counts.unsent, 1);
        assert_eq!(outgoing.counts.datagrams, 2);
    }

    #[test]
    fn datagrams_for_one_system_call_form_one_run() {
        let mut outgoing = Outgoing::default();
        for (port, length, ecn) in [
            (1, 1_000, Ecn::Capable0),
            (1, 1_000, Ecn::Capable0),
            // Shorter datagrams end a run,
            (1, 200, Ecn::Capable0),
            (1, 200, Ecn::Capable0),
            // longer ones, another mark or another address begin one,
            (1, 1_000, Ecn::Capable0),
            (1, 1_000, Ecn::NotCapable),
            (2, 1_000, Ecn::NotCapable),
            (2, 1_000, Ecn::NotCapable),
            (2, 1_000, Ecn::NotCapable),
            (2, 1_000, Ecn::NotCapable),
            // and so does one that exceeds the number of segments.
            (2, 1_000, Ecn::NotCapable),
        ] {
            push(&mut outgoing, port, length, ecn);
        }
        let runs: Vec<(usize, usize, usize)> = outgoing
            .runs
            .iter()
            .map(|run| (run.start, run.length, run.segments))
            .collect();
        assert_eq!(
            runs,
            [
                (0, 2_200, 3),
                (2_200, 200, 1),
                (2_400, 1_000, 1),
                (3_400, 1_000, 1),
                (4_400, 4_000, 4),
                (8_400, 1_000, 1),
            ]
        );
    }
}
