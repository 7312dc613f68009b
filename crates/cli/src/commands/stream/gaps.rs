//! The list of sections that did not arrive whole.

use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use serde::Serialize;

use super::media_unit::Missing;
use super::trouble::Trouble;

/// One line of the list.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
struct Line<'a> {
    /// The stream of the section.
    stream: u16,
    /// Its number in the stream.
    section: u64,
    /// What it holds: key, I, P, B, audio, parameters, table, opaque or slice; null when nothing
    /// arrived of it.
    #[serde(rename = "type")]
    kind: Option<&'a str>,
    /// Why it is not whole.
    reason: &'a str,
    /// Its length; null when nothing arrived of it.
    bytes: Option<u64>,
    /// How many of these are missing.
    missing_bytes: Option<u64>,
    /// When it came into being, in seconds since the beginning on this host's clock.
    source_time_s: Option<f64>,
    /// When it was known to be missing, in seconds since the beginning.
    time_s: f64,
}

/// Writes the list to a file, each line when it is known.
#[derive(Debug)]
pub(crate) struct GapList {
    path: PathBuf,
    /// Whether there was no such file before.
    is_new: bool,
    file: BufWriter<File>,
    began: Instant,
}

impl GapList {
    /// Opens the file, and leaves what it holds for now.
    pub(crate) fn open(path: &Path, began: Instant) -> Result<Self, Trouble> {
        let is_new = !path.exists();
        let file = File::options()
            .write(true)
            .create(true)
            .truncate(false)
            .open(path)
            .map_err(|error| Trouble::open(path, &error))?;
        Ok(Self {
            path: path.to_owned(),
            is_new,
            file: BufWriter::new(file),
            began,
        })
    }

    /// Empties the list, which is in the place of the one before from now on.
    pub(crate) fn begin(&mut self) -> Result<(), Trouble> {
        let file = self.file.get_ref();
        let is_stored = file.metadata().is_ok_and(|metadata| metadata.is_file());
        match is_stored {
            true => file
                .set_len(0)
                .map_err(|error| Trouble::open(&self.path, &error)),
            false => Ok(()),
        }
    }

    /// Nothing comes of it: the file is as it was before.
    pub(crate) fn withdraw(self) {
        if self.is_new {
            // It is empty; that it cannot be removed is no trouble of its own.
            let _ = std::fs::remove_file(&self.path);
        }
    }

    /// Adds a section that is known to be missing at `now`.
    pub(crate) fn add(&mut self, now: Instant, missing: &Missing) -> Result<(), Trouble> {
        let line = serde_json::to_string(&self.line(now, missing))
            .map_err(|error| Trouble::failed(format!("cannot write the list of gaps: {error}")))?;
        writeln!(self.file, "{line}")
            .and_then(|()| self.file.flush())
            .map_err(|error| Trouble::write(&self.path.display().to_string(), &error))
    }

    fn line<'a>(&self, now: Instant, missing: &'a Missing) -> Line<'a> {
        Line {
            stream: missing.stream,
            section: missing.number,
            kind: missing.kind,
            reason: missing.reason,
            bytes: missing.length,
            missing_bytes: missing.missing_bytes,
            source_time_s: missing.source_time.map(|time| seconds(self.began, time)),
            time_s: seconds(self.began, now),
        }
    }
}

/// The seconds from one moment to another, to the microsecond; negative when it was before.
fn seconds(from: Instant, to: Instant) -> f64 {
    let rounded = |span: Duration| span.as_micros() as f64 / 1e6;
    match to.checked_duration_since(from) {
        Some(after) => rounded(after),
        None => -rounded(from.duration_since(to)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_names_the_section_and_what_is_missing() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("gaps.jsonl");
        let began = super::super::now();
        let mut list = GapList::open(&path, began).unwrap();
        let mut missing = Missing {
            stream: 1,
            number: 12,
            kind: Some("P"),
            reason: "expired",
            length: Some(4_000),
            missing_bytes: Some(1_200),
            source_time: began.checked_sub(Duration::from_millis(250)),
        };
        let now = began + Duration::from_millis(150);
        list.add(now, &missing).unwrap();
        missing.kind = None;
        missing.source_time = None;
        list.add(now, &missing).unwrap();
        let text = std::fs::read_to_string(&path).unwrap();
        let lines: Vec<serde_json::Value> = text
            .lines()
            .map(|line| serde_json::from_str(line).unwrap())
            .collect();
        assert_eq!(
            lines[0],
            serde_json::json!({
                "stream": 1, "section": 12, "type": "P", "reason": "expired", "bytes": 4_000,
                "missing_bytes": 1_200, "source_time_s": -0.25, "time_s": 0.15,
            })
        );
        assert!(lines[1]["type"].is_null() && lines[1]["source_time_s"].is_null());
    }
}
