//! Results as columns, in files that say where they come from.
//!
//! [`write()`] turns the runs of a scenario into tables and stores them as Parquet or CSV (a directory with a
//! file for each table) or JSON (one file). [`compare`] says in what two sets of results differ.
//!
//! | table | one row for | holds |
//! |---|---|---|
//! | `runs` | a run | seed, versions, fingerprint, totals, fairness over its flows, cost |
//! | `groups` | a group of flows in a run | totals, fairness within it, friendliness to all others, how long after its last start it came to share equally ([`RunReport::convergence`]) |
//! | `flows` | a flow in a run | every field of [`FlowReport`](crate::report::FlowReport) |
//! | `links` | a link in a run | every field of [`LinkReport`](crate::report::LinkReport) |
//! | `flow_series` | a flow in a bin | [`FlowSeries`](crate::report::FlowSeries), when bins were asked for |
//! | `flow_variation` | a flow at a time scale | the coefficient of variation of its goodput over 1, 2, 5, 10, ... bins, likewise |
//! | `link_series` | a link in a bin | [`LinkSeries`](crate::report::LinkSeries), likewise |
//!
//! In every table `run` is the number of the run in the set, and all but those of bins repeat the axes and the
//! seed of the run, so that no table needs another to be read. An axis `p` is the column `axis.p`. The end of
//! a column's name is its unit: `_bps` bits per second, `_bytes`, `_ns` nanoseconds, `_s` seconds,
//! `_packets`; names without one are counts, ratios, names and numbers of things. A value that does not
//! exist, such as the mean of no delays, is null (an empty field in CSV), never zero. The fingerprint and the
//! hash of the scenario are 16 hexadecimal digits.
//!
//! Files carry the version of the layout ([`SCHEMA_VERSION`]), of this crate and of the engine
//! ([`ENGINE_VERSION`]), the scenario's text and hash (XXH64 with seed 0), the command, and the unit of every
//! column: as key-value metadata in Parquet, in `metadata.json` beside CSV, under `metadata` in JSON. Nothing
//! in them depends on the machine or the date, so the same results give the same bytes.

mod column;
mod compare;
mod json;
mod parquet;
mod pick;
mod place;
mod separated;
mod tables;
mod things;
mod variation;

use std::fmt;
use std::path::Path;

use comity_units::Seed;

pub use compare::{Comparison, Difference, RunKey, compare};
pub use place::WriteError;

pub(crate) use pick::{Picked, columns, pick};

use crate::report::RunReport;

/// The version of the tables: raised when a column changes its name, type or meaning or goes away. A new
/// column does not raise it.
pub const SCHEMA_VERSION: u32 = 1;

/// The version of what the engine computes: raised by a change after which the same network and seed give
/// other results.
pub const ENGINE_VERSION: u32 = 1;

/// The runs of one scenario.
#[derive(Clone, Debug, PartialEq)]
pub struct ResultSet {
    /// What was run.
    pub scenario: ScenarioInfo,
    /// The command that did it, as it was typed.
    pub command: String,
    /// The runs; a run's place here is its number.
    pub runs: Vec<CompletedRun>,
}

/// What was run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ScenarioInfo {
    /// Its name, not a path.
    pub name: String,
    /// Its whole text.
    pub text: String,
}

/// One run and the point of the sweep that it is at.
#[derive(Clone, Debug, PartialEq)]
pub struct CompletedRun {
    /// What was varied, with the value that it had.
    pub axes: Vec<(String, AxisValue)>,
    /// The seed as it was asked for.
    pub seed: Seed,
    /// What came out.
    pub report: RunReport,
}

/// The value that an axis has at one point of a sweep.
///
/// The column of an axis takes the type of its values: whole numbers among numbers become numbers, and any
/// other mixture becomes text.
#[derive(Clone, Debug, PartialEq)]
pub enum AxisValue {
    /// Yes or no.
    Boolean(bool),
    /// A whole number.
    Integer(i64),
    /// A number.
    Number(f64),
    /// A text, among them quantities with their unit such as `40ms`.
    Text(String),
}

impl fmt::Display for AxisValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Boolean(value) => f.pad(if *value { "true" } else { "false" }),
            Self::Integer(value) => f.pad(&value.to_string()),
            Self::Number(value) => f.pad(&value.to_string()),
            Self::Text(text) => f.pad(text),
        }
    }
}

/// How results are stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// A directory of CSV files with a line of column names, and `metadata.json`.
    Csv,
    /// One JSON file: `{"metadata": {…}, "tables": {"runs": [{…}, …], …}}`, a line for each row. A number that
    /// is not finite is null.
    Json,
    /// A directory of Parquet files, compressed with Snappy.
    Parquet,
}

/// Stores results at `path`: a directory for [`Format::Csv`] and [`Format::Parquet`], a file for
/// [`Format::Json`].
///
/// Everything is written beside `path` under a hidden name and takes its place in one step when it is whole
/// and on the disk, so that an interrupted run leaves what was there before. Earlier results at `path` are
/// replaced; a directory that holds anything else is left alone.
///
/// # Errors
/// [`WriteError`] says what went wrong and at which path. Nothing is left behind then.
pub fn write(set: &ResultSet, format: Format, path: &Path) -> Result<(), WriteError> {
    let tables = tables::Tables::new(set.runs.iter().enumerate(), &set.scenario)?;
    let metadata = Metadata::new(set);
    match format {
        Format::Csv => separated::write(&tables, &metadata, path),
        Format::Json => json::write(&tables, &metadata, path),
        Format::Parquet => parquet::write(&tables, &metadata, path),
    }
}

/// What files say about where they come from.
struct Metadata {
    entries: Vec<(&'static str, String)>,
}

impl Metadata {
    fn new(set: &ResultSet) -> Self {
        let ScenarioInfo { name, text } = &set.scenario;
        Self {
            entries: vec![
                ("schema_version", SCHEMA_VERSION.to_string()),
                ("version", env!("CARGO_PKG_VERSION").to_owned()),
                ("engine_version", ENGINE_VERSION.to_string()),
                ("command", set.command.clone()),
                ("scenario_name", name.clone()),
                ("scenario_hash", hash(text)),
                ("scenario_text", text.clone()),
            ],
        }
    }
}

/// The hash of a text as files give it.
fn hash(text: &str) -> String {
    format!("{:016x}", twox_hash::XxHash64::oneshot(0, text.as_bytes()))
}

#[cfg(test)]
mod tests {
    use std::io::{self, Write};

    use comity_units::Span;

    use super::*;
    use crate::report::{Cost, FlowReport};

    /// A disk with so much room.
    struct Disk {
        room: usize,
    }

    impl Write for Disk {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            let taken = bytes.len().min(self.room);
            self.room -= taken;
            if taken == 0 && !bytes.is_empty() {
                return Err(io::ErrorKind::StorageFull.into());
            }
            Ok(taken)
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    fn two_flows() -> ResultSet {
        let flow = |name: &str| FlowReport {
            name: name.into(),
            ..FlowReport::default()
        };
        let report = RunReport {
            world: crate::report::World::default(),
            seed: Seed::new(1),
            fingerprint: 7,
            duration: Span::from_secs(1),
            warmup: Span::ZERO,
            flows: vec![flow("a"), flow("b")],
            links: Vec::new(),
            cost: Cost::default(),
            series: None,
        };
        ResultSet {
            scenario: ScenarioInfo {
                name: "two".into(),
                text: "[[flow]]".into(),
            },
            command: "comity run two.toml".into(),
            runs: vec![CompletedRun {
                axes: Vec::new(),
                seed: Seed::new(1),
                report,
            }],
        }
    }

    #[test]
    fn a_disk_that_fills_up_anywhere_in_a_file_is_reported_as_full() {
        let set = two_flows();
        let tables = tables::Tables::new(set.runs.iter().enumerate(), &set.scenario).unwrap();
        let metadata = Metadata::new(&set);
        let path = Path::new("results");
        // Each writer of a format, as a function of the room on the disk: how much is left, or what it says.
        let json = |room| {
            let mut disk = Disk { room };
            json::document(&tables, &metadata, &mut disk).map_err(|e| WriteError::io(path, e))?;
            Ok(disk.room)
        };
        let parquet = |room| {
            let mut disk = Disk { room };
            tables.each(&mut parquet::InOneFile {
                metadata: &metadata,
                out: &mut disk,
                path,
            })?;
            Ok(disk.room)
        };
        let separated = |room| {
            let mut disk = Disk { room };
            tables.each(&mut separated::InOneFile {
                out: &mut disk,
                path,
            })?;
            Ok(disk.room)
        };
        type Writes<'a> = &'a dyn Fn(usize) -> Result<usize, WriteError>;
        let formats: [Writes<'_>; 3] = [&json, &parquet, &separated];
        for write in formats {
            let needed = 1_000_000 - write(1_000_000).unwrap();
            assert!(needed > 1_000, "{needed}");
            for room in (0..needed).step_by(29).chain([needed - 1]) {
                let error = write(room).unwrap_err();
                assert!(
                    matches!(error, WriteError::DiskFull { .. }),
                    "{room}: {error:?}"
                );
            }
            assert_eq!(write(needed).unwrap(), 0);
        }
    }

    #[test]
    fn hashes_are_those_that_xxhsum_prints() {
        // Published test values of XXH64 with seed 0.
        assert_eq!(hash(""), "ef46db3751d8e999");
        assert_eq!(hash("abc"), "44bc2cf5ad770999");
    }

    #[test]
    fn axis_values_print_as_they_are_written() {
        let values = [
            (AxisValue::Boolean(true), "true"),
            (AxisValue::Integer(-3), "-3"),
            (AxisValue::Number(0.25), "0.25"),
            (AxisValue::Text("40ms".into()), "40ms"),
        ];
        for (value, text) in values {
            assert_eq!(value.to_string(), text);
        }
    }
}
