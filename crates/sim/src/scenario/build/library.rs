//! The files that a scenario names, and how large it may become.

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

/// How large a scenario may become.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// The most runs, below what the scenario itself allows.
    pub runs: u64,
    /// The most flows of one run.
    pub flows: u32,
    /// The most links of one run that the topology itself asks for.
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

/// The contents of a file of frames, or its error.
type FrameList = Result<Arc<[Frame]>, ProblemKind>;

/// The trace files and files of frames read so far. A sweep reads each once.
#[derive(Debug, Default)]
pub(in crate::scenario) struct Library {
    read: Mutex<BTreeMap<(String, TraceFormat), Result<RateProfile, ProblemKind>>>,
    frames: Mutex<BTreeMap<String, FrameList>>,
    hashes: Mutex<BTreeMap<String, u64>>,
}

impl Library {
    pub(super) fn trace(
        &self,
        files: &dyn Files,
        file: &str,
        format: TraceFormat,
    ) -> Result<RateProfile, ProblemKind> {
        let key = (file.to_owned(), format);
        // A thread that panicked while it held the lock left the map as it was before.
        let mut read = self
            .read
            .lock()
            .unwrap_or_else(std::sync::PoisonError::into_inner);
        read.entry(key)
            .or_insert_with(|| self.read_trace(files, file, format))
            .clone()
    }

    pub(super) fn frames(
        &self,
        files: &dyn Files,
        file: &str,
    ) -> Result<Arc<[Frame]>, ProblemKind> {
        let mut read = self
            .frames
            .lock()
            .unwrap_or_else(std::sync::PoisonError::into_inner);
        read.entry(file.to_owned())
            .or_insert_with(|| {
                let text = self.read_file(files, file)?;
                parse_frames(&text)
                    .map(Into::into)
                    .map_err(|error| ProblemKind::Frames {
                        file: file.into(),
                        error,
                    })
            })
            .clone()
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
