//! `comity emulate`

mod target;

use std::io::ErrorKind;
use std::net::SocketAddr;
use std::path::Path;
use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::{Duration, Instant};

use comity::uri::parts::without_secrets;
use comity_emulator::{
    Config, Emulator, Error, Limits, Overload, Report, Statistics, Timing, Way, resolve,
};
use comity_link::LinkConfig;
use comity_sim::scenario::{Folder, Setting, read_duplex};
use comity_units::{Seed, Span};
use serde_json::{Value, json};

use super::files::cannot_open;
use super::interrupt::{self, LINGER, Request};
use super::status_line::StatusLine;
use super::{Failure, complain, has_colours, print, say};
use crate::args;
use crate::clock::now;
use crate::numbers::spaced;
use target::Target;

/// The interval at which the command checks that the emulator still runs.
const CHECK_INTERVAL: Duration = Duration::from_millis(200);

/// Runs an emulator until an interrupt or the end of its duration.
///
/// # Errors
/// If the command fails. The message is printed.
pub fn emulate(args: &args::Emulate) -> Result<(), Failure> {
    if args.statsfreq == Some(Span::ZERO) {
        say("error: --statsfreq: is 0; expected a time such as 1s");
        return Err(Failure::Usage);
    }
    let (forward, backward) = links(args)?;
    let listen = if args.listen.starts_with(':') {
        address("--listen", &format!("127.0.0.1{}", args.listen), None)?
    } else {
        address("--listen", &args.listen, None)?
    };
    let target = address("--to", &args.to, Some(listen))?;
    let config = Config {
        forward,
        backward,
        seed: Seed::new(args.seed),
        overhead: args.overhead,
        spin: args.spin,
        limits: Limits {
            callers: args.callers,
            idle: args.idle,
            memory: args.memory,
            late: args.late,
        },
        ..Config::new(listen, target)
    };
    let (interrupt, interrupted) = mpsc::channel();
    interrupt::on_request(
        "without a report",
        Some(LINGER),
        move |request| match request {
            // After the loop, the receiver is gone.
            Request::First => drop(interrupt.send(())),
            Request::Again => interrupt::exit(),
        },
    );
    let emulator = Emulator::bind(config).map_err(|error| refuse(&error))?;
    announce(args, emulator.local_address(), target)?;
    let handle = emulator.spawn().map_err(|error| complain(&error))?;
    let began = now();
    let mut reporter = Reporter::default();
    let mut status = StatusLine::new(args.json || args.statsfreq.is_some());
    loop {
        let left = args.duration.map_or(CHECK_INTERVAL, |duration| {
            let duration = Duration::from_nanos(duration.as_nanos());
            duration.saturating_sub(began.elapsed()).min(CHECK_INTERVAL)
        });
        let is_over = match interrupted.recv_timeout(left) {
            Ok(()) => true,
            Err(RecvTimeoutError::Timeout) => args
                .duration
                .is_some_and(|duration| Span::from(began.elapsed()) >= duration),
            Err(RecvTimeoutError::Disconnected) => {
                // Without the interrupt key, only the duration ends the emulator.
                std::thread::park_timeout(left);
                args.duration
                    .is_some_and(|duration| Span::from(began.elapsed()) >= duration)
            }
        };
        if is_over || handle.is_finished() {
            break;
        }
        let statistics = handle.statistics();
        reporter.report_if_due(args, began, &statistics)?;
        status.show(|_| line(&statistics));
    }
    status.clear();
    let report = handle.stop().map_err(|error| complain(&error))?;
    finish(args, &report, reporter.target)
}

/// The address in an option. Settings of a URI are not shown, since they may contain a secret.
fn address(option: &str, text: &str, like: Option<SocketAddr>) -> Result<SocketAddr, Failure> {
    if text.contains("://") {
        let text = without_secrets(text);
        say(&format!(
            "error: {option}: is {text:?}; expected host:port, without a scheme"
        ));
        return Err(Failure::Usage);
    }
    resolve(text, like).map_err(|error| refuse(&error))
}

/// The failure for an emulator that cannot start.
fn refuse(error: &Error) -> Failure {
    let hint = match error {
        Error::Listen { address, reason } if reason.kind() == ErrorKind::AddrInUse => format!(
            "; choose another, or find its owner with: ss -lunp 'sport = :{}'",
            address.port()
        ),
        _ => String::new(),
    };
    say(&format!("error: {error}{hint}"));
    match error {
        Error::System { .. } => Failure::Failed,
        Error::Listen { .. } => Failure::Taken,
        _ => Failure::Usage,
    }
}

/// Both links, from the file and the options.
fn links(args: &args::Emulate) -> Result<(LinkConfig, LinkConfig), Failure> {
    let (name, text, folder) = match &args.config {
        None => ("options".into(), String::new(), Folder(".".into())),
        Some(file) => {
            let text = std::fs::read_to_string(file).map_err(|error| match error.kind() {
                ErrorKind::InvalidData => {
                    let name = file.display();
                    say(&format!(
                        "error: {name} is not text; expected the keys of a link in TOML"
                    ));
                    Failure::Usage
                }
                _ => cannot_open(file, &error),
            })?;
            let folder = Folder(file.parent().unwrap_or(Path::new("")).to_owned());
            (file.display().to_string(), text, folder)
        }
    };
    read_duplex(&name, &text, &folder, &settings(args)?).map_err(|problems| {
        say(&problems.render(has_colours()));
        Failure::Usage
    })
}

/// The settings of the options, in the order in which they override each other.
fn settings(args: &args::Emulate) -> Result<Vec<Setting>, Failure> {
    let mut settings = Vec::new();
    let (both, up, down) = (&args.both, &args.up, &args.down);
    macro_rules! refuse_replaced {
        ($($option:literal $field:ident $is_given:ident),+) => {
            $(if [both.$field.$is_given(), up.$field.$is_given(), down.$field.$is_given()] == [true; 3] {
                say(concat!(
                    "error: --", $option, ": --up-", $option, " and --down-", $option,
                    " replace it; leave one of the three out"
                ));
                return Err(Failure::Usage);
            })+
        };
    }
    refuse_replaced!(
        "rate" rate is_some, "delay" delay is_some, "mtu" mtu is_some, "queue" queue is_some,
        "loss" loss is_some, "jitter" jitter is_some, "duplication" duplication is_some,
        "trace" trace is_some
    );
    let is_given = |outages: &[args::Outage]| !outages.is_empty();
    if is_given(&both.outages) && is_given(&up.outages) && is_given(&down.outages) {
        say(
            "error: --outage: --up-outage and --down-outage replace it; leave one of the three out",
        );
        return Err(Failure::Usage);
    }
    macro_rules! gather {
        ($way:expr, $prefix:literal, $tables:expr) => {
            for table in $tables {
                let mut set = |option: &str, key: &str, value: Option<String>| {
                    settings.extend(value.map(|value| Setting {
                        origin: format!("--{}{option}", $prefix),
                        path: format!("{table}{key}"),
                        value,
                    }));
                };
                let text = |value: &Option<String>| value.clone();
                let number = |value: Option<f64>| value.map(|value| format!("{value:?}"));
                set("rate", "rate", text(&$way.rate));
                set("delay", "delay", text(&$way.delay));
                let mtu = $way.mtu.map(|mtu| format!("\"{}B\"", mtu.get()));
                set("mtu", "mtu", mtu);
                set("queue", "queue", text(&$way.queue));
                set("jitter", "jitter", text(&$way.jitter));
                set("duplication", "duplication", number($way.duplication));
                let outages = match $way.outages.is_empty() {
                    true => &both.outages,
                    false => &$way.outages,
                };
                let has_own = $way.loss.is_some() || !$way.outages.is_empty();
                // Losses and outages share one key. If a way sets only one of the two, the option
                // for both ways supplies the other.
                let losses = has_own.then(|| losses($way.loss.or(both.loss), outages));
                set("loss", "losses", losses);
                // Relative to the working folder, not to the folder of `--config`.
                let trace = match &$way.trace {
                    None => None,
                    Some(file) => match std::path::absolute(file) {
                        Ok(file) => Some(Value::from(file.to_string_lossy()).to_string()),
                        Err(error) => {
                            say(&format!("error: --{}trace: {error}", $prefix));
                            return Err(Failure::Usage);
                        }
                    },
                };
                set("trace", "trace", trace);
            }
        };
    }
    gather!(both, "", ["", "reverse."]);
    gather!(up, "up-", [""]);
    gather!(down, "down-", ["reverse."]);
    Ok(settings)
}

/// The losses of a way, in the form of a scenario.
fn losses(share: Option<f64>, outages: &[args::Outage]) -> String {
    let share = share.map(|share| format!("{{ model = \"bernoulli\", probability = {share:?} }}"));
    let outages = outages.iter().map(|outage| {
        let (at, lasts) = (outage.at.as_nanos(), outage.lasts.as_nanos());
        format!("{{ model = \"outage\", at = \"{at}ns\", lasts = \"{lasts}ns\" }}")
    });
    let all: Vec<String> = share.into_iter().chain(outages).collect();
    format!("[{}]", all.join(", "))
}

fn announce(args: &args::Emulate, address: SocketAddr, target: SocketAddr) -> Result<(), Failure> {
    if args.json {
        let line = json!({
            "event": "listening",
            "address": address.to_string(),
            "target": target.to_string(),
        });
        return print(format!("{line}\n"));
    }
    say(&format!("listening on {address}, passing on to {target}"));
    Ok(())
}

/// Reports statistics at intervals, and a target where nothing listens.
#[derive(Debug, Default)]
struct Reporter {
    reports: u32,
    target: Target,
}

impl Reporter {
    fn report_if_due(
        &mut self,
        args: &args::Emulate,
        began: Instant,
        statistics: &Statistics,
    ) -> Result<(), Failure> {
        if let Some(text) = self.target.judge(statistics.into(), &args.to) {
            say(&format!("warning: {text}"));
        }
        let is_due = args.statsfreq.is_some_and(|every| {
            let next = every.as_nanos().saturating_mul(u64::from(self.reports) + 1);
            began.elapsed() >= Duration::from_nanos(next)
        });
        if !is_due {
            return Ok(());
        }
        self.reports += 1;
        if args.json {
            return print(format!("{}\n", document("statistics", statistics)));
        }
        say(&line(statistics));
        Ok(())
    }
}

/// The statistics in a line.
fn line(statistics: &Statistics) -> String {
    let way = |name: &str, way: &Way| {
        let counts = &way.counts;
        format!(
            "{name} {} in, {} out, {} dropped, {} lost, {} held, error p99 {} max {}",
            counts.arrived.packets,
            way.timing.count,
            dropped(way),
            counts.lost.packets,
            counts.held().packets,
            spaced(way.timing.p99),
            spaced(way.timing.max),
        )
    };
    format!(
        "{:.1} s | callers: {} | {} | {}",
        statistics.elapsed.as_secs_f64(),
        statistics.callers,
        way("to the target:", &statistics.forward),
        way("back:", &statistics.backward),
    )
}

fn dropped(way: &Way) -> u64 {
    let counts = &way.counts;
    counts.dropped_early.packets
        + counts.dropped_full.packets
        + counts.dropped_large.packets
        + counts.dropped_loss.packets
        + counts.dropped_memory.packets
}

/// Prints the report; overload is a failure.
fn finish(args: &args::Emulate, report: &Report, target: Target) -> Result<(), Failure> {
    let statistics = &report.statistics;
    if args.json {
        let mut document = document("report", statistics);
        for (way, timing) in [
            ("forward", &report.forward_timing),
            ("backward", &report.backward_timing),
        ] {
            if let Some(way) = document.get_mut(way).and_then(Value::as_object_mut) {
                way.insert("timing_histogram".into(), histogram(timing));
            }
        }
        print(format!("{document}\n"))?;
    } else {
        print(text(statistics))?;
    }
    if let Some(text) = target.judge_end(statistics.into(), &args.to) {
        say(&format!("warning: {text}"));
    }
    let overload = statistics.overload();
    for sign in &overload {
        let word = match sign {
            Overload::Stall { .. } => "STALL",
            _ => "OVERLOAD",
        };
        say(&format!("{word}: {sign}"));
    }
    if overload.is_empty() {
        Ok(())
    } else {
        Err(Failure::Overloaded)
    }
}

fn text(statistics: &Statistics) -> String {
    let mut text = format!(
        "{:.3} s, callers: {}, {:.0} packets handled per second\n",
        statistics.elapsed.as_secs_f64(),
        statistics.callers_seen,
        statistics.packets_per_second(),
    );
    for (name, way) in [
        ("to the target", &statistics.forward),
        ("back to the callers", &statistics.backward),
    ] {
        let (counts, timing) = (&way.counts, &way.timing);
        text.push_str(&format!(
            "{name}\n  \
             arrived {} packets ({}), released {}, copies {}, held {}\n  \
             dropped: queue full {}, early {}, larger than the MTU {}, losses {}, memory {}; lost on the wire {}; unsent {}\n  \
             timing error: median {}, 99% {}, 99.9% {}, max {}; {} of {} late\n",
            counts.arrived.packets,
            spaced(counts.arrived.bytes),
            counts.released.packets,
            counts.copies.packets,
            counts.held().packets,
            counts.dropped_full.packets,
            counts.dropped_early.packets,
            counts.dropped_large.packets,
            counts.dropped_loss.packets,
            counts.dropped_memory.packets,
            counts.lost.packets,
            counts.unsent.packets,
            spaced(timing.p50),
            spaced(timing.p99),
            spaced(timing.p999),
            spaced(timing.max),
            timing.late,
            timing.count,
        ));
    }
    text
}

fn histogram(timing: &Timing) -> Value {
    timing
        .histogram()
        .into_iter()
        .map(|(up_to, count)| json!({ "up_to_us": up_to.as_micros(), "count": count }))
        .collect()
}

/// The statistics as JSON, described in `docs/reference/emulator.md`.
fn document(event: &str, statistics: &Statistics) -> Value {
    let way = |way: &Way| {
        let (counts, timing) = (&way.counts, &way.timing);
        let tally = |tally: comity_emulator::Tally| json!({ "packets": tally.packets, "bytes": tally.bytes.get() });
        json!({
            "arrived": tally(counts.arrived),
            "released": tally(counts.released),
            "copies": tally(counts.copies),
            "dropped_early": tally(counts.dropped_early),
            "dropped_full": tally(counts.dropped_full),
            "dropped_large": tally(counts.dropped_large),
            "dropped_loss": tally(counts.dropped_loss),
            "dropped_memory": tally(counts.dropped_memory),
            "lost": tally(counts.lost),
            "unsent": tally(counts.unsent),
            "held": tally(counts.held()),
            "memory_bytes": way.memory.get(),
            "timing": {
                "count": timing.count,
                "mean_ns": timing.mean.as_nanos(),
                "p50_ns": timing.p50.as_nanos(),
                "p99_ns": timing.p99.as_nanos(),
                "p999_ns": timing.p999.as_nanos(),
                "max_ns": timing.max.as_nanos(),
                "late": timing.late,
                "late_stretches": timing.late_stretches,
            },
        })
    };
    let overload: Vec<String> = statistics
        .overload()
        .iter()
        .map(ToString::to_string)
        .collect();
    json!({
        "event": event,
        "elapsed_s": statistics.elapsed.as_secs_f64(),
        "packets_per_second": statistics.packets_per_second(),
        "callers": statistics.callers,
        "callers_seen": statistics.callers_seen,
        "turned_away": statistics.turned_away,
        "refused": statistics.refused,
        "socket_drops": statistics.socket_drops,
        "overload": overload,
        "forward": way(&statistics.forward),
        "backward": way(&statistics.backward),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn losses_and_outages_are_one_list() {
        let outage = args::Outage {
            at: Span::from_secs(5),
            lasts: Span::from_millis(1_500),
        };
        assert_eq!(
            losses(Some(0.01), &[outage]),
            "[{ model = \"bernoulli\", probability = 0.01 }, \
             { model = \"outage\", at = \"5000000000ns\", lasts = \"1500000000ns\" }]"
        );
        assert_eq!(losses(None, &[]), "[]");
    }
}
