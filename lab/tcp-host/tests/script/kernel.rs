//! The kernel's stack, behind a TUN device in a network namespace of its own, in real time.

use std::collections::VecDeque;
use std::io::{Read as _, Write as _};
use std::net::{IpAddr, Shutdown, SocketAddr};
use std::os::fd::AsFd as _;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use comity_units::{Span, Time};
use etherparse::PacketBuilder;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sched::{CloneFlags, unshare};
use socket2::{Domain, SockAddr, Socket, TcpKeepalive, Type};
use tun_rs::{DeviceBuilder, SyncDevice};

use super::language::{Call, Family, Script, SocketOption, Target};
use super::stack::Stack;
use super::wire::{SERVICE, Wire, local, mtu, peer};
use crate::kernel::ip;

/// The device that `setup.sh` expects, as packetdrill has it.
const DEVICE: &str = "tun0";

pub(super) struct Kernel {
    /// Plain, so that every segment is a packet.
    tun: SyncDevice,
    family: Family,
    began: Instant,
    /// Closed files are `None`.
    files: Vec<Option<Socket>>,
    sent: VecDeque<(Time, Vec<u8>)>,
}

/// The content of the echo request.
const PING: &[u8] = b"are you ready";

fn echo_request(family: Family) -> Vec<u8> {
    let mut packet = Vec::new();
    let result = match (peer(family), local(family)) {
        (IpAddr::V4(from), IpAddr::V4(to)) => PacketBuilder::ipv4(from.octets(), to.octets(), 64)
            .icmpv4_echo_request(1, 1)
            .write(&mut packet, PING),
        (IpAddr::V6(from), IpAddr::V6(to)) => PacketBuilder::ipv6(from.octets(), to.octets(), 64)
            .icmpv6_echo_request(1, 1)
            .write(&mut packet, PING),
        _ => unreachable!("one family"),
    };
    result.unwrap();
    packet
}

#[expect(clippy::disallowed_methods, reason = "the kernel runs in real time")]
fn present() -> Instant {
    Instant::now()
}

impl Kernel {
    /// Moves this thread into a new namespace, with a device and the settings of a script.
    pub(super) fn new(script: &Script, family: Family, folder: &Path) -> Self {
        unshare(CloneFlags::CLONE_NEWNET).unwrap();
        ip("link set lo up\n");
        let tun = DeviceBuilder::new()
            .name(DEVICE)
            .mtu(mtu(family))
            .build_sync()
            .unwrap();
        tun.set_nonblocking(true).unwrap();
        let (prefix, network, flag) = match family {
            Family::V4 => (24, "192.0.2.0/24", ""),
            Family::V6 => (64, "2001:db8::/32", "nodad"),
        };
        ip(&format!(
            "address add {}/{prefix} dev {DEVICE} {flag}\nlink set {DEVICE} up\n\
             route add {network} dev {DEVICE}\n",
            local(family)
        ));
        let settings = script.settings.iter();
        let status = Command::new("sh")
            .arg("setup.sh")
            .args(settings.map(|(key, value)| format!("{key}={value}")))
            .current_dir(folder)
            .status()
            .unwrap();
        assert!(status.success(), "{}: setup.sh", script.file);
        let mut kernel = Self {
            tun,
            family,
            began: present(),
            files: Vec::new(),
            sent: VecDeque::new(),
        };
        kernel.wait_until_ready();
        kernel
    }

    /// Waits until the kernel answers an echo request: it takes a while until a device is up.
    fn wait_until_ready(&mut self) {
        let request = echo_request(self.family);
        let mut buffer = vec![0; 1 << 16];
        for _ in 0..200 {
            self.inject(&request);
            let mut files = [PollFd::new(self.tun.as_fd(), PollFlags::POLLIN)];
            let _ = poll(&mut files, 10_u8);
            while let Ok(length) = self.tun.recv(&mut buffer) {
                if buffer[..length].ends_with(PING) {
                    return;
                }
            }
        }
        panic!("the kernel does not answer on {DEVICE}");
    }

    /// Collects what arrives at the device until `limit`, or the first packet.
    fn receive(&mut self, limit: Time, stops_early: bool) {
        let mut buffer = vec![0; 1 << 16];
        loop {
            let mut is_dry = true;
            while let Ok(length) = self.tun.recv(&mut buffer) {
                is_dry = false;
                let packet = &buffer[..length];
                if Wire::is_tcp(packet) {
                    self.sent.push_back((self.now(), packet.to_vec()));
                }
            }
            let left = limit.saturating_since(self.now());
            if stops_early && !self.sent.is_empty() || is_dry && left == Span::ZERO {
                return;
            }
            let millis = Duration::from(left + Span::from_micros(999)).as_millis();
            let timeout = PollTimeout::try_from(millis).unwrap_or(PollTimeout::MAX);
            let mut files = [PollFd::new(self.tun.as_fd(), PollFlags::POLLIN)];
            let _ = poll(&mut files, timeout);
        }
    }

    fn file(&self, file: i64) -> Result<&Socket, String> {
        let index = usize::try_from(file).map_err(|_| "EBADF")?;
        let file = self.files.get(index).and_then(Option::as_ref);
        file.ok_or_else(|| "EBADF".into())
    }

    fn open(&mut self, socket: Socket) -> i64 {
        self.files.push(Some(socket));
        self.files.len() as i64 - 1
    }

    fn perform(&mut self, call: Call) -> std::io::Result<i64> {
        let of = |file| self.file(file).map_err(std::io::Error::other);
        match call {
            Call::Socket => {
                let domain = match self.family {
                    Family::V4 => Domain::IPV4,
                    Family::V6 => Domain::IPV6,
                };
                let socket = Socket::new(domain, Type::STREAM, None)?;
                return Ok(self.open(socket));
            }
            Call::Accept { file } => {
                let (socket, _) = of(file)?.accept()?;
                socket.set_nonblocking(true)?;
                return Ok(self.open(socket));
            }
            Call::Close { file } => drop(self.files[file as usize].take()),
            Call::NonBlocking { file } => of(file)?.set_nonblocking(true)?,
            Call::Set { file, option } => set(of(file)?, option)?,
            Call::Bind { file } => {
                let address = SocketAddr::new(local(self.family), SERVICE);
                of(file)?.bind(&SockAddr::from(address))?;
            }
            Call::Listen { file, backlog } => of(file)?.listen(backlog)?,
            Call::Connect { file } => {
                let address = SocketAddr::new(peer(self.family), SERVICE);
                of(file)?.connect(&SockAddr::from(address))?;
            }
            Call::ShutDownWrite { file } => of(file)?.shutdown(Shutdown::Write)?,
            Call::Write { .. } | Call::Read { .. } => unreachable!("calls with bytes"),
        }
        Ok(0)
    }
}

fn set(socket: &Socket, option: SocketOption) -> std::io::Result<()> {
    let seconds = |seconds: u32| Duration::from_secs(seconds.into());
    let probes = TcpKeepalive::new();
    match option {
        SocketOption::ReuseAddress => socket.set_reuse_address(true),
        SocketOption::NoDelay => socket.set_tcp_nodelay(true),
        SocketOption::ReceiveBuffer(size) => socket.set_recv_buffer_size(size),
        SocketOption::SendBuffer(size) => socket.set_send_buffer_size(size),
        SocketOption::LingerZero => socket.set_linger(Some(Duration::ZERO)),
        SocketOption::KeepAlive => socket.set_keepalive(true),
        SocketOption::KeepIdle(idle) => socket.set_tcp_keepalive(&probes.with_time(seconds(idle))),
        SocketOption::KeepInterval(interval) => {
            socket.set_tcp_keepalive(&probes.with_interval(seconds(interval)))
        }
        SocketOption::KeepCount(count) => socket.set_tcp_keepalive(&probes.with_retries(count)),
    }
}

/// The name of an error.
fn name(error: &std::io::Error) -> String {
    match error.raw_os_error() {
        Some(number) => format!("{:?}", nix::errno::Errno::from_raw(number)),
        None => error.to_string(),
    }
}

impl Stack for Kernel {
    fn target(&self) -> Target {
        Target::Linux
    }

    fn now(&self) -> Time {
        Time::ZERO + Span::from(present() - self.began)
    }

    fn wait_until(&mut self, at: Time) {
        self.receive(at, false);
    }

    fn next_packet(&mut self, limit: Time) -> Option<(Time, Vec<u8>)> {
        if self.sent.is_empty() {
            self.receive(limit, true);
        }
        self.sent.pop_front()
    }

    fn inject(&mut self, packet: &[u8]) {
        // The kernel refuses packets while the device comes up.
        let _ = self.tun.send(packet);
    }

    fn call(&mut self, call: Call) -> Result<i64, String> {
        self.perform(call).map_err(|error| name(&error))
    }

    fn write(&mut self, file: i64, bytes: &[u8]) -> Result<i64, String> {
        let written = self.file(file)?.write(bytes);
        written
            .map(|length| length as i64)
            .map_err(|error| name(&error))
    }

    fn read(&mut self, file: i64, length: usize) -> Result<Vec<u8>, String> {
        let mut bytes = vec![0; length];
        let length = self.file(file)?.read(&mut bytes);
        bytes.truncate(length.map_err(|error| name(&error))?);
        Ok(bytes)
    }

    /// Generous: the machine may be busy, and the kernel's timers are coarse, long ones more so.
    fn tolerance(&self, delay: Span) -> Span {
        Span::from_millis(30) + delay / 4
    }
}
