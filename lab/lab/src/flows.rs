//! The flows of a run: how they start and end, and their results.

use std::fs::File;
use std::net::IpAddr;
use std::path::PathBuf;

use comity_sim::host::{self, FlowPlan, Source};
use comity_sim::network::{FlowSpec, Network, Stack, TransportSpec};
use comity_sim::report::{FlowReport, FlowSeries};
use comity_units::{Seed, Span};

use crate::child::{Ended, Program, Role, Task};
use crate::clock::RunClock;
use crate::command::Values;
use crate::endpoint;
use crate::error::Error;
use crate::host::{Counters, Host};
use crate::records;
use crate::report::flow_traffic;
use crate::router::{Interval, Outcome, Traffic};
use crate::sections;
use crate::settings::{EndpointCall, Settings};
use crate::stack;
use crate::tcp;
use crate::tcp_flow::{Ends, Load, TcpFlow};
use crate::timeline::Timeline;
use crate::udp::UdpFlow;

/// The port of the first flow. Each further flow has the next port.
const FIRST_PORT: u16 = 5_000;
/// How long endpoints may take to deliver their logs after the end of a run.
const LAST_WORDS: Span = Span::from_secs(10);

/// A running flow.
pub(crate) enum Running {
    Tcp(TcpFlow),
    Udp(UdpFlow),
    /// The programs of the source and the destination.
    Sections([Program; 2]),
    Command {
        sender: Program,
        receiver: Option<Program>,
    },
}

impl Running {
    /// Requests that its programs end, without waiting for them.
    pub(crate) fn stop(&self) {
        match self {
            Self::Tcp(_) | Self::Udp(_) => {}
            Self::Sections(ends) => ends.iter().for_each(|end| end.stop(LAST_WORDS)),
            Self::Command { sender, receiver } => {
                sender.stop(Span::ZERO);
                if let Some(receiver) = receiver {
                    receiver.stop(Span::ZERO);
                }
            }
        }
    }

    /// Waits for its threads and programs, and ignores their results.
    pub(crate) fn abandon(self) {
        match self {
            Self::Tcp(tcp) => tcp.join(),
            Self::Udp(udp) => drop(udp.finish()),
            Self::Sections([source, destination]) => {
                drop((source.finish(), destination.finish()));
            }
            Self::Command { sender, receiver } => {
                drop((sender.finish(), receiver.map(Program::finish)));
            }
        }
    }
}

/// A random key for one flow.
fn random_key() -> [u8; 32] {
    comity::credentials::Randomness::system().bytes()
}

/// The key in the form that the endpoint processes read.
fn hexadecimal(key: &[u8; 32]) -> String {
    key.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// The common parameters for starting flows.
pub(crate) struct Start<'a> {
    pub(crate) network: &'a Network,
    pub(crate) plans: &'a [FlowPlan],
    pub(crate) seed: Seed,
    pub(crate) clock: &'a RunClock,
    pub(crate) interval: Interval,
    pub(crate) settings: &'a Settings<'a>,
}

impl Start<'_> {
    /// Starts both ends of a flow, which wait for its start time.
    pub(crate) fn flow(
        &self,
        number: usize,
        [source, destination]: &[Host; 2],
    ) -> Result<Running, Error> {
        let (Some(flow), Some(plan)) = (self.network.flows.get(number), self.plans.get(number))
        else {
            return Err(endpoint::unknown(number));
        };
        let ends = Ends {
            source: &source.namespace,
            destination: &destination.namespace,
            address: IpAddr::V4(destination.addresses.v4),
            // There are fewer flows than ports.
            port: FIRST_PORT + number as u16,
            source_address: IpAddr::V4(source.addresses.v4),
        };
        let (clock, interval) = (self.clock, self.interval);
        let scheduled = || {
            Ok(Source::new(
                self.network,
                number,
                self.seed,
                plan.started_at,
            )?)
        };
        Ok(match &flow.transport {
            TransportSpec::Tcp(spec) => {
                let timeline = host::timeline(self.network, number, self.seed, plan)?;
                let load = match timeline {
                    Some(flow) => Load::Sections(Timeline::new(flow)),
                    None => Load::of(flow, host::file_size(flow, self.seed), scheduled)?,
                };
                let flow = match spec.stack {
                    Stack::Kernel => {
                        tcp::start(ends, &spec.controller, load, plan, clock, interval)
                    }
                    Stack::Comity => stack::start(ends, (flow, spec), load, plan, clock, interval),
                };
                Running::Tcp(flow?)
            }
            TransportSpec::Datagram(_) => {
                Running::Udp(UdpFlow::start(ends, scheduled()?, plan, clock, interval)?)
            }
            TransportSpec::Sections(_) => {
                let key = hexadecimal(&random_key()).into_bytes();
                // The processes start immediately, and wait for the run themselves.
                let destination = self.endpoint((number, flow), Role::Destination, ends, &key)?;
                let source = self.endpoint((number, flow), Role::Source, ends, &key)?;
                Running::Sections([source, destination])
            }
            TransportSpec::Command(spec) => {
                let values = Values {
                    source: source.addresses,
                    destination: destination.addresses,
                    port: ends.port,
                    length: plan.stopped_at.saturating_since(plan.started_at),
                    seed: self.seed,
                };
                let (sending, receiving) = values.commands(spec);
                let start = |host: &Host, command, name: &str, start| -> Result<Program, Error> {
                    let task = Task {
                        command,
                        input: Vec::new(),
                        start,
                        logs: self.logs(flow, name)?,
                        kept: 0,
                    };
                    Ok(Program::start(host.namespace.door()?, task, clock.clone()))
                };
                let receiver = receiving
                    .map(|command| start(destination, command, "receiver", None))
                    .transpose()?;
                let sender = start(source, sending, "sender", Some(plan.started_at))?;
                Running::Command { sender, receiver }
            }
        })
    }

    fn endpoint(
        &self,
        (number, flow): (usize, &FlowSpec),
        role: Role,
        ends: Ends<'_>,
        key: &[u8],
    ) -> Result<Program, Error> {
        let Some(endpoint) = self.settings.endpoint else {
            return Err(Error::Flow {
                flow: flow.name.clone(),
                reason: "no program runs its endpoints".into(),
            });
        };
        let qlog = |folder: &PathBuf| folder.join(format!("{}.{}.sqlog", flow.name, role.name()));
        let call = EndpointCall {
            flow: number,
            role,
            origin_ns: self.clock.clock().origin_ns(),
            address: ends.address,
            port: ends.port,
            qlog: self.settings.qlog.as_ref().map(qlog),
        };
        let task = Task {
            command: endpoint(&call),
            input: key.to_vec(),
            start: None,
            logs: None,
            kept: usize::MAX,
        };
        let namespace = match role {
            Role::Source => ends.source,
            Role::Destination => ends.destination,
        };
        Ok(Program::start(namespace.door()?, task, self.clock.clone()))
    }

    /// The files for a program's output and error output.
    fn logs(&self, flow: &FlowSpec, end: &str) -> Result<Option<[File; 2]>, Error> {
        let Some(folder) = &self.settings.logs else {
            return Ok(None);
        };
        let file = |kind: &str| {
            let path = folder.join(format!("{}.{end}.{kind}", flow.name));
            records::create(&path)
                .map_err(Error::system(format!("cannot write {}", path.display())))
        };
        Ok(Some([file("out")?, file("err")?]))
    }
}

/// The common parameters for ending flows.
pub(crate) struct Ending<'a> {
    pub(crate) outcome: &'a Outcome,
    /// The number of packets of each port that links dropped or lost.
    pub(crate) drops: Vec<u64>,
    pub(crate) interval: Interval,
}

/// A finished flow.
pub(crate) struct Finished {
    pub(crate) report: FlowReport,
    pub(crate) series: FlowSeries,
    pub(crate) counters: Counters,
    /// A remark on the flow.
    pub(crate) remark: Option<String>,
    /// The reason not to trust its results.
    pub(crate) doubt: Option<String>,
}

impl Ending<'_> {
    /// Ends a flow and returns its results.
    pub(crate) fn flow(
        &self,
        (number, flow, plan): (usize, &FlowSpec, &FlowPlan),
        running: Running,
        hosts: &[Host; 2],
    ) -> Result<Finished, Error> {
        let interval = self.interval;
        let measured = interval.end.saturating_since(interval.warmup);
        let mut report = FlowReport {
            name: flow.name.clone(),
            group: flow.group.clone(),
            started: plan.started_at,
            ..FlowReport::default()
        };
        let none = Traffic::default();
        let traffic = |side: usize| self.outcome.traffic.get(number * 2 + side).unwrap_or(&none);
        let (forward, reverse) = (traffic(0), traffic(1));
        let drops = |side: usize| self.drops.get(number * 2 + side).copied().unwrap_or(0);
        flow_traffic(
            &mut report,
            [forward, reverse],
            [drops(0), drops(1)],
            measured,
        );
        let goodput = |bytes: u64| bytes as f64 * 8.0 / measured.as_secs_f64();
        let [source, destination] = hosts;
        let (at_source, at_destination) = (source.counters()?, destination.counters()?);
        let mut counters = Counters {
            device_drops: at_source.device_drops + at_destination.device_drops,
            ..Counters::default()
        };
        let mut series = FlowSeries::default();
        let (mut remark, mut doubt) = (None, None);
        match (running, &flow.transport) {
            (Running::Tcp(tcp), TransportSpec::Tcp(spec)) => {
                let stack = match spec.stack {
                    Stack::Kernel => "kernel",
                    Stack::Comity => "comity",
                };
                report.kind = format!("{}/{stack}", spec.controller);
                report.timeouts = at_source.timeouts;
                report.fast_retransmits = at_source.recoveries;
                (series, doubt) = tcp.finish(&mut report);
            }
            (Running::Udp(udp), _) => {
                report.kind = "datagram".into();
                report.arrival_spacing = forward.spacing.summary();
                (report.delivered_bytes, report.delivered_bytes_total) = udp.finish();
                report.goodput_bps = goodput(report.delivered_bytes);
                counters.socket_drops = at_destination.socket_drops;
            }
            (Running::Sections([source, destination]), TransportSpec::Sections(spec)) => {
                report.kind = format!("{}/sections", spec.controller);
                report.arrival_spacing = forward.spacing.summary();
                counters.socket_drops = at_source.socket_drops + at_destination.socket_drops;
                let (source, destination) = (source.finish()?, destination.finish()?);
                let ends = (&source, &destination);
                let results = sections::report(&mut report, (spec, plan), ends, interval);
                (series, remark, doubt) = (results.series, results.remark, results.doubt);
            }
            (Running::Command { sender, receiver }, _) => {
                report.kind = "command".into();
                report.timeouts = at_source.timeouts;
                report.fast_retransmits = at_source.recoveries;
                report.retransmitted_packets = at_source.retransmitted;
                report.delivered_bytes = report.delivered_wire_bytes;
                report.delivered_bytes_total = forward.delivered_bytes;
                report.goodput_bps = report.throughput_bps;
                let ends = [
                    ("sender", Some(sender.finish()?)),
                    ("receiver", receiver.map(Program::finish).transpose()?),
                ];
                doubt = failure_of(&ends);
            }
            _ => {}
        }
        series.sent_packets = forward.sent_bins.clone();
        let bins = forward.bins.len();
        if bins > 0 {
            if series.delivered_bytes.is_empty() {
                series.delivered_bytes = forward.bins.clone();
            }
            for column in [
                &mut series.delivered_bytes,
                &mut series.cwnd_bytes,
                &mut series.ssthresh_bytes,
                &mut series.srtt_ns,
            ] {
                column.resize(bins, 0);
            }
            series.retransmitted_packets.resize(bins, 0);
        }
        Ok(Finished {
            report,
            series,
            counters,
            remark,
            doubt: doubt.map(|reason| format!("not to be trusted: {reason}")),
        })
    }
}

/// Why a program of a flow failed, if one did.
fn failure_of(ends: &[(&str, Option<Ended>)]) -> Option<String> {
    let failed = |(name, ended): &(&str, Option<Ended>)| {
        let ended = ended.as_ref()?;
        let is_failed = ended.status.is_none_or(|status| !status.success());
        (ended.is_by_itself && is_failed)
            .then(|| format!("its {name} failed with {}", ended.last_words()))
    };
    ends.iter().find_map(failed)
}

#[cfg(test)]
mod tests {
    use std::os::unix::process::ExitStatusExt as _;
    use std::process::ExitStatus;

    use super::*;

    fn ended(status: i32, is_by_itself: bool) -> Option<Ended> {
        Some(Ended {
            errors: b"no route\n".to_vec(),
            status: Some(ExitStatus::from_raw(status)),
            is_by_itself,
            ..Ended::default()
        })
    }

    #[test]
    fn a_program_fails_only_by_itself() {
        let (well, killed, failed) = (ended(0, true), ended(9, false), ended(3 << 8, true));
        assert_eq!(failure_of(&[("sender", well), ("receiver", killed)]), None);
        assert_eq!(
            failure_of(&[("sender", ended(0, true)), ("receiver", failed)]).unwrap(),
            "its receiver failed with exit status: 3: no route"
        );
        assert_eq!(
            failure_of(&[("sender", None)]),
            None,
            "there is no such program"
        );
    }
}
