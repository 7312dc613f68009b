//! Results as columns, in files that state their origin.
//!
//! [`write()`] turns the runs of a scenario into tables and stores them as Parquet or CSV (a
//! directory with a file for each table) or JSON (one file). [`compare`] lists the differences of
//! two sets of results.
//!
//! | table | one row for | holds |
//! |---|---|---|
//! | `runs` | a run | seed, versions, fingerprint, totals, fairness over its flows, cost |
//! | `groups` | a group of flows in a run | its [`Measures`] |
//! | `flows` | a flow in a run | every field of [`FlowReport`](crate::report::FlowReport) |
//! | `links` | a link in a run | every field of [`LinkReport`](crate::report::LinkReport) |
//! | `flow_series` | a flow in a bin | [`FlowSeries`](crate::report::FlowSeries), if the scenario has `bins` |
//! | `flow_variation` | a flow at a time scale | the coefficient of variation of its goodput over 1, 2, 5, 10, ... bins, likewise |
//! | `link_series` | a link in a bin | [`LinkSeries`](crate::report::LinkSeries), likewise |
//! | `delay_histogram` | a flow in a bin of delays | the distribution of its one-way delay |
//! | `queueing_delay_histogram` | a link in a bin of delays | the distribution of its queueing delay |
//! | `packets` | a packet at a link | [`PacketRecord`](crate::packets::PacketRecord), if requested |
//!
//! In every table `run` is the number of the run in the set. All tables repeat the axes and the
//! seed of the run, so each can be read alone. [`table`] returns one of them in memory. An axis `p`
//! is the column `axis.p`. A column's name ends in its unit: `_bps` bits per second, `_bytes`,
//! `_ns` nanoseconds, `_s` seconds, `_packets`. Names without a unit are counts, ratios, names and
//! indices. A value that does not exist, such as the mean of no delays, is null (an empty field in
//! CSV), never zero. The fingerprint and the hash of the scenario are 16 hexadecimal digits.
//!
//! Files have metadata: the versions of the layout ([`SCHEMA_VERSION`]), of this crate and of the
//! engine ([`ENGINE_VERSION`]), the scenario's text, the values that replaced some of it, the
//! command, and the unit of every column. They are key-value metadata in Parquet, `metadata.json`
//! beside CSV, and `metadata` in JSON. They do not depend on the machine or the date, so the same
//! results give the same bytes.

mod column;
mod columnar;
mod compare;
mod error;
mod flows_and_links;
mod json;
mod meaning;
mod measures;
#[cfg(feature = "parquet")]
mod parquet;
mod partial;
mod receive_window;
mod seeds;
mod separated;
mod set;
pub mod store;
mod tables;
mod variation;

use std::path::Path;

pub use columnar::{ColumnarColumn, ColumnarTable, ColumnarValues, table};
pub use compare::{Comparison, Difference, RunKey, compare};
pub use error::WriteError;
pub use meaning::{TABLES, meaning, meanings};
pub use measures::Measures;
pub use receive_window::LimitedByReceiveWindow;
pub use seeds::SeedsWithoutEffect;
pub use set::{AxisValue, CompletedRun, ENGINE_VERSION, ResultSet, SCHEMA_VERSION, ScenarioInfo};

use set::Metadata;

/// How results are stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// A directory of CSV files with a line of column names, and `metadata.json`.
    Csv,
    /// One JSON file: `{"metadata": {…}, "tables": {"runs": [{…}, …], …}}`, a line for each row. A
    /// number that is not finite is null.
    Json,
    /// A directory of Parquet files, compressed with Snappy. Needs the feature `parquet`.
    #[cfg(feature = "parquet")]
    Parquet,
}

impl Format {
    /// The format of results at `path`, by its extension: `.csv`, `.json`, or none for Parquet.
    ///
    /// # Errors
    /// [`WriteError::UnknownFormat`] with any other extension.
    pub fn of(path: &Path) -> Result<Self, WriteError> {
        match path.extension() {
            #[cfg(feature = "parquet")]
            None => Ok(Self::Parquet),
            #[cfg(not(feature = "parquet"))]
            None => Err(WriteError::UnknownFormat {
                extension: String::new(),
            }),
            Some(extension) if extension == "csv" => Ok(Self::Csv),
            Some(extension) if extension == "json" => Ok(Self::Json),
            Some(extension) => Err(WriteError::UnknownFormat {
                extension: extension.to_string_lossy().into(),
            }),
        }
    }
}

/// Stores results at `path`: a directory for [`Format::Csv`] and [`Format::Parquet`], a file for
/// [`Format::Json`].
///
/// Everything is written beside `path` under a hidden name, and renamed in one step once it is
/// complete and on the disk. So an interrupted run leaves the earlier results. Earlier results at
/// `path` are replaced; a directory with other files is not changed.
///
/// # Errors
/// [`WriteError`] says what failed and at which path. No partial results remain.
pub fn write(set: &ResultSet, format: Format, path: &Path) -> Result<(), WriteError> {
    let tables = tables::Tables::new(set.runs.iter(), &set.scenario)?;
    let metadata = Metadata::new(set);
    match format {
        Format::Csv => separated::write(&tables, &metadata, path),
        Format::Json => json::write(&tables, &metadata, path),
        #[cfg(feature = "parquet")]
        Format::Parquet => parquet::write(&tables, &metadata, path),
    }
}

#[cfg(test)]
mod tests {
    use std::io::{self, Write};

    use comity_units::{Seed, Span};

    use super::*;
    use crate::report::{Cost, FlowReport, RunReport};

    /// A disk with this much room.
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
            packets: None,
        };
        ResultSet {
            scenario: ScenarioInfo {
                name: "two".into(),
                text: "[[flow]]".into(),
                set: Vec::new(),
            },
            command: "comity run two.toml".into(),
            runs: vec![CompletedRun {
                number: 0,
                axes: Vec::new(),
                seed: Seed::new(1),
                scenario_hash: 0,
                report,
            }],
        }
    }

    #[test]
    fn a_disk_that_fills_up_anywhere_in_a_file_is_reported_as_full() {
        let set = two_flows();
        let tables = tables::Tables::new(set.runs.iter(), &set.scenario).unwrap();
        let metadata = Metadata::new(&set);
        let path = Path::new("results");
        // The writer of each format, as a function of the room on the disk. It returns the
        // remaining room, or the error.
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
}
