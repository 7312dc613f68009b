//! The requirements of a controller on its host.

use std::fs;
use std::path::{Path, PathBuf};

use crate::controller::Controller;

/// The types of the running kernel, which the loader corrects the programs with.
const BTF: &str = "/sys/kernel/btf/vmlinux";

/// The first kernel that can run a controller. Links of congestion controls came with 6.4; since
/// 6.12 they may ask for the options of their sockets.
const fn first_kernel(controller: Controller) -> (u32, u32) {
    match controller {
        Controller::Libra => (6, 4),
        Controller::Real => (6, 12),
    }
}

/// The missing requirements, each with advice; empty if the controller can be loaded.
pub fn missing(controller: Controller) -> Vec<String> {
    let mut missing = Vec::new();
    if cfg!(not(feature = "bpf")) {
        missing.push(
            "this build has no loader: install clang, libelf-dev, zlib1g-dev, make and pkg-config, \
             then build with `--features kernel`"
                .into(),
        );
    } else if cfg!(not(has_program)) {
        missing
            .push("clang was missing when this was built: install clang, then build again".into());
    }
    if !rustix::process::geteuid().is_root() {
        missing.push("BPF needs root: run it with sudo".into());
    }
    if !Path::new(BTF).exists() {
        missing.push(format!(
            "{BTF} is missing: run a kernel that was built with CONFIG_DEBUG_INFO_BTF"
        ));
    }
    let release = rustix::system::uname();
    let release = release.release().to_string_lossy();
    let (major, minor) = first_kernel(controller);
    if version(&release).is_none_or(|found| found < (major, minor)) {
        missing.push(format!(
            "the kernel is {release}: run Linux {major}.{minor} or later"
        ));
    }
    if controller == Controller::Real && cgroup_root().is_none() {
        missing.push(
            "no cgroup file system of version 2 is mounted: mount -t cgroup2 none /sys/fs/cgroup"
                .into(),
        );
    }
    missing
}

/// The first two numbers of a kernel's release.
fn version(release: &str) -> Option<(u32, u32)> {
    let mut numbers = release.split(|at: char| !at.is_ascii_digit());
    Some((numbers.next()?.parse().ok()?, numbers.next()?.parse().ok()?))
}

/// Where the cgroups of version 2 are mounted.
pub(crate) fn cgroup_root() -> Option<PathBuf> {
    let mounts = fs::read_to_string("/proc/mounts").ok()?;
    let mut mounts = mounts
        .lines()
        .map(|line| line.split(' ').collect::<Vec<_>>());
    let found = mounts.find(|words| words.get(2) == Some(&"cgroup2"))?;
    found.get(1).map(PathBuf::from)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_release_gives_its_version() {
        assert_eq!(version("6.18.44-fc-v657"), Some((6, 18)));
        assert_eq!(version("6.1.0-13-amd64"), Some((6, 1)));
        assert_eq!(version("linux"), None);
    }
}
