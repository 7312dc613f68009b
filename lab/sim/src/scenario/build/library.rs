//! The files that a scenario names, and its maximum size.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::{Arc, Mutex};

use comity_link::{RateProfile, parse_mahimahi, parse_steps};
use twox_hash::XxHash64;

use super::super::problem::ProblemKind;
use super::super::schema::Files;
use super::super::tables::flow::MAX_FLOWS;
use super::super::tables::link::{MAX_LINKS, TraceFormat};
use crate::frames::{Frame, parse_frames};
use crate::transfers::{Sizes, TraceConnection, TransfersError, parse_tmix};

/// The maximum size of a scenario.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// The most runs, below what the scenario itself allows.
    pub runs: u64,
    /// The most flows of one run.
    pub flows: u32,
    /// The most links of the topology itself in one run.
    pub links: u32,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            runs: u64::MAX,
            flows: MAX_FLOWS,
            links: MAX_LINKS,
        }
    }
}

/// The contents of a file, or its error.
type Read<T> = Result<T, ProblemKind>;

/// The files read so far: traces of links, frames, sizes and connections. A sweep reads each once.
#[derive(Debug, Default)]
pub(in crate::scenario) struct Library {
    read: Mutex<BTreeMap<(String, TraceFormat), Read<RateProfile>>>,
    frames: Mutex<BTreeMap<String, Read<Arc<[Frame]>>>>,
    sizes: Mutex<BTreeMap<String, Read<Sizes>>>,
    connections: Mutex<BTreeMap<String, Read<Arc<[TraceConnection]>>>>,
    hashes: Mutex<BTreeMap<String, u64>>,
}

/// The value of `key`, which `read` computes the first time.
fn once<K: Ord, V: Clone>(map: &Mutex<BTreeMap<K, V>>, key: K, read: impl FnOnce() -> V) -> V {
    // A thread that panics while it holds the lock leaves the map unchanged.
    let mut map = map
        .lock()
        .unwrap_or_else(std::sync::PoisonError::into_inner);
    map.entry(key).or_insert_with(read).clone()
}

fn invalid(file: &str, error: TransfersError) -> ProblemKind {
    ProblemKind::Transfers {
        file: file.into(),
        error,
    }
}

impl Library {
    pub(super) fn trace(
        &self,
        files: &dyn Files,
        file: &str,
        format: TraceFormat,
    ) -> Result<RateProfile, ProblemKind> {
        once(&self.read, (file.to_owned(), format), || {
            self.read_trace(files, file, format)
        })
    }

    pub(super) fn frames(
        &self,
        files: &dyn Files,
        file: &str,
    ) -> Result<Arc<[Frame]>, ProblemKind> {
        once(&self.frames, file.to_owned(), || {
            let text = self.read_file(files, file)?;
            let frames = parse_frames(&text).map_err(|error| ProblemKind::Frames {
                file: file.into(),
                error,
            })?;
            Ok(frames.into())
        })
    }

    pub(super) fn sizes(&self, files: &dyn Files, file: &str) -> Result<Sizes, ProblemKind> {
        once(&self.sizes, file.to_owned(), || {
            let text = self.read_file(files, file)?;
            Sizes::parse(&text).map_err(|error| invalid(file, error))
        })
    }

    pub(super) fn connections(
        &self,
        files: &dyn Files,
        file: &str,
    ) -> Result<Arc<[TraceConnection]>, ProblemKind> {
        once(&self.connections, file.to_owned(), || {
            let text = self.read_file(files, file)?;
            let connections = parse_tmix(&text).map_err(|error| invalid(file, error))?;
            Ok(connections.into())
        })
    }

    /// The hash of the content of a file that was read.
    pub(in crate::scenario) fn hash(&self, file: &str) -> Option<u64> {
        let hashes = self.hashes.lock();
        let hashes = hashes.unwrap_or_else(std::sync::PoisonError::into_inner);
        hashes.get(file).copied()
    }

    /// The files that were read.
    pub(in crate::scenario) fn names(&self) -> Vec<String> {
        let hashes = self.hashes.lock();
        let hashes = hashes.unwrap_or_else(std::sync::PoisonError::into_inner);
        hashes.keys().cloned().collect()
    }

    fn read_file(&self, files: &dyn Files, file: &str) -> Result<String, ProblemKind> {
        let text = files
            .read(Path::new(file))
            .map_err(|error| ProblemKind::File {
                file: file.into(),
                reason: error.to_string(),
            })?;
        let hash = XxHash64::oneshot(0, text.as_bytes());
        let hashes = self.hashes.lock();
        let mut hashes = hashes.unwrap_or_else(std::sync::PoisonError::into_inner);
        hashes.insert(file.to_owned(), hash);
        Ok(text)
    }

    fn read_trace(
        &self,
        files: &dyn Files,
        file: &str,
        format: TraceFormat,
    ) -> Result<RateProfile, ProblemKind> {
        let text = self.read_file(files, file)?;
        let as_steps = match format {
            TraceFormat::Steps => true,
            TraceFormat::Mahimahi => false,
            TraceFormat::Guess => Path::new(file)
                .extension()
                .is_some_and(|extension| extension == "csv" || extension == "steps"),
        };
        let read = if as_steps {
            parse_steps(&text).map(RateProfile::Steps)
        } else {
            parse_mahimahi(&text).map(RateProfile::Deliveries)
        };
        read.map_err(|error| ProblemKind::Trace {
            file: file.into(),
            error,
        })
    }
}
