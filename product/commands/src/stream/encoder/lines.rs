//! The socket of `--target-bitrate-socket`, which writes each update as a line of JSON.

use std::fs;
use std::io::{self, Read, Write};
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};

use crate::stream::error::Error;

/// The maximum number of readers.
const MAX_READERS: usize = 16;

/// A Unix socket whose readers get the latest update when they connect, and then each new one.
///
/// It never waits for a reader. A reader that lets its socket's buffer fill up is disconnected.
#[derive(Debug)]
pub(super) struct Lines {
    listener: UnixListener,
    path: PathBuf,
    /// The number of the socket's file, which the end removes.
    inode: Option<u64>,
    readers: Vec<UnixStream>,
    latest: Option<String>,
}

impl Lines {
    /// Listens at `path`. Replaces a socket that nobody listens on any more, and nothing else.
    pub(super) fn bind(path: &Path) -> Result<Self, Error> {
        let bound = UnixListener::bind(path).or_else(|error| {
            if !is_abandoned(path) {
                return Err(error);
            }
            fs::remove_file(path)?;
            UnixListener::bind(path)
        });
        let listener = bound
            .and_then(|listener| listener.set_nonblocking(true).map(|()| listener))
            .map_err(|error| refused(path, &error))?;
        Ok(Self {
            listener,
            inode: inode(path),
            path: path.to_owned(),
            readers: Vec::new(),
            latest: None,
        })
    }

    /// Writes a new line to all readers, and the latest one to readers that have just connected.
    pub(super) fn poll(&mut self, line: Option<String>) {
        if let Some(line) = line {
            let line = format!("{line}\n");
            self.readers.retain_mut(|reader| takes(reader, &line));
            self.latest = Some(line);
        }
        for _ in 0..MAX_READERS {
            let Ok((mut reader, _)) = self.listener.accept() else {
                break;
            };
            self.readers.retain_mut(is_open);
            let is_ready = reader.set_nonblocking(true).is_ok()
                && (self.latest.iter()).all(|line| takes(&mut reader, line));
            if is_ready && self.readers.len() < MAX_READERS {
                self.readers.push(reader);
            }
        }
    }
}

impl Drop for Lines {
    fn drop(&mut self) {
        // Another program may have put a file there.
        if inode(&self.path) == self.inode {
            let _ = fs::remove_file(&self.path);
        }
    }
}

/// Whether a reader takes a whole line at once.
fn takes(reader: &mut UnixStream, line: &str) -> bool {
    matches!(reader.write(line.as_bytes()), Ok(length) if length == line.len())
}

/// Whether a reader is still connected. What it writes is ignored.
fn is_open(reader: &mut UnixStream) -> bool {
    match reader.read(&mut [0; 512]) {
        Ok(length) => length > 0,
        Err(error) => error.kind() == io::ErrorKind::WouldBlock,
    }
}

fn inode(path: &Path) -> Option<u64> {
    let found = fs::symlink_metadata(path).ok()?;
    found.file_type().is_socket().then(|| found.ino())
}

/// Whether a socket is left over from a program that has ended.
fn is_abandoned(path: &Path) -> bool {
    let refused = |error: io::Error| error.kind() == io::ErrorKind::ConnectionRefused;
    inode(path).is_some() && UnixStream::connect(path).is_err_and(refused)
}

fn refused(path: &Path, error: &io::Error) -> Error {
    let message = format!("--target-bitrate-socket: {}", path.display());
    match (error.kind(), inode(path)) {
        (io::ErrorKind::AddrInUse, Some(_)) => Error::taken(format!(
            "{message}: another program listens there; choose another path"
        )),
        (io::ErrorKind::AddrInUse, None) => Error::unopened(format!(
            "{message}: exists and is no socket; choose another path"
        )),
        _ => Error::unopened(format!("{message}: {error}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{BufRead, BufReader};

    fn path(folder: &tempfile::TempDir) -> PathBuf {
        folder.path().join("bitrate")
    }

    fn read_line(reader: &UnixStream) -> String {
        let mut line = String::new();
        BufReader::new(reader).read_line(&mut line).unwrap();
        line
    }

    #[test]
    fn a_reader_gets_the_latest_update_and_then_each_new_one() {
        let folder = tempfile::tempdir().unwrap();
        let mut lines = Lines::bind(&path(&folder)).unwrap();
        let early = UnixStream::connect(path(&folder)).unwrap();
        lines.poll(None);
        lines.poll(Some("1".into()));
        assert_eq!(read_line(&early), "1\n");
        lines.poll(Some("2".into()));
        let late = UnixStream::connect(path(&folder)).unwrap();
        lines.poll(None);
        lines.poll(Some("3".into()));
        assert_eq!(read_line(&early), "2\n");
        let mut rest = [0; 4];
        (&late).read_exact(&mut rest).unwrap();
        assert_eq!(&rest, b"2\n3\n");
    }

    #[test]
    fn readers_are_limited_and_those_that_left_make_room() {
        let folder = tempfile::tempdir().unwrap();
        let mut lines = Lines::bind(&path(&folder)).unwrap();
        let mut readers = Vec::new();
        for _ in 0..MAX_READERS {
            readers.push(UnixStream::connect(path(&folder)).unwrap());
        }
        lines.poll(None);
        assert_eq!(lines.readers.len(), MAX_READERS);
        let mut refused = UnixStream::connect(path(&folder)).unwrap();
        lines.poll(None);
        assert_eq!(refused.read(&mut [0]).unwrap(), 0);
        readers.pop();
        let accepted = UnixStream::connect(path(&folder)).unwrap();
        lines.poll(None);
        lines.poll(Some("1".into()));
        assert_eq!(read_line(&accepted), "1\n");
        assert_eq!(lines.readers.len(), MAX_READERS);
    }

    #[test]
    fn a_reader_that_reads_nothing_is_disconnected_and_delays_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let mut lines = Lines::bind(&path(&folder)).unwrap();
        let _stuck = UnixStream::connect(path(&folder)).unwrap();
        lines.poll(None);
        assert_eq!(lines.readers.len(), 1);
        let line = "x".repeat(1_000);
        for _ in 0..10_000 {
            lines.poll(Some(line.clone()));
        }
        assert_eq!(lines.readers.len(), 0);
    }

    #[test]
    fn only_a_left_over_socket_is_replaced_and_the_end_removes_it() {
        let folder = tempfile::tempdir().unwrap();
        let path = path(&folder);
        // The listener ends, and its file stays.
        drop(UnixListener::bind(&path).unwrap());
        assert!(path.exists());
        let lines = Lines::bind(&path).unwrap();
        let said = Lines::bind(&path).unwrap_err().to_string();
        assert!(said.contains("another program listens there"), "{said}");
        drop(lines);
        assert!(!path.exists());
        fs::write(&path, "").unwrap();
        let said = Lines::bind(&path).unwrap_err().to_string();
        assert!(said.contains("is no socket"), "{said}");
        let link = folder.path().join("link");
        std::os::unix::fs::symlink(folder.path().join("none"), &link).unwrap();
        assert!(Lines::bind(&link).is_err(), "a link is not followed");
        let said = Lines::bind(&folder.path().join("no/folder")).unwrap_err();
        assert!(said.to_string().contains("No such file"), "{said}");
    }
}
