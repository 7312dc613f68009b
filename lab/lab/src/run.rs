//! Runs hosts, router and flows, from the start to the report.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};

use comity_sim::host::{FlowPlan, Source, file_size, link_stream, plans};
use comity_sim::network::{FlowSpec, Network, NetworkError, Stack, TransportSpec};
use comity_sim::report::{Cost, Lateness, RunReport, Series, World};
use comity_transport::wire::limits::{SEALING, UDP_IPV4};
use comity_units::{DataSize, Seed, Span, Time};

use crate::capture::Captures;
use crate::child::Role;
use crate::clock::{Clock, RunClock};
use crate::endpoint;
use crate::error::Error;
use crate::flows::{Ending, Running, Start};
use crate::host::{Addresses, Counters, Host, HostConfig, KernelSettings};
use crate::namespace::Session;
use crate::report::{drops, link_report};
use crate::requirements::missing;
use crate::router::{Interval, LaneOf, Outcome, Port, Router};
use crate::settings::Settings;
use crate::stack;
use crate::tcp::kernel_settings;
use crate::tcp_flow::Load;

/// How long the flows have for getting ready before the run starts.
const LEAD: Span = Span::from_millis(500);
/// The additional time for each flow of sections, whose endpoints are processes.
const LEAD_OF_ENDPOINTS: Span = Span::from_millis(120);
/// The maximum number of flows of a lab. Each needs two namespaces.
const MAX_FLOWS: usize = 500;
/// The minimum MTU of the hosts of flows other than TCP.
const USUAL_MTU: u16 = 1_500;
/// If more than one in this many packets is late, the results are not to be trusted.
const TRUSTED_LATE: u64 = 100;
/// The interval at which a run checks its state.
const LOOK: Span = Span::from_millis(10);
/// The maximum time for which a program that is ready may wait for a processor. The router has
/// priority; the senders and receivers of the flows wait like any other program.
const TRUSTED_STALL: Span = Span::from_millis(20);

/// The checked inputs of a run.
struct Prepared {
    plans: Vec<FlowPlan>,
    interval: Interval,
    lanes: Vec<LaneOf>,
    /// The link of each capture.
    captured: Vec<(usize, String, PathBuf)>,
    /// The settings of each flow's hosts.
    kernel: Vec<KernelSettings>,
}

/// Checks whether the lab can run a network on this host.
///
/// # Errors
/// Like [`run`], before anything is created.
pub fn check(network: &Network, seed: Seed, settings: &Settings<'_>) -> Result<(), Error> {
    prepare(network, seed, settings).map(|_| ())
}

fn prepare(network: &Network, seed: Seed, settings: &Settings<'_>) -> Result<Prepared, Error> {
    let missing = missing();
    if !missing.is_empty() {
        return Err(Error::Missing(missing));
    }
    if network.flows.len() > MAX_FLOWS {
        return Err(Error::Missing(vec![format!(
            "the scenario has {} flows; expected at most {MAX_FLOWS}",
            network.flows.len()
        )]));
    }
    let plans = plans(network, seed)?;
    let lanes = network
        .links
        .iter()
        .map(|link| {
            let lane = LaneOf::new(&link.config, link_stream(seed, &link.name));
            lane.map_err(|error| {
                let name = link.name.clone();
                Error::Network(NetworkError::Link { name, error })
            })
        })
        .collect::<Result<Vec<_>, _>>()?;
    let mut kernel = Vec::with_capacity(network.flows.len());
    for (number, (flow, plan)) in network.flows.iter().zip(&plans).enumerate() {
        kernel.push(host_settings(flow)?);
        let scheduled = || Ok(Source::new(network, number, seed, plan.started_at)?);
        match &flow.transport {
            TransportSpec::Tcp(_) => {
                drop(Load::of(flow, file_size(flow, seed), scheduled)?);
            }
            TransportSpec::Datagram(_) | TransportSpec::Sections(_) => drop(scheduled()?),
            TransportSpec::Command(_) => {}
        }
    }
    Ok(Prepared {
        plans,
        interval: Interval {
            warmup: Time::ZERO + network.warmup,
            end: Time::ZERO + network.duration,
            bin: settings.run.bins,
        },
        lanes,
        captured: captured(network, &settings.captures)?,
        kernel,
    })
}

/// Whether the run must end early.
fn is_stopped(settings: &Settings<'_>) -> bool {
    let stop = settings.stop;
    stop.is_some_and(|stop| stop.load(Ordering::Relaxed))
}

/// Creates the hosts of all flows, for each flow the source and then the destination, with the
/// ports of the router.
fn make_hosts(
    network: &Network,
    prepared: &Prepared,
    session: &Session,
    settings: &Settings<'_>,
) -> Result<(Vec<[Host; 2]>, Vec<Port>), Error> {
    let mut hosts = Vec::with_capacity(network.flows.len());
    let mut ports = Vec::with_capacity(network.flows.len() * 2);
    let of_flows = prepared.plans.iter().zip(&prepared.kernel);
    for (number, (flow, (plan, kernel))) in network.flows.iter().zip(of_flows).enumerate() {
        if is_stopped(settings) {
            return Err(Error::Interrupted);
        }
        // Less than `MAX_FLOWS`.
        let number = number as u16;
        let mut make = |side: u8, role: Role, path: &[usize]| -> Result<Host, Error> {
            let config = HostConfig {
                name: format!("{}.{}", flow.name, role.name()),
                addresses: Addresses::of(number, side),
                kernel: kernel.clone(),
            };
            let peer = Addresses::of(number, 1 - side);
            let (host, device) = Host::create(session, &config)?;
            ports.push(Port {
                device,
                peer: (peer.v4, peer.v6),
                path: path.to_vec(),
            });
            Ok(host)
        };
        hosts.push([
            make(0, Role::Source, &plan.forward)?,
            make(1, Role::Destination, &plan.reverse)?,
        ]);
    }
    Ok((hosts, ports))
}

/// Runs a network on real packets. This takes about a second more than the run's duration.
///
/// Returns the report, and problems of single flows or doubts about the results.
///
/// # Errors
/// If requirements are missing, the network cannot be built on this host, or the system refuses a
/// request.
pub fn run(
    network: &Network,
    seed: Seed,
    settings: &Settings<'_>,
) -> Result<(RunReport, Vec<String>), Error> {
    let prepared = prepare(network, seed, settings)?;
    let interval = prepared.interval;
    let session = Session::begin()?;
    let (hosts, ports) = make_hosts(network, &prepared, &session, settings)?;

    let are_sections = |flow: &&FlowSpec| matches!(flow.transport, TransportSpec::Sections(_));
    let processes = network.flows.iter().filter(are_sections).count() as u64;
    let lead = LEAD + Span::from_nanos(LEAD_OF_ENDPOINTS.as_nanos() * processes);
    let clock = RunClock::new(Clock::starting_in(lead));
    #[allow(clippy::disallowed_methods, reason = "a capture carries the date")]
    let date = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap_or_default();
    let start_ns = (Span::from(date) + lead).as_nanos();
    let (captures, writers) = Captures::begin(network.links.len(), &prepared.captured, start_ns)?;
    let router = Router::new(ports, prepared.lanes, captures, clock.clock(), interval)?;
    let stop = Arc::new(AtomicBool::new(false));
    let routing = {
        let stop = stop.clone();
        std::thread::Builder::new()
            .name("router".into())
            .spawn(move || router.run(&stop))
            .map_err(Error::system("cannot start the router"))?
    };

    let mut running = Vec::with_capacity(network.flows.len());
    let start = Start {
        network,
        plans: &prepared.plans,
        seed,
        clock: &clock,
        interval,
        settings,
    };
    let mut end = Ok(());
    for (number, hosts) in hosts.iter().enumerate() {
        match start.flow(number, hosts) {
            Ok(flow) => running.push(flow),
            Err(error) => {
                end = Err(error);
                break;
            }
        }
    }
    let was_late = clock.now() > Time::ZERO;
    let mut stall = Span::ZERO;
    while end.is_ok() && clock.now() < interval.end && !routing.is_finished() {
        let next = (clock.now() + LOOK).min(interval.end);
        clock.wait_until(next);
        stall = stall.max(clock.clock().now().saturating_since(next));
        if is_stopped(settings) {
            end = Err(Error::Interrupted);
        }
    }
    if end.is_err() {
        stop.store(true, Ordering::Relaxed);
        clock.call_off();
    }
    let routed = match routing.join() {
        Ok(routed) => routed,
        Err(panic) => std::panic::resume_unwind(panic),
    };
    let (outcome, devices) = match end.and(routed) {
        Ok(ended) => ended,
        Err(error) => {
            clock.call_off();
            running.into_iter().for_each(Running::abandon);
            return Err(error);
        }
    };
    running.iter().for_each(Running::stop);
    let ended = Ending {
        outcome: &outcome,
        drops: drops(&outcome.links, outcome.traffic.len()),
        interval,
    };
    let mut doubts = Vec::new();
    if was_late {
        doubts.push("not to be trusted: the flows were not ready when the run started".to_owned());
    }
    doubts.extend(of_stall(stall));
    let mut complaints = Vec::new();
    let mut flows = Vec::with_capacity(network.flows.len());
    let mut flow_series = Vec::with_capacity(network.flows.len());
    let mut totals = Counters::default();
    let of_flows = network.flows.iter().zip(&prepared.plans).zip(&hosts);
    for (number, (running, ((flow, plan), hosts))) in running.into_iter().zip(of_flows).enumerate()
    {
        let finished = ended.flow((number, flow, plan), running, hosts)?;
        totals.device_drops += finished.counters.device_drops;
        totals.socket_drops += finished.counters.socket_drops;
        complaints.extend(finished.remark.map(|it| format!("{}: {it}", flow.name)));
        doubts.extend(finished.doubt.map(|it| format!("{}: {it}", flow.name)));
        flows.push(finished.report);
        flow_series.push(finished.series);
    }
    let of_flows = network.base_rtts().into_iter().zip(&network.flows);
    for (flow, (base_rtt, spec)) in flows.iter_mut().zip(of_flows) {
        flow.base_rtt = base_rtt;
        flow.size_bytes = file_size(spec, seed).map(DataSize::get);
    }
    drop(devices);
    writers.finish()?;
    let mut links = Vec::with_capacity(network.links.len());
    let mut link_series = Vec::with_capacity(network.links.len());
    let mut packet_hops = 0;
    for (number, of_link) in outcome.links.iter().enumerate() {
        let (report, series) = link_report(network, number, of_link, interval);
        let dropped = report.dropped_full + report.dropped_early + report.lost;
        packet_hops += report.offered_packets - dropped;
        links.push(report);
        link_series.push(series);
    }
    doubts.extend(of_router(&outcome, &totals));
    let lateness = Lateness {
        packets: outcome.timing.count,
        late_packets: outcome.timing.late,
        p99_s: outcome.timing.p99.as_secs_f64(),
        max_s: outcome.timing.max.as_secs_f64(),
        is_trusted: doubts.is_empty(),
    };
    complaints.extend(doubts);
    let report = RunReport {
        world: World::Lab(lateness),
        seed,
        fingerprint: 0,
        duration: network.duration,
        warmup: network.warmup,
        flows,
        links,
        cost: Cost {
            packet_hops,
            ..Cost::default()
        },
        series: settings.run.bins.map(|bin| Series {
            bin,
            flows: flow_series,
            links: link_series,
            convergence: settings.run.convergence,
        }),
        packets: None,
    };
    Ok((report, complaints))
}

/// The links to capture at, by number.
fn captured(
    network: &Network,
    wanted: &[(String, PathBuf)],
) -> Result<Vec<(usize, String, PathBuf)>, Error> {
    let find = |(name, path): &(String, PathBuf)| {
        let number = network.links.iter().position(|link| link.name == *name);
        let number = number.ok_or_else(|| Error::UnknownLink {
            name: name.clone(),
            known: network
                .links
                .iter()
                .map(|link| link.name.as_str())
                .collect::<Vec<_>>()
                .join(", "),
        })?;
        Ok((number, name.clone(), path.clone()))
    };
    for (at, (link, file)) in wanted.iter().enumerate() {
        let mut before = wanted.iter().take(at);
        if before.any(|(other, path)| other == link || path == file) {
            return Err(Error::Capture {
                link: link.clone(),
                file: file.clone(),
            });
        }
    }
    wanted.iter().map(find).collect()
}

fn host_settings(flow: &FlowSpec) -> Result<KernelSettings, Error> {
    let packet = match &flow.transport {
        TransportSpec::Tcp(tcp) => {
            return match tcp.stack {
                Stack::Kernel => kernel_settings(flow, tcp),
                Stack::Comity => stack::kernel_settings(flow, tcp),
            };
        }
        TransportSpec::Datagram(datagram) => datagram.wire.get(),
        TransportSpec::Sections(sections) => {
            endpoint::check(flow, sections)?;
            u64::from(sections.config.payload + SEALING + UDP_IPV4)
        }
        TransportSpec::Command(_) => 0,
    };
    Ok(KernelSettings {
        // Larger packets of the scenario must not be fragmented.
        mtu: u16::try_from(packet).unwrap_or(u16::MAX).max(USUAL_MTU),
        settings: vec![("ipv4/tcp_no_metrics_save", "1".into())],
        routes_only: false,
    })
}

/// The reason not to trust flows, if programs may have waited this long for a processor.
fn of_stall(stall: Span) -> Option<String> {
    (stall > TRUSTED_STALL).then(|| {
        format!(
            "not to be trusted: a program that was ready waited {:.0} ms for a processor; leave the machine alone",
            stall.as_secs_f64() * 1e3
        )
    })
}

/// Reasons not to trust the router's results.
fn of_router(outcome: &Outcome, counters: &Counters) -> Vec<String> {
    let mut doubts = Vec::new();
    let timing = &outcome.timing;
    if timing.late * TRUSTED_LATE > timing.count {
        doubts.push(format!(
            "not to be trusted: {} of {} packets were handed on more than 1 ms late (at most {:.1} ms); \
             leave the machine alone, or make the scenario slower",
            timing.late,
            timing.count,
            timing.max.as_secs_f64() * 1e3
        ));
    }
    for (count, what) in [
        (
            counters.device_drops,
            "were dropped by a device before the router fetched them",
        ),
        (
            counters.socket_drops,
            "were dropped by the full socket of a receiver",
        ),
        (
            outcome.unwritten,
            "were not accepted by the kernel of their host",
        ),
        (outcome.unheld, "found no room in the router's memory"),
    ] {
        if count > 0 {
            doubts.push(format!("not to be trusted: {count} packets {what}"));
        }
    }
    doubts
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_that_waits_long_for_a_processor_is_a_doubt() {
        assert_eq!(of_stall(TRUSTED_STALL), None);
        let doubt = of_stall(Span::from_millis(83)).unwrap();
        assert!(doubt.contains("83 ms"), "{doubt}");
    }
}
