//! The requirements of a lab on its host.

use std::fs::OpenOptions;
use std::process::{Command, Stdio};

/// The folder of the kernel's IPv4 settings.
const IPV4: &str = "/proc/sys/net/ipv4";

/// The missing requirements, each with advice. Empty if the lab can run.
pub fn missing() -> Vec<String> {
    let mut missing = Vec::new();
    if !rustix::process::geteuid().is_root() {
        missing.push("network namespaces need root: run it with sudo".into());
    }
    if let Err(reason) = OpenOptions::new()
        .read(true)
        .write(true)
        .open("/dev/net/tun")
    {
        missing.push(format!(
            "/dev/net/tun cannot be opened ({reason}): load the module `tun`, or allow the device in the container"
        ));
    }
    for (tool, package) in [("ip", "iproute2"), ("setpriv", "util-linux")] {
        let version = Command::new(tool)
            .arg("-V")
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .status();
        if version.is_err() {
            missing.push(format!("`{tool}` is missing: install {package}"));
        }
    }
    missing
}

/// The congestion controllers of the kernel.
pub(crate) fn controllers() -> Vec<String> {
    std::fs::read_to_string(format!("{IPV4}/tcp_available_congestion_control"))
        .map(|names| names.split_whitespace().map(Into::into).collect())
        .unwrap_or_default()
}
