//! Programs in the namespaces of a lab.

use std::io::Write as _;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread::JoinHandle;
use std::time::Duration;

use comity_units::{Span, Time};
use rustix::process::{Pid, Signal, kill_process_group};

use crate::clock::Clock;
use crate::error::Error;
use crate::namespace::Door;
use crate::tcp::wait_until;

/// Which end of a flow.
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

/// How often a thread looks whether its program has ended.
const LOOK: Duration = Duration::from_millis(20);
/// How long a program has to end after SIGINT.
const GRACE: Span = Span::from_secs(3);

/// A program that runs.
#[derive(Debug)]
pub(crate) struct Program {
    stop: Sender<()>,
    thread: JoinHandle<Result<Ended, Error>>,
}

/// A program that has ended.
#[derive(Debug)]
pub(crate) struct Ended {
    pub(crate) output: Vec<u8>,
    pub(crate) errors: Vec<u8>,
    pub(crate) status: Option<ExitStatus>,
    /// Whether it ended by itself.
    pub(crate) is_by_itself: bool,
}

impl Program {
    /// Starts a program at `start` on a thread inside the namespace, in a process group of its own, and gives it
    /// `input`. It ends by itself, or at [`finish`](Self::finish).
    ///
    /// The thread outlives the program: `setpriv` has the kernel kill the program when the thread, and so the
    /// lab, is gone.
    pub(crate) fn start(
        door: Door,
        command: Command,
        input: Vec<u8>,
        clock: Clock,
        start: Time,
    ) -> Self {
        let (stop, stopped) = channel();
        let thread = std::thread::spawn(move || {
            door.enter()?;
            wait_until(clock, start);
            run(bound(&command), &input, &stopped)
        });
        Self { stop, thread }
    }

    /// Ends the program, if it still runs, by SIGINT and at last by SIGKILL.
    pub(crate) fn finish(self) -> Result<Ended, Error> {
        // It may have ended.
        let _ = self.stop.send(());
        match self.thread.join() {
            Ok(ended) => ended,
            Err(panic) => std::panic::resume_unwind(panic),
        }
    }
}

/// The command with the life of its parent thread as a bound of its own.
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

fn run(mut command: Command, input: &[u8], stopped: &Receiver<()>) -> Result<Ended, Error> {
    use std::os::unix::process::CommandExt as _;
    let name = format!("{:?}", command.get_args().nth(3).unwrap_or_default());
    let purpose = || format!("cannot run {name}");
    let mut child = command
        .process_group(0)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .map_err(Error::system(purpose()))?;
    if let Some(mut stdin) = child.stdin.take() {
        // What it does not read it has no use for.
        let _ = stdin.write_all(input);
    }
    let (stdout, stderr) = (child.stdout.take(), child.stderr.take());
    let output = std::thread::spawn(move || all_of(stdout));
    let errors = std::thread::spawn(move || all_of(stderr));
    let (status, is_by_itself) = watch(&mut child, stopped).map_err(Error::system(purpose()))?;
    // Whatever it left behind would keep its output open.
    signal(&child, Signal::KILL);
    Ok(Ended {
        output: output.join().unwrap_or_default(),
        errors: errors.join().unwrap_or_default(),
        status,
        is_by_itself,
    })
}

/// Waits until the program ends, or ends it when told to.
fn watch(child: &mut Child, stopped: &Receiver<()>) -> std::io::Result<(Option<ExitStatus>, bool)> {
    loop {
        if let Some(status) = child.try_wait()? {
            return Ok((Some(status), true));
        }
        match stopped.recv_timeout(LOOK) {
            Err(RecvTimeoutError::Timeout) => {}
            Ok(()) | Err(RecvTimeoutError::Disconnected) => break,
        }
    }
    signal(child, Signal::INT);
    let clock = Clock::starting_in(Span::ZERO);
    while clock.now() < Time::ZERO + GRACE {
        if let Some(status) = child.try_wait()? {
            return Ok((Some(status), false));
        }
        wait_until(clock, clock.now() + Span::from_millis(10));
    }
    signal(child, Signal::KILL);
    Ok((Some(child.wait()?), false))
}

fn signal(child: &Child, signal: Signal) {
    if let Some(group) = Pid::from_raw(child.id().cast_signed()) {
        // It may be gone.
        let _ = kill_process_group(group, signal);
    }
}

fn all_of(stream: Option<impl std::io::Read>) -> Vec<u8> {
    let mut bytes = Vec::new();
    if let Some(mut stream) = stream {
        // What could be read is all there is to say.
        let _ = stream.read_to_end(&mut bytes);
    }
    bytes
}
