//! A run: hosts, router and flows, from the start to the report.

use std::net::IpAddr;
use std::path::PathBuf;
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};

use comity_sim::host::{FlowPlan, Source, link_stream, payload_of, plans};
use comity_sim::ledger::Ledger;
use comity_sim::network::{FlowSpec, Network, SectionsSpec, TransportSpec};
use comity_sim::report::{Cost, FlowReport, FlowSeries, Lateness, RunReport, Series, World};
use comity_sim::scenario::RunSettings;
use comity_units::{Seed, Span, Time};

use crate::capture::Captures;
use crate::child::{Ended, Program, Role};
use crate::clock::Clock;
use crate::command::Values;
use crate::endpoint::{Fate, GAPS, KINDS, Log};
use crate::error::Error;
use crate::host::{Addresses, Host, HostConfig};
use crate::namespace::Session;
use crate::report::{drops, flow_traffic, link_report};
use crate::requirements::missing;
use crate::router::{Interval, LaneOf, Outcome, Port, Router, Traffic};
use crate::tcp::{Ends, KernelSettings, Load, TcpFlow, kernel_settings, wait_until};
use crate::udp::UdpFlow;

/// How long the flows have to get ready before the run starts.
const LEAD: Span = Span::from_millis(500);
/// The port of the first flow; the next has the next.
const FIRST_PORT: u16 = 5_000;
/// The most flows of a lab: each takes two namespaces.
const MOST_FLOWS: usize = 500;
/// The largest IP packet of hosts other than those of kernel TCP.
const USUAL_MTU: u16 = 1_500;
/// More late packets than one in so many, and a run is not to be trusted.
const TRUSTED_LATE: u64 = 100;
/// How many characters of a program's complaints are told.
const COMPLAINT: usize = 400;

/// Makes the command that runs one end of a flow of sections, with [`endpoint::run`](crate::endpoint::run).
pub type EndpointCommand<'a> = dyn Fn(&EndpointCall) -> Command + Sync + 'a;

/// What an endpoint process has to be told beside the scenario.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct EndpointCall {
    /// The flow, as an index into the network.
    pub flow: usize,
    /// The end.
    pub role: Role,
    /// The origin of the lab's clock, in nanoseconds of `CLOCK_MONOTONIC`.
    pub origin_ns: u64,
    /// The address of the destination.
    pub address: IpAddr,
    /// Its port.
    pub port: u16,
    /// Where a qlog is written, if one is. The key comes as 64 hexadecimal digits on the standard input.
    pub qlog: Option<PathBuf>,
}

/// What a run is asked for besides its network.
#[derive(Default)]
pub struct Settings<'a> {
    /// As in the simulator: bins and convergence.
    pub run: RunSettings,
    /// Makes the processes of flows of sections; `None` when there are none.
    pub endpoint: Option<&'a EndpointCommand<'a>>,
    /// At which links packets are written to which files.
    pub captures: Vec<(String, PathBuf)>,
    /// The folder for qlog files of Comity's endpoints.
    pub qlog: Option<PathBuf>,
    /// The folder for what programs print.
    pub logs: Option<PathBuf>,
    /// Ends the run early.
    pub stop: Option<&'a AtomicBool>,
}

impl std::fmt::Debug for Settings<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Settings")
            .field("run", &self.run)
            .field("captures", &self.captures)
            .finish_non_exhaustive()
    }
}

/// A flow that runs.
enum Running {
    Tcp(TcpFlow),
    Udp(UdpFlow),
    /// The source, and the destination.
    Sections([Program; 2]),
    Command {
        sender: Program,
        receiver: Option<Program>,
    },
}

/// Runs a network on real packets. Takes as long as its duration, and about a second more.
///
/// Returns the report, and what went wrong with single flows or made the results doubtful.
///
/// # Errors
/// When parts are missing, the network cannot be built on this host, or the system refuses something.
pub fn run(
    network: &Network,
    seed: Seed,
    settings: &Settings<'_>,
) -> Result<(RunReport, Vec<String>), Error> {
    let missing = missing();
    if !missing.is_empty() {
        return Err(Error::Missing(missing));
    }
    if network.flows.len() > MOST_FLOWS {
        return Err(Error::Missing(vec![format!(
            "the scenario has {} flows, and a lab has room for {MOST_FLOWS}",
            network.flows.len()
        )]));
    }
    let plans = plans(network, seed)?;
    let interval = Interval {
        warmup: Time::ZERO + network.warmup,
        end: Time::ZERO + network.duration,
        bin: settings.run.bins,
    };
    let lanes = network
        .links
        .iter()
        .map(|link| {
            LaneOf::new(&link.config, link_stream(seed, &link.name)).map_err(|reason| Error::Link {
                link: link.name.clone(),
                reason,
            })
        })
        .collect::<Result<Vec<_>, _>>()?;
    let captured = captured(network, &settings.captures)?;
    let kernel = network
        .flows
        .iter()
        .map(host_settings)
        .collect::<Result<Vec<_>, _>>()?;

    let session = Session::begin()?;
    let mut hosts = Vec::with_capacity(network.flows.len());
    let mut ports = Vec::with_capacity(network.flows.len() * 2);
    for (number, ((flow, plan), kernel)) in network.flows.iter().zip(&plans).zip(kernel).enumerate()
    {
        // Less than `MOST_FLOWS`.
        let number = number as u16;
        let ends = [
            (0, "source", &plan.forward),
            (1, "destination", &plan.reverse),
        ];
        let mut pair = Vec::with_capacity(2);
        for (side, end, path) in ends {
            let config = HostConfig {
                name: format!("{}.{end}", flow.name),
                addresses: Addresses::of(number, side),
                mtu: kernel.mtu,
                settings: kernel.settings.clone(),
            };
            let peer = Addresses::of(number, 1 - side);
            let (host, device) = Host::create(&session, &config)?;
            ports.push(Port {
                device,
                peer: (peer.v4, peer.v6),
                path: path.clone(),
            });
            pair.push(host);
        }
        hosts.push(pair);
    }

    let clock = Clock::starting_in(LEAD);
    #[allow(clippy::disallowed_methods, reason = "a capture carries the date")]
    let date = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap_or_default();
    let start_ns = Span::from(date).as_nanos() + LEAD.as_nanos();
    let (captures, writers) = Captures::begin(network.links.len(), &captured, start_ns)?;
    let router = Router::new(ports, lanes, captures, clock, interval)?;
    let stop = Arc::new(AtomicBool::new(false));
    let routing = {
        let stop = stop.clone();
        std::thread::Builder::new()
            .name("router".into())
            .spawn(move || router.run(&stop))
            .map_err(Error::system("cannot start the router"))?
    };

    let started = start_flows(network, &plans, &hosts, seed, clock, interval, settings);
    let running = match started {
        Ok(running) => running,
        Err(error) => {
            stop.store(true, Ordering::Relaxed);
            let _ = routing.join();
            return Err(error);
        }
    };
    let mut is_interrupted = false;
    while clock.now() < interval.end && !routing.is_finished() {
        let next = clock.now() + Span::from_millis(50);
        wait_until(clock, next.min(interval.end));
        if settings
            .stop
            .is_some_and(|stop| stop.load(Ordering::Relaxed))
        {
            is_interrupted = true;
            break;
        }
    }
    if is_interrupted {
        stop.store(true, Ordering::Relaxed);
        // Dropping the hosts ends all processes; the sockets of this process end with their threads, at the
        // latest when the run would have ended, for which nobody waits.
        let _ = routing.join();
        return Err(Error::Interrupted);
    }
    let outcome = match routing.join() {
        Ok(outcome) => outcome?,
        Err(panic) => std::panic::resume_unwind(panic),
    };
    let mut complaints = Vec::new();
    let mut flows = Vec::with_capacity(network.flows.len());
    let mut flow_series = Vec::with_capacity(network.flows.len());
    for (number, running) in running.into_iter().enumerate() {
        let (Some(flow), Some(plan)) = (network.flows.get(number), plans.get(number)) else {
            continue;
        };
        let (report, series, complaint) =
            finish_flow((number, flow, plan), running, &outcome, interval, settings)?;
        if let Some(complaint) = complaint {
            complaints.push(format!("{}: {complaint}", flow.name));
        }
        flows.push(report);
        flow_series.push(series);
    }
    let device_drops: u64 = hosts.iter().flatten().map(Host::device_drops).sum();
    writers.finish()?;
    drop(hosts);
    let mut links = Vec::with_capacity(network.links.len());
    let mut link_series = Vec::with_capacity(network.links.len());
    for (number, of_link) in outcome.links.iter().enumerate() {
        let (report, series) = link_report(network, number, of_link, interval);
        links.push(report);
        link_series.push(series);
    }
    let doubts = doubts(&outcome, device_drops);
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
            packet_hops: outcome
                .links
                .iter()
                .map(|link| link.records.len() as u64)
                .sum(),
            ..Cost::default()
        },
        series: settings.run.bins.map(|bin| Series {
            bin,
            flows: flow_series,
            links: link_series,
            convergence: settings.run.convergence,
        }),
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
    wanted.iter().map(find).collect()
}

fn host_settings(flow: &FlowSpec) -> Result<KernelSettings, Error> {
    match &flow.transport {
        TransportSpec::Tcp(tcp) => kernel_settings(flow, tcp),
        _ => Ok(KernelSettings {
            mtu: USUAL_MTU,
            settings: vec![("ipv4/tcp_no_metrics_save", "1".into())],
        }),
    }
}

/// A key for one flow, from the system's random numbers.
fn random_key() -> [u8; 32] {
    comity::session::Randomness::system().bytes()
}

/// The key as the endpoint processes read it.
fn hexadecimal(key: &[u8; 32]) -> String {
    key.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn start_flows(
    network: &Network,
    plans: &[FlowPlan],
    hosts: &[Vec<Host>],
    seed: Seed,
    clock: Clock,
    interval: Interval,
    settings: &Settings<'_>,
) -> Result<Vec<Running>, Error> {
    let mut running = Vec::with_capacity(network.flows.len());
    for (number, (flow, plan)) in network.flows.iter().zip(plans).enumerate() {
        let Some([source, destination]) = hosts.get(number).map(Vec::as_slice) else {
            continue;
        };
        let address = IpAddr::V4(destination.addresses.v4);
        // There are fewer flows than ports.
        let port = FIRST_PORT + number as u16;
        let ends = || -> Result<Ends, Error> {
            Ok(Ends {
                source: source.namespace.door()?,
                destination: destination.namespace.door()?,
                address,
                port,
            })
        };
        let scheduled = || Ok(Source::new(network, number, seed, plan.started_at)?);
        running.push(match &flow.transport {
            TransportSpec::Tcp(tcp) => {
                let load = Load::of(flow, scheduled)?;
                let flow = TcpFlow::start(ends()?, &tcp.controller, load, plan, clock, interval)?;
                Running::Tcp(flow)
            }
            TransportSpec::Datagram(_) => {
                Running::Udp(UdpFlow::start(ends()?, scheduled()?, plan, clock, interval))
            }
            TransportSpec::Sections(_) => {
                let Some(endpoint) = settings.endpoint else {
                    return Err(Error::Flow {
                        flow: flow.name.clone(),
                        reason: "nobody runs its endpoints".into(),
                    });
                };
                let key = hexadecimal(&random_key()).into_bytes();
                let start = |role: Role, host: &Host| -> Result<Program, Error> {
                    let call = EndpointCall {
                        flow: number,
                        role,
                        origin_ns: clock.origin_ns(),
                        address,
                        port,
                        qlog: settings.qlog.as_ref().map(|folder| {
                            folder.join(format!("{}.{}.sqlog", flow.name, role.name()))
                        }),
                    };
                    let door = host.namespace.door()?;
                    Ok(Program::start(
                        door,
                        endpoint(&call),
                        key.clone(),
                        clock,
                        Time::ZERO,
                    ))
                };
                // The processes begin at once, and wait for the start by themselves.
                let destination = start(Role::Destination, destination)?;
                let source = start(Role::Source, source)?;
                Running::Sections([source, destination])
            }
            TransportSpec::Command(spec) => {
                let values = Values {
                    source: IpAddr::V4(source.addresses.v4),
                    destination: address,
                    port,
                    length: plan.stopped_at.saturating_since(plan.started_at),
                    seed,
                };
                let (sender, receiver) = values.commands(spec);
                let receiver = match receiver {
                    Some(command) => {
                        let door = destination.namespace.door()?;
                        Some(Program::start(door, command, Vec::new(), clock, Time::ZERO))
                    }
                    None => None,
                };
                let door = source.namespace.door()?;
                let sender = Program::start(door, sender, Vec::new(), clock, plan.started_at);
                Running::Command { sender, receiver }
            }
        });
    }
    Ok(running)
}

/// Ends a flow and says what it did.
fn finish_flow(
    (number, flow, plan): (usize, &FlowSpec, &FlowPlan),
    running: Running,
    outcome: &Outcome,
    interval: Interval,
    settings: &Settings<'_>,
) -> Result<(FlowReport, FlowSeries, Option<String>), Error> {
    let measured = interval.end.saturating_since(interval.warmup);
    let mut report = FlowReport {
        name: flow.name.clone(),
        group: flow.group.clone(),
        started: plan.started_at,
        ..FlowReport::default()
    };
    let none = Traffic::default();
    let traffic = |side: usize| outcome.traffic.get(number * 2 + side).unwrap_or(&none);
    let (forward, reverse) = (traffic(0), traffic(1));
    flow_traffic(
        &mut report,
        [forward, reverse],
        drops(&outcome.links, number),
        measured,
    );
    let goodput = |bytes: u64| bytes as f64 * 8.0 / measured.as_secs_f64();
    let mut series = FlowSeries::default();
    let complaint;
    match (running, &flow.transport) {
        (Running::Tcp(tcp), TransportSpec::Tcp(spec)) => {
            report.kind = format!("{}/kernel", spec.controller);
            (series, complaint) = tcp.finish(&mut report, interval);
        }
        (Running::Udp(udp), _) => {
            report.kind = "datagram".into();
            let (bytes, total, failure) = udp.finish();
            report.delivered_bytes = bytes;
            report.delivered_bytes_total = total;
            report.goodput_bps = goodput(bytes);
            complaint = failure;
        }
        (Running::Sections([source, destination]), TransportSpec::Sections(spec)) => {
            report.kind = format!("{}/sections", spec.controller);
            // They end by themselves a moment after the run.
            wait_for_ends();
            let (source, destination) = (source.finish()?, destination.finish()?);
            (series, complaint) = section_report(
                &mut report,
                (flow, spec, plan),
                (&source, &destination),
                interval,
            );
        }
        (Running::Command { sender, receiver }, _) => {
            report.kind = "command".into();
            report.delivered_bytes = report.delivered_wire_bytes;
            report.delivered_bytes_total = report.delivered_wire_bytes;
            report.goodput_bps = report.throughput_bps;
            let sender = sender.finish()?;
            let receiver = receiver.map(Program::finish).transpose()?;
            complaint = keep(flow, &sender, receiver.as_ref(), settings)?;
        }
        _ => complaint = None,
    }
    series.sent_packets = forward.sent_bins.clone();
    let bins = forward.bins.len();
    if bins > 0 {
        if series.delivered_bytes.is_empty() {
            series.delivered_bytes = forward.bins.clone();
        }
        for column in [
            &mut series.delivered_bytes,
            &mut series.window_bytes,
            &mut series.ssthresh_bytes,
            &mut series.srtt_ns,
        ] {
            column.resize(bins, 0);
        }
        series.retransmitted_packets.resize(bins, 0);
    }
    Ok((report, series, complaint))
}

/// How long endpoints have for their last words.
fn wait_for_ends() {
    let clock = Clock::starting_in(Span::ZERO);
    wait_until(clock, Time::ZERO + Span::from_millis(700));
}

/// What became of the sections of a flow, from the logs of both ends.
fn section_report(
    report: &mut FlowReport,
    (flow, spec, plan): (&FlowSpec, &SectionsSpec, &FlowPlan),
    ends: (&Ended, &Ended),
    interval: Interval,
) -> (FlowSeries, Option<String>) {
    let read = |ended: &Ended| -> Result<Log, String> {
        serde_json::from_slice(&ended.output).map_err(|_| last_words(ended))
    };
    let (source, destination) = match (read(ends.0), read(ends.1)) {
        (Ok(source), Ok(destination)) => (source, destination),
        (Err(error), _) | (_, Err(error)) => return (FlowSeries::default(), Some(error)),
    };
    let mut ledger = Ledger::new(interval.warmup, spec.latency);
    for &(at, bytes, kind, needs) in &source.submitted {
        let kind = KINDS.get(usize::from(kind)).copied().unwrap_or(KINDS[3]);
        let needs = needs.map(comity::SectionId);
        ledger.on_submitted(Time::from_nanos(at), (bytes, kind), needs);
    }
    for &(at, bytes) in &source.refused {
        ledger.on_refused(Time::from_nanos(at), bytes);
    }
    let mut bins: Vec<u64> = Vec::new();
    for &(number, fate) in &destination.settled {
        let section = comity::SectionId(number);
        match fate {
            Fate::Whole(at, bytes) => {
                let at = Time::from_nanos(at);
                if at > interval.end {
                    continue;
                }
                ledger.on_section(section, at);
                report.delivered_bytes_total += u64::from(bytes);
                if at >= interval.warmup {
                    report.delivered_bytes += u64::from(bytes);
                }
                if let Some(bin) = interval.bin {
                    let bin = (at.as_nanos() / bin.as_nanos().max(1)) as usize;
                    bins.resize(bins.len().max(bin + 1), 0);
                    if let Some(sum) = bins.get_mut(bin) {
                        *sum += u64::from(bytes);
                    }
                }
            }
            Fate::Gap(reason) => {
                let reason = GAPS.get(usize::from(reason)).copied().unwrap_or(GAPS[0]);
                ledger.on_gap(section, reason);
            }
        }
    }
    let measured = interval.end.saturating_since(interval.warmup).as_secs_f64();
    report.goodput_bps = report.delivered_bytes as f64 * 8.0 / measured;
    let (before, after) = (&source.at_warmup, &source.at_end);
    report.fast_retransmits = after.loss_events;
    report.srtt_s = after.srtt_s;
    report.min_rtt_s = after.min_rtt_s;
    report.window_bytes = after.window_bytes;
    report.ssthresh_bytes = after.ssthresh_bytes;
    let mut sections = ledger.report();
    sections.equal_share_bytes = plan
        .equal_share
        .map(|share| payload_of(share, spec.config.payload, spec.config.overhead));
    sections.late_bytes = after.late_bytes;
    sections.repeated_bytes = after.retransmitted_bytes - before.retransmitted_bytes;
    sections.lost_packets = after.lost_packets - before.lost_packets;
    sections.spurious_losses = after.spurious_losses - before.spurious_losses;
    sections.marked_packets = destination.at_end.marked_packets;
    sections.target_bitrate_bps = after.target_bps;
    sections.closed = source.closed.as_ref().map(|(at, _)| Time::from_nanos(*at));
    report.sections = Some(sections);
    let mut series = FlowSeries {
        delivered_bytes: bins,
        ..FlowSeries::default()
    };
    if let Some(bin) = interval.bin {
        for sample in &source.samples {
            let at = (sample.at_ns / bin.as_nanos().max(1)) as usize;
            for (column, value) in [
                (&mut series.window_bytes, sample.window_bytes),
                (&mut series.ssthresh_bytes, sample.ssthresh_bytes),
                (&mut series.srtt_ns, sample.srtt_ns),
            ] {
                let last = column.last().copied().unwrap_or(0);
                column.resize(column.len().max(at + 1), last);
                if let Some(bin) = column.get_mut(at) {
                    *bin = value;
                }
            }
        }
    }
    let complaint = source.failure.or(destination.failure).or(source
        .closed
        .map(|(_, reason)| format!("its connection ended: {reason}")));
    let _ = flow;
    (series, complaint)
}

/// What a program said before it failed.
fn last_words(ended: &Ended) -> String {
    let errors = String::from_utf8_lossy(&ended.errors);
    let errors = errors.trim();
    let from = errors.len().saturating_sub(COMPLAINT);
    let tail = errors.get(from..).unwrap_or(errors);
    match ended.status {
        Some(status) => format!("{status}: {tail}"),
        None => format!("it did not run: {tail}"),
    }
}

/// Stores what the programs of a flow printed. Returns why one of them failed.
fn keep(
    flow: &FlowSpec,
    sender: &Ended,
    receiver: Option<&Ended>,
    settings: &Settings<'_>,
) -> Result<Option<String>, Error> {
    let ends = [(Some(sender), "sender"), (receiver, "receiver")];
    let mut complaint = None;
    for (ended, name) in ends {
        let Some(ended) = ended else { continue };
        if let Some(folder) = &settings.logs {
            for (bytes, kind) in [(&ended.output, "out"), (&ended.errors, "err")] {
                let path = folder.join(format!("{}.{name}.{kind}", flow.name));
                std::fs::write(&path, bytes)
                    .map_err(Error::system(format!("cannot write {}", path.display())))?;
            }
        }
        let is_failed = ended.status.is_none_or(|status| !status.success());
        if ended.is_by_itself && is_failed {
            complaint =
                complaint.or_else(|| Some(format!("its {name} failed with {}", last_words(ended))));
        }
    }
    Ok(complaint)
}

/// Why the results of a run are not to be trusted.
fn doubts(outcome: &Outcome, device_drops: u64) -> Vec<String> {
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
            device_drops,
            "were dropped by a device before the router fetched them",
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
