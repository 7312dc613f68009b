//! The events of a run, without evaluation. Times are seconds since the beginning of the video.

use std::collections::BTreeMap;

use comity_sim::host::payload_of;
use comity_units::{Rate, Span};

use super::clip::{Kind, PER_DATAGRAM, Planned, WITH_SECTIONS};

/// The settings of a run.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Setup {
    /// The rate of the bottleneck.
    pub(crate) rate: Rate,
    /// The propagation delay of each direction.
    pub(crate) delay: Span,
    /// The size of the bottleneck's queue, in packets.
    pub(crate) queue: u32,
    /// The share of packets lost, each way.
    pub(crate) loss: f64,
    /// The number of greedy flows.
    pub(crate) flows: u16,
    /// The file with the clip; `None` for the built-in one.
    pub(crate) clip: Option<String>,
    /// How many copies of the clip make up the video.
    pub(crate) copies: u16,
    /// The time from the source time of a section to its deadline.
    pub(crate) latency: Span,
    /// The length of the video.
    pub(crate) duration: Span,
    /// The controller of the video.
    pub(crate) controller: String,
    /// The controller of the greedy flows.
    pub(crate) rivals: String,
    /// Whether the sender drops sections by importance to fit the target bit rate.
    pub(crate) sheds: bool,
    /// The seed of the losses.
    pub(crate) seed: u64,
    /// The approximate rate of the video on the wire.
    pub(crate) demand: Rate,
}

impl Setup {
    /// The rate of each flow if all were greedy.
    pub(crate) fn equal_share(&self) -> Rate {
        self.rate.mul_f64(1.0 / (f64::from(self.flows) + 1.0))
    }

    /// The bytes of sections that an equal share carries in this time, in full datagrams.
    pub(crate) fn equal_share_bytes(&self, length_s: f64) -> u64 {
        let share = self.equal_share().amount_in(Span::from_secs_f64(length_s));
        payload_of(share, PER_DATAGRAM, WITH_SECTIONS)
    }

    /// The composition of the video, in words.
    pub(crate) fn video(&self) -> String {
        let clip = self.clip.as_deref();
        match self.copies {
            1 => clip.unwrap_or("a clip").to_owned(),
            copies => format!(
                "{copies} copies of {} side by side",
                clip.unwrap_or("a clip")
            ),
        }
    }

    /// The name of the greedy flows' controller, as in the literature.
    pub(crate) fn rival(&self) -> &str {
        match self.rivals.as_str() {
            "reno" => "Reno",
            "cubic" => "CUBIC",
            "vegas" => "Vegas",
            other => other,
        }
    }

    /// The part of an equal share that the video needs.
    pub(crate) fn need(&self) -> f64 {
        self.demand.as_mbps_f64() / self.equal_share().as_mbps_f64()
    }
}

impl Sent {
    /// The outcome of each section, by its index in the plan.
    pub(crate) fn all(
        plan: &[Planned],
        latency: Span,
        fate: impl Fn(usize, f64) -> Fate,
    ) -> Vec<Self> {
        let indices: BTreeMap<(u16, u64), usize> = (0..)
            .zip(plan)
            .map(|(index, planned)| ((planned.stream, planned.number), index))
            .collect();
        let of = |(index, planned): (usize, &Planned)| {
            let allowed = latency + planned.media.deadline;
            let due_s = (planned.at + allowed).as_secs_f64();
            let needs = planned.needs.map(|needs| (planned.stream, needs));
            Self {
                kind: planned.kind(),
                copy: planned.copy,
                picture: planned.picture,
                at_s: planned.at.as_secs_f64(),
                shown_s: planned.shown.as_secs_f64(),
                allowed_ms: allowed.as_secs_f64() * 1e3,
                bytes: planned.media.payload.len() as u64,
                needs: needs.and_then(|needs| indices.get(&needs).copied()),
                fate: fate(index, due_s),
            }
        };
        plan.iter().enumerate().map(of).collect()
    }
}

/// A section of the video, and its outcome.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Sent {
    pub(crate) kind: Kind,
    /// The copy of the video that it belongs to.
    pub(crate) copy: u16,
    /// The picture of the clip, counted from 0 in display order; `None` for other content.
    pub(crate) picture: Option<usize>,
    /// Its source time.
    pub(crate) at_s: f64,
    /// When it would be shown on a path without delay.
    pub(crate) shown_s: f64,
    /// The time from its source time to its deadline.
    pub(crate) allowed_ms: f64,
    pub(crate) bytes: u64,
    /// The index in the recording of the section that it needs.
    pub(crate) needs: Option<usize>,
    pub(crate) fate: Fate,
}

/// The outcome of a section.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Fate {
    /// It was complete.
    Complete {
        /// The time left before its deadline; negative if it was late. Both ends run on one host,
        /// so the deadline is that of the sender, not the receiver's estimate.
        slack_ms: f64,
    },
    /// It was never complete, for this reason.
    Gap(&'static str),
    /// The receiver did not report it, because the connection was lost.
    Unreported,
}

/// One flow over time.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Flow {
    pub(crate) name: String,
    /// Ordered by time.
    pub(crate) samples: Vec<Sample>,
}

/// The arrivals of a flow at one moment.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Sample {
    pub(crate) at_s: f64,
    /// Bytes on the wire that have arrived so far.
    pub(crate) arrived_bytes: u64,
}

/// The timing errors of the emulator, and its counts.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Exactness {
    /// Released packets, both directions.
    pub(crate) releases: u64,
    /// The median lateness of packets to the receiver.
    pub(crate) p50_ms: f64,
    pub(crate) p99_ms: f64,
    pub(crate) max_ms: f64,
    /// Each sign of overload, in words.
    pub(crate) overload: Vec<String>,
    /// Packets offered to the bottleneck.
    pub(crate) offered_packets: u64,
    /// Offered packets that found the queue full.
    pub(crate) dropped_packets: u64,
    /// Offered packets that were lost at random.
    pub(crate) lost_packets: u64,
}

/// Counters of the video's sender.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct SenderCount {
    /// Submitted bytes of sections.
    pub(crate) submitted_bytes: u64,
    /// Retransmitted bytes of sections.
    pub(crate) retransmitted_bytes: u64,
    /// Bytes of sections sent after their deadline.
    pub(crate) late_bytes: u64,
    /// The 99th percentile of the lateness of paced packets.
    pub(crate) pacing_p99_us: f64,
}

/// A run.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Recording {
    pub(crate) setup: Setup,
    /// The actual length of the run, shorter than `setup.duration` if it was interrupted.
    pub(crate) length_s: f64,
    /// The cipher of the packets.
    pub(crate) cipher: String,
    /// The sections of the video, in the order in which they were sent.
    pub(crate) sections: Vec<Sent>,
    /// The video first, then its competitors.
    pub(crate) flows: Vec<Flow>,
    pub(crate) exactness: Exactness,
    pub(crate) sender: SenderCount,
    /// The same video over other transports.
    pub(crate) others: Vec<Other>,
}

/// The same video over another transport, through a separate bottleneck with the same number of
/// competitors.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Other {
    /// Its name, which says whether it is simulated.
    pub(crate) name: String,
    /// The conditions of its run.
    pub(crate) how: String,
    /// The sections of the video, or why it did not run.
    pub(crate) sections: Result<Vec<Sent>, String>,
}

impl Other {
    /// A transport that was not run, with the reason.
    pub(crate) fn left_out(name: &str, reason: &str) -> Self {
        Self {
            name: name.into(),
            how: String::new(),
            sections: Err(reason.into()),
        }
    }
}
