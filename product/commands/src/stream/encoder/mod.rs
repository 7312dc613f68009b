//! An encoder that follows the connection: `--on-target-bitrate` and `--target-bitrate-socket`.
//!
//! [`Follower`] decides which bitrate the encoder gets, and when. This module measures the rate of
//! the other sections, and passes updates on.

mod lines;
mod program;

use std::collections::VecDeque;
use std::time::Duration;

use comity::Settings;
use comity::encoder::{Follower, Observation, Update};
use comity_stream::{Passed, Snapshot};
use comity_units::{DataSize, Rate, Span};

use super::error::Error;
use super::status::Reporter;
use crate::args;
use lines::Lines;
use program::Program;

/// The interval of the calls of [`EncoderLoop::poll`].
pub(crate) const POLL: Duration = Duration::from_millis(100);

/// The sections that the bitrate of an encoder does not change.
const OTHER: [&str; 3] = ["audio", "table", "layout"];

/// The rate of other sections is a mean over this time: some tables repeat every half second.
const OTHER_WINDOW: Duration = Duration::from_secs(2);

/// Follows the connection of a sender, and passes updates to the outputs.
#[derive(Debug)]
pub(crate) struct EncoderLoop {
    follower: Follower,
    other: OtherRate,
    program: Option<Program>,
    lines: Option<Lines>,
}

impl EncoderLoop {
    /// Opens the outputs of `args`. `secrets` are environment variables that the program must not
    /// get.
    pub(crate) fn open(
        args: &args::Encoder,
        settings: &Settings,
        secrets: Vec<String>,
    ) -> Result<Self, Error> {
        let (program, socket) = (&args.on_target_bitrate, &args.target_bitrate_socket);
        let program = program.as_deref().map(|path| Program::new(path, secrets));
        Ok(Self {
            follower: Follower::new(settings),
            other: OtherRate::default(),
            program: program.transpose()?,
            lines: socket.as_deref().map(Lines::bind).transpose()?,
        })
    }

    /// Passes on the update that is due, if there is one. Called every [`POLL`].
    pub(crate) fn poll(&mut self, snapshot: &Snapshot, reporter: &Reporter) {
        let now = Duration::from_secs_f64(snapshot.elapsed_s);
        let update = self.update(now, snapshot);
        let line = update.map(|update| line(&update));
        if let Some(line) = &line {
            reporter.encoder(line);
        }
        if let Some(lines) = &mut self.lines {
            lines.poll(line.map(|line| line.to_string()));
        }
        if let Some(program) = &mut self.program
            && let Some(warning) = program.poll(now, update)
        {
            reporter.warn(&format!("--on-target-bitrate: {warning}"));
        }
    }

    /// The update that is due at `now`.
    fn update(&mut self, now: Duration, snapshot: &Snapshot) -> Option<Update> {
        let other = self.other.at(now, &snapshot.passed);
        // A sender that serves several receivers has no encoder loop.
        let connection = snapshot.output.connections.first()?;
        let observed = Observation::of(&connection.statistics, other);
        self.follower.poll_update(now, &observed)
    }
}

/// An update as an event of `--json` and as a line of the socket.
fn line(update: &Update) -> serde_json::Value {
    let mut line = serde_json::to_value(update).unwrap_or_default();
    if let Some(line) = line.as_object_mut() {
        line.insert("event".into(), "encoder".into());
    }
    line
}

/// The rate of the sections that an encoder's setting does not change.
#[derive(Debug, Default)]
struct OtherRate {
    /// The bytes of these sections at the polls of the last [`OTHER_WINDOW`], and at one before.
    earlier: VecDeque<(Duration, u64)>,
}

impl OtherRate {
    fn at(&mut self, now: Duration, passed: &Passed) -> Rate {
        let count = |kind: &&str| passed.whole.get(*kind).map_or(0, |count| count.bytes);
        let bytes = OTHER.iter().map(count).sum::<u64>();
        self.earlier.push_back((now, bytes));
        while let Some((time, _)) = self.earlier.get(1)
            && now.saturating_sub(*time) >= OTHER_WINDOW
        {
            self.earlier.pop_front();
        }
        match self.earlier.front() {
            Some((then, before)) if *then < now => {
                let added = DataSize::new(bytes.saturating_sub(*before));
                Rate::of(added, Span::from(now.saturating_sub(*then)))
            }
            _ => Rate::ZERO,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use comity::Statistics;
    use comity_stream::{Count, PeerStatistics, Side};

    const MS: Duration = Duration::from_millis(1);

    fn passed(audio: u64, pictures: u64) -> Passed {
        let mut passed = Passed::default();
        for (kind, bytes) in [("audio", audio), ("P", pictures)] {
            let sections = 1;
            passed.whole.insert(kind, Count { sections, bytes });
        }
        passed
    }

    #[test]
    fn the_rate_of_other_sections_is_that_of_the_last_two_seconds() {
        let mut other = OtherRate::default();
        let mut rates = Vec::new();
        // 16,000 bytes per second of sound, and none after 4 s.
        for ms in (0..8_000).step_by(100) {
            let audio = 16 * ms.min(4_000_u64);
            rates.push(other.at(MS * ms as u32, &passed(audio, 1_000 * ms)));
        }
        let kbps = |at_ms: usize| rates[at_ms / 100].as_bps() / 1_000;
        assert_eq!([0, 100, 2_000, 4_000].map(kbps), [0, 128, 128, 128]);
        assert_eq!([5_000, 6_000, 7_900].map(kbps), [64, 0, 0]);
        assert!(other.earlier.len() <= 22, "{}", other.earlier.len());
    }

    #[test]
    fn an_update_is_a_line_of_json_without_the_rate_of_other_sections() {
        let args = args::Encoder::default();
        let mut encoder = EncoderLoop::open(&args, &Settings::default(), Vec::new()).unwrap();
        let mut statistics = Statistics::default();
        statistics.path.target_mbps = Some(2.0);
        let mut updates = Vec::new();
        for ms in (0..2_000).step_by(100) {
            statistics.age_ms = ms as f64;
            let snapshot = Snapshot {
                elapsed_s: ms as f64 / 1e3,
                output: Side {
                    connections: vec![PeerStatistics {
                        peer: "192.0.2.1:9000".into(),
                        latency_ms: 120.0,
                        statistics: statistics.clone(),
                    }],
                    ..Side::default()
                },
                passed: passed(16 * ms, 1_000 * ms),
                ..Snapshot::default()
            };
            let update = encoder.update(MS * ms as u32, &snapshot);
            updates.extend(update.map(|update| line(&update).to_string()));
        }
        // 0.95 · 2,000 − 128 kbit/s.
        let expected =
            r#"{"bpsEncoder":1772000,"bpsOther":128000,"bpsTarget":2000000,"event":"encoder"}"#;
        assert_eq!(updates, [expected]);
    }
}
