//! Protection of files. One rule applies to all outputs. A file with content is kept unless
//! `--overwrite` is set. The input never becomes an output. Symbolic links are not followed,
//! because another user may have created them; the links of the system in /dev are an exception.

use std::fs::{self, File, Metadata, OpenOptions};
use std::io;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::Path;

use nix::fcntl::OFlag;

use super::error::Error;
use super::uri::Uri;

/// The identity of a file on a disk, independent of its names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Identity {
    device: u64,
    number: u64,
}

impl Identity {
    fn of(metadata: &Metadata) -> Option<Self> {
        metadata.is_file().then(|| Self {
            device: metadata.dev(),
            number: metadata.ino(),
        })
    }

    /// The file at a path; `None` if it does not exist or is not a regular file.
    fn at(path: &Path) -> Option<Self> {
        Self::of(&fs::metadata(path).ok()?)
    }

    /// The file of a standard stream.
    fn behind(stream: impl std::os::fd::AsFd) -> Option<Self> {
        let owned = stream.as_fd().try_clone_to_owned().ok()?;
        Self::of(&File::from(owned).metadata().ok()?)
    }
}

/// How to treat existing files.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Existing {
    /// Keep them unless they are empty.
    Kept,
    Replaced,
}

impl Existing {
    pub(crate) const fn of(overwrite: bool) -> Self {
        match overwrite {
            true => Self::Replaced,
            false => Self::Kept,
        }
    }

    /// Refuses a file that must be kept, and a symbolic link. `argument` is the argument that names
    /// it.
    pub(crate) fn check(self, argument: &str, path: &Path) -> Result<(), Error> {
        match fs::symlink_metadata(path) {
            Ok(found) if found.is_symlink() && !is_of_the_system(path) => {
                Err(linked(argument, path))
            }
            Ok(found) if found.is_file() => self.check_content(argument, path, &found),
            // Opening the file reports any other problem.
            _ => Ok(()),
        }
    }

    fn check_content(self, argument: &str, path: &Path, found: &Metadata) -> Result<(), Error> {
        match self {
            Self::Kept if found.is_file() && found.len() > 0 => Err(Error::unopened(format!(
                "{argument}: {} exists; choose another name, or use --overwrite to replace it",
                path.display()
            ))),
            _ => Ok(()),
        }
    }

    /// Opens a file to be written, and leaves its content as it is.
    pub(crate) fn open(self, argument: &str, path: &Path) -> Result<File, Error> {
        let mut options = OpenOptions::new();
        options.write(true).create(true).truncate(false);
        if !is_of_the_system(path) {
            options.custom_flags(OFlag::O_NOFOLLOW.bits());
        }
        let file = options.open(path).map_err(|error| {
            match fs::symlink_metadata(path).is_ok_and(|found| found.is_symlink()) {
                true => linked(argument, path),
                false => Error::open(path, &error),
            }
        })?;
        // The file may have been created after the check.
        if let Ok(found) = file.metadata() {
            self.check_content(argument, path, &found)?;
        }
        Ok(file)
    }
}

/// Whether a file exists and is empty.
pub(crate) fn is_empty(path: &Path) -> bool {
    fs::symlink_metadata(path).is_ok_and(|found| found.is_file() && found.len() == 0)
}

/// Names such as /dev/stdout, which are links.
fn is_of_the_system(path: &Path) -> bool {
    path.starts_with("/dev") && !path.starts_with("/dev/shm")
}

fn linked(argument: &str, path: &Path) -> Error {
    Error::unopened(format!(
        "{argument}: {} is a symbolic link, which is not followed; name the file itself",
        path.display()
    ))
}

/// Refuses to write to the input file, or to one file twice, because opening an output empties it.
/// `others` are further outputs, with the options that name them.
pub(crate) fn check(
    input: &Uri,
    output: &Uri,
    others: &[(&str, Option<&Path>)],
) -> Result<(), Error> {
    let read = match input {
        Uri::File(path) => Identity::at(path),
        Uri::Pipe => Identity::behind(io::stdin()),
        _ => None,
    };
    let written = match output {
        Uri::File(path) => Identity::at(path),
        Uri::Pipe => Identity::behind(io::stdout()),
        _ => None,
    };
    let is_same = |one: Option<Identity>, other| one.is_some() && one == other;
    let wrong = |argument: &str, other: &str, name: Option<&Path>| {
        let name = name.map_or("-".into(), |name| name.display().to_string());
        Err(Error::usage(format!(
            "{argument}: {name} is the same file as {other}, which writing would destroy; expected another one"
        )))
    };
    if is_same(read, written) {
        return wrong("OUTPUT", "INPUT", path(output));
    }
    let mut before = vec![("OUTPUT", path(output), written)];
    for &(argument, other) in others {
        let Some(other) = other else { continue };
        let identity = Identity::at(other);
        if is_same(read, identity) {
            return wrong(argument, "INPUT", Some(other));
        }
        for &(earlier, name, known) in &before {
            // Both identities may be absent.
            if is_same(known, identity) || name == Some(other) {
                return wrong(argument, earlier, Some(other));
            }
        }
        before.push((argument, Some(other), identity));
    }
    Ok(())
}

fn path(uri: &Uri) -> Option<&Path> {
    match uri {
        Uri::File(path) => Some(path),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_files_with_content_are_kept() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("out.ts");
        let check_new = |path: &Path| Existing::Kept.check("OUTPUT", path);
        assert!(check_new(&file).is_ok());
        fs::write(&file, "").unwrap();
        assert!(check_new(&file).is_ok());
        fs::write(&file, "media").unwrap();
        assert!(Existing::Replaced.check("OUTPUT", &file).is_ok());
        let said = check_new(&file).unwrap_err().to_string();
        assert!(
            said.contains("out.ts exists") && said.contains("--overwrite"),
            "{said}"
        );
        assert!(check_new(Path::new("/dev/null")).is_ok());
        // Created between the check and the opening.
        assert!(Existing::Kept.open("OUTPUT", &file).is_err());
        assert!(Existing::Replaced.open("OUTPUT", &file).is_ok());
        assert_eq!(fs::read(&file).unwrap(), b"media");
    }

    #[test]
    fn a_link_is_never_followed() {
        let folder = tempfile::tempdir().unwrap();
        let path_of = |name: &str| folder.path().join(name);
        fs::write(path_of("file"), "").unwrap();
        std::os::unix::fs::symlink(path_of("file"), path_of("link")).unwrap();
        std::os::unix::fs::symlink(path_of("new"), path_of("dangling")).unwrap();
        for name in ["link", "dangling"] {
            for existing in [Existing::Kept, Existing::Replaced] {
                let checked = existing.check("--gaps", &path_of(name));
                let opened = existing.open("--gaps", &path_of(name)).map(drop);
                for refused in [checked, opened] {
                    let said = refused.unwrap_err().to_string();
                    assert!(said.contains("is a symbolic link"), "{said}");
                }
            }
        }
        assert!(!path_of("new").exists());
        assert!(
            Existing::Kept
                .check("OUTPUT", Path::new("/dev/stdout"))
                .is_ok()
        );
    }

    #[test]
    fn a_file_is_the_same_by_all_its_names() {
        let folder = tempfile::tempdir().unwrap();
        let path_of = |name: &str| folder.path().join(name);
        fs::write(path_of("a"), "media").unwrap();
        fs::write(path_of("b"), "other media").unwrap();
        fs::hard_link(path_of("a"), path_of("hard")).unwrap();
        std::os::unix::fs::symlink(path_of("a"), path_of("soft")).unwrap();
        let said = |input: &str, output: &str, gaps: Option<&str>| {
            let gaps = gaps.map(path_of);
            let (input, output) = (Uri::File(path_of(input)), Uri::File(path_of(output)));
            check(&input, &output, &[("--gaps", gaps.as_deref())])
                .map_err(|error| error.to_string())
        };
        for name in ["a", "hard", "soft"] {
            let message = said("a", name, None).unwrap_err();
            assert!(
                message.starts_with("OUTPUT: ") && message.contains("INPUT"),
                "{message}"
            );
            let message = said("a", "b", Some(name)).unwrap_err();
            assert!(message.starts_with("--gaps: "), "{message}");
        }
        assert!(
            said("a", "new", Some("new"))
                .unwrap_err()
                .contains("OUTPUT")
        );
        assert_eq!(said("a", "b", Some("new")), Ok(()));
        assert_eq!(said("a", "new", None), Ok(()));
        assert_eq!(fs::read(path_of("a")).unwrap(), b"media");
    }
}
