//! `comity demo`

use std::io::{IsTerminal, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;
use std::sync::atomic::Ordering;

use comity_units::{Rate, Span};
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use nix::fcntl::OFlag;

use super::bottleneck::{DemoError, VIDEO};
use super::clip::{Clip, NoClip};
use super::metrics::{Metrics, share};
use super::network::{Progress, Spectator, run};
use super::recording::{Recording, Setup};
use super::report::{figures, page};
use super::summary::{decimals, document, situation, statements, text, wrap};
use crate::args;
use crate::numbers::{percent, spaced};
use crate::status_line::interrupt_key;
use crate::{Failure, complain, files, print, say};

/// The fraction of an equal share that the video needs at the default rate.
const NEED: f64 = 0.75;
/// The default number of copies of the bundled clip, with 2 Mb/s in total.
const COPIES: u16 = 4;
/// The width of the text, in characters.
const WIDTH: usize = 100;

/// `comity demo`.
///
/// # Errors
/// If the command fails. The message is printed.
pub fn demo(args: &args::Demo) -> Result<(), Failure> {
    let clip = match &args.clip {
        None => Clip::bundled(),
        Some(file) => Clip::open(file, args.duration).map_err(|reason| match reason {
            NoClip::Unreadable { file, reason } => files::cannot_open(&file, &reason),
            other => complain(&other),
        })?,
    };
    let copies = args.copies.unwrap_or(match args.clip {
        None => COPIES,
        Some(_) => 1,
    });
    let demand = clip.wire_rate().mul_f64(f64::from(copies));
    let setup = Setup {
        rate: args.rate.unwrap_or_else(|| scaled(demand, args.flows)),
        delay: args.delay,
        queue: args.queue,
        loss: args.loss,
        flows: args.flows,
        clip: args
            .clip
            .as_ref()
            .map(|file| file.to_string_lossy().into_owned()),
        copies,
        latency: args.latency,
        duration: args.duration,
        controller: args.cc.clone(),
        rivals: args.rivals.clone(),
        sheds: !args.no_shed,
        seed: args.seed,
        demand,
    };
    let files = [report(args), args.picture.as_deref()];
    let mut made = Vec::new();
    for file in files.into_iter().flatten() {
        if open(file)? {
            made.push(file);
        }
    }
    let opening = wrap(&format!("Sending {}", situation(&setup)), WIDTH);
    let plan = clip.plan(copies, args.duration);
    // No disk or peer can delay the end, only the demonstration itself.
    let is_stopped = interrupt_key(None, || true);
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|error| complain(&format!("cannot start: {error}")))?;
    let mut live = Live::new(&setup, opening);
    let others = !args.only_comity;
    let running = run(setup, &plan, others, is_stopped, &mut live);
    let recording = runtime.block_on(running);
    live.clear();
    let is_stopped = is_stopped.load(Ordering::Relaxed);
    if is_stopped || recording.is_err() {
        for file in made {
            // If the empty file cannot be removed, a second error does not help.
            let _ = std::fs::remove_file(file);
        }
    }
    let recording = recording.map_err(|error| refuse(&error))?;
    let metrics = Metrics::of(&recording);
    finish(args, &recording, &metrics, is_stopped)?;
    if is_stopped {
        Err(Failure::Interrupted)
    } else if recording.exactness.overload.is_empty() {
        Ok(())
    } else {
        Err(Failure::Overloaded)
    }
}

/// The rate at which the video needs [`NEED`] of an equal share, rounded to 0.1 Mb/s.
fn scaled(demand: Rate, flows: u16) -> Rate {
    let exact = demand.as_mbps_f64() * (f64::from(flows) + 1.0) / NEED;
    Rate::from_bps_f64((exact * 10.0).round().max(1.0) * 1e5)
}

/// Prints why the demonstration failed.
fn refuse(error: &DemoError) -> Failure {
    say(&format!("error: {error}"));
    match error {
        DemoError::Config(_) => Failure::Usage,
        DemoError::Emulator(
            comity_emulator::Error::Link { .. } | comity_emulator::Error::NoRate { .. },
        ) => Failure::Usage,
        _ => Failure::Failed,
    }
}

/// Writes the files and prints the results. An interrupted run leaves the files unchanged.
fn finish(
    args: &args::Demo,
    recording: &Recording,
    metrics: &Metrics,
    is_stopped: bool,
) -> Result<(), Failure> {
    let report = report(args).filter(|_| !is_stopped);
    if let Some(file) = report {
        write(file, &page(recording, metrics, &command()))?;
    }
    if let Some(file) = args.picture.as_ref().filter(|_| !is_stopped) {
        write(file, &figures::timeline(recording).file())?;
    }
    if is_stopped {
        say(&format!(
            "interrupted: the results cover {:.1} s of {}, and no file was written",
            recording.length_s,
            spaced(recording.setup.duration)
        ));
    }
    if args.json {
        let mut document = document(recording, metrics);
        document["report"] = report.map(|file| file.to_string_lossy()).into();
        return print(format!("{document:#}\n"));
    }
    print(text(&statements(recording, metrics), WIDTH))?;
    if let Some(file) = report {
        print(format!(
            "\nOpen the page about it in a browser: {}\n",
            address(file)
        ))?;
    }
    Ok(())
}

/// The address of a file for a browser, or its path if the address is unknown.
fn address(file: &Path) -> String {
    match std::fs::canonicalize(file) {
        Ok(whole) => format!("file://{}", whole.display()).replace(' ', "%20"),
        Err(_) => file.display().to_string(),
    }
}

/// The command line in shell syntax.
fn command() -> String {
    let quoted = |word: std::ffi::OsString| {
        let word = word.to_string_lossy().into_owned();
        let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_./=:,%".contains(c);
        match word.chars().all(is_plain) && !word.is_empty() {
            true => word,
            false => format!("'{}'", word.replace('\'', r"'\''")),
        }
    };
    let words: Vec<String> = std::env::args_os().skip(1).map(quoted).collect();
    format!("comity {}", words.join(" "))
}

/// The path of the report, unless --no-report is set.
fn report(args: &args::Demo) -> Option<&Path> {
    (!args.no_report).then_some(args.report.as_path())
}

/// Checks before the run that a file can be written, and keeps its content. Returns whether the
/// file is new.
fn open(file: &Path) -> Result<bool, Failure> {
    let is_new = !file.exists();
    let mut options = std::fs::OpenOptions::new();
    options.write(true).create(true).truncate(false);
    options.custom_flags(OFlag::O_NOFOLLOW.bits());
    let opened = options.open(file);
    opened.map_err(|error| unwritable(file, &error))?;
    Ok(is_new)
}

fn write(file: &Path, text: &str) -> Result<(), Failure> {
    let mut options = std::fs::OpenOptions::new();
    options.write(true).create(true).truncate(true);
    options.custom_flags(OFlag::O_NOFOLLOW.bits());
    let opened = options.open(file);
    opened
        .and_then(|mut file| file.write_all(text.as_bytes()))
        .map_err(|error| unwritable(file, &error))
}

fn unwritable(file: &Path, error: &std::io::Error) -> Failure {
    complain(&format!(
        "cannot write {}: {error}{}",
        file.display(),
        files::hint(file, error)
    ))
}

/// Progress: a bar and a line on a terminal, otherwise a line every few seconds.
struct Live {
    bar: ProgressBar,
    is_terminal: bool,
    /// When the next plain line is due, in seconds of the video.
    next_s: f64,
    names: Vec<String>,
    /// Printed once all settings have been checked.
    opening: Vec<String>,
}

impl Live {
    /// The interval between plain lines, in seconds.
    const EVERY_S: f64 = 5.0;

    fn new(setup: &Setup, opening: Vec<String>) -> Self {
        let is_terminal = std::io::stderr().is_terminal();
        let target = if is_terminal {
            ProgressDrawTarget::stderr()
        } else {
            ProgressDrawTarget::hidden()
        };
        let bar = ProgressBar::with_draw_target(Some(millis(setup.duration)), target);
        if let Ok(style) = ProgressStyle::with_template("{bar:20} {wide_msg}") {
            bar.set_style(style);
        }
        let others = (1..=setup.flows).map(|number| format!("{} {number}", setup.rival()));
        Self {
            bar,
            is_terminal,
            next_s: 1.0,
            names: std::iter::once(VIDEO.to_owned()).chain(others).collect(),
            opening,
        }
    }

    fn show(&mut self, elapsed_s: f64, line: &str) {
        if self.is_terminal {
            self.bar.set_position((elapsed_s * 1e3).max(0.0) as u64);
            self.bar.set_message(line.to_owned());
        } else if elapsed_s >= self.next_s {
            self.next_s += Self::EVERY_S;
            say(line);
        }
    }

    fn clear(&self) {
        self.bar.finish_and_clear();
    }
}

impl Spectator for Live {
    fn begin(&mut self) {
        self.opening.iter().for_each(|line| say(line));
    }

    fn on_progress(&mut self, progress: &Progress) {
        let line = line(progress, &self.names);
        self.show(progress.elapsed_s, &line);
    }
}

fn millis(span: Span) -> u64 {
    span.as_millis()
}

fn line(progress: &Progress, names: &[String]) -> String {
    let received = progress.on_time + progress.not_on_time;
    let rates: Vec<String> = names
        .iter()
        .zip(&progress.rates_mbps)
        .map(|(name, rate)| format!("{name} {rate:.1}"))
        .collect();
    let target = progress.target_mbps.map_or(String::new(), |target| {
        format!(", target {}", decimals(target))
    });
    format!(
        "{:.1} s | {} on time | queue {:.0} ms | {} Mb/s{target}",
        progress.elapsed_s.max(0.0),
        percent(share(progress.on_time, received)),
        progress.queueing_ms,
        rates.join(", "),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_bottleneck_is_scaled_to_the_video() {
        // 2.25 Mb/s are three quarters of a third of 9 Mb/s, and of all of 3.
        assert_eq!(scaled(Rate::from_bps(2_250_000), 2), Rate::from_mbps(9));
        assert_eq!(scaled(Rate::from_bps(2_250_000), 0), Rate::from_mbps(3));
        assert_eq!(
            scaled(Rate::from_bps(1), 0),
            Rate::from_kbps(100),
            "never zero"
        );
    }

    #[test]
    fn progress_is_one_line() {
        let progress = Progress {
            elapsed_s: 3.25,
            on_time: 999,
            not_on_time: 1,
            target_mbps: Some(2.5),
            queueing_ms: 31.4,
            rates_mbps: vec![2.2, 3.25],
        };
        let names = ["video".to_owned(), "Reno 1".to_owned()];
        assert_eq!(
            line(&progress, &names),
            "3.2 s | 99.9 % on time | queue 31 ms | video 2.2, Reno 1 3.2 Mb/s, target 2.5"
        );
    }
}
