//! The document of `--json`, defined in docs/reference/check.md.

use comity_media::check::{Clock, Indicator, Intervals, Jump, Jumped, Offsets, Pid, Program};
use comity_units::{Rate, Time};
use serde_json::{Value, json};

use super::findings::Findings;

pub(super) fn document(findings: &Findings<'_>) -> Value {
    let report = &findings.report;
    let share = |packets: u64| packets as f64 / report.packets.max(1) as f64;
    let peaks: Vec<Value> = { report.peaks.iter() }
        .map(|peak| {
            json!({
                "window_s": peak.window.as_secs_f64(),
                "rate_bps": peak.rate.as_bps(),
            })
        })
        .collect();
    let rtp = findings.rtp.map(|rtp| {
        json!({
            "missing_packets": rtp.missing_packets,
            "late_packets": rtp.late_packets,
        })
    });
    let errors: Vec<Value> = { Indicator::ALL.into_iter() }
        .map(|indicator| {
            let errors = report.errors.of(indicator);
            json!({
                "name": indicator.name(),
                "clause": indicator.clause(),
                "priority": indicator.priority(),
                "count": errors.count,
                "first_s": errors.first.map(Time::as_secs_f64),
                "last_s": errors.last.map(Time::as_secs_f64),
            })
        })
        .collect();
    let pids = report.pids.iter().map(|found| pid(found, share));
    json!({
        "format": "comity-check/1",
        "input": findings.input,
        "times": if findings.is_live { "arrival" } else { "pcr" },
        "duration_s": report.duration.map(|duration| duration.as_secs_f64()),
        "rate_bps": report.rate.map(Rate::as_bps),
        "is_constant_rate": report.is_constant_rate,
        "packet_bytes": report.packet_bytes,
        "packets": report.packets,
        "skipped_bytes": report.skipped_bytes,
        "null_packets": report.null_packets,
        "null_ratio": share(report.null_packets),
        "scrambled_packets": report.scrambled_packets,
        "scrambled_ratio": share(report.scrambled_packets),
        "peaks": findings.is_live.then_some(peaks),
        "rtp": rtp,
        "errors": errors,
        "priority_1_errors": report.errors.sum(1),
        "priority_2_errors": report.errors.sum(2),
        "priority_3_errors": report.errors.sum(3),
        "pat": intervals(&report.pat),
        "programs": report.programs.iter().map(program).collect::<Vec<_>>(),
        "clocks": report.clocks.iter().map(clock).collect::<Vec<_>>(),
        "pids": pids.collect::<Vec<_>>(),
        "jumps": {
            "count": report.jump_count,
            "list": report.jumps.iter().map(jump).collect::<Vec<_>>(),
        },
    })
}

fn intervals(intervals: &Intervals) -> Value {
    let seconds = |span: comity_units::Span| (intervals.count > 0).then(|| span.as_secs_f64());
    json!({
        "count": intervals.count,
        "min_s": seconds(intervals.min),
        "mean_s": seconds(intervals.mean()),
        "max_s": seconds(intervals.max),
    })
}

fn offsets(offsets: &Offsets) -> Value {
    json!({
        "count": offsets.count,
        "min_ns": offsets.min_ns,
        "max_ns": offsets.max_ns,
        "p99_ns": offsets.p99_ns(),
        "over_500ns": offsets.over_500_ns,
    })
}

fn program(program: &Program) -> Value {
    json!({
        "program_number": program.number,
        "pmt_pid": program.map_pid,
        "pcr_pid": program.clock_pid,
        "pmt": intervals(&program.map),
        "pids": program.pids,
    })
}

fn clock(clock: &Clock) -> Value {
    json!({
        "pid": clock.pid,
        "programs": clock.programs,
        "pcr": intervals(&clock.intervals),
        "accuracy": clock.accuracy.as_ref().map(offsets),
        "jitter": clock.jitter.as_ref().map(offsets),
    })
}

fn pid(pid: &Pid, share: impl Fn(u64) -> f64) -> Value {
    json!({
        "pid": pid.pid,
        "kind": pid.kind.name,
        "stream_type": pid.stream_type,
        "programs": pid.programs,
        "packets": pid.packets,
        "rate_bps": pid.rate.map(Rate::as_bps),
        "share_ratio": share(pid.packets),
        "scrambled_packets": pid.scrambled_packets,
        "continuity_errors": pid.continuity_errors,
        "missing_packets": pid.missing_packets,
        "transport_errors": pid.transport_errors,
        "pts": intervals(&pid.stamps),
    })
}

fn jump(jump: &Jump) -> Value {
    json!({
        "time_s": jump.time.map(Time::as_secs_f64),
        "pid": jump.pid,
        "of": word(jump.of),
        "step_s": jump.step_ns as f64 / 1e9,
        "is_marked": jump.is_marked,
    })
}

pub(super) const fn word(jumped: Jumped) -> &'static str {
    match jumped {
        Jumped::Pcr => "PCR",
        Jumped::Dts => "DTS",
    }
}
