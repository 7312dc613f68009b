//! The programs in the kernel: loaded, used, seen and gone.
//!
//! Where parts are missing, the tests say which and pass; with `COMITY_NEED_KERNEL=1` they fail.

mod libra;
mod real;

use std::collections::BTreeSet;
use std::fs;
use std::io::{Read as _, Write as _};
use std::net::{IpAddr, Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Mutex, MutexGuard, PoisonError};

use comity_kernel::{Controller, Error, Parameters, Settings, Socket, load, loaded, unload};
use socket2::{Domain, Type};

use crate::print_line;

/// The kernel has one controller of a name: one test at a time.
static KERNEL: Mutex<()> = Mutex::new(());

/// The kernel without the registered controller, for one test.
struct Kernel {
    controller: Controller,
    _alone: MutexGuard<'static, ()>,
    /// What orphaned sockets of an earlier test may keep for minutes.
    before: BTreeSet<u64>,
}

/// `None` where the kernel cannot have the controller.
fn kernel(controller: Controller) -> Option<Kernel> {
    let missing = comity_kernel::missing(controller);
    if missing.is_empty() {
        let guard = KERNEL.lock().unwrap_or_else(PoisonError::into_inner);
        match unload(controller) {
            Ok(()) | Err(Error::NotLoaded(_)) => {}
            Err(error) => panic!("{error}"),
        }
        print_line(&format!("{controller} runs in this kernel"));
        return Some(Kernel {
            controller,
            _alone: guard,
            before: objects(controller),
        });
    }
    let reason = missing.join("; ");
    assert!(
        std::env::var_os("COMITY_NEED_KERNEL").is_none(),
        "COMITY_NEED_KERNEL is set, and: {reason}"
    );
    print_line(&format!("skipped, {reason}"));
    None
}

/// The programs and maps of the kernel that are the controller's: numbers that are never used
/// again.
#[cfg(feature = "bpf")]
fn objects(controller: Controller) -> BTreeSet<u64> {
    use libbpf_rs::query::{MapInfoIter, ProgInfoIter};
    let programs = ProgInfoIter::default().map(|of| (u64::from(of.id) << 1, of.name));
    let maps = MapInfoIter::default().map(|of| (u64::from(of.id) << 1 | 1, of.name));
    let is_ours = |name: std::ffi::OsString| {
        let name = name.as_encoded_bytes();
        name.starts_with(controller.name().as_bytes())
    };
    programs
        .chain(maps)
        .filter_map(|(number, name)| is_ours(name).then_some(number))
        .collect()
}

#[cfg(not(feature = "bpf"))]
fn objects(_: Controller) -> BTreeSet<u64> {
    BTreeSet::new()
}

/// Bounds the wait for the kernel; each look takes some 100 system calls.
const MAX_LOOKS: usize = 20_000;

impl Kernel {
    /// How many objects of the kernel are new.
    fn new_objects(&self) -> usize {
        objects(self.controller).difference(&self.before).count()
    }

    /// The kernel frees programs a little later than their last user lets them go.
    fn assert_nothing_is_left(&self) {
        for _ in 0..MAX_LOOKS {
            if self.new_objects() == 0 {
                break;
            }
            std::thread::yield_now();
        }
        assert_eq!(self.new_objects(), 0);
        assert!(!is_available(self.controller));
        assert!(!self.controller.folder().exists());
    }
}

fn is_available(controller: Controller) -> bool {
    fs::read_to_string("/proc/sys/net/ipv4/tcp_available_congestion_control")
        .unwrap()
        .split_whitespace()
        .any(|name| name == controller.name())
}

/// The parameters of a controller, and others.
fn parameters(controller: Controller) -> [Parameters; 2] {
    match controller {
        Controller::Libra => {
            let first = comity_kernel::libra::Parameters::default();
            let other = comity_kernel::libra::Parameters { x: 1.0, ..first };
            [first, other].map(Parameters::Libra)
        }
        Controller::Real => {
            let first = comity_kernel::real::Parameters::default();
            let other = comity_kernel::real::Parameters {
                max_level: 12,
                ..first
            };
            [first, other].map(Parameters::Real)
        }
    }
}

fn settings(parameters: Parameters) -> Settings {
    Settings {
        parameters,
        cgroups: Vec::new(),
        destinations: Vec::new(),
    }
}

/// The ends of a connection over loopback.
struct Pair {
    sender: TcpStream,
    receiver: TcpStream,
}

impl Pair {
    fn new(choose: impl FnOnce(&socket2::Socket)) -> Self {
        Self::at(Ipv4Addr::LOCALHOST.into(), choose)
    }

    fn at(address: IpAddr, choose: impl FnOnce(&socket2::Socket)) -> Self {
        let listener = TcpListener::bind((address, 0)).unwrap();
        let address = listener.local_addr().unwrap();
        let domain = Domain::for_address(address);
        let socket = socket2::Socket::new(domain, Type::STREAM, None).unwrap();
        choose(&socket);
        socket.connect(&address.into()).unwrap();
        Self {
            sender: socket.into(),
            receiver: listener.accept().unwrap().0,
        }
    }

    /// Sends, and waits until everything was acknowledged.
    fn send(&mut self, bytes: usize) {
        let mut receiver = self.receiver.try_clone().unwrap();
        let reading = std::thread::spawn(move || {
            let mut buffer = vec![0; 1 << 16];
            let mut received = 0;
            while received < bytes {
                received += receiver.read(&mut buffer).unwrap();
            }
            receiver.write_all(&[1]).unwrap();
        });
        self.sender.write_all(&vec![7; bytes]).unwrap();
        self.sender.read_exact(&mut [0]).unwrap();
        reading.join().unwrap();
    }

    fn controller(&self) -> String {
        let name = socket2::SockRef::from(&self.sender)
            .tcp_congestion()
            .unwrap();
        let name = String::from_utf8(name).unwrap();
        name.trim_end_matches('\0').to_owned()
    }

    /// The listed flow of the sender.
    fn flow<T>(&self, flows: Vec<T>, socket: impl Fn(&T) -> &Socket) -> Option<T> {
        let local: SocketAddr = self.sender.local_addr().unwrap();
        let mut flows = flows.into_iter();
        flows.find(|flow| socket(flow).local == local)
    }
}

/// Chooses a controller for a socket.
fn choose(controller: Controller) -> impl FnOnce(&socket2::Socket) {
    move |socket| {
        socket
            .set_tcp_congestion(controller.name().as_bytes())
            .unwrap();
    }
}

/// The files of a command that was killed before it was done.
#[test]
fn what_a_killed_command_left_is_removed_at_the_next_start() {
    for controller in Controller::ALL {
        let Some(kernel) = kernel(controller) else {
            continue;
        };
        let [first, other] = parameters(controller).map(settings);
        let link = controller.folder().join("link");
        load(&first).unwrap();
        assert!(matches!(load(&first), Err(Error::Loaded(_))));
        assert!(is_available(controller));
        fs::remove_file(&link).unwrap();
        assert_eq!(loaded(controller).unwrap(), None);
        load(&other).unwrap();
        assert_eq!(loaded(controller).unwrap().unwrap(), other);

        fs::remove_file(&link).unwrap();
        assert!(matches!(unload(controller), Err(Error::NotLoaded(_))));
        kernel.assert_nothing_is_left();
    }
}

#[test]
fn a_load_that_fails_leaves_nothing() {
    for controller in Controller::ALL {
        let Some(kernel) = kernel(controller) else {
            continue;
        };
        let (bad, expected) = match controller {
            Controller::Libra => {
                let of = comity_kernel::libra::Parameters {
                    y: 101.0,
                    ..Default::default()
                };
                (Parameters::Libra(of), "y is 101, expected 0 to 100")
            }
            Controller::Real => {
                let of = comity_kernel::real::Parameters {
                    max_level: 0,
                    ..Default::default()
                };
                (Parameters::Real(of), "max_level is 0, expected 1 to 10000")
            }
        };
        assert_eq!(load(&settings(bad)).unwrap_err().to_string(), expected);
        let bad = Settings {
            cgroups: vec!["/proc/self".into()],
            ..settings(parameters(controller)[0])
        };
        let error = load(&bad).unwrap_err().to_string();
        assert!(error.contains("/proc/self"), "{error}");
        kernel.assert_nothing_is_left();
    }
}

/// A cgroup with this process in it.
struct Cgroup {
    folder: PathBuf,
    before: PathBuf,
}

impl Cgroup {
    /// `None` where the kernel has no cgroups of version 2.
    fn enter() -> Option<Self> {
        let mounts = fs::read_to_string("/proc/mounts").unwrap();
        let mut words = mounts
            .lines()
            .map(|line| line.split(' ').collect::<Vec<_>>());
        let root = PathBuf::from(words.find(|words| words.get(2) == Some(&"cgroup2"))?[1]);
        let own = fs::read_to_string("/proc/self/cgroup").unwrap();
        let own = own.lines().find_map(|line| line.strip_prefix("0::/"))?;
        let group = Self {
            folder: root.join(format!("comity.test-{}", std::process::id())),
            before: root.join(own),
        };
        fs::create_dir(&group.folder).unwrap();
        group.put(&group.folder);
        Some(group)
    }

    fn put(&self, folder: &Path) {
        fs::write(folder.join("cgroup.procs"), std::process::id().to_string()).unwrap();
    }
}

impl Drop for Cgroup {
    fn drop(&mut self) {
        self.put(&self.before);
        let _ = fs::remove_dir(&self.folder);
    }
}

#[test]
fn connections_of_a_cgroup_use_it_without_a_socket_option() {
    for controller in Controller::ALL {
        let Some(kernel) = kernel(controller) else {
            continue;
        };
        let Some(cgroup) = Cgroup::enter() else {
            print_line("skipped, no cgroup file system of version 2 is mounted");
            return;
        };
        let name = controller.name();
        assert_ne!(Pair::new(|_| {}).controller(), name);
        let all = Settings {
            cgroups: vec![cgroup.folder.clone()],
            ..settings(parameters(controller)[0])
        };
        load(&all).unwrap();
        assert_eq!(loaded(controller).unwrap().unwrap(), all);
        let mut pair = Pair::new(|_| {});
        pair.send(1_000);
        assert_eq!(pair.controller(), name);
        cgroup.put(&cgroup.before);
        assert_ne!(
            Pair::new(|_| {}).controller(),
            name,
            "outside of the cgroup"
        );
        unload(controller).unwrap();
        drop(pair);
        kernel.assert_nothing_is_left();
    }
}

/// Runs in a network namespace of its own, which lasts as long as the thread.
fn in_a_namespace<T: Send + 'static>(commands: Vec<String>, run: fn() -> T) -> T {
    let inside = std::thread::spawn(move || {
        nix::sched::unshare(nix::sched::CloneFlags::CLONE_NEWNET).unwrap();
        for command in ["link set lo up".to_owned()].iter().chain(&commands) {
            let status = Command::new("ip")
                .args(command.split(' '))
                .status()
                .unwrap();
            assert!(status.success(), "ip {command}");
        }
        run()
    });
    inside.join().unwrap()
}

#[test]
fn a_route_chooses_it_and_its_flows_show_in_any_namespace() {
    for controller in Controller::ALL {
        let Some(kernel) = kernel(controller) else {
            continue;
        };
        load(&settings(parameters(controller)[0])).unwrap();
        let route = format!(
            "route replace table local local 127.0.0.1 dev lo src 127.0.0.1 congctl {controller}"
        );
        let pair = in_a_namespace(vec![route], || {
            let mut pair = Pair::new(|_| {});
            pair.send(100_000);
            pair
        });
        assert_eq!(pair.controller(), controller.name());
        let sockets: Vec<Socket> = match controller {
            Controller::Libra => {
                let flows = comity_kernel::libra::flows().unwrap();
                flows.into_iter().map(|flow| flow.socket).collect()
            }
            Controller::Real => {
                let flows = comity_kernel::real::flows().unwrap();
                flows.into_iter().map(|flow| flow.socket).collect()
            }
        };
        let socket = pair.flow(sockets, |socket| socket).expect("it is listed");
        let own = fs::read_link("/proc/self/ns/net").unwrap();
        assert_ne!(own, Path::new(&format!("net:[{}]", socket.namespace)));
        drop(pair);
        unload(controller).unwrap();
        kernel.assert_nothing_is_left();
    }
}
