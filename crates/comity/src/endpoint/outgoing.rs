//! Datagrams on their way to the system.

use std::collections::VecDeque;
use std::io;

use super::socket::Socket;
use crate::session::{ConnectionId, Datagram};

/// The most bytes that one call of the system takes.
const MOST_BYTES: usize = 65_000;
/// With so many bytes waiting, nothing is gained by gathering more.
const LARGE: usize = 4 * MOST_BYTES;

/// Sealed datagrams that wait to be handed over, gathered into runs that one call takes.
#[derive(Debug, Default)]
pub(super) struct Outgoing {
    pub(super) bytes: Vec<u8>,
    runs: VecDeque<Run>,
    pub(super) counts: Counts,
}

/// What was handed over.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Counts {
    pub(super) datagrams: u64,
    pub(super) batches: u64,
    pub(super) unsent: u64,
}

/// Datagrams of one length, but for the last, from one address to another.
#[derive(Debug)]
struct Run {
    datagram: Datagram,
    /// The connection that the first one belongs to.
    connection: Option<ConnectionId>,
    start: usize,
    length: usize,
    segments: usize,
    /// The last one is shorter.
    is_complete: bool,
}

impl Outgoing {
    pub(super) fn is_empty(&self) -> bool {
        self.runs.is_empty()
    }

    /// Whether it is time to hand them over.
    pub(super) fn is_large(&self) -> bool {
        self.bytes.len() >= LARGE
    }

    /// Takes note of a datagram whose bytes are the last ones of [`Self::bytes`].
    pub(super) fn push(
        &mut self,
        connection: Option<ConnectionId>,
        datagram: Datagram,
        most_segments: usize,
    ) {
        let start = self.bytes.len() - datagram.length;
        if let Some(run) = self.runs.back_mut()
            && !run.is_complete
            && run.datagram.to == datagram.to
            && run.datagram.source == datagram.source
            && run.datagram.ecn == datagram.ecn
            && datagram.length <= run.datagram.length
            && run.segments < most_segments
            && run.length + datagram.length <= MOST_BYTES
        {
            run.length += datagram.length;
            run.segments += 1;
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

    /// Hands over what the system takes; `false` when it has no room now. What it refuses otherwise is lost, as
    /// the network may lose it too; the reasons are given to `complain`, with the connection of the first datagram of
    /// a run, which all have one destination.
    pub(super) fn flush(
        &mut self,
        socket: &Socket,
        mut complain: impl FnMut(Option<ConnectionId>, &Datagram, io::Error),
    ) -> bool {
        while let Some(run) = self.runs.front() {
            let contents = &self.bytes[run.start..run.start + run.length];
            let Datagram { length, .. } = run.datagram;
            let mut result = socket.send(&run.datagram, contents);
            if let Err(reason) = &result
                && reason.kind() == io::ErrorKind::ConnectionRefused
            {
                // That is about an earlier datagram.
                result = socket.send(&run.datagram, contents);
            }
            match result {
                Ok(()) => {
                    self.counts.datagrams += run.segments as u64;
                    self.counts.batches += 1;
                }
                Err(reason) if reason.kind() == io::ErrorKind::WouldBlock => return false,
                // The system refused the batch, and perhaps batches altogether: then one by one.
                Err(_) if run.segments > 1 => {
                    for datagram in contents.chunks(length) {
                        match socket.send(&run.datagram, datagram) {
                            Ok(()) => self.counts.datagrams += 1,
                            Err(reason) => {
                                self.counts.unsent += 1;
                                let length = datagram.len();
                                let datagram = Datagram {
                                    length,
                                    ..run.datagram
                                };
                                complain(run.connection, &datagram, reason);
                            }
                        }
                        self.counts.batches += 1;
                    }
                }
                Err(reason) => {
                    self.counts.unsent += 1;
                    complain(run.connection, &run.datagram, reason);
                }
            }
            self.runs.pop_front();
        }
        self.bytes.clear();
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::session::Ecn;

    fn push(outgoing: &mut Outgoing, port: u16, length: usize, ecn: Ecn) {
        outgoing.bytes.resize(outgoing.bytes.len() + length, 7);
        let to = ([127, 0, 0, 1], port).into();
        outgoing.push(
            None,
            Datagram {
                to,
                source: None,
                ecn,
                length,
            },
            4,
        );
    }

    #[test]
    fn datagrams_that_one_call_can_take_are_one_run() {
        let mut outgoing = Outgoing::default();
        for (port, length, ecn) in [
            (1, 1_000, Ecn::Capable0),
            (1, 1_000, Ecn::Capable0),
            // Shorter ones end a run,
            (1, 200, Ecn::Capable0),
            (1, 200, Ecn::Capable0),
            // longer ones, another mark and another address begin one,
            (1, 1_000, Ecn::Capable0),
            (1, 1_000, Ecn::NotCapable),
            (2, 1_000, Ecn::NotCapable),
            (2, 1_000, Ecn::NotCapable),
            (2, 1_000, Ecn::NotCapable),
            (2, 1_000, Ecn::NotCapable),
            // and so does what would be a segment too many.
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
