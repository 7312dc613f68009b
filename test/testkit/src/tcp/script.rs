//! One end of a connection against a script of segments to it and expected segments from it, with
//! times.

use std::collections::VecDeque;

use comity_tcp::{Connection, Segment};
use comity_units::Time;

use super::notation::{parse, render};

/// Sends segments to a connection in virtual time and compares its segments with the expected ones.
///
/// Times are milliseconds since the epoch, and segments are lines in the notation of [`parse`].
/// Every call advances the clock to its time, runs the timers due by then, and fails if the
/// connection sends an unexpected segment.
///
/// An expected line without `win` matches any window; one without `<…>` must have no options.
#[derive(Debug)]
pub struct Script {
    connection: Connection,
    now: Time,
    out: VecDeque<(Time, Segment)>,
}

impl Script {
    /// Creates a script for `connection`, at time zero.
    pub fn new(connection: Connection) -> Self {
        let mut script = Self {
            connection,
            now: Time::ZERO,
            out: VecDeque::new(),
        };
        script.drain();
        script
    }

    /// The connection.
    pub fn connection(&self) -> &Connection {
        &self.connection
    }

    /// At `at_ms`, the application acts.
    #[track_caller]
    pub fn call(&mut self, at_ms: u64, act: impl FnOnce(&mut Connection)) {
        self.advance(Time::from_millis(at_ms), false);
        act(&mut self.connection);
        self.drain();
    }

    /// At `at_ms`, the segment arrives.
    #[track_caller]
    pub fn send(&mut self, at_ms: u64, line: &str) {
        self.advance(Time::from_millis(at_ms), false);
        let segment = parse(line).unwrap_or_else(|error| panic!("{error}"));
        let now = self.now;
        self.connection.on_segment(now, &segment);
        self.drain();
    }

    /// Expects this segment next, at `at_ms`.
    #[track_caller]
    pub fn expect(&mut self, at_ms: u64, line: &str) {
        let at = Time::from_millis(at_ms);
        self.advance(at, true);
        let Some((left_at, segment)) = self.out.pop_front() else {
            panic!("at {at_ms} ms: nothing left; expected {line:?}\n{self:#?}");
        };
        let found = render(&segment);
        let comparable = if line.contains(" win ") {
            found.clone()
        } else {
            found.replace(&format!(" win {}", segment.window), "")
        };
        assert!(
            left_at == at && comparable == line,
            "expected at {at}: {line}\n   found at {left_at}: {found}"
        );
    }

    /// Expects no segment up to and including `until_ms`.
    #[track_caller]
    pub fn expect_nothing(&mut self, until_ms: u64) {
        self.advance(Time::from_millis(until_ms), true);
        self.expect_empty();
    }

    /// Runs the timers due before `to`, or until `to` if `inclusive`.
    #[track_caller]
    fn advance(&mut self, to: Time, inclusive: bool) {
        assert!(
            self.now <= to,
            "the script goes back from {} to {to}",
            self.now
        );
        if !inclusive && to > self.now {
            self.expect_empty();
        }
        for _ in 0..10_000 {
            let due = self.connection.next_timer().max(self.now);
            if due > to || (due == to && !inclusive) {
                self.now = to;
                return;
            }
            if !inclusive {
                self.expect_empty();
            }
            self.now = due;
            self.connection.on_timer(due);
            self.drain();
        }
        panic!("timers act without end at {}", self.now);
    }

    #[track_caller]
    fn expect_empty(&self) {
        if let Some((at, segment)) = self.out.front() {
            panic!("unexpected at {at}: {}", render(segment));
        }
    }

    fn drain(&mut self) {
        let now = self.now;
        for _ in 0..100_000 {
            let Some(segment) = self.connection.poll_transmit(now) else {
                return;
            };
            self.out.push_back((now, segment));
        }
        panic!("segments leave without end at {now}");
    }
}
