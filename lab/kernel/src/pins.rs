//! The files that keep a controller in the kernel, and their removal.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rustix::mount::{MountFlags, mount};

use crate::controller::{BPFFS, Controller, FOLDER};
use crate::error::Error;
use crate::folder::Folder;
use crate::settings::{Parameters, Settings};

/// The file that keeps the controller registered. It is created last, so a folder without it is a
/// leftover.
pub(crate) const LINK: &str = "link";
/// The prefix of files that keep a cgroup's program attached, before the encoded path.
pub(crate) const CGROUP: &str = "cgroup-";
/// The prefix of files that hold the capacity of a destination, before its encoded text.
pub(crate) const DESTINATION: &str = "capacity-";
/// The other files.
pub(crate) const OTHERS: [&str; 3] = ["parameters", "flows", "options"];
/// The type of file systems of BPF objects (`statfs`).
const BPFFS_MAGIC: u64 = 0xcafe_4a11;

/// The controllers that sockets can choose.
const CONTROLLERS: &str = "/proc/sys/net/ipv4/tcp_available_congestion_control";
/// The interval of checks whether the kernel has unregistered a controller, and their number.
const LOOK_INTERVAL: Duration = Duration::from_millis(1);
const MAX_LOOKS: u32 = 5_000;

/// The path of one of the files.
#[cfg_attr(
    not(has_program),
    expect(dead_code, reason = "only the loader makes files")
)]
pub(crate) fn path(controller: Controller, name: &str) -> PathBuf {
    controller.folder().join(name)
}

/// The settings of a loaded controller; `None` if it is not loaded.
///
/// # Errors
/// If the files cannot be read.
pub fn loaded(controller: Controller) -> Result<Option<Settings>, Error> {
    let Some(folder) = open(controller)?.filter(|folder| folder.has(LINK)) else {
        return Ok(None);
    };
    let text = folder.read("parameters")?;
    let names = folder.names()?;
    let of = |prefix| {
        let mut of: Vec<PathBuf> = names
            .iter()
            .filter_map(|name| name.strip_prefix(prefix).map(decoded))
            .collect();
        of.sort();
        of
    };
    let destinations = of(DESTINATION)
        .iter()
        .map(|text| text.to_string_lossy().parse().map_err(Error::Form))
        .collect::<Result<_, _>>()?;
    Ok(Some(Settings {
        parameters: Parameters::from_line(controller, text.trim_end())?,
        cgroups: of(CGROUP),
        destinations,
    }))
}

/// The lines for the flows of a loaded controller.
pub(crate) fn flows(controller: Controller) -> Result<String, Error> {
    match open(controller)?.filter(|folder| folder.has(LINK)) {
        None => Err(Error::NotLoaded(controller)),
        Some(folder) => folder.read("flows"),
    }
}

/// Removes a controller from the kernel. Its flows keep it until they end.
///
/// # Errors
/// If it is not loaded, or a file cannot be removed.
pub fn unload(controller: Controller) -> Result<(), Error> {
    if !is_loaded(controller)? {
        // Removes the leftovers of a killed command.
        remove(controller)?;
        return Err(Error::NotLoaded(controller));
    }
    remove(controller)
}

/// Removes all files, the link first, so that no socket chooses the controller meanwhile.
///
/// The kernel unregisters it a little later, and refuses a new one until then, so this function
/// waits.
#[expect(
    clippy::disallowed_methods,
    reason = "the kernel works on the real clock"
)]
pub(crate) fn remove(controller: Controller) -> Result<(), Error> {
    remove_files(controller)?;
    for _ in 0..MAX_LOOKS {
        if !is_registered(controller)? {
            return Ok(());
        }
        std::thread::sleep(LOOK_INTERVAL);
    }
    Err(Error::Registered(controller))
}

/// Whether the kernel has a controller with this name, from any program.
fn is_registered(controller: Controller) -> Result<bool, Error> {
    let names = fs::read_to_string(CONTROLLERS).map_err(Error::file("read", CONTROLLERS))?;
    Ok(names
        .split_whitespace()
        .any(|name| name == controller.name()))
}

/// Whether the link exists.
pub(crate) fn is_loaded(controller: Controller) -> Result<bool, Error> {
    Ok(open(controller)?.is_some_and(|folder| folder.has(LINK)))
}

/// The folder of a controller; `None` if it does not exist.
fn open(controller: Controller) -> Result<Option<Folder>, Error> {
    Folder::open(Path::new(BPFFS), &[FOLDER, controller.name()])
}

/// Whether Comity makes files with this name.
fn is_known(name: &str) -> bool {
    name == LINK
        || OTHERS.contains(&name)
        || name.starts_with(CGROUP)
        || name.starts_with(DESTINATION)
}

/// Removes the files that Comity makes, and the folders if they are then empty.
fn remove_files(controller: Controller) -> Result<(), Error> {
    let Some(folder) = open(controller)? else {
        return Ok(());
    };
    let mut names = folder.names()?;
    names.sort_by_key(|name| name != LINK);
    for name in names.iter().filter(|name| is_known(name)) {
        folder.remove(name)?;
    }
    for (within, name) in [(&[FOLDER][..], controller.name()), (&[], FOLDER)] {
        if let Some(folder) = Folder::open(Path::new(BPFFS), within)? {
            // Folders of other controllers stay.
            folder.remove_folder(name)?;
        }
    }
    Ok(())
}

/// Mounts the file system if it is not mounted, for root alone, and creates the folder.
#[cfg_attr(
    not(has_program),
    expect(dead_code, reason = "only the loader makes files")
)]
pub(crate) fn prepare(controller: Controller) -> Result<(), Error> {
    let found = rustix::fs::statfs(BPFFS);
    if found.is_ok_and(|found| found.f_type as u64 != BPFFS_MAGIC) {
        mount("bpf", BPFFS, "bpf", MountFlags::empty(), Some(c"mode=0700"))
            .map_err(|reason| Error::file("mount", BPFFS)(reason.into()))?;
    }
    Folder::create(Path::new(BPFFS), &[FOLDER, controller.name()]).map(drop)
}

/// The path of a cgroup as the name of a file. The kernel allows neither `/` nor `.` in it.
#[cfg_attr(
    not(has_program),
    cfg_attr(not(test), expect(dead_code, reason = "only the loader makes files"))
)]
pub(crate) fn encoded(path: &Path) -> String {
    let mut name = String::new();
    for byte in path.as_os_str().as_encoded_bytes() {
        if byte.is_ascii_alphanumeric() || *byte == b'_' {
            name.push(char::from(*byte));
        } else {
            name.push_str(&format!("-{byte:02x}"));
        }
    }
    name
}

fn decoded(name: &str) -> PathBuf {
    let mut bytes = Vec::new();
    let mut rest = name;
    while let Some((plain, after)) = rest.split_once('-') {
        bytes.extend_from_slice(plain.as_bytes());
        let (digits, after) = after.split_at_checked(2).unwrap_or((after, ""));
        bytes.extend(u8::from_str_radix(digits, 16).ok());
        rest = after;
    }
    bytes.extend_from_slice(rest.as_bytes());
    PathBuf::from(String::from_utf8_lossy(&bytes).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_files_of_comity_are_removed() {
        let cgroup = format!("{CGROUP}{}", encoded(Path::new("/sys/fs/cgroup/a")));
        for name in [
            "link",
            "parameters",
            "flows",
            "options",
            "capacity-10",
            &cgroup,
        ] {
            assert!(is_known(name), "{name}");
        }
        for name in ["passwd", "link2", "cgroup", ".", ".."] {
            assert!(!is_known(name), "{name}");
        }
    }

    #[test]
    fn a_path_survives_being_the_name_of_a_file() {
        for path in ["/sys/fs/cgroup/video.slice/a-b_c", "/", "/ä ö"] {
            let name = encoded(Path::new(path));
            assert!(!name.contains(['/', '.']), "{name}");
            assert_eq!(decoded(&name), Path::new(path));
        }
    }
}
