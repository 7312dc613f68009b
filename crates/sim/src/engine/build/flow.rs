//! Flows from their descriptions: endpoints, controllers and workloads.

use std::sync::Arc;

use comity_congestion::table::{self, Setup};
use comity_link::{LinkConfig, Random, RateProfile};
use comity_transport::tcp::{Config, Connection};
use comity_units::{Bytes, Rate, Seed, Span, Time};

use super::BuildError;
use super::links::first_delay;
use super::sections::{build_sections, section_producer};
use crate::engine::arrivals::Arrivals;
use crate::engine::fingerprint::Fingerprint;
use crate::engine::flow::{
    Agent, DatagramFlow, DatagramSource, Flow, FlowCounts, TcpFlow, TcpWorkload, start_time,
};
use crate::engine::host::flow_stream;
use crate::engine::paths::{Path, Paths};
use crate::engine::schedule::{Interval, Schedule};
use crate::engine::timeline::TimelineFlow;
use crate::engine::tokens::{Bucket, TokenSource};
use crate::network::{
    CbrSpacing, DatagramSpec, FlowSpec, Network, Reader, TcpSpec, TransportSpec, Workload,
};

/// The settings of TCP endpoints, each kept once however many flows share it.
pub(super) type SharedConfigs = Vec<Arc<Config>>;

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

pub(super) fn build_flow(
    network: &Network,
    spec: &FlowSpec,
    seed: Seed,
    (forward, backward): (Path, Path),
    paths: &Paths,
    shared: &mut SharedConfigs,
) -> Result<Flow, BuildError> {
    let seed = flow_stream(seed, &spec.name);
    let stream = |name: &str| Random::new(seed.derive(name));
    let warmup = Time::ZERO + network.warmup;
    let started_at = start_time(spec.start.at, spec.start.spread, &mut stream("start"));
    let first_link = paths
        .links(forward)
        .first()
        .map(|&link| &network.links[link as usize].config);
    let agent = match &spec.transport {
        TransportSpec::Tcp(tcp) => {
            let random = stream("workload");
            let delays = paths.links(backward).iter();
            let way_back = delays
                .map(|&link| first_delay(&network.links[link as usize].config))
                .fold(Span::ZERO, |sum, delay| sum + delay);
            let way = (first_link, way_back);
            let workload = tcp_workload(spec, tcp, way, started_at, random)?;
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
        TransportSpec::Command(_) => {
            let flow = spec.name.clone();
            return Err(BuildError::Command { flow });
        }
        TransportSpec::Sections(sections) => {
            let random = stream("workload");
            let producer = section_producer(spec, sections.section, started_at, random)?;
            let flow = build_sections(spec, sections, producer, seed, (started_at, warmup))?;
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

/// What a TCP source has to send, over its first link and with so much delay on the way back.
fn tcp_workload(
    spec: &FlowSpec,
    tcp: &TcpSpec,
    (first_link, way_back): (Option<&LinkConfig>, Span),
    start: Time,
    random: Random,
) -> Result<TcpWorkload, BuildError> {
    if let Some(timeline) = &tcp.timeline {
        if timeline.feedback.is_some_and(Span::is_zero) {
            return Err(BuildError::Flow {
                flow: spec.name.clone(),
                reason: "its reader reports at no interval",
            });
        }
        if spec.reader != Reader::Immediate {
            return Err(BuildError::Flow {
                flow: spec.name.clone(),
                reason: "its reader plays back, which knows no gaps; expected one that reads at once",
            });
        }
        let producer = section_producer(spec, timeline.section, start, random)?;
        let source = TimelineFlow::new(producer, timeline, start, way_back);
        return Ok(TcpWorkload::Timeline(Box::new(source)));
    }
    let chunk = tcp.config.mss;
    match spec.workload {
        Workload::Greedy => Ok(TcpWorkload::Greedy),
        Workload::File(bytes) => Ok(TcpWorkload::File(bytes.get())),
        Workload::TokenBucket {
            depth,
            refill,
            interval,
        } => {
            let bucket = token_bucket(spec, (depth, refill, interval), start)?;
            Ok(TcpWorkload::Bucket(Box::new(TokenSource::new(
                bucket, chunk,
            ))))
        }
        Workload::Cbr { .. } | Workload::OnOff { .. } | Workload::Poisson { .. } => {
            let schedule = calendar(spec, u64::from(chunk), first_link, start, random)?;
            Ok(TcpWorkload::Schedule {
                schedule: Box::new(schedule),
                chunk,
            })
        }
        Workload::Video(_) | Workload::Frames(_) => Err(BuildError::Flow {
            flow: spec.name.clone(),
            reason: "only sections have frames as a workload",
        }),
    }
}

fn token_bucket(
    spec: &FlowSpec,
    (depth, refill, interval): (Bytes, Bytes, Span),
    start: Time,
) -> Result<Bucket, BuildError> {
    if interval.is_zero() {
        return Err(BuildError::Flow {
            flow: spec.name.clone(),
            reason: "its token bucket is filled at no interval",
        });
    }
    Ok(Bucket::new(depth, refill, interval, start))
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
    if matches!(spec.reader, Reader::Playback { interval, .. } if interval.is_zero()) {
        return Err(BuildError::Flow {
            flow: flow(),
            reason: "its reader reads at no interval",
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
    let of_source = Config {
        timestamp_tick: Config::MODERN.timestamp_tick,
        ..config
    };
    let source = Connection::connect(share(shared, &of_source), controller);
    let mut sink = Connection::listen_to_receive(share(shared, &config));
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
    match spec.workload {
        // The first emission comes with a refill, which a full bucket does not feel.
        Workload::TokenBucket {
            depth,
            refill,
            interval,
        } => Ok(DatagramSource::Bucket(Bucket {
            next_refill: start,
            ..token_bucket(spec, (depth, refill, interval), start)?
        })),
        Workload::Cbr { .. } | Workload::OnOff { .. } | Workload::Poisson { .. } => {
            calendar(spec, wire, first_link, start, random).map(DatagramSource::Schedule)
        }
        Workload::Greedy | Workload::File(_) => Err(BuildError::Flow {
            flow: spec.name.clone(),
            reason: "datagrams have no feedback that could clock a greedy source or a file; \
                     expected the workload cbr, on_off, poisson or token_bucket",
        }),
        Workload::Video(_) | Workload::Frames(_) => Err(BuildError::Flow {
            flow: spec.name.clone(),
            reason: "only sections have frames as a workload",
        }),
    }
}

/// The times of packets of `bytes`, for a workload that has a calendar.
pub(super) fn calendar(
    spec: &FlowSpec,
    bytes: u64,
    first_link: Option<&LinkConfig>,
    start: Time,
    random: Random,
) -> Result<Schedule, BuildError> {
    let fail = |reason| BuildError::Flow {
        flow: spec.name.clone(),
        reason,
    };
    let of_rate = |rate: Rate| match rate.as_bps() {
        0 => Err(fail("its workload has a rate of zero")),
        _ => Ok(Interval::of_rate(bytes, rate)),
    };
    let exact = |interval: Span| match interval.is_zero() {
        true => Err(fail("its packets are no time apart")),
        false => Ok(Interval::exact(interval)),
    };
    let interval = match spec.workload {
        Workload::Cbr { spacing, .. } => match spacing {
            CbrSpacing::Rate(rate) => of_rate(rate)?,
            CbrSpacing::Interval(interval) => exact(interval)?,
            CbrSpacing::Gap(gap) => {
                let transmission = match first_link.map(|link| &link.rate) {
                    Some(RateProfile::Constant(rate)) => rate.transmission_time(Bytes::new(bytes)),
                    _ => Span::ZERO,
                };
                exact(gap + transmission)?
            }
        },
        Workload::Poisson { rate } => of_rate(rate)?,
        Workload::OnOff { mean_on, .. } if mean_on.is_zero() => {
            return Err(fail("its source is never on"));
        }
        Workload::OnOff { rate, .. } => of_rate(rate)?,
        Workload::Greedy
        | Workload::File(_)
        | Workload::TokenBucket { .. }
        | Workload::Video(_)
        | Workload::Frames(_) => return Err(fail("its workload has no calendar")),
    };
    Schedule::new(&spec.workload, interval, start, random)
        .ok_or_else(|| fail("its workload has no calendar"))
}
