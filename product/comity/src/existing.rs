//! Files that the library creates without replacing others and without following links.

use std::fs::File;
use std::io;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;

use nix::fcntl::OFlag;

/// How to treat an existing file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Existing {
    Kept,
    Replaced,
}

impl Existing {
    /// Creates a file, without following a link. A device or a pipe is opened as it is.
    pub(crate) fn create(self, path: &Path) -> io::Result<File> {
        let is_file = std::fs::symlink_metadata(path)
            .map_or(true, |found| found.is_file() || found.is_symlink());
        let mut options = File::options();
        options.write(true).custom_flags(OFlag::O_NOFOLLOW.bits());
        match (is_file, self) {
            (true, Self::Kept) => options.create_new(true),
            (true, Self::Replaced) => options.create(true).truncate(true),
            (false, _) => &mut options,
        };
        options.open(path)
    }
}
