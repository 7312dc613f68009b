//! Files that are replaced as a whole.

use std::ffi::{OsStr, OsString};
use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::process;
use std::sync::atomic::{AtomicU64, Ordering};

use super::error::{WriteError, parent};
use super::meaning::TABLES;

/// The file beside the tables that states their origin.
pub(super) const METADATA: &str = "metadata.json";

/// A file or a directory under a hidden name beside its target. If it is dropped before
/// [`finish`](Self::finish), it is removed.
pub(super) struct Partial<'a> {
    target: &'a Path,
    at: PathBuf,
}

impl<'a> Partial<'a> {
    /// Creates a directory that becomes `target`. The target may contain only earlier results.
    pub(super) fn directory(target: &'a Path) -> Result<Self, WriteError> {
        may_replace(target)?;
        let at = beside(target, "partial", |at| fs::create_dir(at))?.0;
        Ok(Self { target, at })
    }

    /// Creates a file that becomes `target`.
    pub(super) fn file(target: &'a Path) -> Result<(Self, Writer<'a>), WriteError> {
        if target.is_dir() {
            return Err(WriteError::Occupied {
                path: target.to_owned(),
                expected: "a file",
            });
        }
        let (at, file) = beside(target, "partial", |at| File::create_new(at))?;
        Ok((Self { target, at }, Writer::new(file, target)))
    }

    /// Creates a file in the directory.
    pub(super) fn create(&self, name: &str) -> Result<Writer<'a>, WriteError> {
        let file = File::create_new(self.at.join(name));
        let file = file.map_err(|source| WriteError::io(self.target, source))?;
        Ok(Writer::new(file, self.target))
    }

    /// Replaces the target. If several writers finish at once, each replaces it as a whole, and the
    /// last one stays.
    pub(super) fn finish(self) -> Result<(), WriteError> {
        let fail = |source| WriteError::io(self.target, source);
        loop {
            let aside = self.earlier_results()?;
            match (fs::rename(&self.at, self.target), aside) {
                (Ok(()), None) => return Ok(()),
                (Ok(()), Some(aside)) => return fs::remove_dir_all(&aside).map_err(fail),
                // Another writer has replaced the target, so its results are the earlier ones now.
                (Err(source), aside) if source.kind() == io::ErrorKind::DirectoryNotEmpty => {
                    aside.map_or(Ok(()), fs::remove_dir_all).map_err(fail)?;
                }
                (Err(source), Some(aside)) => {
                    fs::rename(&aside, self.target).map_err(fail)?;
                    return Err(fail(source));
                }
                (Err(source), None) => return Err(fail(source)),
            }
        }
    }

    /// Moves earlier results aside and returns their path: a directory cannot be renamed onto one
    /// that is not empty.
    fn earlier_results(&self) -> Result<Option<PathBuf>, WriteError> {
        let fail = |source| WriteError::io(self.target, source);
        if !self.at.is_dir() || !self.target.is_dir() {
            return Ok(None);
        }
        may_replace(self.target)?;
        let (aside, ()) = beside(self.target, "earlier", |at| fs::create_dir(at))?;
        match fs::rename(self.target, &aside) {
            Ok(()) => Ok(Some(aside)),
            // Another writer moved them first.
            Err(source) if source.kind() == io::ErrorKind::NotFound => {
                fs::remove_dir(&aside).map_err(fail)?;
                Ok(None)
            }
            Err(source) => Err(fail(source)),
        }
    }
}

impl Drop for Partial<'_> {
    fn drop(&mut self) {
        // After `finish` nothing is left here. A failure to remove the rest has no remedy.
        if self.at.is_dir() {
            let _ = fs::remove_dir_all(&self.at);
        } else {
            let _ = fs::remove_file(&self.at);
        }
    }
}

/// Creates a hidden file or directory beside `target`. Its name is new in this process, and a
/// killed process with the same number has left nothing under it.
fn beside<T>(
    target: &Path,
    role: &str,
    make: impl Fn(&Path) -> io::Result<T>,
) -> Result<(PathBuf, T), WriteError> {
    let Some(name) = target.file_name() else {
        return Err(WriteError::Occupied {
            path: target.to_owned(),
            expected: "a name",
        });
    };
    static NAMES: AtomicU64 = AtomicU64::new(0);
    loop {
        let number = NAMES.fetch_add(1, Ordering::Relaxed);
        let mut hidden = OsString::from(".");
        hidden.push(name);
        hidden.push(format!(".{role}-{}-{number}", process::id()));
        let at = parent(target).join(hidden);
        match make(&at) {
            Ok(made) => return Ok((at, made)),
            Err(source) if source.kind() == io::ErrorKind::AlreadyExists => {}
            Err(source) => return Err(WriteError::io(target, source)),
        }
    }
}

/// Checks that there is nothing at a path, or a directory with results only.
fn may_replace(target: &Path) -> Result<(), WriteError> {
    let entries = match fs::read_dir(target) {
        Ok(entries) => entries,
        Err(source) if source.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(_) if target.is_file() => {
            return Err(WriteError::Occupied {
                path: target.to_owned(),
                expected: "a directory",
            });
        }
        Err(source) => return Err(WriteError::io(target, source)),
    };
    for entry in entries {
        let name = match entry {
            Ok(entry) => entry.file_name(),
            // Another writer moved the directory away while it was read.
            Err(source) if source.kind() == io::ErrorKind::NotFound => return Ok(()),
            Err(source) => return Err(WriteError::io(target, source)),
        };
        if !is_result(&name) {
            return Err(WriteError::NotResults {
                path: target.to_owned(),
                found: name.into(),
            });
        }
    }
    Ok(())
}

/// Whether results are stored under this file name.
fn is_result(name: &OsStr) -> bool {
    let Some(name) = name.to_str() else {
        return false;
    };
    match name.split_once('.') {
        Some((table, "csv" | "parquet")) => TABLES.iter().any(|(name, _)| *name == table),
        _ => name == METADATA,
    }
}

/// A file that reports errors under the user's path.
pub(super) struct Writer<'a> {
    pub(super) file: BufWriter<File>,
    pub(super) target: &'a Path,
}

impl<'a> Writer<'a> {
    fn new(file: File, target: &'a Path) -> Self {
        Self {
            file: BufWriter::with_capacity(1 << 16, file),
            target,
        }
    }

    /// Writes everything to the disk. Some systems report a full disk only now.
    pub(super) fn close(mut self) -> Result<(), WriteError> {
        let flushed = self
            .file
            .flush()
            .and_then(|()| self.file.get_ref().sync_all());
        flushed.map_err(|source| WriteError::io(self.target, source))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A new directory of its own for each test.
    fn scratch(test: &str) -> PathBuf {
        let at = std::env::temp_dir().join(format!("comity-partial-{test}-{}", process::id()));
        let _ = fs::remove_dir_all(&at);
        fs::create_dir(&at).unwrap();
        at
    }

    fn names(at: &Path) -> Vec<OsString> {
        let mut names: Vec<_> = fs::read_dir(at)
            .unwrap()
            .map(|e| e.unwrap().file_name())
            .collect();
        names.sort();
        names
    }

    #[test]
    fn an_interrupted_write_leaves_what_was_there() {
        let home = scratch("interrupted");
        let target = home.join("results");
        fs::create_dir(&target).unwrap();
        fs::write(target.join("runs.csv"), "earlier").unwrap();
        let partial = Partial::directory(&target).unwrap();
        let mut writer = partial.create("runs.csv").unwrap();
        writer.file.write_all(b"half a ta").unwrap();
        drop((writer, partial));
        assert_eq!(names(&home), ["results"]);
        assert_eq!(
            fs::read_to_string(target.join("runs.csv")).unwrap(),
            "earlier"
        );

        let file = home.join("results.json");
        let (partial, writer) = Partial::file(&file).unwrap();
        assert_eq!(names(&home).len(), 2);
        drop((writer, partial));
        assert_eq!(names(&home), ["results"]);
        fs::remove_dir_all(&home).unwrap();
    }

    #[test]
    fn new_results_replace_earlier_ones_whole() {
        let home = scratch("replace");
        let target = home.join("results");
        for (name, text) in [
            ("runs.csv", "one"),
            ("metadata.json", "two"),
            ("runs.csv", "three"),
        ] {
            let partial = Partial::directory(&target).unwrap();
            let mut writer = partial.create(name).unwrap();
            writer.file.write_all(text.as_bytes()).unwrap();
            writer.close().unwrap();
            partial.finish().unwrap();
            assert_eq!(
                (names(&target), names(&home)),
                (vec![name.into()], vec!["results".into()])
            );
            assert_eq!(fs::read_to_string(target.join(name)).unwrap(), text);
        }
        fs::remove_dir_all(&home).unwrap();
    }

    #[test]
    fn files_of_a_killed_process_do_not_interfere() {
        let home = scratch("killed");
        let target = home.join("results");
        let first = Partial::directory(&target).unwrap();
        let second = Partial::directory(&target).unwrap();
        assert_ne!(first.at, second.at);
        second.finish().unwrap();
        first.finish().unwrap();
        assert_eq!(names(&home), ["results"]);
        fs::remove_dir_all(&home).unwrap();
    }

    #[test]
    fn writers_that_finish_at_once_replace_the_target_whole() {
        let home = scratch("at-once");
        let target = home.join("results");
        std::thread::scope(|scope| {
            for name in ["runs.csv", "flows.csv"] {
                let target = &target;
                scope.spawn(move || {
                    for _ in 0..300 {
                        let partial = Partial::directory(target).unwrap();
                        partial.create(name).unwrap().close().unwrap();
                        partial.finish().unwrap();
                    }
                });
            }
        });
        assert_eq!(names(&home), ["results"]);
        assert_eq!(names(&target).len(), 1, "{:?}", names(&target));
        fs::remove_dir_all(&home).unwrap();
    }

    #[test]
    fn only_results_are_replaced() {
        for name in ["runs.csv", "link_series.parquet", "metadata.json"] {
            assert!(is_result(OsStr::new(name)), "{name}");
        }
        for name in [
            "thesis.csv",
            "runs.tex",
            "runs",
            "metadata.csv",
            "runs.csv.bak",
            ".git",
        ] {
            assert!(!is_result(OsStr::new(name)), "{name}");
        }
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn a_full_disk_is_noticed_at_the_latest_when_a_file_is_closed() {
        // Every write to this device fails as on a full disk. A small write reaches it only at the
        // end.
        let target = Path::new("results");
        let full = fs::OpenOptions::new()
            .write(true)
            .open("/dev/full")
            .unwrap();
        let mut writer = Writer::new(full, target);
        writer.file.write_all(b"small").unwrap();
        let error = writer.close().unwrap_err();
        assert!(matches!(error, WriteError::DiskFull { .. }), "{error:?}");
        assert_eq!(
            error.to_string(),
            "results cannot be stored at results: the disk is full"
        );
    }
}
