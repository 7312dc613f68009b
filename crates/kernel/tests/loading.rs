//! The program in the kernel: loaded, used, seen and gone.
//!
//! Where parts are missing, the tests say which and pass; with `COMITY_NEED_KERNEL=1` they fail.

use std::collections::BTreeSet;
use std::fs;
use std::io::{Read as _, Write as _};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Mutex, MutexGuard, PoisonError};

use comity_kernel::{Error, FOLDER, Flow, Parameters, Settings, flows, load, loaded, unload};
use comity_units::{Rate, Span};
use socket2::{Domain, Socket, Type};

use crate::tell;

/// The kernel has one Libra: one test at a time.
static KERNEL: Mutex<()> = Mutex::new(());

/// The kernel without a registered Libra, for one test.
struct Kernel {
    _alone: MutexGuard<'static, ()>,
    /// What orphaned sockets of an earlier Libra may keep for minutes.
    before: BTreeSet<u64>,
}

/// `None` where the kernel cannot have Libra.
fn kernel() -> Option<Kernel> {
    let missing = comity_kernel::missing();
    if missing.is_empty() {
        let guard = KERNEL.lock().unwrap_or_else(PoisonError::into_inner);
        match unload() {
            Ok(()) | Err(Error::NotLoaded) => {}
            Err(error) => panic!("{error}"),
        }
        tell("Libra runs in this kernel");
        return Some(Kernel {
            _alone: guard,
            before: objects(),
        });
    }
    let reason = missing.join("; ");
    assert!(
        std::env::var_os("COMITY_NEED_KERNEL").is_none(),
        "COMITY_NEED_KERNEL is set, and: {reason}"
    );
    tell(&format!("skipped, {reason}"));
    None
}

/// The programs and maps of the kernel that are Libra's: numbers that are never used again.
#[cfg(feature = "bpf")]
fn objects() -> BTreeSet<u64> {
    use libbpf_rs::query::{MapInfoIter, ProgInfoIter};
    let programs = ProgInfoIter::default().map(|of| (u64::from(of.id) << 1, of.name));
    let maps = MapInfoIter::default().map(|of| (u64::from(of.id) << 1 | 1, of.name));
    let is_ours = |name: std::ffi::OsString| name.as_encoded_bytes().starts_with(b"libra");
    programs
        .chain(maps)
        .filter_map(|(number, name)| is_ours(name).then_some(number))
        .collect()
}

#[cfg(not(feature = "bpf"))]
fn objects() -> BTreeSet<u64> {
    BTreeSet::new()
}

/// Bounds the wait for the kernel; each look takes some 100 system calls.
const MAX_LOOKS: usize = 20_000;

impl Kernel {
    /// How many objects of the kernel are new.
    fn new_objects(&self) -> usize {
        objects().difference(&self.before).count()
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
        assert!(!is_available());
        assert!(!Path::new(FOLDER).exists());
    }
}

fn is_available() -> bool {
    fs::read_to_string("/proc/sys/net/ipv4/tcp_available_congestion_control")
        .unwrap()
        .split_whitespace()
        .any(|name| name == "libra")
}

/// Both ends of a connection over loopback, and the state of the sender after `bytes`.
fn transfer(bytes: usize, choose: impl FnOnce(&Socket)) -> (Vec<u8>, Option<Flow>) {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let address = listener.local_addr().unwrap();
    let socket = Socket::new(Domain::IPV4, Type::STREAM, None).unwrap();
    choose(&socket);
    socket.connect(&address.into()).unwrap();
    let controller = socket.tcp_congestion().unwrap();
    let mut sender: TcpStream = socket.into();
    let mut receiver = listener.accept().unwrap().0;
    let reading = std::thread::spawn(move || {
        let mut count = vec![0; 1 << 16];
        let mut received = 0;
        while received < bytes {
            received += receiver.read(&mut count).unwrap();
        }
        // The last byte back: everything has been acknowledged.
        receiver.write_all(&[1]).unwrap();
        receiver
    });
    sender.write_all(&vec![7; bytes]).unwrap();
    sender.read_exact(&mut [0]).unwrap();
    let local: SocketAddr = sender.local_addr().unwrap();
    let flow = flows().ok().and_then(|mut flows| {
        flows.retain(|flow| flow.local == local && flow.remote == address);
        flows.pop()
    });
    drop((sender, reading.join().unwrap()));
    let end = controller.iter().position(|byte| *byte == 0);
    (controller[..end.unwrap_or(controller.len())].to_vec(), flow)
}

fn choose(socket: &Socket) {
    socket.set_tcp_congestion(b"libra").unwrap();
}

#[test]
fn a_socket_chooses_it_sends_with_it_and_shows_its_state() {
    let Some(kernel) = kernel() else { return };
    let parameters = Parameters {
        capacity: Some(Rate::from_mbps(100)),
        y: 1.5,
        memory: Some(Span::from_secs(30)),
        ..Parameters::default()
    };
    assert!(!is_available());
    load(&Settings {
        parameters,
        cgroups: Vec::new(),
    })
    .unwrap();
    assert!(is_available());
    assert_eq!(loaded().unwrap().unwrap().parameters, parameters);
    assert!(matches!(load(&Settings::default()), Err(Error::Loaded)));

    let (controller, flow) = transfer(8 << 20, choose);
    assert_eq!(controller, b"libra");
    let flow = flow.expect("the flow is listed");
    assert!(flow.window >= 10, "{flow:?}");
    let [least, most] = flow.rtt_range.unwrap();
    let rtt = flow.rtt.unwrap();
    assert!(
        least <= rtt && rtt <= most && most < Span::from_secs(1),
        "{flow:?}"
    );
    assert_eq!(flow.capacity, Some(Rate::from_mbps(100)));
    assert!((0.0..=1.0).contains(&flow.beta), "{flow:?}");

    if cfg!(feature = "bpf") {
        assert!(kernel.new_objects() > 8);
    }
    unload().unwrap();
    kernel.assert_nothing_is_left();
    assert!(matches!(flows(), Err(Error::NotLoaded)));
    assert!(matches!(unload(), Err(Error::NotLoaded)));
}

#[test]
fn without_a_configured_capacity_it_is_estimated() {
    let Some(kernel) = kernel() else { return };
    load(&Settings::default()).unwrap();
    let (_, flow) = transfer(8 << 20, choose);
    let flow = flow.expect("the flow is listed");
    // Loopback carries gigabits; a wrong unit would show as megabits or terabits.
    let capacity = flow.capacity.expect("an estimate").as_mbps_f64();
    assert!((500.0..1e6).contains(&capacity), "{flow:?}");
    unload().unwrap();
    kernel.assert_nothing_is_left();
}

/// The files of a command that was killed before it was done.
#[test]
fn what_a_killed_command_left_is_removed_at_the_next_start() {
    let Some(kernel) = kernel() else { return };
    load(&Settings::default()).unwrap();
    fs::remove_file(Path::new(FOLDER).join("link")).unwrap();
    assert_eq!(loaded().unwrap(), None);
    let parameters = Parameters {
        x: 1.0,
        ..Parameters::default()
    };
    load(&Settings {
        parameters,
        cgroups: Vec::new(),
    })
    .unwrap();
    assert_eq!(loaded().unwrap().unwrap().parameters, parameters);

    fs::remove_file(Path::new(FOLDER).join("link")).unwrap();
    assert!(matches!(unload(), Err(Error::NotLoaded)));
    kernel.assert_nothing_is_left();
}

#[test]
fn a_load_that_fails_leaves_nothing() {
    let Some(kernel) = kernel() else { return };
    let bad = Settings {
        parameters: Parameters {
            y: 101.0,
            ..Parameters::default()
        },
        cgroups: Vec::new(),
    };
    let error = load(&bad).unwrap_err();
    assert_eq!(error.to_string(), "y is 101, expected 0 to 100");
    let bad = Settings {
        cgroups: vec!["/proc/self".into()],
        ..Settings::default()
    };
    let error = load(&bad).unwrap_err().to_string();
    assert!(error.contains("/proc/self"), "{error}");
    kernel.assert_nothing_is_left();
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
fn connections_of_a_cgroup_use_it_without_being_told() {
    let Some(kernel) = kernel() else { return };
    let Some(cgroup) = Cgroup::enter() else {
        tell("skipped, no cgroup file system of version 2 is mounted");
        return;
    };
    assert_ne!(transfer(1_000, |_| {}).0, b"libra");
    let cgroups = vec![cgroup.folder.clone()];
    load(&Settings {
        cgroups: cgroups.clone(),
        ..Settings::default()
    })
    .unwrap();
    assert_eq!(loaded().unwrap().unwrap().cgroups, cgroups);
    let (controller, flow) = transfer(1_000, |_| {});
    assert_eq!(controller, b"libra");
    assert!(flow.is_some());
    cgroup.put(&cgroup.before);
    assert_ne!(transfer(1_000, |_| {}).0, b"libra", "outside of the cgroup");
    unload().unwrap();
    kernel.assert_nothing_is_left();
}

#[test]
fn a_route_chooses_it_and_its_flows_show_in_any_namespace() {
    let Some(kernel) = kernel() else { return };
    load(&Settings::default()).unwrap();
    // The namespace lasts as long as the thread.
    let inside = std::thread::spawn(|| {
        nix::sched::unshare(nix::sched::CloneFlags::CLONE_NEWNET).unwrap();
        for command in [
            "link set lo up",
            "route replace table local local 127.0.0.1 dev lo src 127.0.0.1 congctl libra",
        ] {
            let status = Command::new("ip")
                .args(command.split(' '))
                .status()
                .unwrap();
            assert!(status.success(), "ip {command}");
        }
        transfer(100_000, |_| {})
    });
    let (controller, flow) = inside.join().unwrap();
    assert_eq!(controller, b"libra");
    let own = fs::read_link("/proc/self/ns/net").unwrap();
    let flow = flow.expect("the flow is listed");
    assert_ne!(own, Path::new(&format!("net:[{}]", flow.namespace)));
    unload().unwrap();
    kernel.assert_nothing_is_left();
}
