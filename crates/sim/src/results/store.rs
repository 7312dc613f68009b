//! Runs on the disk, stored as they end, so that a sweep that is cut short can go on.
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
//! A process that is killed leaves at most one record that is not whole at the end of its journal.
//! Readers ignore what is not whole, so several processes can use a store at once, also over a
//! network file system. The id of a run depends on all that its results depend on, see
//! [`Scenario::sweep`](crate::scenario::Scenario::sweep). A journal is brought to the disk after
//! every megabyte and at the end: after a power failure, the last runs may be missing.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::fs::{self, File};
use std::io::{self, ErrorKind, Write};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

use serde::{Deserialize, Serialize};

use super::error::{WriteError, parent};
use super::place::Partial;
use super::set::{CompletedRun, ResultSet, ScenarioInfo};

const FORMAT: &str = "comity-runs/1";
const MAGIC: &[u8] = b"comity-runs 1\n";
const DESCRIPTION: &str = "sweep.json";
const ENDING: &str = "journal";
/// Bytes of a record in front of its body.
const HEAD: usize = 20;
/// How many bytes may wait until they are brought to the disk.
const SYNC: usize = 1 << 20;

/// All runs of a sweep, as a store describes them.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Sweep {
    format: String,
    /// The scenario.
    pub scenario: ScenarioInfo,
    /// The command without what does not change results.
    pub command: String,
    /// The id of each run, in their order.
    #[serde(with = "hexadecimal")]
    pub ids: Vec<u64>,
}

impl Sweep {
    /// The sweep of the runs with these ids.
    pub fn new(scenario: ScenarioInfo, command: String, ids: Vec<u64>) -> Self {
        Self {
            format: FORMAT.into(),
            scenario,
            command,
            ids,
        }
    }
}

/// The runs of a sweep that are stored, and a journal for those that follow.
#[derive(Debug)]
pub struct RunStore {
    folder: PathBuf,
    sweep: Sweep,
    stored: Mutex<BTreeMap<u64, CompletedRun>>,
    journal: Mutex<Option<Journal>>,
    found: usize,
}

#[derive(Debug)]
struct Journal {
    file: File,
    /// Bytes written since the file was brought to the disk.
    waiting: usize,
}

impl RunStore {
    /// Opens the store of the results at `path`, or makes one. With `anew`, earlier runs are
    /// removed.
    ///
    /// # Errors
    /// [`StoreError::WouldLose`] and [`StoreError::Exists`] if results at `path` would be lost;
    /// else what the system says.
    pub fn open(path: &Path, sweep: Sweep, anew: bool) -> Result<Self, StoreError> {
        let folder = folder_of(path);
        if anew {
            remove(&folder)?;
        } else if has_something(path) {
            let Some(earlier) = describe(&folder)? else {
                return Err(StoreError::Exists { path: path.into() });
            };
            let known: BTreeSet<u64> = sweep.ids.iter().copied().collect();
            let stored = read_journals(&folder, &earlier.ids)?;
            let lost = stored.keys().filter(|id| !known.contains(id)).count();
            if lost > 0 {
                return Err(StoreError::WouldLose {
                    path: path.into(),
                    runs: lost,
                });
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
        // The number of a run depends on the sweep, the rest on its id alone.
        for (number, id) in sweep.ids.iter().enumerate() {
            if let Some(run) = stored.get_mut(id) {
                run.number = number;
            }
        }
        Ok(Self {
            folder,
            found: stored.len(),
            sweep,
            stored: Mutex::new(stored),
            journal: Mutex::new(None),
        })
    }

    /// The folder of the store.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// How many runs the sweep has.
    #[allow(clippy::len_without_is_empty, reason = "no sweep is empty")]
    pub fn len(&self) -> usize {
        self.sweep.ids.len()
    }

    /// How many runs of the sweep were stored when the store was opened.
    pub const fn found(&self) -> usize {
        self.found
    }

    /// How many runs of the sweep are stored now.
    pub fn stored(&self) -> usize {
        lock(&self.stored).len()
    }

    /// The stored run with this number.
    pub fn get(&self, number: usize) -> Option<CompletedRun> {
        let id = self.sweep.ids.get(number)?;
        lock(&self.stored).get(id).cloned()
    }

    /// Stores a run that ended.
    ///
    /// # Errors
    /// [`StoreError`] when it cannot be written.
    pub fn add(&self, run: CompletedRun) -> Result<(), StoreError> {
        let Some(&id) = self.sweep.ids.get(run.number) else {
            return Ok(());
        };
        let record = record(id, &run).map_err(|error| StoreError::new(&self.folder, error))?;
        let mut journal = lock(&self.journal);
        let written = (|| {
            let journal = match &mut *journal {
                Some(journal) => journal,
                none => none.insert(Journal::new(&self.folder)?),
            };
            // One call: a process that is killed leaves no part of a record behind a whole one.
            journal.file.write_all(&record)?;
            journal.waiting += record.len();
            if journal.waiting >= SYNC {
                journal.file.sync_data()?;
                journal.waiting = 0;
            }
            Ok(())
        })();
        written.map_err(|error| StoreError::new(&self.folder, error))?;
        drop(journal);
        lock(&self.stored).insert(id, run);
        Ok(())
    }

    /// Brings all runs to the disk.
    ///
    /// # Errors
    /// [`StoreError`] when the system cannot.
    pub fn sync(&self) -> Result<(), StoreError> {
        match &*lock(&self.journal) {
            Some(journal) => journal
                .file
                .sync_data()
                .map_err(|error| StoreError::new(&self.folder, error)),
            None => Ok(()),
        }
    }

    /// The stored runs of the sweep, in order.
    pub fn results(&self) -> ResultSet {
        results(&self.sweep, &lock(&self.stored))
    }
}

impl Journal {
    /// A new journal, under a name that no other process has.
    fn new(folder: &Path) -> io::Result<Self> {
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
}

/// The runs of several stores of one sweep.
#[derive(Debug)]
pub struct Merged {
    /// The runs that are stored.
    pub set: ResultSet,
    /// The numbers of the runs that no store has.
    pub missing: Vec<usize>,
}

/// Reads the runs of stores of one sweep, by the `PATH` of their results or by their folders.
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
    let set = results(&sweep, &runs);
    Ok(Merged { set, missing })
}

fn results(sweep: &Sweep, runs: &BTreeMap<u64, CompletedRun>) -> ResultSet {
    let numbered = sweep.ids.iter().enumerate().filter_map(|(number, id)| {
        let mut run = runs.get(id)?.clone();
        run.number = number;
        Some(run)
    });
    ResultSet {
        scenario: sweep.scenario.clone(),
        command: sweep.command.clone(),
        runs: numbered.collect(),
    }
}

/// Where the runs of the results at `path` are stored.
pub fn folder_of(path: &Path) -> PathBuf {
    let mut name = path.file_name().map(OsString::from).unwrap_or_default();
    name.push(".runs");
    parent(path).join(name)
}

/// Whether there is anything at a path but an empty folder.
pub fn has_something(path: &Path) -> bool {
    match fs::read_dir(path) {
        Ok(mut entries) => entries.next().is_some(),
        Err(_) => path.exists(),
    }
}

/// Removes a store, and nothing else that lies there.
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

/// The stored runs with one of these ids.
fn read_journals(folder: &Path, ids: &[u64]) -> Result<BTreeMap<u64, CompletedRun>, StoreError> {
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
                // A run that an earlier version stored in another form runs again.
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

/// A record of the run with this id.
fn record(id: u64, run: &CompletedRun) -> io::Result<Vec<u8>> {
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

/// The first record: its id, its body, and what is behind it. `None` if it is not whole.
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

/// A thread that panicked while it held the lock left the value as it was before.
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

/// Why runs cannot be stored or read.
#[derive(Debug)]
#[non_exhaustive]
pub enum StoreError {
    /// Stores describe different sweeps.
    Different {
        /// The first store.
        first: PathBuf,
        /// The other one.
        second: PathBuf,
    },
    /// The place of the results holds something that no store belongs to.
    Exists {
        /// The place of the results.
        path: PathBuf,
    },
    /// There is no store.
    NoStore {
        /// Where it was expected.
        path: PathBuf,
    },
    /// The description of a store cannot be read.
    Unreadable {
        /// The description.
        path: PathBuf,
        /// Why not.
        reason: String,
    },
    /// The results hold runs that the sweep does not have.
    WouldLose {
        /// The place of the results.
        path: PathBuf,
        /// How many.
        runs: usize,
    },
    /// It cannot be written or read.
    Write(WriteError),
}

impl StoreError {
    fn new(path: &Path, error: io::Error) -> Self {
        Self::Write(WriteError::io(path, error))
    }
}

impl From<WriteError> for StoreError {
    fn from(error: WriteError) -> Self {
        Self::Write(error)
    }
}

impl std::fmt::Display for StoreError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Different { first, second } => write!(
                f,
                "{} and {} store runs of different sweeps; expected one scenario, one list of \
                 seeds and one version",
                first.display(),
                second.display()
            ),
            Self::Exists { path } => write!(
                f,
                "{} exists; expected a new path, or --force to replace the results there",
                path.display()
            ),
            Self::NoStore { path } => {
                write!(f, "no runs are stored at {}", path.display())
            }
            Self::Unreadable { path, reason } => {
                write!(f, "cannot read {}: {reason}", path.display())
            }
            Self::WouldLose { path, runs } => write!(
                f,
                "{} holds {runs} runs that this sweep does not have; expected a new path, or \
                 --force to replace the results there",
                path.display()
            ),
            Self::Write(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for StoreError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Write(error) => Some(error),
            _ => None,
        }
    }
}
