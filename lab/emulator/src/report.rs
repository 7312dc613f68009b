//! The statistics of an emulator.

use std::fmt;

use comity_units::{DataSize, Span};

use crate::counts::PacketCounts;
use crate::plan::Record;
use crate::timing::{Timing, TimingSummary};

/// The present statistics of an emulator.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Statistics {
    /// The time since its start.
    pub elapsed: Span,
    /// The direction to the target.
    pub forward: Way,
    /// The reverse direction.
    pub backward: Way,
    /// The number of present callers.
    pub callers: usize,
    /// The number of all callers so far.
    pub callers_seen: u64,
    /// The number of packets from callers for which there was no room or no socket.
    pub turned_away: u64,
    /// How often the target's host, or a router before it, reported that packets were not accepted.
    pub refused: u64,
    /// The number of packets that the system dropped before the emulator read them; `None` if the
    /// system does not report it.
    pub socket_drops: Option<u64>,
}

/// The present statistics of one direction.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Way {
    /// The packets by their fate.
    pub counts: PacketCounts,
    /// The timing errors of their releases.
    pub timing: TimingSummary,
    /// The memory of the packets on the link.
    pub memory: DataSize,
}

/// The final report of an emulator.
#[derive(Clone, Debug)]
pub struct Report {
    /// The counts at the end.
    pub statistics: Statistics,
    /// All timing errors in the direction to the target.
    pub forward_timing: Timing,
    /// All timing errors in the reverse direction.
    pub backward_timing: Timing,
    /// The first offers to the link to the target, up to the configured number.
    pub forward_record: Vec<Record>,
    /// The first offers to the link from the target.
    pub backward_record: Vec<Record>,
}

/// A sign that the emulator could not keep up. Measurements through it then do not show the network
/// alone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Overload {
    /// More than 1 % of the packets of a direction were released later than the bound, all within
    /// one second: the host stalled once.
    Stall {
        /// The number of late packets.
        late: u64,
        /// The number of all packets.
        of: u64,
        /// The largest timing error.
        max: Span,
    },
    /// More than 1 % of the packets of a direction were released later than the bound, over more
    /// than one second.
    Late {
        /// The number of late packets.
        late: u64,
        /// The number of all packets.
        of: u64,
        /// The largest timing error.
        max: Span,
        /// The number of stretches, of at most one second, that contain them.
        stretches: u64,
    },
    /// The memory was full.
    Memory {
        /// The number of packets dropped because of it.
        packets: u64,
    },
    /// The system dropped packets before the emulator read them.
    SocketDrops {
        /// The number of packets.
        packets: u64,
    },
    /// There were too many callers.
    TurnedAway {
        /// The number of their packets that were dropped.
        packets: u64,
    },
    /// The system did not accept packets that were due.
    Unsent {
        /// The number of packets.
        packets: u64,
    },
}

impl fmt::Display for Overload {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Stall { late, of, max } => write!(
                f,
                "{late} of {of} packets were forwarded late, by up to {max}, all within a second: this host stalled once; \
                 repeat the measurement"
            ),
            Self::Late {
                late,
                of,
                max,
                stretches,
            } => write!(
                f,
                "{late} of {of} packets were forwarded late, by up to {max}, in {stretches} different seconds: this host is \
                 too busy for this rate; stop other programs, or lower the rate"
            ),
            Self::Memory { packets } => {
                write!(
                    f,
                    "{packets} packets were dropped because the memory was full"
                )
            }
            Self::SocketDrops { packets } => write!(
                f,
                "{packets} packets were dropped by the system because they were not fetched in time"
            ),
            Self::TurnedAway { packets } => write!(
                f,
                "{packets} packets came from more callers than there are room and sockets for"
            ),
            Self::Unsent { packets } => write!(
                f,
                "{packets} packets were due and the system did not send them: its buffers are full, or it has no route"
            ),
        }
    }
}

impl Statistics {
    /// All signs that the emulator could not keep up; empty if it did what the links planned.
    pub fn overload(&self) -> Vec<Overload> {
        let both = |of: fn(&Way) -> u64| of(&self.forward) + of(&self.backward);
        let is_late = |way: &Way| way.timing.late.saturating_mul(100) > way.timing.count;
        let late = [&self.forward, &self.backward]
            .into_iter()
            .filter(|way| is_late(way))
            .map(|way| {
                let timing = &way.timing;
                let (late, of, max) = (timing.late, timing.count, timing.max);
                match timing.late_stretches {
                    ..2 => Overload::Stall { late, of, max },
                    stretches => Overload::Late {
                        late,
                        of,
                        max,
                        stretches,
                    },
                }
            });
        let memory = both(|way| way.counts.dropped_memory.packets);
        let unsent = both(|way| way.counts.unsent.packets);
        let counted = [
            (memory, Overload::Memory { packets: memory }),
            (
                self.socket_drops.unwrap_or(0),
                Overload::SocketDrops {
                    packets: self.socket_drops.unwrap_or(0),
                },
            ),
            (
                self.turned_away,
                Overload::TurnedAway {
                    packets: self.turned_away,
                },
            ),
            (unsent, Overload::Unsent { packets: unsent }),
        ];
        late.chain(
            counted
                .into_iter()
                .filter(|(packets, _)| *packets > 0)
                .map(|(_, sign)| sign),
        )
        .collect()
    }

    /// The number of packets received and sent per second, in both directions.
    pub fn packets_per_second(&self) -> f64 {
        let handled: u64 = [&self.forward, &self.backward]
            .into_iter()
            .map(|way| way.counts.arrived.packets + way.timing.count)
            .sum();
        if self.elapsed.is_zero() {
            return 0.0;
        }
        handled as f64 / self.elapsed.as_secs_f64()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::counts::Tally;

    #[test]
    fn one_late_packet_in_a_hundred_is_no_sign_and_two_are() {
        let with = |late, late_stretches| {
            let statistics = Statistics {
                forward: Way {
                    timing: TimingSummary {
                        count: 100,
                        late,
                        late_stretches,
                        max: Span::from_millis(3),
                        ..TimingSummary::default()
                    },
                    ..Way::default()
                },
                ..Statistics::default()
            };
            let signs = statistics.overload();
            signs.iter().map(ToString::to_string).collect::<Vec<_>>()
        };
        let none: [&str; 0] = [];
        assert_eq!(with(1, 1), none);
        assert_eq!(
            with(2, 2),
            [
                "2 of 100 packets were forwarded late, by up to 3ms, in 2 different seconds: this host is too busy for \
                 this rate; stop other programs, or lower the rate"
            ]
        );
        // A single stall is not reported as too much load.
        assert_eq!(
            with(90, 1),
            [
                "90 of 100 packets were forwarded late, by up to 3ms, all within a second: this host stalled once; \
                 repeat the measurement"
            ]
        );
    }

    #[test]
    fn every_packet_that_the_model_did_not_drop_is_a_sign() {
        let tally = Tally {
            packets: 3,
            bytes: DataSize::new(300),
        };
        let mut statistics = Statistics::default();
        statistics.backward.counts.dropped_full = tally;
        statistics.forward.counts.lost = tally;
        assert_eq!(statistics.overload(), [], "the links may drop");
        statistics.backward.counts.dropped_memory = tally;
        statistics.backward.counts.unsent = tally;
        statistics.socket_drops = Some(4);
        statistics.turned_away = 5;
        assert_eq!(
            statistics.overload(),
            [
                Overload::Memory { packets: 3 },
                Overload::SocketDrops { packets: 4 },
                Overload::TurnedAway { packets: 5 },
                Overload::Unsent { packets: 3 },
            ]
        );
    }
}
