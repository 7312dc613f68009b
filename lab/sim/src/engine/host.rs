//! Paths, starts, sources and shares for a host outside the simulator that runs the same scenario.
//!
//! Sources and starts use the random streams of a simulated run with the same seed, so a frame of a
//! video has the same size in both worlds.

use comity_link::{Random, RateProfile};
use comity_units::{DataSize, Rate, Seed, Time};

use super::build::section_producer;
use super::flow::start_times;
use super::links::{Use, Watch};
use super::producer::{FrameSource, Producer};
use super::route::{Router, initial_delay};
use super::shares::Shares;
pub use super::shares::payload_of;
pub use super::streams::{flow_stream, link_stream};
pub use super::timeline::{SectionSender, TimelineFlow};
use crate::network::{FlowSpec, Network, NetworkError, TransportSpec, Workload};

/// Where a flow goes and when it runs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FlowPlan {
    /// The links from the source to the destination, as indices into [`Network::links`].
    pub forward: Vec<usize>,
    /// The links from the destination to the source.
    pub reverse: Vec<usize>,
    /// When the flow starts.
    pub started_at: Time,
    /// When its source stops: at its `stop`, or at the end of the run.
    pub stopped_at: Time,
    /// An equal share of the narrowest link on the path over measured time, in bytes on the wire:
    /// the rate over the number of flows whose data crosses the link. `None` if no link has a rate.
    pub equal_share: Option<DataSize>,
}

/// The plans of all flows, in the order of the network.
///
/// # Errors
/// As [`Network::validate`].
pub fn plans(network: &Network, seed: Seed) -> Result<Vec<FlowPlan>, NetworkError> {
    network.validate()?;
    let mut router = Router::new(network);
    let mut plans = Vec::with_capacity(network.flows.len());
    for (flow, started_at) in network.flows.iter().zip(start_times(network, seed)) {
        let (source, destination) = (flow.source, flow.destination);
        let mut path = |from, to| -> Result<Vec<usize>, NetworkError> {
            let links = router.route(from, to).map_err(|error| error.of(flow))?;
            Ok(links.into_iter().map(|link| link as usize).collect())
        };
        let (forward, reverse) = (path(source, destination)?, path(destination, source)?);
        plans.push(FlowPlan {
            forward,
            reverse,
            started_at,
            stopped_at: flow
                .stop
                .unwrap_or(Time::MAX)
                .min(Time::ZERO + network.duration),
            equal_share: None,
        });
    }
    share(network, &mut plans);
    Ok(plans)
}

/// Sets the equal share of each flow's narrowest link.
fn share(network: &Network, plans: &mut [FlowPlan]) {
    let crossed = plans.iter().flat_map(|plan| plan.forward.iter().copied());
    let shares = Shares::new(network, crossed, watch(network));
    for plan in plans {
        plan.equal_share = shares.of(plan.forward.iter().copied());
    }
}

/// The measured time of a run.
fn watch(network: &Network) -> Watch {
    Watch {
        warmup: Time::ZERO + network.warmup,
        end: Time::ZERO + network.duration,
    }
}

/// How much of its capacity a link used in measured time.
#[derive(Debug)]
pub struct LinkUse<'n> {
    rate: &'n RateProfile,
    watch: Watch,
    used: Use,
}

impl<'n> LinkUse<'n> {
    /// Starts to count for a link of `network`.
    pub fn new(network: &Network, rate: &'n RateProfile) -> Self {
        Self {
            rate,
            watch: watch(network),
            used: Use::default(),
        }
    }

    /// Counts the transmission of a packet of `wire` bytes.
    pub fn add(&mut self, start: Time, departure: Time, wire: u32) {
        self.used.add(start, departure, wire, &self.watch);
    }

    /// The bytes of the packets that left the queue.
    pub const fn carried_bytes(&self) -> u64 {
        self.used.carried_bytes
    }

    /// The share of the capacity; `None` without a rate, or if the rate was always zero.
    pub fn utilisation(&self) -> Option<f64> {
        self.used.utilisation(self.rate, &self.watch)
    }
}

/// The sections of a TCP flow with a time-line; `None` without one.
///
/// # Errors
/// [`NetworkError`] for a workload without sections.
pub fn timeline(
    network: &Network,
    flow: usize,
    seed: Seed,
    plan: &FlowPlan,
) -> Result<Option<TimelineFlow>, NetworkError> {
    let spec = &network.flows[flow];
    let TransportSpec::Tcp(tcp) = &spec.transport else {
        return Ok(None);
    };
    let Some(timeline) = &tcp.timeline else {
        return Ok(None);
    };
    let random = Random::new(flow_stream(seed, &spec.name).derive("workload"));
    let reverse_delay = initial_delay(network, plan.reverse.iter().copied());
    section_producer(spec, timeline.section, plan.started_at, random)
        .map(|producer| {
            Some(TimelineFlow::new(
                producer,
                timeline,
                plan.started_at,
                reverse_delay,
            ))
        })
        .map_err(|error| error.of(spec))
}

/// The bytes of a flow whose workload is a file.
pub fn file_size(flow: &FlowSpec, seed: Seed) -> Option<DataSize> {
    match &flow.workload {
        Workload::File(bytes) => Some(*bytes),
        Workload::RandomFile(sizes) => {
            let stream = flow_stream(seed, &flow.name).derive("workload");
            Some(sizes.draw(&mut Random::new(stream)))
        }
        _ => None,
    }
}

/// The sections that a flow submits, and their times.
#[derive(Debug)]
pub struct Source(FrameSource);

impl Source {
    /// The source of a flow that begins at `start`. TCP submits a full segment at a time.
    ///
    /// # Errors
    /// [`NetworkError`] for a workload without times of sections: a file, a token bucket, and for
    /// TCP a greedy source.
    pub fn new(
        network: &Network,
        flow: usize,
        seed: Seed,
        start: Time,
    ) -> Result<Self, NetworkError> {
        let spec = &network.flows[flow];
        let section = match &spec.transport {
            TransportSpec::Tcp(tcp) => DataSize::new(u64::from(tcp.config.mss)),
            TransportSpec::Datagram(datagram) => datagram.wire,
            TransportSpec::Sections(sections) => sections.section,
            TransportSpec::Command(_) => DataSize::new(1),
        };
        let random = Random::new(flow_stream(seed, &spec.name).derive("workload"));
        section_producer(spec, section, start, random)
            .map(|producer| Self(FrameSource::new(producer)))
            .map_err(|error| error.of(spec))
    }

    /// The source time of the next section; [`Time::MAX`] if there is none. A greedy source always
    /// has one.
    pub fn peek(&self) -> Time {
        match self.is_greedy() {
            true => Time::ZERO,
            false => self.0.producer.peek(),
        }
    }

    /// The next frame, whose source time is `source_time`. An encoder follows `target`, the current
    /// target bitrate of the connection.
    pub fn next_frame(
        &mut self,
        source_time: Time,
        target: Option<Rate>,
    ) -> Option<comity_frames::Frame> {
        self.0.next(source_time, target)
    }

    /// The size of the next section in bytes, for transports without frames.
    pub fn next_size(&mut self) -> Option<u32> {
        self.0.producer.next(None).map(|(bytes, _)| bytes)
    }

    /// Whether there is always a next section.
    pub fn is_greedy(&self) -> bool {
        matches!(self.0.producer, Producer::Greedy(_))
    }
}
