//! The device of `comity tcp`, and its privileges.

use std::io::Write as _;
use std::process::{Command, Stdio};

use comity_tcp::timeline::{DeadlineClock, TimelineConfig};
use comity_tcp_host::net::{Stack, StartError, Tun};
use comity_tcp_host::{Config, Framing};
use rustix::thread::{CapabilitySet, CapabilitySets, set_capabilities};

use crate::args;
use crate::{Failure, complain, say};

/// A device whose privileged part is done.
pub(super) struct Prepared {
    tun: Tun,
    config: Config,
}

/// Opens the device, gives the kernel its addresses, and drops all capabilities.
pub(super) fn prepare(host: &args::TcpHost) -> Result<Prepared, Failure> {
    let config = Config {
        mtu: host.mtu.into(),
        controller: host.cc.clone(),
        ..Config::new(host.addresses.iter().copied())
    };
    if let Err(error) = config.check() {
        say(&format!("error: {error}"));
        return Err(Failure::Usage);
    }
    let tun = Tun::open(&host.tun, host.mtu).map_err(|error| {
        let name = &host.tun;
        complain(&format!(
            "cannot open the TUN device {name}: {error}; run it with sudo, or make the device first: \
             ip tuntap add dev {name} mode tun user $USER"
        ))
    })?;
    if !host.kernel.is_empty() {
        configure(&host.tun, &host.kernel)?;
    }
    let none = CapabilitySets {
        effective: CapabilitySet::empty(),
        permitted: CapabilitySet::empty(),
        inheritable: CapabilitySet::empty(),
    };
    // Threads that start later have no capabilities either.
    set_capabilities(None, none)
        .map_err(|error| complain(&format!("cannot drop the capabilities: {error}")))?;
    Ok(Prepared { tun, config })
}

impl Prepared {
    /// Sends sections, with or without offering time-lined TCP. Deadlines are set by the receiver.
    pub(super) fn in_sections(mut self, framing: Framing, is_timelined: bool) -> Self {
        self.config.framing = framing;
        self.config.tcp.timeline = is_timelined.then_some(TimelineConfig {
            blind_spot: false,
            clock: DeadlineClock::Receiver,
            ..TimelineConfig::PAPER
        });
        self
    }

    /// Starts the host, within a runtime.
    pub(super) fn start(self) -> Result<Stack, Failure> {
        Stack::start(self.tun, self.config).map_err(|error| match error {
            StartError::Config(error) => {
                say(&format!("error: {error}"));
                Failure::Usage
            }
            error @ StartError::System { .. } => complain(&error),
        })
    }
}

/// Gives the kernel addresses on the device, and brings it up.
fn configure(device: &str, addresses: &[String]) -> Result<(), Failure> {
    let mut commands = String::new();
    for address in addresses {
        // An IPv6 address is usable at once with `nodad`, without duplicate address detection.
        let nodad = if address.contains(':') { " nodad" } else { "" };
        commands += &format!("address replace {address} dev {device}{nodad}\n");
    }
    commands += &format!("link set {device} up\n");
    let fail = |error: &dyn std::fmt::Display| complain(&format!("cannot run `ip`: {error}"));
    let mut child = Command::new("ip")
        .args(["-batch", "-"])
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .map_err(|error| fail(&error))?;
    if let Some(mut stdin) = child.stdin.take() {
        // `ip` itself reports the input that it does not read.
        let _ = stdin.write_all(commands.as_bytes());
    }
    let output = child.wait_with_output().map_err(|error| fail(&error))?;
    if output.status.success() {
        return Ok(());
    }
    let message = String::from_utf8_lossy(&output.stderr);
    Err(complain(&format!("ip: {}", message.trim())))
}
