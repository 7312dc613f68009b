//! Protection of files: an output must not overwrite the input or a recording.

use std::fs::{self, Metadata};
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

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
        Self::of(&fs::File::from(owned).metadata().ok()?)
    }
}

/// Refuses to write to the input file, or to one file twice, because opening an output empties it.
pub(crate) fn check(input: &Uri, output: &Uri, gaps: Option<&Path>) -> Result<(), Error> {
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
    let listed = gaps.and_then(Identity::at);
    let is_same = |one: Option<Identity>, other| one.is_some() && one == other;
    let wrong = |place: &str, other: &str, name: Option<&Path>| {
        let name = name.map_or("-".into(), |name| name.display().to_string());
        Err(Error::usage(format!(
            "{place}: {name} is the same file as {other}, which writing would destroy; expected another one"
        )))
    };
    if is_same(read, written) {
        return wrong("OUTPUT", "INPUT", path(output));
    }
    if is_same(read, listed) {
        return wrong("--gaps", "INPUT", gaps);
    }
    // Both may be absent.
    if is_same(written, listed) || (gaps.is_some() && path(output) == gaps) {
        return wrong("--gaps", "OUTPUT", gaps);
    }
    Ok(())
}

/// Refuses to overwrite a file that is not empty.
pub(crate) fn check_new(path: &Path) -> Result<(), Error> {
    match fs::metadata(path) {
        Ok(metadata) if metadata.is_file() && metadata.len() > 0 => Err(Error::unopened(format!(
            "OUTPUT: {} exists; choose another name, or use --overwrite to replace it",
            path.display()
        ))),
        // Opening the file reports any other problem.
        _ => Ok(()),
    }
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
    fn only_a_file_that_holds_something_is_in_the_way() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("out.ts");
        assert!(check_new(&file).is_ok());
        fs::write(&file, "").unwrap();
        assert!(check_new(&file).is_ok());
        fs::write(&file, "media").unwrap();
        let said = check_new(&file).unwrap_err().to_string();
        assert!(
            said.contains("out.ts exists") && said.contains("--overwrite"),
            "{said}"
        );
        assert!(check_new(Path::new("/dev/null")).is_ok());
    }

    #[test]
    fn a_file_is_the_same_by_all_its_names() {
        let folder = tempfile::tempdir().unwrap();
        let place = |name: &str| folder.path().join(name);
        fs::write(place("a"), "media").unwrap();
        fs::write(place("b"), "other media").unwrap();
        fs::hard_link(place("a"), place("hard")).unwrap();
        std::os::unix::fs::symlink(place("a"), place("soft")).unwrap();
        let said = |input: &str, output: &str, gaps: Option<&str>| {
            let gaps = gaps.map(place);
            let (input, output) = (Uri::File(place(input)), Uri::File(place(output)));
            check(&input, &output, gaps.as_deref()).map_err(|error| error.to_string())
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
        assert_eq!(fs::read(place("a")).unwrap(), b"media");
    }
}
