//! Runs on the disk, stored as they end, so that an interrupted sweep can continue.
//!
//! A store is the folder `PATH.runs` beside the results at `PATH`. It holds `sweep.json`, which
//! describes the sweep, and journals. Each process appends to a journal of its own:
//!
//! ```text
//! journal = "comity-runs 1\n" record*
//! record  = length: u32, id: u64, hash: u64, body       little-endian; hash = XXH64 of id and body
//! body    = the run with its report, as CBOR (RFC 8949)
//! ```
//!
//! A process that is killed leaves at most one incomplete record at the end of its journal. Readers
//! ignore incomplete records, so several processes can use a store at once, also over a network
//! file system. The id of a run depends on all that its results depend on, see
//! [`Scenario::sweep`](crate::scenario::Scenario::sweep). A journal is flushed to the disk after
//! every megabyte and at the end. After a power failure the last runs may be missing.

mod error;
mod journal;

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

use serde::{Deserialize, Serialize};

pub use error::StoreError;
pub use journal::record;

use super::error::parent;
use super::partial::Partial;
use super::set::{CompletedRun, ResultSet, ScenarioInfo};
use journal::{ENDING, Journal, read_journals, read_record};

const FORMAT: &str = "comity-runs/1";
const DESCRIPTION: &str = "sweep.json";

/// The runs of a sweep, as a store describes them.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Sweep {
    format: String,
    /// The scenario.
    pub scenario: ScenarioInfo,
    /// The command, without options that do not change results.
    pub command: String,
    /// The ids of the runs, in order.
    #[serde(with = "hexadecimal")]
    pub ids: Vec<u64>,
}

impl Sweep {
    /// Creates the sweep of the runs with these ids.
    pub fn new(scenario: ScenarioInfo, command: String, ids: Vec<u64>) -> Self {
        Self {
            format: FORMAT.into(),
            scenario,
            command,
            ids,
        }
    }
}

/// The stored runs of a sweep, and a journal for further ones.
#[derive(Debug)]
pub struct RunStore {
    /// `None` for a store in memory.
    folder: Option<PathBuf>,
    sweep: Sweep,
    stored: Mutex<BTreeMap<u64, CompletedRun>>,
    journal: Mutex<Option<Journal>>,
    found: usize,
}

impl RunStore {
    /// Opens or creates the store of the results at `path`. With `anew`, removes earlier runs.
    ///
    /// # Errors
    /// [`StoreError::WouldLose`] and [`StoreError::Exists`] if results at `path`, or runs of
    /// another sweep, would be lost; otherwise the error of the system.
    pub fn open(path: &Path, sweep: Sweep, anew: bool) -> Result<Self, StoreError> {
        let folder = folder_of(path);
        if anew {
            remove(&folder)?;
        } else {
            match describe(&folder)? {
                Some(earlier) if earlier.ids != sweep.ids => {
                    refuse_to_lose(&folder, earlier, &sweep)?;
                }
                None if has_something(path) => {
                    return Err(StoreError::Exists { path: path.into() });
                }
                _ => {}
            }
        }
        match fs::create_dir(&folder) {
            Err(error) if error.kind() != ErrorKind::AlreadyExists => {
                return Err(StoreError::new(&folder, error));
            }
            _ => {}
        }
        let description = folder.join(DESCRIPTION);
        let (partial, mut writer) = Partial::file(&description)?;
        serde_json::to_writer_pretty(&mut writer.file, &sweep)
            .map_err(|error| StoreError::new(&description, error.into()))?;
        writer.close()?;
        partial.finish()?;
        let mut stored = read_journals(&folder, &sweep.ids)?;
        // The number of a run depends on the sweep; everything else depends only on its id.
        for (number, id) in sweep.ids.iter().enumerate() {
            if let Some(run) = stored.get_mut(id) {
                run.number = number;
            }
        }
        Ok(Self {
            folder: Some(folder),
            found: stored.len(),
            sweep,
            stored: Mutex::new(stored),
            journal: Mutex::new(None),
        })
    }

    /// Creates a store that keeps runs only in memory.
    pub const fn in_memory(sweep: Sweep) -> Self {
        Self {
            folder: None,
            found: 0,
            sweep,
            stored: Mutex::new(BTreeMap::new()),
            journal: Mutex::new(None),
        }
    }

    /// The folder of the store; empty for a store in memory.
    pub fn folder(&self) -> &Path {
        self.folder.as_deref().unwrap_or(Path::new(""))
    }

    /// The number of runs of the sweep.
    #[allow(clippy::len_without_is_empty, reason = "no sweep is empty")]
    pub fn len(&self) -> usize {
        self.sweep.ids.len()
    }

    /// The number of runs that were stored when the store was opened.
    pub const fn found(&self) -> usize {
        self.found
    }

    /// The number of runs that are stored now.
    pub fn stored(&self) -> usize {
        lock(&self.stored).len()
    }

    /// The stored run with this number.
    pub fn get(&self, number: usize) -> Option<CompletedRun> {
        let id = self.sweep.ids.get(number)?;
        lock(&self.stored).get(id).cloned()
    }

    /// Whether the run with this number is stored.
    pub fn has(&self, number: usize) -> bool {
        let id = self.sweep.ids.get(number);
        id.is_some_and(|id| lock(&self.stored).contains_key(id))
    }

    /// Stores a completed run.
    ///
    /// # Errors
    /// [`StoreError`] if it cannot be written.
    pub fn add(&self, run: CompletedRun) -> Result<(), StoreError> {
        let Some(&id) = self.sweep.ids.get(run.number) else {
            return Ok(());
        };
        if self.folder.is_some() {
            let record = record(id, &run).map_err(|error| self.fail(error))?;
            self.append(&record)?;
        }
        lock(&self.stored).insert(id, run);
        Ok(())
    }

    /// Stores a run of another process, from its [`record()`].
    ///
    /// # Errors
    /// [`StoreError::Foreign`] if the run is not one of this sweep; otherwise as
    /// [`add`](Self::add).
    pub fn add_record(&self, record: &[u8]) -> Result<(), StoreError> {
        let (id, run) = read_record(record).ok_or(StoreError::Foreign)?;
        if self.sweep.ids.get(run.number) != Some(&id) {
            return Err(StoreError::Foreign);
        }
        self.append(record)?;
        lock(&self.stored).insert(id, run);
        Ok(())
    }

    /// Appends a record to the journal of this process.
    fn append(&self, record: &[u8]) -> Result<(), StoreError> {
        let Some(folder) = &self.folder else {
            return Ok(());
        };
        let mut journal = lock(&self.journal);
        let journal = match &mut *journal {
            Some(journal) => journal,
            none => none.insert(Journal::new(folder).map_err(|error| self.fail(error))?),
        };
        journal.append(record).map_err(|error| self.fail(error))
    }

    fn fail(&self, error: std::io::Error) -> StoreError {
        StoreError::new(self.folder(), error)
    }

    /// Flushes all runs to the disk.
    ///
    /// # Errors
    /// [`StoreError`] if that fails.
    pub fn sync(&self) -> Result<(), StoreError> {
        match &*lock(&self.journal) {
            Some(journal) => journal.sync().map_err(|error| self.fail(error)),
            None => Ok(()),
        }
    }

    /// The stored runs of the sweep, in order.
    pub fn results(&self) -> ResultSet {
        results(&self.sweep, lock(&self.stored).clone())
    }

    /// The stored runs of the sweep, in order. The store no longer keeps them in memory.
    pub fn take_results(&self) -> ResultSet {
        results(&self.sweep, std::mem::take(&mut *lock(&self.stored)))
    }
}

/// The runs of several stores of one sweep.
#[derive(Debug)]
pub struct Merged {
    /// The runs that are stored.
    pub set: ResultSet,
    /// The numbers of the runs that no store has.
    pub missing: Vec<usize>,
}

/// Reads the runs of several stores of one sweep, by the `PATH` of their results or by their
/// folders.
///
/// # Errors
/// [`StoreError`] if there is no store, or if two describe different sweeps.
pub fn merge(stores: &[PathBuf]) -> Result<Merged, StoreError> {
    let mut found: Option<(PathBuf, Sweep)> = None;
    let mut runs = BTreeMap::new();
    for path in stores {
        let folder = match path.join(DESCRIPTION).exists() {
            true => path.clone(),
            false => folder_of(path),
        };
        let Some(sweep) = describe(&folder)? else {
            return Err(StoreError::NoStore { path: folder });
        };
        match &found {
            Some((first, known)) if known.ids != sweep.ids => {
                return Err(StoreError::Different {
                    first: first.clone(),
                    second: folder,
                });
            }
            Some(_) => {}
            None => found = Some((folder.clone(), sweep.clone())),
        }
        runs.append(&mut read_journals(&folder, &sweep.ids)?);
    }
    let Some((_, sweep)) = found else {
        return Err(StoreError::NoStore {
            path: PathBuf::new(),
        });
    };
    let missing = (0..sweep.ids.len())
        .filter(|number| {
            !sweep
                .ids
                .get(*number)
                .is_some_and(|id| runs.contains_key(id))
        })
        .collect();
    let set = results(&sweep, runs);
    Ok(Merged { set, missing })
}

fn results(sweep: &Sweep, mut runs: BTreeMap<u64, CompletedRun>) -> ResultSet {
    // Points whose axes set the same key may share a run.
    let last: BTreeMap<u64, usize> = sweep.ids.iter().copied().zip(0..).collect();
    let numbered = sweep.ids.iter().enumerate().filter_map(|(number, id)| {
        let mut run = match last.get(id) == Some(&number) {
            true => runs.remove(id)?,
            false => runs.get(id)?.clone(),
        };
        run.number = number;
        Some(run)
    });
    ResultSet {
        scenario: sweep.scenario.clone(),
        command: sweep.command.clone(),
        runs: numbered.collect(),
    }
}

/// The folder of the runs of the results at `path`.
pub fn folder_of(path: &Path) -> PathBuf {
    let mut name = path.file_name().map(OsString::from).unwrap_or_default();
    name.push(".runs");
    parent(path).join(name)
}

/// Whether a path exists that is not an empty folder.
pub fn has_something(path: &Path) -> bool {
    match fs::read_dir(path) {
        Ok(mut entries) => entries.next().is_some(),
        Err(_) => path.exists(),
    }
}

/// Refuses a sweep without runs that an earlier one stored. Without its description they could no
/// longer be found.
fn refuse_to_lose(folder: &Path, earlier: Sweep, sweep: &Sweep) -> Result<(), StoreError> {
    let known: BTreeSet<u64> = sweep.ids.iter().copied().collect();
    let stored = read_journals(folder, &earlier.ids)?;
    match stored.keys().filter(|id| !known.contains(id)).count() {
        0 => Ok(()),
        runs => Err(StoreError::WouldLose {
            folder: folder.into(),
            runs,
            scenario: earlier.scenario.name,
            command: earlier.command,
        }),
    }
}

/// Removes the files of a store, and no others.
fn remove(folder: &Path) -> Result<(), StoreError> {
    let fail = |error| StoreError::new(folder, error);
    let entries = match fs::read_dir(folder) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(()),
        entries => entries.map_err(fail)?,
    };
    for entry in entries {
        let path = entry.map_err(fail)?.path();
        if path.extension().is_some_and(|ending| ending == ENDING) || path.ends_with(DESCRIPTION) {
            fs::remove_file(&path).map_err(fail)?;
        }
    }
    Ok(())
}

/// The description of a store; `None` without a store.
fn describe(folder: &Path) -> Result<Option<Sweep>, StoreError> {
    let path = folder.join(DESCRIPTION);
    let text = match fs::read(&path) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
        text => text.map_err(|error| StoreError::new(&path, error))?,
    };
    match serde_json::from_slice::<Sweep>(&text) {
        Ok(sweep) if sweep.format == FORMAT => Ok(Some(sweep)),
        Ok(sweep) => Err(StoreError::Unreadable {
            path,
            reason: format!("its format is {:?}; expected {FORMAT:?}", sweep.format),
        }),
        Err(error) => Err(StoreError::Unreadable {
            path,
            reason: error.to_string(),
        }),
    }
}

/// A thread that panics while it holds the lock leaves the value unchanged.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

mod hexadecimal {
    use serde::{Deserialize, Deserializer, Serializer, de::Error};

    pub(super) fn serialize<S: Serializer>(ids: &[u64], out: S) -> Result<S::Ok, S::Error> {
        out.collect_seq(ids.iter().map(|id| format!("{id:016x}")))
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Vec<u64>, D::Error> {
        let texts = Vec::<String>::deserialize(from)?;
        let number = |text: &String| u64::from_str_radix(text, 16).map_err(D::Error::custom);
        texts.iter().map(number).collect()
    }
}
