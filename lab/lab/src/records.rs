//! The files and folders that a run writes for its user.
//!
//! The lab runs as root. Another user who can write to the folder could put a link to a file of
//! root there. So no link is followed, and a file or folder of another user is refused.

use std::fs::{self, DirBuilder, File};
use std::io::{self, ErrorKind};
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _};
use std::path::Path;

use rustix::fs::{CWD, Mode, OFlags, openat};

/// Write permission of the group and of others.
const OTHERS_WRITE: u32 = 0o022;

/// Opens a file to be written. A file from an earlier run is emptied.
///
/// # Errors
/// If it is a link, has a second name, or belongs to another user.
pub(crate) fn create(path: &Path) -> io::Result<File> {
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let mode = Mode::RUSR | Mode::WUSR | Mode::RGRP | Mode::ROTH;
    let file = File::from(openat(CWD, path, flags, mode)?);
    let found = file.metadata()?;
    check_owner(found.uid())?;
    if found.is_file() {
        if found.nlink() > 1 {
            return Err(refused("it has a second name"));
        }
        file.set_len(0)?;
    }
    Ok(file)
}

/// Makes a folder for files of a run, and those on the path to it, unless it exists.
///
/// # Errors
/// If it is a link, belongs to another user, or others can write to it.
pub fn make_folder(path: &Path) -> io::Result<()> {
    let mut builder = DirBuilder::new();
    builder.recursive(true).mode(0o755).create(path)?;
    let found = fs::symlink_metadata(path)?;
    if !found.is_dir() {
        return Err(refused("it is a symbolic link, which is not followed"));
    }
    check_owner(found.uid())?;
    match found.mode() & OTHERS_WRITE {
        0 => Ok(()),
        _ => Err(refused("other users can write to it")),
    }
}

fn check_owner(owner: u32) -> io::Result<()> {
    let own = rustix::process::geteuid().as_raw();
    match owner == 0 || owner == own {
        true => Ok(()),
        false => Err(refused(&format!("it belongs to user {owner}"))),
    }
}

fn refused(reason: &str) -> io::Error {
    io::Error::new(ErrorKind::PermissionDenied, reason.to_owned())
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{PermissionsExt as _, symlink};
    use std::path::PathBuf;

    use super::*;

    /// A folder of a test.
    struct Folder(PathBuf);

    impl Folder {
        fn new(name: &str) -> Self {
            let name = format!("comity-records-{name}-{}", std::process::id());
            let path = std::env::temp_dir().join(name);
            fs::create_dir(&path).unwrap();
            Self(path)
        }
    }

    impl Drop for Folder {
        fn drop(&mut self) {
            let _ = fs::remove_dir_all(&self.0);
        }
    }

    #[test]
    fn no_file_behind_a_link_is_emptied() {
        let folder = Folder::new("file");
        let at = |name: &str| folder.0.join(name);
        fs::write(at("precious"), "text").unwrap();
        symlink(at("precious"), at("link")).unwrap();
        symlink(at("nothing"), at("dangling")).unwrap();
        fs::hard_link(at("precious"), at("second")).unwrap();
        for name in ["link", "dangling", "second"] {
            assert!(create(&at(name)).is_err(), "{name}");
        }
        assert_eq!(fs::read_to_string(at("precious")).unwrap(), "text");
        assert!(!at("nothing").exists());
        // A new file, and one of an earlier run.
        for _ in 0..2 {
            assert_eq!(create(&at("new")).unwrap().metadata().unwrap().len(), 0);
            fs::write(at("new"), "an earlier run").unwrap();
        }
    }

    #[test]
    fn folders_of_others_are_refused() {
        let folder = Folder::new("folder");
        let at = |name: &str| folder.0.join(name);
        for _ in 0..2 {
            make_folder(&at("a/b")).unwrap();
        }
        symlink(at("a"), at("link")).unwrap();
        assert!(make_folder(&at("link")).is_err());
        fs::set_permissions(at("a/b"), fs::Permissions::from_mode(0o777)).unwrap();
        let open = make_folder(&at("a/b")).unwrap_err();
        assert!(open.to_string().contains("other users"), "{open}");
        let foreign = rustix::process::geteuid().as_raw() + 1;
        assert!(check_owner(foreign).is_err());
        assert!(check_owner(foreign - 1).is_ok() && check_owner(0).is_ok());
    }
}
