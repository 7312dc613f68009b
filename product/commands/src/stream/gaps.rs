//! The list of gaps: sections that did not arrive complete.

use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use comity_stream::Missing;

use super::error::Error;
use super::overwrite::Existing;
use super::status::Reporter;
use crate::clock::now;

/// The maximum length of the list in bytes: half a million lines. A frame of 5 bytes from a peer
/// can cause a line of 150 bytes.
const MAX_BYTES: u64 = 64 << 20;

/// Writes the list to a file, line by line.
#[derive(Debug)]
pub(crate) struct GapList {
    path: PathBuf,
    /// Whether the file is new.
    is_new: bool,
    file: BufWriter<File>,
    /// The bytes written, and their maximum.
    bytes: u64,
    max_bytes: u64,
    began: Instant,
}

impl GapList {
    /// Opens the file, and keeps its content for now.
    pub(crate) fn open(path: &Path, existing: Existing, began: Instant) -> Result<Self, Error> {
        let is_new = !path.exists();
        let file = existing.open("--gaps", path)?;
        Ok(Self {
            path: path.to_owned(),
            is_new,
            file: BufWriter::new(file),
            bytes: 0,
            max_bytes: MAX_BYTES,
            began,
        })
    }

    /// Empties the file and begins the new list.
    fn begin(&mut self) -> Result<(), Error> {
        let file = self.file.get_ref();
        let is_stored = file.metadata().is_ok_and(|metadata| metadata.is_file());
        match is_stored {
            true => file
                .set_len(0)
                .map_err(|error| Error::open(&self.path, &error)),
            false => Ok(()),
        }
    }

    fn add(&mut self, missing: &Missing) -> Result<(), Error> {
        let line = serde_json::to_string(&missing.entry(self.began, now()))
            .map_err(|error| Error::failed(format!("cannot write the list of gaps: {error}")))?;
        self.bytes += line.len() as u64 + 1;
        if self.bytes > self.max_bytes {
            return Err(Error::failed(format!(
                "{} is full; expected at most {} MiB",
                self.path.display(),
                self.max_bytes >> 20,
            )));
        }
        writeln!(self.file, "{line}")
            .and_then(|()| self.file.flush())
            .map_err(|error| Error::write(&self.path.display().to_string(), &error))
    }
}

/// The list of gaps, if the user requested one. Clones share it.
#[derive(Clone, Debug, Default)]
pub(crate) struct SharedGaps(Arc<Mutex<Gaps>>);

#[derive(Debug, Default)]
struct Gaps {
    list: Option<GapList>,
    /// The error that ended the list before the end of the stream.
    error: Option<Error>,
}

impl From<Option<GapList>> for SharedGaps {
    fn from(list: Option<GapList>) -> Self {
        Self(Arc::new(Mutex::new(Gaps { list, error: None })))
    }
}

impl SharedGaps {
    fn lock(&self) -> MutexGuard<'_, Gaps> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Empties the file and begins the new list.
    pub(crate) fn begin(&self) -> Result<(), Error> {
        self.lock().list.as_mut().map_or(Ok(()), GapList::begin)
    }

    /// Restores the file as it was before.
    pub(crate) fn withdraw(&self) {
        if let Some(list) = self.lock().list.take().filter(|list| list.is_new) {
            // A failure to remove the file does not matter, because it is empty.
            let _ = std::fs::remove_file(&list.path);
        }
    }

    /// Adds a section. An error ends the list, and the stream continues.
    pub(crate) fn add(&self, missing: &Missing, reporter: &Reporter) {
        let mut gaps = self.lock();
        let Some(list) = &mut gaps.list else { return };
        if let Err(error) = list.add(missing) {
            reporter.warn(&format!(
                "--gaps: {error}; further missing sections are counted but not listed"
            ));
            gaps.list = None;
            gaps.error = Some(error);
        }
    }

    /// Fails with the reason if the list is incomplete.
    pub(crate) fn result(&self) -> Result<(), Error> {
        self.lock().error.take().map_or(Ok(()), Err)
    }
}

#[cfg(test)]
mod tests {
    use comity::{SectionId, StreamId};
    use comity_stream::MissingReason;

    use super::*;

    #[test]
    fn a_list_of_gaps_reports_its_size_limit() {
        let path = std::env::temp_dir().join(format!("comity-gaps-{}", std::process::id()));
        let mut list = GapList::open(&path, Existing::Replaced, now()).unwrap();
        list.max_bytes = 1 << 20;
        let missing = Missing {
            stream: StreamId(0),
            id: SectionId(0),
            count: 1 << 40,
            kind: None,
            reason: MissingReason::Obsolete,
            length: None,
            missing_bytes: None,
            source_time: None,
        };
        let refused = std::iter::repeat_with(|| list.add(&missing)).find_map(Result::err);
        let sentence = refused.expect("it is full").to_string();
        assert!(
            sentence.ends_with("is full; expected at most 1 MiB"),
            "{sentence}"
        );
        let length = std::fs::metadata(&path).unwrap().len();
        std::fs::remove_file(&path).unwrap();
        assert!(((1 << 20) - 1_000..=1 << 20).contains(&length), "{length}");
    }
}
