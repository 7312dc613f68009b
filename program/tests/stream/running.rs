//! Commands that run beside a test.

use std::io::{BufRead, BufReader, Read, Write};
use std::process::{Child, ChildStdout, Command, Stdio};
use std::sync::mpsc::{self, RecvTimeoutError, Sender};
use std::thread;
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

use super::command;

/// Longer than any command of a test takes. A command that still runs then hangs. It is killed, so
/// its test fails and the others go on.
const PATIENCE: Duration = Duration::from_secs(240);

/// Kills a child that hangs, unless the returned sender is dropped before.
pub(super) fn watch(child: &Child) -> Sender<()> {
    let (watch, ended) = mpsc::channel();
    let pid = Pid::from_child(child);
    thread::spawn(move || {
        if ended.recv_timeout(PATIENCE) == Err(RecvTimeoutError::Timeout) {
            let _ = kill_process(pid, Signal::KILL);
        }
    });
    watch
}

/// A command that runs beside the test and prints JSON.
pub(super) struct Running {
    pub(super) child: Child,
    pub(super) lines: BufReader<ChildStdout>,
    /// Ends the watch when dropped.
    _watch: Sender<()>,
}

impl Running {
    pub(super) fn start(args: &[&str]) -> Self {
        Self::spawn(command(args).arg("--json"))
    }

    /// Starts it with an input that [`feed`](Self::feed) writes, so the test controls the input and
    /// no clock does.
    pub(super) fn fed(args: &[&str]) -> Self {
        Self::spawn(command(args).arg("--json").stdin(Stdio::piped()))
    }

    pub(super) fn spawn(command: &mut Command) -> Self {
        let mut child = command
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap());
        let watch = watch(&child);
        Self {
            child,
            lines,
            _watch: watch,
        }
    }

    /// Waits for the next object of this kind.
    pub(super) fn event(&mut self, name: &str) -> Value {
        loop {
            let mut line = String::new();
            if self.lines.read_line(&mut line).unwrap() == 0 {
                let mut said = String::new();
                let _ = self.child.stderr.take().unwrap().read_to_string(&mut said);
                panic!("it ended without {name:?}: {said}");
            }
            let object: Value = serde_json::from_str(&line).unwrap();
            if object["event"] == name {
                return object;
            }
        }
    }

    /// Waits for statistics that satisfy `holds`.
    pub(super) fn statistics_when(&mut self, holds: impl Fn(&Value) -> bool) -> Value {
        loop {
            let statistics = self.event("statistics");
            if holds(&statistics) {
                return statistics;
            }
        }
    }

    /// Waits until a count of one of its sides has not grown for three seconds.
    pub(super) fn stalls(&mut self, side: &str, name: &str) {
        let (mut before, mut unchanged) = (0, 0);
        while before == 0 || unchanged < 3 {
            let now = self.event("statistics")[side]["totals"][name].as_u64();
            unchanged = if now == Some(before) {
                unchanged + 1
            } else {
                0
            };
            before = now.unwrap();
        }
    }

    /// Gives it more input.
    pub(super) fn feed(&mut self, bytes: &[u8]) {
        self.child.stdin.as_mut().unwrap().write_all(bytes).unwrap();
    }

    /// The port that it listens on.
    pub(super) fn port(&mut self) -> u16 {
        let address = self.event("listening")["address"].clone();
        let (_, port) = address.as_str().unwrap().rsplit_once(':').unwrap();
        port.parse().unwrap()
    }

    pub(super) fn interrupt(&self) {
        self.signal(Signal::INT);
    }

    pub(super) fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.child), signal).unwrap();
    }

    /// Waits for the end with this code. Returns the last object and the messages.
    pub(super) fn end(self, code: i32) -> (Value, String) {
        let (last, found, said) = self.ended();
        assert_eq!(found, Some(code), "{said}");
        (last, said)
    }

    /// Closes its input and waits for the end. Returns the last object that is not an error, the
    /// code and the messages.
    pub(super) fn ended(mut self) -> (Value, Option<i32>, String) {
        drop(self.child.stdin.take());
        let mut rest = String::new();
        self.lines.read_to_string(&mut rest).unwrap();
        let mut objects = rest.lines().map(|line| serde_json::from_str(line).unwrap());
        let last = objects.rfind(|object: &Value| object["event"] != "error");
        let last = last.unwrap_or_default();
        let mut said = String::new();
        let mut stderr = self.child.stderr.take().unwrap();
        stderr.read_to_string(&mut said).unwrap();
        let code = self.child.wait().unwrap().code();
        (last, code, said)
    }
}

/// The number of sections that arrived at its input.
pub(super) fn arrived(statistics: &Value) -> u64 {
    let totals = &statistics["input"]["totals"];
    let counts = ["sectionsOnTime", "sectionsLate"].map(|name| totals[name].as_u64());
    counts.into_iter().flatten().sum()
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
