//! A folder for the files of a controller that no other user can have put there.
//!
//! The file system of BPF objects may be open to all users, like `/tmp`. A user who makes the
//! folder first, or a link instead of it, could make root remove or read files elsewhere. Each
//! folder on the path from the file system on is therefore opened by its name in its parent,
//! without following links, and must belong to this user alone.

use std::ffi::OsStr;
use std::io::Read as _;
use std::os::fd::{AsFd as _, OwnedFd};
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, CWD, Dir, Mode, OFlags, fstat, mkdirat, openat, unlinkat};
use rustix::io::Errno;

use crate::error::Error;

/// Write permission of the group and of others.
const OTHERS_WRITE: u32 = 0o022;
/// Only their owners may remove entries.
const STICKY: u32 = 0o1000;

/// An open folder.
pub(crate) struct Folder {
    file: OwnedFd,
    path: PathBuf,
}

impl Folder {
    /// Opens the folder `names[0]/names[1]/..` below `base`; `None` if it does not exist.
    ///
    /// # Errors
    /// If a part of it is a link or not a folder, or others can change it.
    pub(crate) fn open(base: &Path, names: &[&str]) -> Result<Option<Self>, Error> {
        Self::walk(base, names, |_, _| Ok(()))
    }

    /// Like [`Self::open`], and creates missing folders.
    pub(crate) fn create(base: &Path, names: &[&str]) -> Result<Self, Error> {
        let folder = Self::walk(base, names, |parent, name| {
            match mkdirat(&parent.file, name, Mode::RWXU) {
                Ok(()) | Err(Errno::EXIST) => Ok(()),
                Err(reason) => Err(Error::file("create", parent.path.join(name))(reason.into())),
            }
        })?;
        let not_found = || Error::file("create", base)(Errno::NOENT.into());
        folder.ok_or_else(not_found)
    }

    fn walk(
        base: &Path,
        names: &[&str],
        prepare: impl Fn(&Self, &str) -> Result<(), Error>,
    ) -> Result<Option<Self>, Error> {
        let file = match openat(CWD, base, flags(), Mode::empty()) {
            Ok(file) => file,
            Err(Errno::NOENT) => return Ok(None),
            Err(reason) => return Err(Error::file("open", base)(reason.into())),
        };
        let mut folder = Self {
            file,
            path: base.to_owned(),
        };
        // If others may add names to the folder, they must not be able to remove existing ones.
        folder.check(|mode| mode & OTHERS_WRITE == 0 || mode & STICKY != 0)?;
        for name in names {
            prepare(&folder, name)?;
            let path = folder.path.join(name);
            let file = match openat(&folder.file, *name, flags(), Mode::empty()) {
                Ok(file) => file,
                Err(Errno::NOENT) => return Ok(None),
                Err(Errno::LOOP | Errno::NOTDIR) => {
                    return Err(Error::Foreign {
                        path,
                        found: "a link or a file".into(),
                    });
                }
                Err(reason) => return Err(Error::file("open", path)(reason.into())),
            };
            folder = Self { file, path };
            folder.check(|mode| mode & OTHERS_WRITE == 0)?;
        }
        Ok(Some(folder))
    }

    /// Fails unless it belongs to root or this user, and `is_safe` accepts its mode.
    fn check(&self, is_safe: impl Fn(u32) -> bool) -> Result<(), Error> {
        let found = fstat(&self.file)
            .map_err(|reason| Error::file("look at", &self.path)(reason.into()))?;
        let own = rustix::process::geteuid().as_raw();
        let is_own = found.st_uid == 0 || found.st_uid == own;
        if is_own && is_safe(found.st_mode) {
            return Ok(());
        }
        Err(Error::Foreign {
            path: self.path.clone(),
            found: format!(
                "a folder of user {} with mode {:o}",
                found.st_uid,
                found.st_mode & 0o7777
            ),
        })
    }

    /// The names of its entries.
    pub(crate) fn names(&self) -> Result<Vec<String>, Error> {
        let failed = |reason: Errno| Error::file("read", &self.path)(reason.into());
        let entries = Dir::read_from(&self.file).map_err(failed)?;
        let mut names = Vec::new();
        for entry in entries {
            let entry = entry.map_err(failed)?;
            let name = OsStr::from_bytes(entry.file_name().to_bytes());
            if name != "." && name != ".." {
                names.push(name.to_string_lossy().into_owned());
            }
        }
        Ok(names)
    }

    /// Whether it has an entry with this name.
    pub(crate) fn has(&self, name: &str) -> bool {
        rustix::fs::statat(&self.file, name, AtFlags::SYMLINK_NOFOLLOW).is_ok()
    }

    /// The text of a file in the folder.
    pub(crate) fn read(&self, name: &str) -> Result<String, Error> {
        let failed = |reason| Error::file("read", self.path.join(name))(reason);
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let file = openat(&self.file, name, flags, Mode::empty());
        let mut text = String::new();
        std::fs::File::from(file.map_err(|reason| failed(reason.into()))?)
            .read_to_string(&mut text)
            .map_err(failed)?;
        Ok(text)
    }

    /// Removes a file, or a link instead of it.
    pub(crate) fn remove(&self, name: &str) -> Result<(), Error> {
        unlinkat(self.file.as_fd(), name, AtFlags::empty())
            .map_err(|reason| Error::file("remove", self.path.join(name))(reason.into()))
    }

    /// Removes an empty folder in it. A folder that is not empty stays.
    pub(crate) fn remove_folder(&self, name: &str) -> Result<(), Error> {
        match unlinkat(self.file.as_fd(), name, AtFlags::REMOVEDIR) {
            Ok(()) | Err(Errno::NOENT | Errno::NOTEMPTY | Errno::EXIST) => Ok(()),
            Err(reason) => Err(Error::file("remove", self.path.join(name))(reason.into())),
        }
    }
}

const fn flags() -> OFlags {
    OFlags::RDONLY
        .union(OFlags::DIRECTORY)
        .union(OFlags::NOFOLLOW)
        .union(OFlags::CLOEXEC)
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::{PermissionsExt as _, symlink};

    use super::*;

    /// A separate folder for a test, with the permissions `mode`.
    struct TestFolder(PathBuf);

    impl TestFolder {
        fn new(name: &str, mode: u32) -> Self {
            let own = format!("comity-folder-{name}-{}", std::process::id());
            let path = std::env::temp_dir().join(own);
            fs::create_dir(&path).unwrap();
            fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
            Self(path)
        }
    }

    impl Drop for TestFolder {
        fn drop(&mut self) {
            fs::remove_dir_all(&self.0).unwrap();
        }
    }

    const NAMES: [&str; 2] = ["comity", "libra"];

    #[test]
    fn a_folder_is_made_for_its_owner_alone_and_its_files_come_and_go() {
        let root = TestFolder::new("made", 0o1777);
        assert!(Folder::open(&root.0, &NAMES).unwrap().is_none());
        let folder = Folder::create(&root.0, &NAMES).unwrap();
        let path = root.0.join("comity/libra");
        for folder in [&path, &root.0.join("comity")] {
            assert_eq!(
                fs::metadata(folder).unwrap().permissions().mode() & 0o777,
                0o700
            );
        }
        fs::write(path.join("link"), "text").unwrap();
        assert_eq!(folder.names().unwrap(), ["link"]);
        assert!(folder.has("link") && !folder.has("other"));
        assert_eq!(folder.read("link").unwrap(), "text");
        let comity = Folder::open(&root.0, &NAMES[..1]).unwrap().expect("made");
        comity.remove_folder("libra").unwrap();
        assert!(path.exists(), "it is not empty");
        folder.remove("link").unwrap();
        comity.remove_folder("libra").unwrap();
        comity.remove_folder("libra").unwrap();
        assert!(!path.exists());
    }

    /// A link instead of a folder, or instead of a file, leads to another user's files.
    #[test]
    fn no_link_is_followed() {
        let root = TestFolder::new("links", 0o1777);
        let elsewhere = TestFolder::new("elsewhere", 0o755);
        fs::create_dir(elsewhere.0.join("libra")).unwrap();
        fs::write(elsewhere.0.join("libra/link"), "precious").unwrap();
        let refused = |base: &Path| {
            let opened = Folder::open(base, &NAMES).map(|_| ()).unwrap_err();
            let created = Folder::create(base, &NAMES).map(|_| ()).unwrap_err();
            for error in [opened, created] {
                let said = error.to_string();
                assert!(said.contains("a link or a file; expected"), "{said}");
            }
        };
        symlink(&elsewhere.0, root.0.join("comity")).unwrap();
        refused(&root.0);
        fs::remove_file(root.0.join("comity")).unwrap();
        fs::create_dir(root.0.join("comity")).unwrap();
        symlink(elsewhere.0.join("libra"), root.0.join("comity/libra")).unwrap();
        refused(&root.0);
        fs::remove_file(root.0.join("comity/libra")).unwrap();
        let folder = Folder::create(&root.0, &NAMES).unwrap();
        let link = root.0.join("comity/libra/link");
        symlink(elsewhere.0.join("libra/link"), &link).unwrap();
        assert!(folder.read("link").is_err());
        folder.remove("link").unwrap();
        assert_eq!(
            fs::read(elsewhere.0.join("libra/link")).unwrap(),
            b"precious"
        );
    }

    #[test]
    fn a_folder_that_others_can_change_is_refused() {
        let set = |path: &Path, mode| {
            fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
        };
        let root = TestFolder::new("open", 0o1777);
        Folder::create(&root.0, &NAMES).unwrap();
        let opened = || Folder::open(&root.0, &NAMES).map(|folder| folder.is_some());
        for (path, mode, is_safe) in [
            ("comity/libra", 0o755, true),
            ("comity/libra", 0o775, false),
            ("comity/libra", 0o1777, false),
            ("comity/libra", 0o700, true),
            ("comity", 0o702, false),
            ("comity", 0o700, true),
            ("", 0o777, false),
            ("", 0o755, true),
        ] {
            let path = root.0.join(path);
            set(&path, mode);
            match opened() {
                Ok(found) => assert!(found && is_safe, "{} {mode:o}", path.display()),
                Err(error) => {
                    assert!(!is_safe, "{error}");
                    let said = error.to_string();
                    assert!(said.contains(&format!("mode {mode:o}; expected")), "{said}");
                }
            }
        }
        // A folder of another user, which only root can create.
        if rustix::process::geteuid().is_root() {
            std::os::unix::fs::chown(root.0.join("comity"), Some(65_534), None).unwrap();
            let said = opened().unwrap_err().to_string();
            assert!(said.contains("a folder of user 65534"), "{said}");
        }
    }
}
