//! The files of the repository, for tests that read all files of a kind.

use std::path::{Path, PathBuf};
use std::process::Command;

/// The files below `folder` with one of these extensions, in order.
///
/// These are the files that git tracks, so other files in the folder do not count. In an archive
/// without git, these are all files except those in hidden folders and `target`.
///
/// # Panics
///
/// If `folder` cannot be read.
#[must_use]
pub fn files(folder: &Path, extensions: &[&str]) -> Vec<PathBuf> {
    let mut files = listed(folder).unwrap_or_else(|| walked(folder));
    files.retain(|path| {
        let extension = path.extension().and_then(|extension| extension.to_str());
        extension.is_some_and(|extension| extensions.contains(&extension))
    });
    files.sort();
    files
}

/// The files that git tracks; `None` without git or a repository.
fn listed(folder: &Path) -> Option<Vec<PathBuf>> {
    let output = Command::new("git")
        .args(["ls-files", "-z"])
        .current_dir(folder)
        .output()
        .ok()?;
    let names = String::from_utf8(output.stdout).ok()?;
    let names = names.split_terminator('\0').map(|name| folder.join(name));
    // A deleted file is tracked until the deletion is committed.
    let files: Vec<PathBuf> = names.filter(|path| path.is_file()).collect();
    (output.status.success() && !files.is_empty()).then_some(files)
}

fn walked(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder).expect("the folder can be read") {
        let path = entry.expect("its entries can be read").path();
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        if !path.is_dir() {
            found.push(path);
        } else if name != "target" && !name.starts_with('.') {
            found.extend(walked(&path));
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    fn git(folder: &Path, words: &[&str]) -> bool {
        let status = Command::new("git").args(words).current_dir(folder).status();
        status.is_ok_and(|status| status.success())
    }

    #[test]
    fn only_tracked_files_count_where_there_is_git() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        for inside in ["pages", "target", ".hidden"] {
            fs::create_dir(at(inside)).unwrap();
        }
        for name in ["b.md", "pages/a.md", "c.rs", "target/d.md", ".hidden/e.md"] {
            fs::write(at(name), "").unwrap();
        }
        let both = [at("b.md"), at("pages/a.md")];
        assert_eq!(files(folder.path(), &["md"]), both, "without git");
        if !git(folder.path(), &["init", "--quiet"]) {
            return;
        }
        assert!(git(folder.path(), &["add", "pages", "c.rs"]));
        assert_eq!(files(folder.path(), &["md"]), both[1..]);
        assert_eq!(
            files(folder.path(), &["md", "rs"]),
            [at("c.rs"), at("pages/a.md")]
        );
        assert_eq!(files(&at("pages"), &["md"]), both[1..]);
        fs::remove_file(at("pages/a.md")).unwrap();
        assert_eq!(files(folder.path(), &["md"]), [] as [PathBuf; 0]);
    }
}
