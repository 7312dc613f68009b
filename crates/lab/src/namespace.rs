//! Network namespaces with names, which go away with the lab that made them.

use std::fs::{self, File};
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use rustix::fs::{FlockOperation, flock};
use rustix::process::{Pid, Signal, kill_process};
use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};

use crate::error::Error;

/// Where `ip netns` keeps namespaces.
const NAMESPACES: &str = "/run/netns";
/// Where each lab holds a lock for as long as it lives.
const LABS: &str = "/run/comity-lab";
/// What the names of a lab's namespaces begin with; its number follows.
const PREFIX: &str = "comity-";

/// A running lab: its number, and a lock that the kernel releases when its process ends in whatever way.
#[derive(Debug)]
pub(crate) struct Session {
    number: u32,
    lock: PathBuf,
    _file: File,
}

impl Session {
    /// Removes what labs left that are gone, and begins one.
    pub(crate) fn begin() -> Result<Self, Error> {
        remove_stale()?;
        let number = std::process::id();
        let lock = Path::new(LABS).join(number.to_string());
        let purpose = || format!("cannot hold the lock {}", lock.display());
        let file = File::create(&lock).map_err(Error::system(purpose()))?;
        flock(&file, FlockOperation::NonBlockingLockExclusive).map_err(Error::system(purpose()))?;
        Ok(Self {
            number,
            lock,
            _file: file,
        })
    }

    /// The name of a namespace of this lab.
    fn name_of(&self, host: &str) -> String {
        format!("{PREFIX}{}-{host}", self.number)
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        // A lock file that stays is removed at the next start.
        let _ = fs::remove_file(&self.lock);
    }
}

/// Ends the processes and removes the namespaces of labs that no longer run. Returns how many namespaces went.
///
/// # Errors
/// When the folder of locks cannot be made, or `ip` fails.
pub fn remove_stale() -> Result<usize, Error> {
    let purpose = || format!("cannot use the folder {LABS}");
    fs::create_dir_all(LABS).map_err(Error::system(purpose()))?;
    let mut removed = 0;
    let Ok(entries) = fs::read_dir(NAMESPACES) else {
        return Ok(0);
    };
    for entry in entries.flatten() {
        let name = entry.file_name();
        let Some(name) = name.to_str() else { continue };
        let Some(number) = number_of(name) else {
            continue;
        };
        let lock = Path::new(LABS).join(number);
        if is_held(&lock) {
            continue;
        }
        end_processes(name);
        ip(&["netns", "del", name], "")?;
        removed += 1;
    }
    // The locks of labs that are gone, now that nothing stands under their numbers.
    if let Ok(locks) = fs::read_dir(LABS) {
        for lock in locks.flatten().filter(|lock| !is_held(&lock.path())) {
            let _ = fs::remove_file(lock.path());
        }
    }
    Ok(removed)
}

/// The number of the lab in the name of a namespace.
fn number_of(name: &str) -> Option<&str> {
    let (number, _) = name.strip_prefix(PREFIX)?.split_once('-')?;
    number
        .bytes()
        .all(|byte| byte.is_ascii_digit())
        .then_some(number)
}

/// Whether a process holds the lock.
fn is_held(lock: &Path) -> bool {
    let Ok(file) = File::open(lock) else {
        return false;
    };
    flock(&file, FlockOperation::NonBlockingLockExclusive).is_err()
}

/// A namespace of a lab. Dropping it ends the processes in it and removes it.
#[derive(Debug)]
pub(crate) struct Namespace {
    name: String,
    file: File,
}

impl Namespace {
    /// A new namespace with its loopback interface up.
    pub(crate) fn create(session: &Session, host: &str) -> Result<Self, Error> {
        let name = session.name_of(host);
        ip(&["netns", "add", &name], "")?;
        let path = Path::new(NAMESPACES).join(&name);
        let file = File::open(&path).map_err(|reason| {
            let _ = ip(&["netns", "del", &name], "");
            Error::system(format!("cannot open {}", path.display()))(reason)
        })?;
        let namespace = Self { name, file };
        namespace.configure("link set lo up")?;
        Ok(namespace)
    }

    /// What `ip netns` calls it.
    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    /// Runs commands of `ip` in it, one a line.
    pub(crate) fn configure(&self, commands: &str) -> Result<(), Error> {
        ip(&["-n", &self.name, "-batch", "-"], commands)
    }

    /// Moves the present thread into it for good. Sockets, devices and processes that the thread makes are in it.
    pub(crate) fn enter(&self) -> Result<(), Error> {
        use std::os::fd::AsFd as _;
        move_into_link_name_space(self.file.as_fd(), Some(LinkNameSpaceType::Network)).map_err(
            Error::system(format!("cannot enter the namespace {}", self.name)),
        )
    }

    /// Runs `work` on a thread that is in it.
    pub(crate) fn within<T: Send>(
        &self,
        work: impl FnOnce() -> Result<T, Error> + Send,
    ) -> Result<T, Error> {
        std::thread::scope(|scope| {
            let thread = scope.spawn(|| {
                self.enter()?;
                work()
            });
            match thread.join() {
                Ok(result) => result,
                Err(panic) => std::panic::resume_unwind(panic),
            }
        })
    }

    /// Another handle to it, for a thread that outlives this one.
    pub(crate) fn door(&self) -> Result<Door, Error> {
        let file = self.file.try_clone();
        let file = file.map_err(Error::system(format!(
            "cannot open the namespace {}",
            self.name
        )))?;
        Ok(Door(file))
    }
}

/// A way into a namespace.
#[derive(Debug)]
pub(crate) struct Door(File);

impl Door {
    /// Moves the present thread into the namespace for good.
    pub(crate) fn enter(&self) -> Result<(), Error> {
        use std::os::fd::AsFd as _;
        move_into_link_name_space(self.0.as_fd(), Some(LinkNameSpaceType::Network))
            .map_err(Error::system("cannot enter a namespace"))
    }
}

impl Drop for Namespace {
    fn drop(&mut self) {
        end_processes(&self.name);
        // What stays is removed at the next start.
        let _ = ip(&["netns", "del", &self.name], "");
    }
}

/// Kills all processes in a namespace.
fn end_processes(name: &str) {
    let Ok(output) = Command::new("ip").args(["netns", "pids", name]).output() else {
        return;
    };
    let own = std::process::id();
    for pid in String::from_utf8_lossy(&output.stdout).split_whitespace() {
        let pid: Option<i32> = pid.parse().ok();
        let pid = pid.filter(|pid| pid.cast_unsigned() != own);
        if let Some(pid) = pid.and_then(Pid::from_raw) {
            // It may have ended by itself.
            let _ = kill_process(pid, Signal::KILL);
        }
    }
}

/// Runs `ip`, with `input` to read.
fn ip(arguments: &[&str], input: &str) -> Result<(), Error> {
    let purpose = "cannot run `ip`";
    let mut child = Command::new("ip")
        .args(arguments)
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .map_err(Error::system(purpose))?;
    if let Some(mut stdin) = child.stdin.take() {
        // What it does not read it complains of itself.
        let _ = stdin.write_all(input.as_bytes());
    }
    let output = child.wait_with_output().map_err(Error::system(purpose))?;
    if output.status.success() {
        return Ok(());
    }
    Err(Error::Tool {
        command: format!("ip {}", arguments.join(" ")),
        message: String::from_utf8_lossy(&output.stderr).trim().to_owned(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_names_of_labs_have_a_number() {
        assert_eq!(number_of("comity-1234-video-0.source"), Some("1234"));
        for other in ["comity-x-1", "comity-12", "left", "comity--a-b"] {
            assert_eq!(
                number_of(other).filter(|number| !number.is_empty()),
                None,
                "{other}"
            );
        }
    }
}
