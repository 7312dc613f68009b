//! The requirements of a controller on its host.

use std::fs;
use std::path::{Path, PathBuf};

use crate::controller::Controller;
use crate::error::Error;

/// The types of the running kernel, by which the loader adapts the programs.
const BTF: &str = "/sys/kernel/btf/vmlinux";

/// The first kernel that can run a controller. Kernels have links of congestion controls since 6.4,
/// and let them read the options of their sockets since 6.12.
const fn first_kernel(controller: Controller) -> (u32, u32) {
    match controller {
        Controller::Libra => (6, 4),
        Controller::Real => (6, 12),
    }
}

/// The missing requirements, each with advice. Empty if the controller can be loaded.
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
        missing.push(NO_CGROUPS.into());
    }
    missing
}

/// The first two numbers of a kernel's release.
fn version(release: &str) -> Option<(u32, u32)> {
    let mut numbers = release.split(|at: char| !at.is_ascii_digit());
    Some((numbers.next()?.parse().ok()?, numbers.next()?.parse().ok()?))
}

/// The mount point of cgroups of version 2.
pub(crate) fn cgroup_root() -> Option<PathBuf> {
    let mounts = fs::read_to_string("/proc/mounts").ok()?;
    let mut mounts = mounts
        .lines()
        .map(|line| line.split(' ').collect::<Vec<_>>());
    let found = mounts.find(|words| words.get(2) == Some(&"cgroup2"))?;
    found.get(1).map(PathBuf::from)
}

/// The type of file systems of cgroups of version 2 in `statfs` (`linux/magic.h`).
const CGROUP2_SUPER_MAGIC: u64 = 0x6367_7270;

/// Checks that the connections of a folder can be watched. For any other folder, the kernel returns
/// EBADF.
pub(crate) fn check_cgroup(folder: &Path) -> Result<(), Error> {
    let system = rustix::fs::statfs(folder)
        .map_err(|reason| Error::file("open the cgroup", folder)(reason.into()))?;
    if u64::try_from(system.f_type) == Ok(CGROUP2_SUPER_MAGIC) && folder.is_dir() {
        return Ok(());
    }
    let advice = cgroup_root().map_or_else(
        || NO_CGROUPS.to_owned(),
        |root| format!("expected a folder below {}", root.display()),
    );
    Err(Error::Cgroup {
        folder: folder.to_owned(),
        advice,
    })
}

/// The advice if no cgroups are mounted.
const NO_CGROUPS: &str =
    "no cgroup file system of version 2 is mounted: mount -t cgroup2 none /sys/fs/cgroup";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_elsewhere_is_no_cgroup() {
        let said = |path: &str| check_cgroup(Path::new(path)).map_err(|error| error.to_string());
        let advice = said("/proc").unwrap_err();
        assert!(
            advice.starts_with("/proc is no cgroup of version 2: "),
            "{advice}"
        );
        let absent = said("/proc/no/such/folder").unwrap_err();
        assert!(
            absent.starts_with("cannot open the cgroup /proc/no/such/folder: "),
            "{absent}"
        );
        if let Some(root) = cgroup_root() {
            assert!(advice.ends_with(&format!("expected a folder below {}", root.display())));
            check_cgroup(&root).unwrap();
            let file = root.join("cgroup.procs");
            assert!(check_cgroup(&file).is_err());
        }
    }

    #[test]
    fn a_release_gives_its_version() {
        assert_eq!(version("6.18.44-fc-v657"), Some((6, 18)));
        assert_eq!(version("6.1.0-13-amd64"), Some((6, 1)));
        assert_eq!(version("linux"), None);
    }
}
