//! Errors of files that cannot be opened or created.

use std::io;
use std::path::Path;

use super::{Failure, say};

/// Reports that a file or folder to read cannot be opened.
pub fn cannot_open(path: &Path, error: &io::Error) -> Failure {
    say(&format!("error: {}", unread(path, error)));
    Failure::Unopened
}

/// Why a file cannot be opened for reading, and what to do.
pub fn unread(path: &Path, error: &io::Error) -> String {
    match error.kind() {
        // Creating the folder would not help, because it would be empty.
        io::ErrorKind::NotFound => {
            format!("cannot open {}: {error}; check its name", path.display())
        }
        _ => unopened(path, error),
    }
}

/// Why a file cannot be opened, and what to do.
pub fn unopened(path: &Path, error: &io::Error) -> String {
    format!(
        "cannot open {}: {error}{}",
        path.display(),
        hint(path, error)
    )
}

/// The remedy for the error, as a continuation of its message.
pub fn hint(path: &Path, error: &io::Error) -> String {
    let folder = path
        .parent()
        .filter(|folder| !folder.as_os_str().is_empty());
    match (error.kind(), folder) {
        (io::ErrorKind::NotFound, Some(folder)) if !folder.exists() => {
            format!("; make its folder first: mkdir -p {}", folder.display())
        }
        (io::ErrorKind::NotFound, _) => "; check its name".into(),
        (io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem, _) => {
            "; this user lacks permission: check the file and its folder with ls -ld, or choose another path"
                .into()
        }
        (io::ErrorKind::IsADirectory, _) => "; name a file in it".into(),
        _ => String::new(),
    }
}
