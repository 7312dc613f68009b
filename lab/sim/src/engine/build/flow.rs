//! Flows from their descriptions: endpoints, controllers and workloads.

use std::sync::Arc;

use comity_congestion::table::{self, Row, Setup};
use comity_link::Random;
use comity_tcp::{Config, Connection};
use comity_units::{DataSize, Seed, Time};

use super::controller::halves;
use super::sections::section_ends;
use super::workload::{datagram_source, section_producer, tcp_workload};
use crate::custom::CustomControllers;
use crate::engine::arrivals::Arrivals;
use crate::engine::fingerprint::Fingerprint;
use crate::engine::flow::{Agent, DatagramFlow, Flow, FlowCounts, TcpFlow};
use crate::engine::path::Path;
use crate::engine::paths::Paths;
use crate::engine::route::initial_delay;
use crate::engine::sections::SectionFlow;
use crate::engine::streams::flow_stream;
use crate::network::{FlowError, FlowSpec, Network, Reader, TcpSpec, TransportSpec};

/// The settings of TCP endpoints. Flows with equal settings share one copy.
pub(in crate::engine) type SharedConfigs = Vec<Arc<Config>>;

fn share(shared: &mut SharedConfigs, config: &Config) -> Arc<Config> {
    // Flows of a group are consecutive, so one of the last few settings probably matches.
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

pub(super) fn build_flow(
    network: &Network,
    (spec, started_at): (&FlowSpec, Time),
    seed: Seed,
    (forward, backward): (Path, Path),
    paths: &Paths,
    (custom, shared): (&dyn CustomControllers, &mut SharedConfigs),
) -> Result<Flow, FlowError> {
    let seed = flow_stream(seed, &spec.name);
    let stream = |name: &str| Random::new(seed.derive(name));
    let warmup = Time::ZERO + network.warmup;
    let first_link = paths
        .links(forward)
        .first()
        .map(|&link| &network.links[link as usize].config);
    let agent = match &spec.transport {
        TransportSpec::Tcp(tcp) => {
            let random = stream("workload");
            let links = paths.links(backward).iter();
            let reverse_delay = initial_delay(network, links.map(|&link| link as usize));
            let path = (first_link, reverse_delay);
            let workload = tcp_workload(spec, tcp, path, started_at, random)?;
            let (source, sink) = tcp_ends(tcp, &spec.reader, seed, custom, shared)?;
            let flow = TcpFlow::new(source, sink, tcp.headers, workload, &spec.reader);
            Agent::Tcp(Box::new(flow))
        }
        TransportSpec::Datagram(datagram) => {
            let random = stream("workload");
            let (wire, source) = datagram_source(spec, datagram, first_link, started_at, random)?;
            Agent::Datagram(Box::new(DatagramFlow {
                wire,
                source,
                next_number: 0,
                is_drawn: false,
                arrivals: Arrivals::default(),
            }))
        }
        TransportSpec::Command(_) => return Err(FlowError::Command),
        TransportSpec::Sections(sections) => {
            let random = stream("workload");
            let producer = section_producer(spec, sections.section, started_at, random)?;
            let ends = section_ends(sections, seed, started_at, custom)?;
            let flow = SectionFlow::new(ends, producer, sections, warmup);
            Agent::Sections(Box::new(flow))
        }
    };
    Ok(Flow {
        forward,
        backward,
        agent,
        started_at,
        stop_at: spec.stop.unwrap_or(Time::MAX),
        waiting: [0; 2],
        counts: FlowCounts::default(),
        hash: Fingerprint::default(),
    })
}

/// The ends of a connection.
pub(in crate::engine) fn tcp_ends(
    tcp: &TcpSpec,
    reader: &Reader,
    seed: Seed,
    custom: &dyn CustomControllers,
    shared: &mut SharedConfigs,
) -> Result<(Connection, Connection), FlowError> {
    if tcp.config.mss == 0 {
        return Err(FlowError::NoPayload);
    }
    if tcp.config.receive_buffer.get() < u64::from(tcp.config.mss) {
        return Err(FlowError::WindowBelowSegment);
    }
    if matches!(reader, Reader::Playback { interval, .. } if interval.is_zero()) {
        return Err(FlowError::ReadInterval);
    }
    let row = table::find(&tcp.controller).ok();
    if row.is_some_and(|row| !row.drives_tcp) {
        return Err(FlowError::NotForTcp);
    }
    let setup = Setup {
        mss: DataSize::new(u64::from(tcp.config.mss)),
        initial_window: tcp.initial_window,
        initial_ssthresh: tcp.initial_ssthresh.unwrap_or(tcp.config.receive_buffer),
        // The length of a wave follows the window, so the window needs a maximum.
        max_window: if row.is_some_and(Row::has_meter) {
            tcp.config.receive_buffer
        } else {
            DataSize::MAX
        },
        seed: seed.derive("controller"),
    };
    let (controller, meter) = halves(custom, &tcp.controller, &setup, &tcp.parameters)?;
    let config = Config {
        metered: meter.is_some(),
        ..tcp.config
    };
    let of_source = Config {
        timestamp_tick: Config::MODERN.timestamp_tick,
        ..config
    };
    let source = Connection::connect(share(shared, &of_source), controller);
    let mut sink = Connection::listen_to_receive(share(shared, &config));
    if let Some(meter) = meter {
        sink = sink.with_meter(meter);
    }
    Ok((source, sink))
}
