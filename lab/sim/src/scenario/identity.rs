//! Hashes of all that the results of a run depend on.

use rayon::prelude::*;
use twox_hash::XxHash64;

use super::document::{Node, Value};
use super::schema::Context;
use super::{Run, Scenario};
use crate::report::RunReport;
use crate::results::store::Sweep;
use crate::results::{CompletedRun, ENGINE_VERSION, ScenarioInfo};

/// Keys of `[scenario]` that no result depends on.
const WITHOUT_EFFECT: [&str; 3] = ["name", "description", "seeds"];

impl Scenario {
    /// The hash of the effective scenario at a point: the document with its overrides and the
    /// values of the axes, and the contents of the files that it names.
    ///
    /// ```text
    /// hash = XXH64 of the document as one line of TOML, then of each such file
    /// ```
    ///
    /// Names, descriptions and seeds have no effect and do not count.
    pub fn point_hash(&self, point: usize) -> u64 {
        let mut cx = Context::new(&*self.files, &self.custom);
        let mut document = self.document_of(point, &mut cx);
        if let Value::Table(entries) = &mut document.value {
            for entry in entries.iter_mut().filter(|entry| entry.key == "scenario") {
                if let Value::Table(settings) = &mut entry.node.value {
                    settings.retain(|entry| !WITHOUT_EFFECT.contains(&&*entry.key));
                }
            }
        }
        let mut text = document.to_line();
        self.add_files(&document, &mut text);
        XxHash64::oneshot(0, text.as_bytes())
    }

    /// The sweep of all runs in a world, `sim` or `lab`, for a store. The id of a run is a hash of
    /// the effective scenario, the seed, the world, the versions of program and engine, and the
    /// sources of the simulator that this program was built from.
    pub fn sweep(&self, world: &str, command: String) -> Sweep {
        let points = 0..self.points();
        let hashes: Vec<u64> = points
            .into_par_iter()
            .map(|at| self.point_hash(at))
            .collect();
        let id = |run: Run| id(hashes.get(run.point).copied(), &run, world);
        let info = ScenarioInfo {
            name: self.name.clone(),
            text: self.text().into(),
            set: self.overrides.clone(),
        };
        Sweep::new(info, command, self.runs().into_iter().map(id).collect())
    }

    /// The id of a run in a world, as [`sweep`](Self::sweep) has it.
    pub fn run_id(&self, run: &Run, world: &str) -> u64 {
        id(Some(self.point_hash(run.point)), run, world)
    }

    /// A run with its report, for results.
    pub fn completed(&self, run: &Run, report: RunReport) -> CompletedRun {
        let axes = self.axes().into_iter().map(Into::into);
        CompletedRun {
            number: run.number,
            axes: axes.zip(run.values.iter().cloned()).collect(),
            seed: run.seed,
            scenario_hash: self.point_hash(run.point),
            report,
        }
    }

    /// Adds the hashes of the files that texts of the document name.
    fn add_files(&self, node: &Node, text: &mut String) {
        match &node.value {
            Value::Text(file) => {
                if let Some(hash) = self.library.hash(file) {
                    text.push_str(&format!("\n{file} {hash:016x}"));
                }
            }
            Value::List(items) => items.iter().for_each(|item| self.add_files(item, text)),
            Value::Table(entries) => {
                entries
                    .iter()
                    .for_each(|entry| self.add_files(&entry.node, text));
            }
            _ => {}
        }
    }
}

fn id(hash: Option<u64>, run: &Run, world: &str) -> u64 {
    let version = env!("CARGO_PKG_VERSION");
    // From build.rs.
    let sources = env!("COMITY_SOURCES");
    let seed = run.seed.get();
    let of = (hash, seed, world, version, ENGINE_VERSION, sources);
    XxHash64::oneshot(0, format!("{of:?}").as_bytes())
}
