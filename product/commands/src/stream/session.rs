//! Reports the state of a relay while it runs.

use std::pin::pin;
use std::time::Duration;

use comity_stream::Monitor;
use comity_units::Rate;
use tokio::time::{MissedTickBehavior, interval};

use super::advice::LatencyAdvice;
use super::encoder::{self, EncoderLoop};
use super::narrow::NarrowPaths;
use super::status::Reporter;

/// The interval of the status line on a terminal, and of the checks for advice.
const GLANCE: Duration = Duration::from_millis(500);

/// A running relay and its reporter.
#[derive(Debug)]
pub(crate) struct Session {
    pub(crate) monitor: Monitor,
    pub(crate) reporter: Reporter,
    /// The interval between statistics, except on a terminal; `None` for never.
    pub(crate) every: Option<Duration>,
    /// The maximum rate of the connections of the output.
    pub(crate) max_rate: Rate,
}

impl Session {
    /// Waits for the end of the relay, and reports its state meanwhile and at the end. Updates the
    /// encoder, if the sender has one.
    pub(crate) async fn watch<T>(
        &self,
        running: impl Future<Output = T>,
        mut encoder: Option<EncoderLoop>,
    ) -> T {
        let mut running = pin!(running);
        let mut advice = LatencyAdvice::default();
        let mut narrow = NarrowPaths::new(self.max_rate);
        let mut glance = interval(GLANCE);
        let mut print_status = interval(self.every.unwrap_or(Duration::MAX / 4));
        let mut follow = interval(encoder::POLL);
        for timer in [&mut glance, &mut print_status, &mut follow] {
            timer.set_missed_tick_behavior(MissedTickBehavior::Skip);
            // The first tick is immediate.
            timer.tick().await;
        }
        let done = loop {
            tokio::select! {
                biased;
                done = &mut running => break done,
                _ = glance.tick() => {
                    self.advise(&mut advice);
                    self.warn_of_narrow_paths(&mut narrow);
                    if self.reporter.is_terminal() {
                        self.reporter.status(&self.monitor.snapshot());
                    }
                }
                _ = print_status.tick(), if self.every.is_some() => self.print_status(),
                _ = follow.tick(), if encoder.is_some() => {
                    if let Some(encoder) = &mut encoder {
                        encoder.poll(&self.monitor.snapshot(), &self.reporter);
                    }
                }
            }
        };
        let last = self.monitor.snapshot();
        self.reporter.object("end", &last);
        self.reporter.summary(&last);
        self.reporter.close();
        done
    }

    /// Whether a side that waits for callers got none.
    pub(crate) fn is_uncalled(&self, [input, output]: [bool; 2]) -> bool {
        let snapshot = self.monitor.snapshot();
        let sides = [(&snapshot.input, input), (&snapshot.output, output)];
        sides.into_iter().any(|(side, listens)| {
            let connections = side.totals.map(|totals| totals.connections);
            listens && connections == Some(0) && side.refused.is_empty()
        })
    }

    fn print_status(&self) {
        let snapshot = self.monitor.snapshot();
        self.reporter.object("statistics", &snapshot);
        if !self.reporter.is_terminal() {
            self.reporter.status(&snapshot);
        }
    }

    /// Warns if a path carries less than the source produces.
    fn warn_of_narrow_paths(&self, narrow: &mut NarrowPaths) {
        for text in narrow.judge(&self.monitor.snapshot()) {
            self.reporter.warn(&text);
        }
    }

    /// Warns if a latency is too short for the path. Between two connections, the latency covers
    /// all hops.
    fn advise(&self, advice: &mut LatencyAdvice) {
        let mut connections = self.monitor.source_connections();
        if connections.is_empty() {
            connections = self.monitor.sink_connections();
        }
        for connection in connections {
            let peer = connection.peer_address();
            if !advice.is_open(peer) {
                continue;
            }
            let Some(round_trip) = connection.stats().path.min_rtt_ms else {
                continue;
            };
            let round_trip = Duration::from_secs_f64(round_trip / 1e3);
            if let Some(text) = advice.judge(peer, connection.latency(), round_trip) {
                self.reporter.warn(&text);
            }
        }
    }
}
