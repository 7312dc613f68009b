//! The report as text.

use std::fmt::Write as _;
use std::time::Duration;

use comity_media::check::{Indicator, Intervals, Offsets, Report};
use comity_units::{Rate, Span, Time};

use super::document::word;
use super::findings::Findings;
use crate::numbers::{self, thousands};
use crate::tables::{Table, plural};

/// The maximum number of printed jumps.
const MAX_JUMPS: usize = 10;

pub(super) fn text(findings: &Findings<'_>) -> String {
    let report = &findings.report;
    let mut text = overview(findings);
    errors(report, &mut text);
    let _ = write!(text, "\nIntervals in ms\n{}\n", repetitions(report));
    clocks(report, &mut text);
    let _ = write!(text, "\nPIDs\n{}\n", pids(report));
    jumps(report, &mut text);
    text
}

fn overview(findings: &Findings<'_>) -> String {
    let report = &findings.report;
    let by = match (findings.is_live, report.duration) {
        (true, _) => "by arrival",
        (false, Some(_)) => "by the clock of the stream",
        (false, None) => "unknown: the stream has no clock",
    };
    let mut text = format!("{}: times {by}\n", findings.input);
    let _ = writeln!(
        text,
        "{}, {}{}, {} of {} bytes",
        seconds(report.duration),
        rate(report.rate),
        match report.is_constant_rate {
            Some(true) => " constant",
            Some(false) => " variable",
            None => "",
        },
        plural(
            usize::try_from(report.packets).unwrap_or(usize::MAX),
            "packet"
        ),
        report.packet_bytes.unwrap_or_default(),
    );
    let _ = writeln!(
        text,
        "null packets {}, scrambled {}, {} outside of packets",
        share(report.null_packets, report.packets),
        share(report.scrambled_packets, report.packets),
        plural(
            usize::try_from(report.skipped_bytes).unwrap_or(usize::MAX),
            "byte"
        ),
    );
    if !report.peaks.is_empty() {
        let peaks: Vec<String> = { report.peaks.iter() }
            .map(|peak| format!("{} over {}", rate(Some(peak.rate)), peak.window))
            .collect();
        let _ = writeln!(text, "peaks {}", peaks.join(", "));
    }
    if let Some(rtp) = findings.rtp {
        let (missing, late) = (rtp.missing_packets, rtp.late_packets);
        let _ = writeln!(
            text,
            "RTP packets: {missing} missing, {late} late or doubled"
        );
    }
    text
}

fn errors(report: &Report, text: &mut String) {
    text.push_str("\nErrors (TR 101 290)\n");
    for priority in 1..=3 {
        let sum = thousands(report.errors.sum(priority));
        let _ = writeln!(text, "priority {priority}: {sum}");
        let of_priority = Indicator::ALL.into_iter();
        for indicator in of_priority.filter(|indicator| indicator.priority() == priority) {
            let errors = report.errors.of(indicator);
            if errors.count == 0 {
                continue;
            }
            let name = format!("{} {}", indicator.clause(), indicator.name());
            let when = match (errors.first, errors.last) {
                (Some(first), Some(last)) if errors.count > 1 => {
                    format!(", from {} to {}", moment(first), moment(last))
                }
                (Some(first), _) => format!(", at {}", moment(first)),
                _ => String::new(),
            };
            let _ = writeln!(text, "  {name}: {}{when}", thousands(errors.count));
        }
    }
}

fn repetitions(report: &Report) -> Table {
    let mut table = Table::new(["of", "count", "min", "mean", "max"]);
    for column in 1..5 {
        table.right(column);
    }
    let mut row = |name: String, intervals: &Intervals| {
        let count = intervals.count;
        let shown = |span: Span| match count {
            0 => "-".into(),
            _ => format!("{:.1}", span.as_secs_f64() * 1e3),
        };
        let spans = [intervals.min, intervals.mean(), intervals.max].map(shown);
        table.row([name, thousands(count)].into_iter().chain(spans));
    };
    row("PAT".into(), &report.pat);
    for program in &report.programs {
        let (number, pid) = (program.number, program.map_pid);
        row(format!("PMT of program {number}, PID {pid}"), &program.map);
    }
    for clock in &report.clocks {
        row(format!("PCR, PID {}", clock.pid), &clock.intervals);
    }
    for pid in report.pids.iter().filter(|pid| pid.stamps.count > 0) {
        row(format!("PTS, PID {}", pid.pid), &pid.stamps);
    }
    table
}

fn clocks(report: &Report, text: &mut String) {
    let mut line = |pid: u16, what: &str, offsets: &Offsets| {
        if offsets.count == 0 {
            return;
        }
        let _ = writeln!(
            text,
            "{what} of PID {pid}: {} to {} us, 99 % within {} us",
            micros(offsets.min_ns as f64),
            micros(offsets.max_ns as f64),
            micros(offsets.p99_ns() as f64),
        );
    };
    for clock in &report.clocks {
        if let Some(accuracy) = &clock.accuracy {
            line(clock.pid, "PCR accuracy", accuracy);
        }
        if let Some(jitter) = &clock.jitter {
            line(clock.pid, "jitter of PCR arrival", jitter);
        }
    }
}

fn pids(report: &Report) -> Table {
    let mut table = Table::new([
        "PID",
        "kind",
        "program",
        "packets",
        "share",
        "rate",
        "continuity",
        "missing",
        "damaged",
        "scrambled",
    ]);
    for column in [0, 3, 4, 5, 6, 7, 8, 9] {
        table.right(column);
    }
    for pid in &report.pids {
        let programs: Vec<String> = pid.programs.iter().map(u16::to_string).collect();
        let kind = match (pid.kind.name, pid.stream_type) {
            ("unknown stream", Some(stream_type)) => format!("stream type {stream_type:#04x}"),
            (name, _) => name.into(),
        };
        table.row([
            pid.pid.to_string(),
            kind,
            programs.join(" "),
            thousands(pid.packets),
            share(pid.packets, report.packets),
            rate(pid.rate),
            thousands(pid.continuity_errors),
            thousands(pid.missing_packets),
            thousands(pid.transport_errors),
            share(pid.scrambled_packets, pid.packets),
        ]);
    }
    table
}

fn jumps(report: &Report, text: &mut String) {
    if report.jump_count == 0 {
        return;
    }
    let _ = writeln!(
        text,
        "\n{} of time",
        plural(report.jump_count as usize, "jump")
    );
    for jump in report.jumps.iter().take(MAX_JUMPS) {
        let at = jump.time.map_or_else(|| "-".into(), moment);
        let marked = if jump.is_marked { ", marked" } else { "" };
        let (of, pid, step) = (word(jump.of), jump.pid, jump.step_ns as f64 / 1e9);
        let _ = writeln!(text, "  at {at}: {of} of PID {pid} by {step:+.3} s{marked}");
    }
    let more = report.jump_count.saturating_sub(MAX_JUMPS as u64);
    if more > 0 {
        let _ = writeln!(text, "  and {} more", thousands(more));
    }
}

/// The progress in a file or a pipe.
pub(super) fn progress(read: u64, length: Option<u64>, elapsed: Duration) -> String {
    let megabytes = |bytes: u64| bytes as f64 / 1e6;
    let of = length.map_or_else(String::new, |length| {
        format!(" of {:.0}", megabytes(length.max(read)))
    });
    let seconds = elapsed.as_secs();
    format!("checked {:.0}{of} MB, {seconds} s", megabytes(read))
}

/// The state of a live input.
pub(super) fn live(report: &Report, elapsed: Duration) -> String {
    format!(
        "{:.1} s  {}  null {}  errors of priority 1: {}  of priority 2: {}",
        elapsed.as_secs_f64(),
        rate(report.rate),
        share(report.null_packets, report.packets),
        report.errors.sum(1),
        report.errors.sum(2),
    )
}

fn seconds(duration: Option<Span>) -> String {
    duration.map_or_else(
        || "unknown duration".into(),
        |duration| format!("{:.3} s", duration.as_secs_f64()),
    )
}

fn moment(time: Time) -> String {
    format!("{:.3} s", time.as_secs_f64())
}

fn rate(rate: Option<Rate>) -> String {
    rate.map_or_else(|| "-".into(), |rate| numbers::rate(rate.as_bps() as f64))
}

fn micros(nanos: f64) -> String {
    format!("{:.3}", nanos / 1e3)
}

fn share(part: u64, whole: u64) -> String {
    format!("{:.2} %", 100.0 * part as f64 / whole.max(1) as f64)
}
