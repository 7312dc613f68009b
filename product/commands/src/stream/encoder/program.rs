//! The program of `--on-target-bitrate`, which runs once for each update.

use std::env;
use std::ffi::OsStr;
use std::fs;
use std::io;
use std::os::fd::AsFd;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::Duration;

use comity::encoder::Update;
use rustix::process::{Pid, Signal, kill_process_group};

use crate::stream::error::Error;

/// How long one run of the program may take.
const RUN_LIMIT: Duration = Duration::from_secs(5);

/// The pause before an update whose run failed is passed on again.
const RETRY: Duration = Duration::from_secs(2);

/// Runs a program with each update, one run at a time. Updates that come during a run replace each
/// other: the newest follows.
#[derive(Debug)]
pub(super) struct Program {
    path: PathBuf,
    /// Variables that are removed from its environment.
    secrets: Vec<String>,
    running: Option<Run>,
    /// The update for the next run, and the earliest time of that.
    next: Option<(Update, Duration)>,
    has_hung: bool,
    has_failed: bool,
}

#[derive(Debug)]
struct Run {
    child: Child,
    update: Update,
    began: Duration,
    is_killed: bool,
}

impl Program {
    /// Runs the program at `path`, a path or a name that `PATH` has.
    pub(super) fn new(path: &Path, secrets: Vec<String>) -> Result<Self, Error> {
        if !is_found(path, env::var_os("PATH").as_deref()) {
            return Err(Error::unopened(format!(
                "--on-target-bitrate: {} is no executable file, or not on the PATH; expected one program, without \
                 arguments",
                path.display()
            )));
        }
        Ok(Self {
            path: path.to_owned(),
            secrets,
            running: None,
            next: None,
            has_hung: false,
            has_failed: false,
        })
    }

    /// Begins the run for `update`, or for an earlier one that waits, and ends a run that hangs.
    /// Returns a warning: each problem is named once.
    pub(super) fn poll(&mut self, now: Duration, update: Option<Update>) -> Option<String> {
        if let Some(update) = update {
            self.next = Some((update, now));
        }
        let warning = self.watch(now);
        if self.running.is_some() || self.next.is_none_or(|(_, at)| at > now) {
            return warning;
        }
        let (update, _) = self.next.take()?;
        match self.start(&update) {
            Ok(child) => {
                self.running = Some(Run {
                    child,
                    update,
                    began: now,
                    is_killed: false,
                });
                warning
            }
            Err(error) => {
                let failed = self.failed(now, update, &error);
                warning.or(failed)
            }
        }
    }

    /// Looks after the present run.
    fn watch(&mut self, now: Duration) -> Option<String> {
        let run = self.running.as_mut()?;
        match run.child.try_wait() {
            Ok(None) if now.saturating_sub(run.began) < RUN_LIMIT || run.is_killed => None,
            Ok(None) => {
                run.kill();
                let is_first = !std::mem::replace(&mut self.has_hung, true);
                is_first.then(|| {
                    format!(
                        "{} took longer than {} s and was ended; further such runs are ended without a warning",
                        self.path.display(),
                        RUN_LIMIT.as_secs()
                    )
                })
            }
            Ok(Some(status)) => {
                let Run { update, .. } = self.running.take()?;
                match status.success() {
                    true => None,
                    false => self.failed(now, update, &Ended(status)),
                }
            }
            Err(error) => {
                let Run { update, .. } = self.running.take()?;
                self.failed(now, update, &error)
            }
        }
    }

    /// Schedules an update again, unless a newer one waits.
    fn failed(
        &mut self,
        now: Duration,
        update: Update,
        why: &dyn std::fmt::Display,
    ) -> Option<String> {
        self.next.get_or_insert((update, now + RETRY));
        let is_first = !std::mem::replace(&mut self.has_failed, true) && !self.has_hung;
        is_first.then(|| {
            format!(
                "{} {why}; it runs again every {} s until it succeeds, without a warning",
                self.path.display(),
                RETRY.as_secs()
            )
        })
    }

    fn start(&self, update: &Update) -> io::Result<Child> {
        // Standard output can have the lines of --json.
        let output = io::stderr().as_fd().try_clone_to_owned()?;
        let mut command = Command::new(&self.path);
        command
            .arg(update.encoder_bps.to_string())
            .env("COMITY_ENCODER_BPS", update.encoder_bps.to_string())
            .env(
                "COMITY_ENCODER_KBPS",
                (update.encoder_bps / 1_000).to_string(),
            )
            .env("COMITY_TARGET_BPS", update.target_bps.to_string())
            .env("COMITY_OTHER_BPS", update.other_bps.to_string())
            .stdin(Stdio::null())
            .stdout(output)
            // A group of its own: its end is also that of the programs that it has started.
            .process_group(0);
        for secret in &self.secrets {
            command.env_remove(secret);
        }
        command.spawn()
    }
}

/// How a run ended.
struct Ended(ExitStatus);

impl std::fmt::Display for Ended {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.0.code() {
            Some(code) => write!(f, "failed with exit code {code}"),
            None => write!(f, "failed ({})", self.0),
        }
    }
}

impl Run {
    /// Ends the program and its process group.
    fn kill(&mut self) {
        self.is_killed = true;
        // It fails if the group has ended in the meantime.
        let _ = kill_process_group(Pid::from_child(&self.child), Signal::KILL);
    }
}

impl Drop for Run {
    fn drop(&mut self) {
        if matches!(self.child.try_wait(), Ok(None)) {
            self.kill();
            let _ = self.child.wait();
        }
    }
}

/// Whether the program at `path` can be executed; a name without a slash is one in the folders of
/// `variable`.
fn is_found(path: &Path, variable: Option<&OsStr>) -> bool {
    let is_executable = |path: &Path| {
        fs::metadata(path)
            .is_ok_and(|found| found.is_file() && found.permissions().mode() & 0o111 != 0)
    };
    match path.as_os_str().as_encoded_bytes().contains(&b'/') {
        true => is_executable(path),
        false => variable.is_some_and(|folders| {
            env::split_paths(folders).any(|folder| is_executable(&folder.join(path)))
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::thread;

    fn update(kbps: u64) -> Update {
        Update {
            encoder_bps: kbps * 1_000,
            target_bps: kbps * 1_100,
            other_bps: 0,
        }
    }

    fn seconds(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    /// A folder with a script.
    fn script(text: &str) -> (tempfile::TempDir, PathBuf) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("script");
        // Written by another process: a child of another test that has not called exec yet could
        // hold this file open, and such a file cannot be executed.
        let written = Command::new("sh")
            .args([
                "-c",
                "printf '#!/bin/sh\ncd \"${0%%/*}\"\n%s\n' \"$2\" > \"$1\" && chmod 755 \"$1\"",
                "-",
            ])
            .args([path.as_os_str(), OsStr::new(text)])
            .status();
        assert!(written.unwrap().success());
        (folder, path)
    }

    /// Polls at this time until no program runs. Returns the warnings.
    fn settle(program: &mut Program, now: Duration) -> Vec<String> {
        let mut warnings = Vec::new();
        loop {
            warnings.extend(program.poll(now, None));
            if program.running.is_none() {
                return warnings;
            }
            thread::yield_now();
        }
    }

    #[test]
    fn a_run_has_the_update_and_no_secrets() {
        let (folder, path) = script(
            "echo $# $1 $COMITY_ENCODER_BPS $COMITY_ENCODER_KBPS $COMITY_TARGET_BPS ${CARGO_PKG_NAME-none} > out",
        );
        // A variable that the tests have.
        let mut program = Program::new(&path, vec!["CARGO_PKG_NAME".into()]).unwrap();
        assert_eq!(program.poll(seconds(1), Some(update(1_500))), None);
        assert_eq!(settle(&mut program, seconds(1)), [""; 0]);
        let out = fs::read_to_string(folder.path().join("out")).unwrap();
        assert_eq!(out, "1 1500000 1500000 1500 1650000 none\n");
    }

    #[test]
    fn updates_during_a_run_replace_each_other() {
        let (folder, path) = script("echo $1 >> out; while [ ! -e go ]; do :; done");
        let mut program = Program::new(&path, Vec::new()).unwrap();
        for kbps in [1_000, 2_000, 3_000] {
            assert_eq!(program.poll(seconds(1), Some(update(kbps))), None);
        }
        fs::write(folder.path().join("go"), "").unwrap();
        assert_eq!(settle(&mut program, seconds(2)), [""; 0]);
        let out = fs::read_to_string(folder.path().join("out")).unwrap();
        assert_eq!(out, "1000000\n3000000\n");
    }

    #[test]
    fn a_run_that_hangs_is_ended_with_its_children_and_named_once() {
        let (folder, path) = script("sleep 1000 & echo $! > child; wait");
        let mut program = Program::new(&path, Vec::new()).unwrap();
        assert_eq!(program.poll(seconds(1), Some(update(1_000))), None);
        let child = loop {
            let text = fs::read_to_string(folder.path().join("child")).unwrap_or_default();
            if text.ends_with('\n') {
                break PathBuf::from(format!("/proc/{}/stat", text.trim()));
            }
            thread::yield_now();
        };
        assert_eq!(program.poll(seconds(5), None), None);
        assert!(program.running.is_some());
        let warning = program.poll(seconds(6), Some(update(2_000))).unwrap();
        assert!(warning.contains("took longer than 5 s"), "{warning}");
        // The next run begins only when the first has ended.
        while program.running.as_ref().is_some_and(|run| run.is_killed) {
            assert_eq!(program.poll(seconds(6), None), None);
        }
        assert_eq!(
            program.running.as_ref().map(|run| run.update),
            Some(update(2_000))
        );
        // Gone, or a zombie.
        while fs::read_to_string(&child).is_ok_and(|stat| !stat.contains(") Z ")) {
            thread::yield_now();
        }
        assert_eq!(program.poll(seconds(20), None), None, "named once");
    }

    #[test]
    fn a_failure_is_named_once_and_its_update_is_passed_on_again() {
        let (folder, path) = script("echo $1 >> out; [ -e go ]");
        let mut program = Program::new(&path, Vec::new()).unwrap();
        assert_eq!(program.poll(seconds(1), Some(update(1_000))), None);
        let warnings = settle(&mut program, seconds(1));
        let [warning] = &warnings[..] else {
            panic!("{warnings:?}")
        };
        assert!(warning.contains("failed with exit code 1"), "{warning}");
        // Not before two seconds have passed.
        assert_eq!(settle(&mut program, seconds(2)), [""; 0]);
        assert_eq!(program.poll(seconds(3), None), None);
        assert_eq!(settle(&mut program, seconds(3)), [""; 0]);
        fs::write(folder.path().join("go"), "").unwrap();
        assert_eq!(program.poll(seconds(5), None), None);
        assert_eq!(settle(&mut program, seconds(5)), [""; 0]);
        assert_eq!(settle(&mut program, seconds(50)), [""; 0]);
        let out = fs::read_to_string(folder.path().join("out")).unwrap();
        assert_eq!(out, "1000000\n".repeat(3));
    }

    #[test]
    fn the_end_of_the_sender_ends_the_program() {
        let (folder, path) = script("echo $$ > pid; while :; do :; done");
        let mut program = Program::new(&path, Vec::new()).unwrap();
        program.poll(seconds(1), Some(update(1_000)));
        let pid = loop {
            let text = fs::read_to_string(folder.path().join("pid")).unwrap_or_default();
            if text.ends_with('\n') {
                break text.trim().to_owned();
            }
            thread::yield_now();
        };
        drop(program);
        assert!(!Path::new("/proc").join(pid).exists());
    }

    #[test]
    fn a_program_is_an_executable_file() {
        let (folder, path) = script("");
        let folders = folder.path().as_os_str();
        assert!(is_found(&path, None));
        assert!(is_found(Path::new("script"), Some(folders)));
        assert!(!is_found(Path::new("script"), None));
        assert!(!is_found(folder.path(), Some(folders)), "a folder");
        fs::set_permissions(&path, fs::Permissions::from_mode(0o644)).unwrap();
        assert!(!is_found(&path, None));
        let said = Program::new(&path, Vec::new()).unwrap_err().to_string();
        assert!(said.contains("script is no executable file"), "{said}");
    }
}
