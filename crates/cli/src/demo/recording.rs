//! What happened in a run, without any judgement. Times are seconds after the beginning of the
//! video.

use comity_sim::host::payload_of;
use comity_units::{Rate, Span};

use super::clip::{Kind, PER_DATAGRAM, WITH_SECTIONS};

/// What was asked for.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Setup {
    /// The bottleneck's.
    pub(crate) rate: Rate,
    /// Each way.
    pub(crate) delay: Span,
    /// In packets.
    pub(crate) queue: u32,
    /// The share of packets lost, each way.
    pub(crate) loss: f64,
    /// How many greedy flows compete.
    pub(crate) flows: u16,
    /// The file that the clip is from; `None` for the one that is part of the program.
    pub(crate) clip: Option<String>,
    /// How many copies of the clip make up the video.
    pub(crate) copies: u16,
    /// From the source time of a section to its deadline.
    pub(crate) latency: Span,
    /// How long the video is.
    pub(crate) duration: Span,
    /// The controller of the video.
    pub(crate) controller: String,
    /// That of the greedy flows.
    pub(crate) rivals: String,
    /// Whether sections are left out by importance while the target bit rate is below the video's.
    pub(crate) sheds: bool,
    /// Of the losses.
    pub(crate) seed: u64,
    /// About what the video takes on the wire.
    pub(crate) demand: Rate,
}

impl Setup {
    /// What each flow would get if all were greedy.
    pub(crate) fn equal_share(&self) -> Rate {
        self.rate.mul_f64(1.0 / (f64::from(self.flows) + 1.0))
    }

    /// What an equal share carries of sections in this time, in full datagrams.
    pub(crate) fn equal_share_bytes(&self, length_s: f64) -> u64 {
        let share = self.equal_share().amount_in(Span::from_secs_f64(length_s));
        payload_of(share, PER_DATAGRAM, WITH_SECTIONS)
    }

    /// What the video is made of.
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

    /// What the greedy flows are, as people write the name of their controller.
    pub(crate) fn rival(&self) -> &str {
        match self.rivals.as_str() {
            "reno" => "Reno",
            "cubic" => "CUBIC",
            "vegas" => "Vegas",
            other => other,
        }
    }

    /// The part of its equal share that the video needs.
    pub(crate) fn need(&self) -> f64 {
        self.demand.as_mbps_f64() / self.equal_share().as_mbps_f64()
    }
}

/// A section of the video and what became of it.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Sent {
    /// What it holds.
    pub(crate) kind: Kind,
    /// When it came into being.
    pub(crate) at_s: f64,
    /// Its length.
    pub(crate) bytes: u64,
    /// The place in the recording of the section that it needs.
    pub(crate) needs: Option<usize>,
    /// What became of it.
    pub(crate) fate: Fate,
}

/// What became of a section.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Fate {
    /// It was complete so long before its deadline; after it, if that is negative. Both ends are on
    /// one host, so the deadline is the sender's own and not what the receiver makes of it.
    Complete {
        /// Milliseconds.
        slack_ms: f64,
    },
    /// It never was, for this reason.
    Gap(&'static str),
    /// The receiver never spoke of it: the connection broke.
    Unreported,
}

/// One flow over time.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Flow {
    /// Its name.
    pub(crate) name: String,
    /// In the order of their times.
    pub(crate) samples: Vec<Sample>,
}

/// The statistics of a flow at one moment.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Sample {
    /// When.
    pub(crate) at_s: f64,
    /// Bytes on the wire that have arrived.
    pub(crate) arrived_bytes: u64,
    /// The congestion window.
    pub(crate) cwnd_bytes: Option<u64>,
    /// The slow-start threshold.
    pub(crate) ssthresh_bytes: Option<u64>,
    /// What is in flight.
    pub(crate) in_flight_bytes: u64,
    /// The rate of the controller, where it says one: at every moment, or on the average.
    pub(crate) pacing_mbps: Option<f64>,
    /// How fast a burst may go, where that rate is an average.
    pub(crate) peak_mbps: Option<f64>,
    /// The tokens that are left of such a rate; below zero when bytes were borrowed.
    pub(crate) tokens_bytes: Option<i64>,
    /// What the application may send.
    pub(crate) target_mbps: Option<f64>,
    /// Loss episodes so far.
    pub(crate) loss_events: u64,
}

/// The bottleneck over a short while.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct QueuePoint {
    /// Its middle.
    pub(crate) at_s: f64,
    /// The longest wait of a packet that came in it.
    pub(crate) longest_ms: f64,
    /// Packets that found no room.
    pub(crate) dropped: u64,
}

/// How well the emulator did.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Exactness {
    /// Packets that it released, both ways.
    pub(crate) releases: u64,
    /// How much later than planned half of the packets to the receiver were released at most.
    pub(crate) p50_ms: f64,
    /// And 99 %.
    pub(crate) p99_ms: f64,
    /// The worst.
    pub(crate) max_ms: f64,
    /// Every sign that it could not keep up.
    pub(crate) overload: Vec<String>,
    /// Packets that came to the bottleneck.
    pub(crate) offered_packets: u64,
    /// Of these, those that found the queue full.
    pub(crate) dropped_packets: u64,
    /// Of these, those that were lost at random.
    pub(crate) lost_packets: u64,
}

/// What the sender of the video counted.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct SenderCount {
    /// Bytes of sections that were given.
    pub(crate) submitted_bytes: u64,
    /// Bytes of sections that were retransmitted.
    pub(crate) retransmitted_bytes: u64,
    /// Bytes of sections that were sent after their deadline.
    pub(crate) late_bytes: u64,
    /// How much later than planned 99 % of the paced packets left at most.
    pub(crate) pacing_p99_us: f64,
}

/// A run.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Recording {
    /// What was asked for.
    pub(crate) setup: Setup,
    /// How long it really was: less than asked for when it was interrupted.
    pub(crate) length_s: f64,
    /// What packets were sealed with.
    pub(crate) cipher: String,
    /// The sections of the video, in the order in which they were sent.
    pub(crate) sections: Vec<Sent>,
    /// The video, then its competitors.
    pub(crate) flows: Vec<Flow>,
    /// The bottleneck, in equal steps.
    pub(crate) queue: Vec<QueuePoint>,
    /// The emulator.
    pub(crate) exactness: Exactness,
    /// The sender.
    pub(crate) sender: SenderCount,
}
