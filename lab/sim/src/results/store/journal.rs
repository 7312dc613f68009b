//! Journals: runs as records, one after another.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File};
use std::io::{self, ErrorKind, Write};
use std::path::Path;

use super::super::set::CompletedRun;
use super::error::StoreError;

const MAGIC: &[u8] = b"comity-runs 1\n";
/// The extension of a journal's name.
pub(super) const ENDING: &str = "journal";
/// The bytes of a record before its body.
const HEAD: usize = 20;
/// After this many bytes the journal is flushed to the disk.
const SYNC: usize = 1 << 20;

/// The journal of one process.
#[derive(Debug)]
pub(super) struct Journal {
    file: File,
    /// The bytes written since the last flush to the disk.
    waiting: usize,
}

impl Journal {
    /// Creates a journal with a name that no other process uses.
    pub(super) fn new(folder: &Path) -> io::Result<Self> {
        for number in 0_u32.. {
            match File::create_new(folder.join(format!("{number:04}.{ENDING}"))) {
                Ok(mut file) => {
                    file.write_all(MAGIC)?;
                    return Ok(Self { file, waiting: 0 });
                }
                Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
                Err(error) => return Err(error),
            }
        }
        Err(ErrorKind::AlreadyExists.into())
    }

    pub(super) fn append(&mut self, record: &[u8]) -> io::Result<()> {
        // One call, so a killed process leaves no part of a record after a complete one.
        self.file.write_all(record)?;
        self.waiting += record.len();
        if self.waiting >= SYNC {
            self.sync()?;
            self.waiting = 0;
        }
        Ok(())
    }

    /// Flushes all records to the disk.
    pub(super) fn sync(&self) -> io::Result<()> {
        self.file.sync_data()
    }
}

/// The stored runs with one of these ids.
pub(super) fn read_journals(
    folder: &Path,
    ids: &[u64],
) -> Result<BTreeMap<u64, CompletedRun>, StoreError> {
    let fail = |error| StoreError::new(folder, error);
    let wanted: BTreeSet<u64> = ids.iter().copied().collect();
    let mut runs = BTreeMap::new();
    let entries = match fs::read_dir(folder) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(runs),
        entries => entries.map_err(fail)?,
    };
    for entry in entries {
        let path = entry.map_err(fail)?.path();
        if path.extension().is_some_and(|ending| ending == ENDING) {
            let bytes = fs::read(&path).map_err(|error| StoreError::new(&path, error))?;
            let Some(mut rest) = bytes.strip_prefix(MAGIC) else {
                continue;
            };
            while let Some((id, body, after)) = split_record(rest) {
                // If an earlier version stored a run in another form, it runs again.
                if wanted.contains(&id)
                    && let Ok(run) = ciborium::from_reader(body)
                {
                    runs.insert(id, run);
                }
                rest = after;
            }
        }
    }
    Ok(runs)
}

/// A run as a record, for the store of another process. `id` is that of
/// [`Scenario::run_id`](crate::scenario::Scenario::run_id).
///
/// # Errors
/// The report is longer than 4 GiB.
pub fn record(id: u64, run: &CompletedRun) -> io::Result<Vec<u8>> {
    let mut record = vec![0; HEAD];
    ciborium::into_writer(run, &mut record).map_err(io::Error::other)?;
    let body = record.get(HEAD..).unwrap_or_default();
    let length = u32::try_from(body.len()).map_err(|_| ErrorKind::FileTooLarge)?;
    let hash = check(id, body);
    let head = [
        &length.to_le_bytes()[..],
        &id.to_le_bytes(),
        &hash.to_le_bytes(),
    ];
    record.splice(..HEAD, head.concat());
    Ok(record)
}

/// Reads a single record: its id and its run. `None` if it is incomplete, or if another version
/// wrote it.
pub(super) fn read_record(bytes: &[u8]) -> Option<(u64, CompletedRun)> {
    let (id, body, rest) = split_record(bytes)?;
    let run = ciborium::from_reader(body).ok()?;
    rest.is_empty().then_some((id, run))
}

/// Splits off the first record: its id, its body, and the rest. `None` if it is incomplete.
fn split_record(bytes: &[u8]) -> Option<(u64, &[u8], &[u8])> {
    let (length, rest) = bytes.split_first_chunk()?;
    let (id, rest) = rest.split_first_chunk()?;
    let (hash, rest) = rest.split_first_chunk()?;
    let (body, rest) = rest.split_at_checked(u32::from_le_bytes(*length) as usize)?;
    let id = u64::from_le_bytes(*id);
    (check(id, body) == u64::from_le_bytes(*hash)).then_some((id, body, rest))
}

fn check(id: u64, body: &[u8]) -> u64 {
    twox_hash::XxHash64::oneshot(id, body)
}
