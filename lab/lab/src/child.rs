//! Programs in the namespaces of a lab.

use std::fs::File;
use std::io::{Read, Write as _};
use std::os::unix::process::CommandExt as _;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread::JoinHandle;
use std::time::Duration;

use comity_units::{Span, Time};
use rustix::process::{Pid, Signal, kill_process_group};

use crate::clock::{Clock, RunClock};
use crate::error::Error;
use crate::namespace::Door;

/// An end of a flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// The end that sends.
    Source,
    /// The end that receives.
    Destination,
}

impl Role {
    /// `source` or `destination`.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Source => "source",
            Self::Destination => "destination",
        }
    }
}

/// The maximum number of bytes of a program's error output to report.
const COMPLAINT: usize = 400;
/// The interval at which a thread checks whether its program has ended.
const LOOK: Duration = Duration::from_millis(20);
/// The time that a program has for ending after SIGINT.
const GRACE: Span = Span::from_secs(3);
/// The number of bytes of an output to read at a time.
const CHUNK: usize = 16 << 10;

/// A program to run.
#[derive(Debug)]
pub(crate) struct Task {
    pub(crate) command: Command,
    /// Its standard input.
    pub(crate) input: Vec<u8>,
    /// When it starts; `None` to start immediately, before the run.
    pub(crate) start: Option<Time>,
    /// The files to which its output and error output are also written.
    pub(crate) logs: Option<[File; 2]>,
    /// The number of bytes of its output to keep, from the end.
    pub(crate) kept: usize,
}

/// A running program.
#[derive(Debug)]
pub(crate) struct Program {
    stop: Sender<Span>,
    thread: JoinHandle<Result<Ended, Error>>,
}

/// A finished program.
#[derive(Debug, Default)]
pub(crate) struct Ended {
    pub(crate) output: Vec<u8>,
    pub(crate) errors: Vec<u8>,
    pub(crate) status: Option<ExitStatus>,
    /// Whether it ended without a request.
    pub(crate) is_by_itself: bool,
}

impl Ended {
    /// The program's last output before it failed.
    pub(crate) fn last_words(&self) -> String {
        let errors = String::from_utf8_lossy(&self.errors);
        let errors = errors.trim();
        let from = errors.len().saturating_sub(COMPLAINT);
        let from = (from..=errors.len()).find(|at| errors.is_char_boundary(*at));
        let from = from.unwrap_or_default();
        let tail = errors.get(from..).unwrap_or(errors);
        match self.status {
            Some(status) => format!("{status}: {tail}"),
            None => format!("it did not run: {tail}"),
        }
    }
}

impl Program {
    /// Starts a program on a thread inside the namespace, in its own process group. It ends without
    /// a request or at [`stop`](Self::stop). Processes that it leaves in the namespace end at
    /// [`stop`](Self::stop).
    ///
    /// The thread outlives the program: with `setpriv`, the kernel kills the program when the
    /// thread, and thus the lab, has ended. Its child processes are found by their namespace.
    pub(crate) fn start(door: Door, task: Task, clock: RunClock) -> Self {
        let (stop, stopped) = channel();
        let thread = std::thread::spawn(move || {
            door.enter()?;
            if let Some(start) = task.start {
                clock.wait_until(start);
            }
            if clock.is_off() {
                return Ok(Ended::default());
            }
            run(task, &door, &stopped)
        });
        Self { stop, thread }
    }

    /// If the program still runs after `patience`, ends it by SIGINT and finally by SIGKILL. Does
    /// not wait for it.
    pub(crate) fn stop(&self, patience: Span) {
        // The thread of the program may have failed.
        let _ = self.stop.send(patience);
    }

    /// Stops the program and waits until it has ended.
    pub(crate) fn finish(self) -> Result<Ended, Error> {
        self.stop(Span::ZERO);
        match self.thread.join() {
            Ok(ended) => ended,
            Err(panic) => std::panic::resume_unwind(panic),
        }
    }
}

/// The command, bound to the life of its parent thread.
fn bound(command: &Command) -> Command {
    let mut bound = Command::new("setpriv");
    bound.args(["--pdeathsig", "KILL", "--"]);
    bound.arg(command.get_program()).args(command.get_args());
    for (key, value) in command.get_envs() {
        match value {
            Some(value) => bound.env(key, value),
            None => bound.env_remove(key),
        };
    }
    bound
}

fn run(task: Task, door: &Door, stopped: &Receiver<Span>) -> Result<Ended, Error> {
    let name = task.command.get_program().to_string_lossy().into_owned();
    let purpose = || format!("cannot run {name:?}");
    let mut child = bound(&task.command)
        .process_group(0)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .map_err(Error::system(purpose()))?;
    if let Some(mut stdin) = child.stdin.take() {
        // The program need not read all of its input.
        let _ = stdin.write_all(&task.input);
    }
    let (stdout, stderr) = (child.stdout.take(), child.stderr.take());
    let [out, err] = match task.logs {
        Some(files) => files.map(Some),
        None => [None, None],
    };
    let kept = task.kept;
    let output = std::thread::spawn(move || last_of(stdout, out, kept));
    let errors = std::thread::spawn(move || last_of(stderr, err, CHUNK));
    let watched = watch(&mut child, stopped);
    // Processes left behind would keep its output open.
    door.end_processes();
    let (status, is_by_itself) = watched.map_err(Error::system(purpose()))?;
    let read = |thread: JoinHandle<std::io::Result<Vec<u8>>>| match thread.join() {
        Ok(read) => read.map_err(Error::system(format!("cannot keep the output of {name:?}"))),
        Err(panic) => std::panic::resume_unwind(panic),
    };
    Ok(Ended {
        output: read(output)?,
        errors: read(errors)?,
        status,
        is_by_itself,
    })
}

/// Waits for the request to stop, and ends the program if it is still running.
fn watch(
    child: &mut Child,
    stopped: &Receiver<Span>,
) -> std::io::Result<(Option<ExitStatus>, bool)> {
    let patience = loop {
        if let Some(status) = child.try_wait()? {
            // Background processes of the program run until the flow stops.
            let _ = stopped.recv();
            return Ok((Some(status), true));
        }
        match stopped.recv_timeout(LOOK) {
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => break Span::ZERO,
            Ok(patience) => break patience,
        }
    };
    if let Some(status) = ends_within(child, patience)? {
        return Ok((Some(status), true));
    }
    signal(child, Signal::INT);
    if let Some(status) = ends_within(child, GRACE)? {
        return Ok((Some(status), false));
    }
    signal(child, Signal::KILL);
    Ok((Some(child.wait()?), false))
}

/// The status of a program, if it ends within this time.
fn ends_within(child: &mut Child, time: Span) -> std::io::Result<Option<ExitStatus>> {
    let clock = RunClock::new(Clock::starting_in(Span::ZERO));
    loop {
        let status = child.try_wait()?;
        if status.is_some() || clock.now() >= Time::ZERO + time {
            return Ok(status);
        }
        clock.wait_until(clock.now() + Span::from_millis(10));
    }
}

fn signal(child: &Child, signal: Signal) {
    if let Some(group) = Pid::from_raw(child.id().cast_signed()) {
        // The group may already have ended.
        let _ = kill_process_group(group, signal);
    }
}

/// Reads a stream to its end, copies it to the file if there is one, and returns the last `kept`
/// bytes.
fn last_of(
    stream: Option<impl Read>,
    mut file: Option<File>,
    kept: usize,
) -> std::io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    let Some(mut stream) = stream else {
        return Ok(bytes);
    };
    let mut chunk = vec![0; CHUNK];
    let mut written = Ok(());
    loop {
        let read = match stream.read(&mut chunk) {
            Ok(0) => break,
            Ok(length) => chunk.get(..length).unwrap_or_default(),
            Err(error) if error.kind() == std::io::ErrorKind::Interrupted => continue,
            Err(error) => return Err(error),
        };
        // If the disk is full, the pipe is still read to its end, so that the program does not
        // block.
        if let (Some(file), Ok(())) = (&mut file, &written) {
            written = file.write_all(read);
        }
        bytes.extend_from_slice(read);
        if bytes.len() > kept.saturating_mul(2) {
            bytes.drain(..bytes.len() - kept);
        }
    }
    written?;
    bytes.drain(..bytes.len().saturating_sub(kept));
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn last_words_are_cut_between_characters() {
        let ended = Ended {
            errors: "ö".repeat(COMPLAINT).into_bytes(),
            ..Ended::default()
        };
        let words = ended.last_words();
        assert!(
            words.ends_with('ö') && words.len() <= COMPLAINT + 32,
            "{words}"
        );
    }

    #[test]
    fn the_end_of_an_output_is_kept() {
        let text: Vec<u8> = (0..100_000_u32).map(|at| (at % 251) as u8).collect();
        let last = |kept| last_of(Some(&text[..]), None, kept).unwrap();
        assert_eq!(last(usize::MAX), text);
        assert_eq!(last(1_000), text[99_000..]);
        assert_eq!(last(0), b"");
    }

    #[test]
    fn a_bound_command_keeps_its_words_and_its_environment() {
        let mut command = Command::new("serve");
        command.args(["-p", "5000"]).env("COLOUR", "never");
        let bound = bound(&command);
        let words: Vec<_> = bound.get_args().collect();
        assert_eq!(words, ["--pdeathsig", "KILL", "--", "serve", "-p", "5000"]);
        let environment: Vec<_> = bound.get_envs().collect();
        assert_eq!(environment, [("COLOUR".as_ref(), Some("never".as_ref()))]);
    }
}
