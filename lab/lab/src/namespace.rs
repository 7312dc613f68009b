//! Named network namespaces, which are removed with their lab.

use std::fs::{self, File};
use std::io::Write as _;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use comity_units::{Span, Time};
use rustix::fs::{FlockOperation, flock};
use rustix::process::{Pid, Signal, kill_process};
use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};

use crate::clock::{Clock, RunClock};
use crate::error::Error;

/// The folder in which `ip netns` keeps namespaces.
const NAMESPACES: &str = "/run/netns";
/// The folder in which each running lab holds a lock.
const LABS: &str = "/run/comity-lab";
/// The lock for starting a lab, and for removing the leftovers of one. No lab has this number.
const REGISTER: &str = "register";
/// The prefix of a lab's namespaces, before its number.
const PREFIX: &str = "comity-";
/// The time that killed processes have for ending.
const BURIAL: Span = Span::from_secs(2);

/// A running lab: its number, and a lock that the kernel releases whenever its process ends.
#[derive(Debug)]
pub(crate) struct Session {
    number: u32,
    lock: PathBuf,
    _file: File,
}

impl Session {
    /// Removes the leftovers of ended labs, and starts a lab with a free number.
    pub(crate) fn begin() -> Result<Self, Error> {
        let _register = register()?;
        sweep()?;
        for number in 1..=u32::MAX {
            let lock = Path::new(LABS).join(number.to_string());
            let purpose = || format!("cannot hold the lock {}", lock.display());
            let file = match File::create_new(&lock) {
                Ok(file) => file,
                // Another running lab has this number.
                Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => continue,
                Err(error) => return Err(Error::system(purpose())(error)),
            };
            flock(&file, FlockOperation::NonBlockingLockExclusive)
                .map_err(Error::system(purpose()))?;
            return Ok(Self {
                number,
                lock,
                _file: file,
            });
        }
        Err(Error::system("cannot begin a lab")(std::io::Error::other(
            "all numbers are taken",
        )))
    }

    /// The name of a namespace of this lab.
    fn name_of(&self, host: &str) -> String {
        format!("{PREFIX}{}-{host}", self.number)
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        // If the lock file stays, the next lab removes it.
        let _ = fs::remove_file(&self.lock);
    }
}

/// Excludes other processes from starting labs and removing leftovers, until the file is closed.
/// Otherwise a lock file that is not locked yet, or a namespace without a lock, would look like
/// leftovers.
fn register() -> Result<File, Error> {
    let purpose = || format!("cannot use the folder {LABS}");
    fs::create_dir_all(LABS).map_err(Error::system(purpose()))?;
    let file = File::create(Path::new(LABS).join(REGISTER)).map_err(Error::system(purpose()))?;
    flock(&file, FlockOperation::LockExclusive).map_err(Error::system(purpose()))?;
    Ok(file)
}

/// Ends the processes and removes the namespaces of labs that no longer run. Returns the number of
/// removed namespaces.
///
/// # Errors
/// If the folder of locks cannot be created, or `ip` fails.
pub fn remove_stale() -> Result<usize, Error> {
    let _register = register()?;
    sweep()
}

fn sweep() -> Result<usize, Error> {
    let mut removed = 0;
    for entry in fs::read_dir(NAMESPACES).into_iter().flatten().flatten() {
        let name = entry.file_name();
        let Some(name) = name.to_str() else { continue };
        let Some(number) = number_of(name) else {
            continue;
        };
        if is_held(&Path::new(LABS).join(number)) {
            continue;
        }
        end_processes(name);
        ip(&["netns", "del", name], "")?;
        removed += 1;
    }
    // The locks of ended labs are removed last, when their numbers are no longer used.
    for lock in fs::read_dir(LABS).into_iter().flatten().flatten() {
        if lock.file_name() != REGISTER && !is_held(&lock.path()) {
            let _ = fs::remove_file(lock.path());
        }
    }
    Ok(removed)
}

/// The number of the lab in the name of a namespace.
fn number_of(name: &str) -> Option<&str> {
    let (number, _) = name.strip_prefix(PREFIX)?.split_once('-')?;
    let is_number = !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit());
    is_number.then_some(number)
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

    /// Its name for `ip netns`.
    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    /// Runs commands of `ip` in it, one per line.
    pub(crate) fn configure(&self, commands: &str) -> Result<(), Error> {
        ip(&["-n", &self.name, "-batch", "-"], commands)
    }

    /// Runs `work` on a thread inside it. Sockets and devices that it creates stay inside.
    pub(crate) fn within<T: Send>(
        &self,
        work: impl FnOnce() -> Result<T, Error> + Send,
    ) -> Result<T, Error> {
        let door = self.door()?;
        std::thread::scope(|scope| {
            let thread = scope.spawn(|| {
                door.enter()?;
                work()
            });
            match thread.join() {
                Ok(result) => result,
                Err(panic) => std::panic::resume_unwind(panic),
            }
        })
    }

    /// A handle for entering it, for a thread that outlives this value.
    pub(crate) fn door(&self) -> Result<Door, Error> {
        let file = self.file.try_clone();
        let file = file.map_err(Error::system(format!(
            "cannot open the namespace {}",
            self.name
        )))?;
        Ok(Door {
            name: self.name.clone(),
            file,
        })
    }
}

/// A handle for entering a namespace.
#[derive(Debug)]
pub(crate) struct Door {
    name: String,
    file: File,
}

impl Door {
    /// Moves the present thread, and all processes that it starts, permanently into the namespace.
    pub(crate) fn enter(&self) -> Result<(), Error> {
        use std::os::fd::AsFd as _;
        move_into_link_name_space(self.file.as_fd(), Some(LinkNameSpaceType::Network)).map_err(
            Error::system(format!("cannot enter the namespace {}", self.name)),
        )
    }

    /// Kills all processes in the namespace, regardless of who started them.
    pub(crate) fn end_processes(&self) {
        end_processes(&self.name);
    }
}

impl Drop for Namespace {
    fn drop(&mut self) {
        end_processes(&self.name);
        // The next lab removes leftovers.
        let _ = ip(&["netns", "del", &self.name], "");
    }
}

/// Kills all processes in a namespace, including those that they start meanwhile.
fn end_processes(name: &str) {
    let own = std::process::id();
    let clock = RunClock::new(Clock::starting_in(Span::ZERO));
    while clock.now() < Time::ZERO + BURIAL {
        let output = tool("ip").args(["netns", "pids", name]).output();
        let Ok(output) = output else { return };
        let mut is_empty = true;
        for pid in String::from_utf8_lossy(&output.stdout).split_whitespace() {
            let pid: Option<i32> = pid.parse().ok();
            let pid = pid.filter(|pid| pid.cast_unsigned() != own);
            if let Some(pid) = pid.and_then(Pid::from_raw) {
                is_empty = false;
                // The process may have ended.
                let _ = kill_process(pid, Signal::KILL);
            }
        }
        if is_empty {
            return;
        }
        clock.wait_until(clock.now() + Span::from_millis(5));
    }
}

/// A tool of the system, protected from the interrupt key, because it must complete its work.
fn tool(name: &str) -> Command {
    let mut command = Command::new(name);
    command.process_group(0);
    command
}

/// Runs `ip` with `input` on its standard input.
fn ip(arguments: &[&str], input: &str) -> Result<(), Error> {
    let purpose = "cannot run `ip`";
    let mut child = tool("ip")
        .args(arguments)
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .map_err(Error::system(purpose))?;
    if let Some(mut stdin) = child.stdin.take() {
        // `ip` itself reports the input that it does not read.
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
            assert_eq!(number_of(other), None, "{other}");
        }
    }

    #[test]
    fn a_lock_is_held_as_long_as_its_file_is_open() {
        let path = std::env::temp_dir().join(format!("comity-lock-{}", std::process::id()));
        let file = File::create(&path).unwrap();
        assert!(!is_held(&path), "nobody has locked it");
        flock(&file, FlockOperation::NonBlockingLockExclusive).unwrap();
        assert!(is_held(&path));
        drop(file);
        assert!(!is_held(&path), "as after the end of a process");
        fs::remove_file(&path).unwrap();
        assert!(!is_held(&path));
    }
}
