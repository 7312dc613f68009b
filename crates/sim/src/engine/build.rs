//! From a network's description to an engine.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use comity_congestion::table::{self, ParameterError, Setup, UnknownController};
use comity_link::{
    ClockedLink, ConfigError, DelayProfile, LinkConfig, Queue, Random, RateProfile, ServedLink,
};
use comity_transport::datagram;
use comity_transport::tcp::{Config, Connection};
use comity_units::{Bytes, Rate, Seed, Span, Time};

use super::arrivals::Arrivals;
use super::fingerprint::Fingerprint;
use super::flow::{
    Agent, DatagramFlow, DatagramSource, Flow, FlowCounts, Path, ReaderState, TcpFlow, TcpWorkload,
    start_time,
};
use super::links::{LinkState, Model, Watch};
use super::packet::Arena;
use super::queue::{Class, Event, EventQueue};
use super::route::Router;
use super::schedule::{Interval, Schedule};
use super::sections::{Producer, SectionFlow};
use super::timeline::TimelineFlow;
use super::tokens::Bucket;
use super::{ACTS_AHEAD, AHEAD, DRAW, END, Engine, LINK, MEASURE, NO_LINK, Observer, RunOptions};
use crate::frames::{Encoder, LARGEST_FRAME};
use crate::network::{
    CbrSpacing, DatagramSpec, FlowSpec, Network, NodeId, Reader, SectionsSpec, TcpSpec,
    TransportSpec, Workload,
};

/// Why a network cannot be played.
#[derive(Clone, Debug, PartialEq)]
pub enum BuildError {
    /// A link or flow names a node that does not exist.
    UnknownNode {
        /// The link or flow.
        user: String,
        /// The number of the node.
        node: u32,
    },
    /// Two links or two flows have one name.
    DuplicateName {
        /// The name.
        name: String,
    },
    /// A link's settings are impossible.
    Link {
        /// The link.
        name: String,
        /// What is wrong.
        error: ConfigError,
    },
    /// There is no way from a flow's source to its destination, or back.
    Unreachable {
        /// The flow.
        flow: String,
        /// The name of the node it begins at.
        from: String,
        /// The name of the node that cannot be reached.
        to: String,
    },
    /// A flow's source is its destination.
    FlowToItself {
        /// The flow.
        flow: String,
        /// The name of the node.
        node: String,
    },
    /// A flow's controller does not exist.
    Controller {
        /// The flow.
        flow: String,
        /// What is wrong.
        error: UnknownController,
    },
    /// A flow's controller does not take its parameters.
    Parameter {
        /// The flow.
        flow: String,
        /// What is wrong.
        error: ParameterError,
    },
    /// A setting of the deadline transport is out of range.
    Sections {
        /// The flow.
        flow: String,
        /// What is wrong.
        error: datagram::ConfigError,
    },
    /// A setting of a flow is impossible.
    Flow {
        /// The flow.
        flow: String,
        /// What is wrong: what was given and what is expected.
        reason: &'static str,
    },
    /// The warm-up is not shorter than the run.
    Warmup {
        /// The warm-up.
        warmup: Span,
        /// The length of the run.
        duration: Span,
    },
}

impl fmt::Display for BuildError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::UnknownNode { user, node } => {
                write!(f, "{user} names node {node}, which does not exist")
            }
            Self::DuplicateName { name } => {
                write!(f, "the name {name:?} is used twice; names are unique")
            }
            Self::Link { name, error } => write!(f, "link {name:?}: {error}"),
            Self::Unreachable { flow, from, to } => {
                write!(f, "flow {flow:?}: no links lead from {from:?} to {to:?}")
            }
            Self::FlowToItself { flow, node } => {
                write!(f, "flow {flow:?}: source and destination are both {node:?}")
            }
            Self::Controller { flow, error } => write!(f, "flow {flow:?}: {error}"),
            Self::Parameter { flow, error } => write!(f, "flow {flow:?}: {error}"),
            Self::Sections { flow, error } => write!(f, "flow {flow:?}: {error}"),
            Self::Flow { flow, reason } => write!(f, "flow {flow:?}: {reason}"),
            Self::Warmup { warmup, duration } => {
                write!(
                    f,
                    "the warm-up of {warmup} is not shorter than the run of {duration}"
                )
            }
        }
    }
}

impl std::error::Error for BuildError {}

impl<'o, O: Observer> Engine<'o, O> {
    pub(super) fn build(
        network: &Network,
        seed: Seed,
        options: &RunOptions,
        observer: &'o mut O,
    ) -> Result<Self, BuildError> {
        check_names(network)?;
        if network.warmup >= network.duration {
            let (warmup, duration) = (network.warmup, network.duration);
            return Err(BuildError::Warmup { warmup, duration });
        }
        let watch = Watch {
            warmup: Time::ZERO + network.warmup,
            end: Time::ZERO + network.duration,
        };
        let mut links = build_links(network, seed)?;
        let mut router = Router::new(
            network,
            network
                .links
                .iter()
                .map(|l| first_delay(&l.config))
                .collect(),
        );
        let mut paths = Paths::default();
        let mut flows = Vec::with_capacity(network.flows.len());
        let any_serves = links.iter().any(|link| !link.decides_at_once());
        let mut queue = EventQueue::new(links.len(), any_serves);
        let mut shared = Vec::new();
        for (index, spec) in network.flows.iter().enumerate() {
            let (there, back) = match spec.transport {
                TransportSpec::Datagram(_) => (Use::Datagrams, Use::Nothing),
                TransportSpec::Sections(_) => (Use::Sections, Use::Reports),
                TransportSpec::Tcp(_) => (Use::Segments, Use::Answers),
            };
            let (source, destination) = (spec.source, spec.destination);
            let forward = paths.find(network, &mut router, spec, (source, destination, there))?;
            let backward = paths.find(network, &mut router, spec, (destination, source, back))?;
            let flow = build_flow(
                network,
                spec,
                seed,
                (forward, backward),
                &paths,
                &mut shared,
            )?;
            let source = index as u32 * 2;
            queue.schedule(Event::new(flow.started_at, Class::Control, source));
            if flow.stop_at < watch.end {
                queue.schedule(Event::new(flow.stop_at, Class::Control, source + 1));
            }
            flows.push(flow);
        }
        queue.schedule(Event::new(watch.warmup, Class::Control, MEASURE));
        paths.count_users(&flows, &mut links);
        if options.collapse {
            paths.mark_ahead(&mut flows, &links);
        }
        Ok(Self {
            queue,
            arena: Arena::default(),
            links,
            flows,
            paths: paths.entries,
            watch,
            observer,
            events: 0,
            current: NO_LINK,
            order: 0,
            depth: 0,
            is_measuring: false,
        })
    }
}

fn check_names(network: &Network) -> Result<(), BuildError> {
    let links = network.links.iter().map(|link| &link.name);
    let flows = network.flows.iter().map(|flow| &flow.name);
    for mut names in [links.collect::<Vec<_>>(), flows.collect()] {
        names.sort_unstable();
        if let Some(pair) = names.windows(2).find(|pair| pair[0] == pair[1]) {
            return Err(BuildError::DuplicateName {
                name: pair[0].clone(),
            });
        }
    }
    let known = network.nodes.len() as u32;
    let check = |user: String, node: NodeId| match node.0 < known {
        true => Ok(()),
        false => Err(BuildError::UnknownNode { user, node: node.0 }),
    };
    for link in &network.links {
        check(format!("link {:?}", link.name), link.from)?;
        check(format!("link {:?}", link.name), link.to)?;
    }
    for flow in &network.flows {
        check(format!("flow {:?}", flow.name), flow.source)?;
        check(format!("flow {:?}", flow.name), flow.destination)?;
    }
    Ok(())
}

fn build_links(network: &Network, seed: Seed) -> Result<Vec<LinkState>, BuildError> {
    let build = |spec: &crate::network::LinkSpec| {
        let seed = seed.derive("link").derive(&spec.name);
        let model = match spec.config.queue {
            Queue::CoDel(_) => {
                ServedLink::new(&spec.config, seed).map(|l| Model::Served(Box::new(l)))
            }
            Queue::DropTail(_) | Queue::Red(_) => {
                ClockedLink::new(&spec.config, seed).map(Model::Clocked)
            }
        };
        let model = model.map_err(|error| BuildError::Link {
            name: spec.name.clone(),
            error,
        })?;
        let marks = match &spec.config.queue {
            Queue::CoDel(codel) => codel.ecn,
            Queue::Red(red) => red.ecn,
            Queue::DropTail(_) => false,
        };
        Ok(LinkState::new(model, spec.config.duplication > 0.0, marks))
    };
    network.links.iter().map(build).collect()
}

/// The propagation delay that routes are chosen by: the one at the start.
pub(super) fn first_delay(config: &LinkConfig) -> Span {
    match &config.delay {
        DelayProfile::Constant(delay) => *delay,
        DelayProfile::Steps(steps) => steps.first().map_or(Span::ZERO, |&(_, delay)| delay),
    }
}

/// The mean rate of a link over the watched interval, for its utilisation.
pub(super) fn mean_rate(config: &LinkConfig, watch: Watch) -> Option<Rate> {
    match &config.rate {
        RateProfile::Unlimited => None,
        RateProfile::Constant(rate) => Some(*rate),
        RateProfile::Deliveries(trace) => Some(trace.mean_rate()),
        RateProfile::Steps(steps) => {
            let mut bits = 0.0;
            for (at, &(from, rate)) in steps.iter().enumerate() {
                let to = steps
                    .get(at + 1)
                    .map_or(watch.end, |&(next, _)| next.min(watch.end));
                let share = to.saturating_since(from.max(watch.warmup)).as_secs_f64();
                bits += share * rate.as_bps() as f64;
            }
            let watched = watch.end.saturating_since(watch.warmup).as_secs_f64();
            Some(Rate::from_bps_f64(bits / watched))
        }
    }
}

/// All paths, and which links follow which.
#[derive(Default)]
struct Paths {
    entries: Vec<u32>,
    /// Flows between the same nodes share a path. What is marked on it holds for all who use it alike: a mark
    /// that speaks of one flow asks for a link that nothing else uses.
    known: BTreeMap<(NodeId, NodeId, Use), Path>,
}

/// What a path is used for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Use {
    Answers,
    Datagrams,
    Nothing,
    Reports,
    Sections,
    Segments,
}

impl Paths {
    fn find(
        &mut self,
        network: &Network,
        router: &mut Router<'_>,
        flow: &FlowSpec,
        key: (NodeId, NodeId, Use),
    ) -> Result<Path, BuildError> {
        if let Some(&path) = self.known.get(&key) {
            return Ok(path);
        }
        let (from, to, _) = key;
        let name = |node: NodeId| network.nodes[node.0 as usize].clone();
        if from == to {
            return Err(BuildError::FlowToItself {
                flow: flow.name.clone(),
                node: name(from),
            });
        }
        let links = router
            .path(from, to)
            .ok_or_else(|| BuildError::Unreachable {
                flow: flow.name.clone(),
                from: name(from),
                to: name(to),
            })?;
        let start = self.entries.len() as u32;
        self.entries.extend(links);
        self.entries.push(END);
        let path = Path { start };
        self.known.insert(key, path);
        Ok(path)
    }

    fn links(&self, path: Path) -> &[u32] {
        let from_start = &self.entries[path.start as usize..];
        let end = from_start.iter().position(|&entry| entry & END != 0);
        &from_start[..end.unwrap_or(from_start.len())]
    }

    /// Counts for each link how many paths lead over it.
    fn count_users(&self, flows: &[Flow], links: &mut [LinkState]) {
        for path in flows.iter().flat_map(|flow| [flow.forward, flow.backward]) {
            for &entry in self.links(path) {
                links[entry as usize].users += 1;
            }
        }
    }

    /// Marks what can be computed ahead of its turn without changing anything.
    fn mark_ahead(&mut self, flows: &mut [Flow], links: &[LinkState]) {
        self.mark_links(flows, links);
        for flow in flows {
            self.mark_draw(flow, links);
            // An endpoint that answers may act ahead when nothing but packets and timers makes it act, and
            // when its answers meet no others on their first link.
            let (source_may, sink_may) = match &flow.agent {
                Agent::Datagram(_) => (false, true),
                Agent::Sections(_) => (false, false),
                Agent::Tcp(tcp) => (
                    tcp.workload.acts_on_packets_alone()
                        && self.has_own_way_out(flow.forward, links),
                    matches!(tcp.reader, ReaderState::Immediate)
                        && tcp.workload.is_blind_to_its_reader()
                        && self.has_own_way_out(flow.backward, links),
                ),
            };
            if sink_may {
                self.mark_end(flow.forward, links);
            }
            if source_may {
                self.mark_end(flow.backward, links);
            }
        }
    }

    /// Marks each entry whose link is fed by nothing but the link before it, where that one keeps order.
    fn mark_links(&mut self, flows: &[Flow], links: &[LinkState]) {
        /// Who feeds a link.
        #[derive(Clone, Copy, PartialEq)]
        enum Feeder {
            Nobody,
            Only(u32),
            Several,
        }
        const AN_ENDPOINT: u32 = u32::MAX;
        let mut feeders = vec![Feeder::Nobody; links.len()];
        for path in flows.iter().flat_map(|flow| [flow.forward, flow.backward]) {
            let mut before = AN_ENDPOINT;
            for &link in self.links(path) {
                let feeder = &mut feeders[link as usize];
                *feeder = match *feeder {
                    Feeder::Nobody if before != AN_ENDPOINT => Feeder::Only(before),
                    Feeder::Only(only) if only == before => Feeder::Only(only),
                    _ => Feeder::Several,
                };
                before = link;
            }
        }
        for path in flows.iter().flat_map(|flow| [flow.forward, flow.backward]) {
            let start = path.start as usize;
            for at in start + 1..start + self.links(path).len() {
                let (before, link) = (self.entries[at - 1] & LINK, self.entries[at] & LINK);
                if feeders[link as usize] == Feeder::Only(before)
                    && links[before as usize].is_predictable()
                    && links[link as usize].decides_at_once()
                {
                    self.entries[at] |= AHEAD;
                }
            }
        }
    }

    /// Marks where a flow's packets first wait for their turn among others, if its source can be drawn on
    /// there: its first link carries nothing else, and nothing on that stretch reorders or copies.
    fn mark_draw(&mut self, flow: &mut Flow, links: &[LinkState]) {
        let has_calendar = matches!(
            &flow.agent,
            Agent::Datagram(datagram) if matches!(datagram.source, DatagramSource::Schedule(_))
        );
        if !has_calendar || !self.has_own_way_out(flow.forward, links) {
            return;
        }
        let path = self.links(flow.forward);
        let stretch = 1 + path
            .iter()
            .skip(1)
            .take_while(|&&entry| entry & AHEAD != 0)
            .count();
        let mut on_stretch = path.iter().take(stretch);
        if on_stretch.all(|&entry| links[(entry & LINK) as usize].is_predictable()) {
            let at = flow.forward.start as usize + stretch;
            self.entries[at] |= DRAW;
            if let Agent::Datagram(datagram) = &mut flow.agent {
                datagram.is_drawn = true;
            }
        }
    }

    /// Whether the first link of a path carries nothing else and takes packets ahead of their turn.
    fn has_own_way_out(&self, path: Path, links: &[LinkState]) -> bool {
        let Some(&entry) = self.links(path).first() else {
            return false;
        };
        let link = &links[(entry & LINK) as usize];
        link.users == 1 && link.decides_at_once()
    }

    /// Marks the end of a path whose last link keeps order.
    fn mark_end(&mut self, path: Path, links: &[LinkState]) {
        let Some(&last) = self.links(path).last() else {
            return;
        };
        if links[(last & LINK) as usize].is_predictable() {
            let end = path.start as usize + self.links(path).len();
            self.entries[end] |= ACTS_AHEAD;
        }
    }
}

/// The settings of TCP endpoints, each kept once however many flows share it.
type SharedConfigs = Vec<Arc<Config>>;

fn share(shared: &mut SharedConfigs, config: &Config) -> Arc<Config> {
    // Flows of a group stand together, so the last few settings are the likely ones.
    if let Some(known) = shared
        .iter()
        .rev()
        .take(8)
        .find(|known| ***known == *config)
    {
        return Arc::clone(known);
    }
    let new = Arc::new(*config);
    shared.push(Arc::clone(&new));
    new
}

fn build_flow(
    network: &Network,
    spec: &FlowSpec,
    seed: Seed,
    (forward, backward): (Path, Path),
    paths: &Paths,
    shared: &mut SharedConfigs,
) -> Result<Flow, BuildError> {
    let seed = seed.derive("flow").derive(&spec.name);
    let stream = |name: &str| Random::new(seed.derive(name));
    let warmup = Time::ZERO + network.warmup;
    let started_at = start_time(spec.start.at, spec.start.spread, &mut stream("start"));
    let first_link = paths
        .links(forward)
        .first()
        .map(|&link| &network.links[link as usize].config);
    let agent = match &spec.transport {
        TransportSpec::Tcp(tcp) => {
            if let Some(timeline) = &tcp.timeline {
                if spec.reader != Reader::Immediate {
                    let reason = "its reader plays back, which knows no gaps; expected one that reads at once";
                    return Err(BuildError::Flow {
                        flow: spec.name.clone(),
                        reason,
                    });
                }
                let random = stream("workload");
                let way_back = paths
                    .links(backward)
                    .iter()
                    .map(|&link| match &network.links[link as usize].config.delay {
                        DelayProfile::Constant(delay) => *delay,
                        DelayProfile::Steps(steps) => {
                            steps.first().map_or(Span::ZERO, |&(_, delay)| delay)
                        }
                    })
                    .fold(Span::ZERO, |sum, delay| sum + delay);
                let producer = section_producer(spec, timeline.section, started_at, random)?;
                let source = TimelineFlow::new(producer, timeline, started_at, way_back);
                let workload = TcpWorkload::Timeline(Box::new(source));
                let flow = build_tcp(spec, tcp, workload, seed, shared)?;
                return Ok(new_flow(
                    (forward, backward),
                    Agent::Tcp(Box::new(flow)),
                    started_at,
                    spec,
                ));
            }
            let chunk = tcp.config.mss;
            let interval = workload_interval(spec, u64::from(chunk), first_link)?;
            let schedule = Schedule::new(&spec.workload, interval, started_at, stream("workload"));
            let workload = TcpWorkload::new(&spec.workload, schedule, chunk, started_at);
            Agent::Tcp(Box::new(build_tcp(spec, tcp, workload, seed, shared)?))
        }
        TransportSpec::Datagram(datagram) => {
            let source =
                datagram_source(spec, datagram, first_link, started_at, stream("workload"))?;
            let wire = u32::try_from(datagram.wire.get()).unwrap_or(u32::MAX);
            Agent::Datagram(Box::new(DatagramFlow {
                wire,
                source,
                next_number: 0,
                is_drawn: false,
                arrivals: Arrivals::default(),
            }))
        }
        TransportSpec::Sections(sections) => {
            let random = stream("workload");
            let producer = section_producer(spec, sections.section, started_at, random)?;
            let flow = build_sections(spec, sections, producer, seed, (started_at, warmup))?;
            Agent::Sections(Box::new(flow))
        }
    };
    Ok(new_flow((forward, backward), agent, started_at, spec))
}

fn new_flow(
    (forward, backward): (Path, Path),
    agent: Agent,
    started_at: Time,
    spec: &FlowSpec,
) -> Flow {
    Flow {
        forward,
        backward,
        agent,
        started_at,
        stop_at: spec.stop.unwrap_or(Time::MAX),
        waiting: [0; 2],
        counts: FlowCounts::default(),
        hash: Fingerprint::default(),
    }
}

fn build_tcp(
    spec: &FlowSpec,
    tcp: &TcpSpec,
    workload: TcpWorkload,
    seed: Seed,
    shared: &mut SharedConfigs,
) -> Result<TcpFlow, BuildError> {
    let flow = || spec.name.clone();
    if tcp.config.mss == 0 {
        return Err(BuildError::Flow {
            flow: flow(),
            reason: "its segments are empty; expected an mss of 1 or more",
        });
    }
    if tcp.config.receive_buffer.get() < u64::from(tcp.config.mss) {
        let reason = "its receive buffer holds less than one segment";
        return Err(BuildError::Flow {
            flow: flow(),
            reason,
        });
    }
    let row = table::find(&tcp.controller).map_err(|error| BuildError::Controller {
        flow: flow(),
        error,
    })?;
    if !row.drives_tcp() {
        let reason = "its controller drives sections only; expected another one, or transport = \"sections\"";
        return Err(BuildError::Flow {
            flow: flow(),
            reason,
        });
    }
    let setup = Setup {
        mss: Bytes::new(u64::from(tcp.config.mss)),
        initial_window: tcp.initial_window,
        initial_ssthresh: tcp.initial_ssthresh.unwrap_or(tcp.config.receive_buffer),
        // Waves are counted by the window, and so have to know how large it may become.
        max_window: if row.has_meter() {
            tcp.config.receive_buffer
        } else {
            Bytes::MAX
        },
        seed: seed.derive("controller"),
    };
    let refused = |error| BuildError::Parameter {
        flow: flow(),
        error,
    };
    let controller = row.build(&setup, &tcp.parameters).map_err(refused)?;
    let meter = row
        .build_meter(&setup, &tcp.parameters)
        .transpose()
        .map_err(refused)?;
    let config = Config {
        metered: meter.is_some(),
        ..tcp.config
    };
    let config = share(shared, &config);
    let source = Connection::connect(Arc::clone(&config), controller);
    let mut sink = Connection::listen_to_receive(config);
    if let Some(meter) = meter {
        sink = sink.with_meter(meter);
    }
    Ok(TcpFlow::new(
        source,
        sink,
        tcp.headers,
        workload,
        spec.reader,
    ))
}

fn datagram_source(
    spec: &FlowSpec,
    datagram: &DatagramSpec,
    first_link: Option<&LinkConfig>,
    start: Time,
    random: Random,
) -> Result<DatagramSource, BuildError> {
    let wire = datagram.wire.get();
    if wire == 0 || wire > u64::from(u32::MAX) {
        let reason = "its packets are empty or larger than 4 GB";
        return Err(BuildError::Flow {
            flow: spec.name.clone(),
            reason,
        });
    }
    if let Workload::TokenBucket {
        depth,
        refill,
        interval,
    } = spec.workload
    {
        // The first emission comes with a refill, which a full bucket does not feel.
        return Ok(DatagramSource::Bucket(Bucket {
            next_refill: start,
            ..Bucket::new(depth, refill, interval, start)
        }));
    }
    let interval = workload_interval(spec, wire, first_link)?;
    match Schedule::new(&spec.workload, interval, start, random) {
        Some(schedule) => Ok(DatagramSource::Schedule(schedule)),
        None => Err(BuildError::Flow {
            flow: spec.name.clone(),
            reason: "datagrams have no feedback that could clock a greedy source or a file; \
                     expected the workload cbr, on_off, poisson or token_bucket",
        }),
    }
}

/// Two ends that begin at `started_at`.
fn build_sections(
    spec: &FlowSpec,
    sections: &SectionsSpec,
    producer: Producer,
    seed: Seed,
    (started_at, warmup): (Time, Time),
) -> Result<SectionFlow, BuildError> {
    let flow = || spec.name.clone();
    let unknown = |error| BuildError::Controller {
        flow: flow(),
        error,
    };
    let refused = |error| BuildError::Parameter {
        flow: flow(),
        error,
    };
    let row = table::find(&sections.controller).map_err(unknown)?;
    let setup = Setup {
        initial_window: sections.initial_window,
        seed: seed.derive("controller"),
        ..Setup::new(Bytes::new(u64::from(sections.config.payload)))
    };
    let controller = row.build(&setup, &sections.parameters).map_err(refused)?;
    let meter = row
        .build_meter(&setup, &sections.parameters)
        .transpose()
        .map_err(refused)?;
    // The destination sends nothing that a window would hold back.
    let silent = table::find("fixed").map_err(unknown)?;
    let silent = silent
        .build(&setup, &table::Parameters::new())
        .map_err(refused)?;
    let end = |name, controller, meter| {
        let config = datagram::Config {
            seed: seed.derive(name),
            expect_deadlines: sections.config.enforces_deadlines(),
            ..sections.config
        };
        datagram::Connection::new(config, config.ack_delay, controller, meter, started_at).map_err(
            |error| BuildError::Sections {
                flow: flow(),
                error,
            },
        )
    };
    let source = end("source", controller, None)?;
    let sink = end("sink", silent, meter)?;
    Ok(SectionFlow::new(
        source,
        sink,
        producer,
        (
            sections.latency,
            sections
                .acknowledgement
                .and_then(|bytes| u32::try_from(bytes.get()).ok()),
        ),
        warmup,
    ))
}

fn section_producer(
    spec: &FlowSpec,
    section: Bytes,
    start: Time,
    random: Random,
) -> Result<Producer, BuildError> {
    let fail = |reason| BuildError::Flow {
        flow: spec.name.clone(),
        reason,
    };
    let bytes = u32::try_from(section.get())
        .ok()
        .filter(|bytes| (1..=LARGEST_FRAME).contains(bytes))
        .ok_or_else(|| fail("its sections are empty or larger than 16 MiB"))?;
    match &spec.workload {
        Workload::Greedy => Ok(Producer::Greedy(bytes)),
        Workload::Video(video) => match video.fault() {
            Some(fault) => Err(fail(fault)),
            None => Ok(Producer::Encoder(Encoder::new(*video, start, random))),
        },
        Workload::Frames(frames) => Ok(Producer::List {
            frames: Arc::clone(frames),
            next: 0,
            start,
        }),
        Workload::Cbr {
            spacing: CbrSpacing::Gap(_),
            ..
        }
        | Workload::File(_)
        | Workload::TokenBucket { .. } => Err(fail(
            "sections have no such source; expected the workload greedy, cbr with a rate or an \
             interval, on_off, poisson, video or frames",
        )),
        Workload::Cbr { .. } | Workload::OnOff { .. } | Workload::Poisson { .. } => {
            let interval = workload_interval(spec, u64::from(bytes), None)?;
            Schedule::new(&spec.workload, interval, start, random)
                .map(|schedule| Producer::Schedule(schedule, bytes))
                .ok_or_else(|| fail("its workload has no calendar"))
        }
    }
}

/// The time between packets of `bytes` while the workload sends.
fn workload_interval(
    spec: &FlowSpec,
    bytes: u64,
    first_link: Option<&LinkConfig>,
) -> Result<Interval, BuildError> {
    let fail = |reason| BuildError::Flow {
        flow: spec.name.clone(),
        reason,
    };
    let of_rate = |rate: Rate| match rate.as_bps() {
        0 => Err(fail("its workload has a rate of zero")),
        _ => Ok(Interval::of_rate(bytes, rate)),
    };
    let interval = match spec.workload {
        Workload::Cbr {
            spacing: CbrSpacing::Rate(rate),
            ..
        }
        | Workload::OnOff { rate, .. }
        | Workload::Poisson { rate } => of_rate(rate)?,
        Workload::Cbr {
            spacing: CbrSpacing::Interval(interval),
            ..
        } => {
            if interval.is_zero() {
                return Err(fail("its packets are no time apart"));
            }
            Interval::exact(interval)
        }
        Workload::Cbr {
            spacing: CbrSpacing::Gap(gap),
            ..
        } => {
            let transmission = match first_link.map(|link| &link.rate) {
                Some(RateProfile::Constant(rate)) => rate.transmission_time(Bytes::new(bytes)),
                _ => Span::ZERO,
            };
            if (gap + transmission).is_zero() {
                return Err(fail("its packets are no time apart"));
            }
            Interval::exact(gap + transmission)
        }
        Workload::Greedy | Workload::File(_) => Interval::exact(Span::from_secs(1)),
        Workload::Video(_) | Workload::Frames(_) => {
            return Err(fail("only sections have frames as a workload"));
        }
        Workload::TokenBucket { interval, .. } => {
            if interval.is_zero() {
                return Err(fail("its token bucket is filled at no interval"));
            }
            Interval::exact(interval)
        }
    };
    if let Workload::OnOff { mean_on, .. } = spec.workload
        && mean_on.is_zero()
    {
        return Err(fail("its source is never on"));
    }
    Ok(interval)
}
