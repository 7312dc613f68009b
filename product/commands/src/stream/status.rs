//! The status line, notices, JSON lines and the summary at the end.

use std::collections::VecDeque;
use std::fmt::Write as _;
use std::io::{self, IsTerminal, Write};
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use comity::{CloseReason, Connection};
use comity_media::check::Indicator;
use comity_stream::{Passed, Side, Snapshot, TransportStatistics, plain};
use serde_json::{Value, json};

use super::super::console::{CLEAR_LINE, overwrite, write_error};

/// Writes text to the standard error, and, for programs, JSON objects, one per line.
#[derive(Clone, Debug)]
pub(crate) struct Reporter(Arc<Mutex<ReporterState>>);

#[derive(Debug)]
struct ReporterState {
    is_quiet: bool,
    is_terminal: bool,
    json: Option<Channel>,
    /// Whether the last line of the terminal is the status line.
    has_status: bool,
    /// The local addresses; `None` once everything is open and they are printed.
    listening: Option<Vec<SocketAddr>>,
    /// The number of bytes in and out at earlier times, in seconds, for the rates.
    earlier: VecDeque<(f64, [u64; 2])>,
}

/// Rates are means over this time, or since the previous status. It covers the usual interval
/// between key frames.
const RATE_WINDOW_S: f64 = 2.0;

/// The destination of JSON.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Channel {
    Output,
    /// The standard output carries media.
    Error,
}

/// Where the deadlines of a connection come from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Deadlines {
    /// From the connection's own latency.
    Own,
    /// From another connection, whose deadlines a relay passes on.
    PassedOn,
}

impl Reporter {
    pub(crate) fn new(is_quiet: bool, json: Option<Channel>) -> Self {
        Self(Arc::new(Mutex::new(ReporterState {
            is_quiet,
            // A status line would be mixed with the JSON lines.
            is_terminal: io::stderr().is_terminal() && json != Some(Channel::Error),
            json,
            has_status: false,
            listening: Some(Vec::new()),
            earlier: VecDeque::from([(0.0, [0; 2])]),
        })))
    }

    fn state(&self) -> MutexGuard<'_, ReporterState> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether the status overwrites a line of a terminal.
    pub(crate) fn is_terminal(&self) -> bool {
        self.state().is_terminal
    }

    /// A notice.
    pub(crate) fn note(&self, message: &str) {
        let mut state = self.state();
        state.object(&json!({ "event": "note", "message": message }));
        if !state.is_quiet && state.json != Some(Channel::Error) {
            state.line(message);
        }
    }

    /// Prints a line for people; the last object has the same numbers.
    pub(crate) fn remark(&self, message: &str) {
        let mut state = self.state();
        if !state.is_quiet && state.json.is_none() {
            state.line(message);
        }
    }

    /// A warning, printed even with `--quiet`.
    pub(crate) fn warn(&self, message: &str) {
        let mut state = self.state();
        state.object(&json!({ "event": "warning", "message": message }));
        if state.json != Some(Channel::Error) {
            state.line(&format!("warning: {message}"));
        }
    }

    /// The address to call or to send to, printed once everything is open.
    pub(crate) fn listening(&self, address: SocketAddr) {
        if let Some(waiting) = &mut self.state().listening {
            waiting.push(address);
            return;
        }
        self.event(
            "listening",
            address,
            None,
            &format!("listening on {address}"),
        );
    }

    /// Reports why the command fails, as an object with `--json`, and otherwise as a line.
    pub(crate) fn failed(&self, message: &str, code: u8) {
        let mut state = self.state();
        state.object(&json!({ "event": "error", "message": message, "code": code }));
        if state.json != Some(Channel::Error) {
            state.line(&format!("error: {message}"));
        }
    }

    /// Prints the address, once everything is open.
    pub(crate) fn opened(&self) {
        let waiting = self.state().listening.take();
        for address in waiting.unwrap_or_default() {
            self.listening(address);
        }
    }

    /// Reports a refused call, and how many calls were refused for the same reason since the last
    /// report.
    pub(crate) fn refused(&self, address: SocketAddr, word: &str, text: &str, more: u64) {
        let mut state = self.state();
        state.object(&json!({
            "event": "refused",
            "address": address.to_string(),
            "reason": word,
            "message": text,
            "more": more,
        }));
        if state.json != Some(Channel::Error) {
            let before = match more {
                0 => String::new(),
                more => format!(" (and {more} other calls since the last such warning)"),
            };
            state.line(&format!("warning: rejected {address}{before}: {text}"));
        }
    }

    /// Reports a connection. Its latency is not shown if it uses deadlines that are passed on.
    pub(crate) fn connected(&self, connection: &Connection, deadlines: Deadlines) {
        let peer = plain(connection.peer_address());
        let latency = match deadlines {
            Deadlines::Own => format!(", latency {} ms", connection.latency().as_millis()),
            Deadlines::PassedOn => String::new(),
        };
        let named = connection
            .stream_name()
            .map_or_else(String::new, |name| format!(", {name:?}"));
        let text = format!("connected with {peer}{latency}{named}");
        self.event("connected", peer, None, &text);
    }

    pub(crate) fn disconnected(&self, connection: &Connection, end: &CloseReason) {
        let peer = plain(connection.peer_address());
        let text = format!("the connection with {peer} ended: {end}");
        self.event("disconnected", peer, Some(end.to_string()), &text);
    }

    fn event(&self, name: &str, address: SocketAddr, reason: Option<String>, text: &str) {
        let mut state = self.state();
        let mut object = json!({ "event": name, "address": address.to_string() });
        if let (Some(reason), Some(object)) = (reason, object.as_object_mut()) {
            object.insert("reason".into(), reason.into());
        }
        state.object(&object);
        if !state.is_quiet && state.json != Some(Channel::Error) {
            state.line(text);
        }
    }

    /// Prints the status: overwrites a line on a terminal, and adds a line elsewhere.
    pub(crate) fn status(&self, snapshot: &Snapshot) {
        let mut state = self.state();
        if state.is_quiet {
            return;
        }
        let text = state.describe(snapshot);
        if state.is_terminal {
            overwrite(&text);
            state.has_status = true;
        } else if state.json.is_none() {
            state.line(&text);
        }
    }

    /// Writes a JSON object, if enabled.
    pub(crate) fn object(&self, event: &str, snapshot: &Snapshot) {
        let state = self.state();
        if state.json.is_none() {
            return;
        }
        let mut object = serde_json::to_value(snapshot).unwrap_or_default();
        if let Some(object) = object.as_object_mut() {
            object.insert("event".into(), event.into());
        }
        state.object(&object);
    }

    /// Writes an update of the encoder, if enabled.
    pub(crate) fn encoder(&self, update: &Value) {
        self.state().object(update);
    }

    /// Prints the summary at the end.
    pub(crate) fn summary(&self, snapshot: &Snapshot) {
        let mut state = self.state();
        if has_happened(snapshot) && !state.is_quiet && state.json.is_none() {
            let text = summary(snapshot);
            state.line(text.trim_end());
        }
    }

    /// Ends the status line.
    pub(crate) fn close(&self) {
        let mut state = self.state();
        if state.has_status {
            state.has_status = false;
            write_error("\n");
        }
    }
}

impl ReporterState {
    fn line(&mut self, text: &str) {
        let clear = if self.has_status { CLEAR_LINE } else { "" };
        self.has_status = false;
        write_error(&format!("{clear}{text}\n"));
    }

    fn object(&self, object: &Value) {
        let Some(channel) = self.json else { return };
        let line = format!("{object}\n");
        match channel {
            // The program that reads the output may have ended.
            Channel::Output => {
                let mut out = io::stdout().lock();
                let _ = out.write_all(line.as_bytes()).and_then(|()| out.flush());
            }
            Channel::Error => write_error(&line),
        }
    }

    /// `12.0 s  on time 300  late 0  gaps 2  in 4.01 Mb/s  out 3.98 Mb/s  RTT 41 ms  sections 302`,
    /// in this order for every verb. Between two connections, the fields of each contain its name.
    fn describe(&mut self, snapshot: &Snapshot) -> String {
        let (input, output) = (&snapshot.input, &snapshot.output);
        let [inward, outward] = self.rates(snapshot.elapsed_s, [volume(input), volume(output)]);
        let names = match (&input.totals, &output.totals) {
            (Some(_), Some(_)) => ["input ", "output "],
            _ => ["", ""],
        };
        let missing = snapshot.passed.missing();
        let mut text = format!("{:.1} s", snapshot.elapsed_s);
        for (side, name) in [input, output].into_iter().zip(names) {
            describe_sections(side, name, missing, &mut text);
        }
        let _ = write!(text, "  in {inward:.2} Mb/s  out {outward:.2} Mb/s");
        for (side, name) in [input, output].into_iter().zip(names) {
            describe_path(side, name, &mut text);
        }
        let _ = write!(text, "  sections {}", snapshot.passed.sections());
        if input.totals.is_none() && missing > 0 {
            let _ = write!(text, "  missing {missing}");
        }
        text
    }

    /// The rates in and out, in Mb/s.
    fn rates(&mut self, now: f64, bytes: [u64; 2]) -> [f64; 2] {
        self.earlier.push_back((now, bytes));
        while let Some((time, _)) = self.earlier.get(1)
            && now - time >= RATE_WINDOW_S
        {
            self.earlier.pop_front();
        }
        let (then, before) = self.earlier.front().copied().unwrap_or_default();
        let seconds = (now - then).max(1e-3);
        let [inward, outward] = [0, 1].map(|side: usize| bytes[side].saturating_sub(before[side]));
        [inward, outward].map(|bytes| bytes as f64 * 8e-6 / seconds)
    }
}

/// The known outcomes of the sections of a side. At a receiver, `missing` is the number of missing
/// sections.
fn describe_sections(side: &Side, name: &str, missing: u64, text: &mut String) {
    let Some(totals) = &side.totals else { return };
    let [on_time, late, gaps] = match side.unsent {
        Some(_) => [totals.peer_on_time, totals.peer_late, totals.peer_gaps],
        None => [totals.on_time, totals.late, missing],
    };
    let _ = write!(text, "  {name}on time {on_time}  late {late}  gaps {gaps}");
    if side.unsent.is_none() && totals.missing_packets > 0 {
        let _ = write!(text, "  packets lost {:.2} %", totals.missing_share());
    }
    if side.unsent.is_some() && totals.shed > 0 {
        let _ = write!(text, "  shed {}", totals.shed);
    }
}

/// The connections of a side.
fn describe_path(side: &Side, name: &str, text: &mut String) {
    if side.totals.is_none() {
        return;
    }
    match side.connections.as_slice() {
        [] => {
            let _ = write!(text, "  {name}not connected");
        }
        [peer] => {
            let path = &peer.statistics.path;
            if let Some(rtt) = path.rtt_ms {
                let _ = write!(text, "  {name}RTT {rtt:.0} ms");
            }
            if let (Some(_), Some(target)) = (&side.unsent, path.target_mbps) {
                let _ = write!(text, "  target {target:.2} Mb/s");
            }
        }
        many => {
            let _ = write!(text, "  {name}{} callers", many.len());
        }
    }
}

/// The bytes of a side: media bytes, or bytes on the wire.
fn volume(side: &Side) -> u64 {
    side.bytes.unwrap_or_else(|| {
        side.totals.as_ref().map_or(0, |totals| match side.unsent {
            Some(_) => totals.sent_bytes,
            None => totals.received_bytes,
        })
    })
}

/// Whether sections passed or anybody called.
fn has_happened(snapshot: &Snapshot) -> bool {
    let was_called = |side: &&Side| {
        let connections = side.totals.map_or(0, |totals| totals.connections);
        connections > 0 || !side.refused.is_empty()
    };
    let sides = [&snapshot.input, &snapshot.output];
    snapshot.passed != Passed::default() || sides.iter().any(was_called)
}

/// The summary of a session, in sentences.
fn summary(snapshot: &Snapshot) -> String {
    let passed = &snapshot.passed;
    let mut text = format!(
        "{:.1} s, {} sections ({})\n",
        snapshot.elapsed_s,
        passed.sections(),
        match passed.sections() {
            0 => "nothing passed".into(),
            _ => passed.kinds(),
        },
    );
    if let Some(transport) = &snapshot.input.transport {
        let _ = writeln!(text, "transport stream in: {}", stream(transport));
    }
    if let Some(totals) = &snapshot.input.totals {
        let _ = writeln!(
            text,
            "received: {} on time, {} late, {} gaps; {} packets, {} lost on the way ({:.2} %), {} bytes on the wire",
            totals.on_time,
            totals.late,
            totals.gaps,
            totals.received_packets,
            totals.missing_packets,
            totals.missing_share(),
            totals.received_bytes,
        );
    }
    for (reason, count) in &passed.gaps {
        let _ = writeln!(text, "  {}: {count} ({reason})", reason.word());
    }
    if let Some(totals) = &snapshot.output.totals {
        let _ = writeln!(
            text,
            "sent: {} sections: {} arrived, {} expired, {} infeasible, {} shed, {} pending; {} packets, {} lost, \
             {} bytes on the wire; {} bytes retransmitted, {} bytes after their deadline",
            totals.submitted,
            totals.acknowledged,
            totals.expired,
            totals.given_up,
            totals.shed,
            totals.open,
            totals.sent_packets,
            totals.lost_packets,
            totals.sent_bytes,
            totals.retransmitted_bytes,
            totals.late_bytes,
        );
        let reported = [totals.peer_on_time, totals.peer_late, totals.peer_gaps];
        if reported != [0; 3] {
            let [on_time, late, missing] = reported;
            let _ = writeln!(
                text,
                "  last receiver report: {on_time} on time, {late} late, {missing} missing"
            );
        }
    }
    for side in [&snapshot.input, &snapshot.output] {
        if !side.refused.is_empty() {
            let reasons = side.refused.iter();
            let reasons: Vec<String> = reasons
                .map(|(word, count)| format!("{count} {word}"))
                .collect();
            let _ = writeln!(text, "rejected calls: {}", reasons.join(", "));
        }
    }
    if let Some(unsent) = snapshot
        .output
        .unsent
        .filter(|unsent| *unsent != Default::default())
    {
        let _ = writeln!(
            text,
            "not sent: {} without a connection, {} without room, {} that need a missing section, {} empty or too long",
            unsent.unconnected, unsent.no_room, unsent.dependent, unsent.unfit,
        );
    }
    if let Some(bytes) = snapshot.output.bytes {
        let _ = writeln!(text, "written: {bytes} bytes");
    }
    if let Some(transport) = &snapshot.output.transport {
        let _ = writeln!(text, "transport stream out: {}", stream(transport));
    }
    text
}

/// The state of a transport stream, with its errors of priority 1 and 2.
fn stream(transport: &TransportStatistics) -> String {
    let nulls = 100.0 * transport.null_packets as f64 / transport.packets.max(1) as f64;
    let mut text = format!("{} packets, {nulls:.1} % null", transport.packets);
    let mut has_errors = false;
    for indicator in Indicator::ALL {
        let count = transport.errors.get(indicator.name()).copied();
        let count = count.filter(|count| *count > 0 && indicator.priority() < 3);
        if let Some(count) = count {
            has_errors = true;
            let _ = write!(text, ", {} {count}", indicator.name());
        }
    }
    if transport.missing_packets > 0 {
        let _ = write!(
            text,
            ", {} or more packets missing",
            transport.missing_packets
        );
    }
    if !has_errors {
        text.push_str(", no errors");
    }
    text
}

#[cfg(test)]
mod tests {
    use comity_stream::{Count, MissingReason, Totals, Unsent};

    use super::*;

    fn state(earlier: &[(f64, [u64; 2])]) -> ReporterState {
        ReporterState {
            is_quiet: false,
            is_terminal: false,
            json: None,
            has_status: false,
            listening: None,
            earlier: earlier.iter().copied().collect(),
        }
    }

    #[test]
    fn the_rates_of_a_status_begin_at_the_previous_one() {
        let mut state = state(&[(1.0, [1_000_000, 0])]);
        let mut snapshot = Snapshot {
            elapsed_s: 3.0,
            ..Snapshot::default()
        };
        snapshot.input.bytes = Some(2_000_000);
        snapshot.output.totals = Some(Totals {
            sent_bytes: 500_000,
            shed: 4,
            ..Totals::default()
        });
        snapshot.output.unsent = Some(Unsent::default());
        assert_eq!(
            state.describe(&snapshot),
            "3.0 s  on time 0  late 0  gaps 0  shed 4  in 4.00 Mb/s  out 2.00 Mb/s  not connected  sections 0"
        );
        snapshot.elapsed_s = 6.0;
        let idle = state.describe(&snapshot);
        assert!(idle.contains("  in 0.00 Mb/s  out 0.00 Mb/s"), "{idle}");
    }

    #[test]
    fn rates_are_means_over_seconds_at_any_interval() {
        let mut state = state(&[(0.0, [0; 2])]);
        // One megabit every half second, and a key frame of five megabits every two seconds.
        let mut bytes = 0;
        for half_seconds in 1..=40_u32 {
            bytes += if half_seconds % 4 == 0 {
                625_000
            } else {
                125_000
            };
            let [inward, outward] = state.rates(f64::from(half_seconds) / 2.0, [bytes, 0]);
            assert!(half_seconds < 4 || (inward - 4.0).abs() < 1e-9, "{inward}");
            assert!(outward.abs() < 1e-9);
        }
        assert!(state.earlier.len() <= 5);
    }

    #[test]
    fn every_verb_prints_fields_in_the_same_order() {
        let sent = Side {
            totals: Some(Totals {
                peer_on_time: 5,
                peer_late: 6,
                peer_gaps: 7,
                shed: 8,
                ..Totals::default()
            }),
            unsent: Some(Unsent::default()),
            ..Side::default()
        };
        let received = Side {
            totals: Some(Totals {
                on_time: 1,
                late: 2,
                received_packets: 3,
                missing_packets: 1,
                ..Totals::default()
            }),
            ..Side::default()
        };
        let mut passed = Passed::default();
        passed.gaps.insert(MissingReason::Overdue, 3);
        let describe = |input: &Side, output: &Side| {
            let snapshot = Snapshot {
                elapsed_s: 1.0,
                input: input.clone(),
                output: output.clone(),
                passed: passed.clone(),
            };
            state(&[]).describe(&snapshot)
        };
        let media = Side::default();
        assert_eq!(
            describe(&media, &sent),
            "1.0 s  on time 5  late 6  gaps 7  shed 8  in 0.00 Mb/s  out 0.00 Mb/s  not connected  \
             sections 0  missing 3"
        );
        assert_eq!(
            describe(&received, &media),
            "1.0 s  on time 1  late 2  gaps 3  packets lost 25.00 %  in 0.00 Mb/s  out 0.00 Mb/s  \
             not connected  sections 0"
        );
        assert_eq!(
            describe(&received, &sent),
            "1.0 s  input on time 1  late 2  gaps 3  packets lost 25.00 %  output on time 5  late 6  \
             gaps 7  shed 8  in 0.00 Mb/s  out 0.00 Mb/s  input not connected  output not connected  \
             sections 0"
        );
    }

    #[test]
    fn the_faults_of_a_transport_stream_are_in_the_summary() {
        let mut transport = TransportStatistics {
            packets: 1_000,
            null_packets: 255,
            ..TransportStatistics::default()
        };
        assert_eq!(stream(&transport), "1000 packets, 25.5 % null, no errors");
        for (name, count) in [
            ("Continuity_count_error", 3),
            ("PTS_error", 1),
            ("CRC_error", 0),
            // An error of priority 3.
            ("Unreferenced_PID", 9),
        ] {
            transport.errors.insert(name, count);
        }
        transport.missing_packets = 5;
        let expected = "1000 packets, 25.5 % null, Continuity_count_error 3, PTS_error 1, 5 or more packets missing";
        assert_eq!(stream(&transport), expected);
        let mut snapshot = Snapshot::default();
        snapshot.input.transport = Some(transport);
        let text = summary(&snapshot);
        assert!(text.contains("transport stream in: 1000 packets"), "{text}");
    }

    #[test]
    fn the_summary_has_rejected_callers_even_without_a_connection() {
        let mut snapshot = Snapshot::default();
        snapshot.input.totals = Some(Totals::default());
        assert!(!has_happened(&snapshot));
        snapshot.input.refused.insert("unproven", 2);
        assert!(has_happened(&snapshot));
        let text = summary(&snapshot);
        assert!(text.contains("rejected calls: 2 unproven"), "{text}");
    }

    #[test]
    fn a_summary_counts_every_section() {
        let mut snapshot = Snapshot::default();
        let (sections, bytes) = (1, 10);
        snapshot
            .passed
            .whole
            .insert("key", Count { sections, bytes });
        snapshot.passed.gaps.insert(MissingReason::Overdue, 3);
        snapshot.input.totals = Some(Totals {
            on_time: 1,
            gaps: 3,
            ..Totals::default()
        });
        snapshot.output.bytes = Some(188);
        assert_eq!(
            summary(&snapshot),
            "0.0 s, 1 sections (1 key)\nreceived: 1 on time, 0 late, 3 gaps; 0 packets, 0 lost on the way \
             (0.00 %), 0 bytes on the wire\n  \
             overdue: 3 (incomplete at its deadline)\nwritten: 188 bytes\n"
        );
    }
}
