//! The lab as users see it: kernel TCP, datagrams, sections and programs on real packets.
//!
//! If parts of a lab are missing, the tests name them and pass; with `COMITY_NEED_LAB=1` they fail.
//! A run that the lab itself does not trust is repeated once. If that one is not trusted either,
//! nothing that depends on timing is checked.

mod cleaning;
mod refusals;
mod tcp;
mod worlds;

use std::collections::BTreeMap;
use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use tempfile::TempDir;

/// A folder for one test and its runs.
struct Bench {
    folder: TempDir,
}

/// The result of a run of the lab.
struct Played {
    output: Output,
    /// Whether the lab trusts it.
    is_trusted: bool,
}

/// Prints a line for the person who runs the tests, even if they pass.
fn print_line(text: &str) {
    // The standard error may be closed.
    let _ = writeln!(std::io::stderr(), "lab tests: {text}");
}

fn said(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// Whether a lab can run here. Otherwise it prints what is missing.
fn can_run() -> bool {
    let check = comity(&["lab", "check"]).output().unwrap();
    if check.status.success() {
        return true;
    }
    let reason = said(&check);
    assert!(
        std::env::var_os("COMITY_NEED_LAB").is_none(),
        "COMITY_NEED_LAB is set, and: {reason}"
    );
    print_line(&format!("skipped, {}", reason.trim()));
    false
}

fn comity(args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_comity"));
    command.args(args);
    command
}

impl Bench {
    /// A folder with the scenario as `flow.toml`.
    fn new(scenario: &str) -> Self {
        let folder = TempDir::new().unwrap();
        fs::write(folder.path().join("flow.toml"), scenario).unwrap();
        Self { folder }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// The command, in the folder.
    fn comity(&self, args: &[&str]) -> Command {
        let mut command = comity(args);
        command.current_dir(self.folder.path());
        command
    }

    /// Runs the scenario in the simulator, into `sim.csv`.
    fn simulate(&self) {
        let output = self
            .comity(&["sim", "run", "flow.toml", "--out", "sim.csv"])
            .output()
            .unwrap();
        assert!(output.status.success(), "{}", said(&output));
    }

    /// Runs the scenario in the lab, into `lab.csv`. If the lab does not trust the first run, it is
    /// repeated once.
    fn run(&self, args: &[&str]) -> Played {
        let mut command = self.comity(&["lab", "run", "flow.toml", "--out", "lab.csv", "--force"]);
        command.args(args);
        let output = command.output().unwrap();
        if output.status.code() != Some(3) {
            assert!(output.status.success(), "{}", said(&output));
            return Played {
                output,
                is_trusted: true,
            };
        }
        let output = command.output().unwrap();
        let is_trusted = output.status.success();
        if !is_trusted {
            assert_eq!(output.status.code(), Some(3), "{}", said(&output));
            print_line(&format!("timing is not judged: {}", said(&output).trim()));
        }
        Played { output, is_trusted }
    }

    /// The rows of a table of results.
    fn rows(&self, results: &str, table: &str) -> Vec<BTreeMap<String, String>> {
        rows(&self.path(results).join(format!("{table}.csv")))
    }

    /// The only row of a table whose column has this value.
    fn row(&self, results: &str, table: &str, (column, value): (&str, &str)) -> Row {
        let mut rows = self.rows(results, table);
        rows.retain(|row| row[column] == value);
        assert_eq!(rows.len(), 1, "{table} with {column} = {value}");
        Row(rows.remove(0))
    }
}

/// A row of results.
struct Row(BTreeMap<String, String>);

impl Row {
    /// Empty if no row has a value: the table then omits the column.
    fn text(&self, column: &str) -> &str {
        self.0.get(column).map_or("", String::as_str)
    }

    fn number(&self, column: &str) -> f64 {
        let text = self.text(column);
        text.parse()
            .unwrap_or_else(|_| panic!("{column} is {text:?}"))
    }
}

/// The rows of a CSV file whose values have no commas.
fn rows(path: &Path) -> Vec<BTreeMap<String, String>> {
    let text = fs::read_to_string(path).unwrap();
    let mut lines = text.lines();
    let names: Vec<&str> = lines.next().unwrap().split(',').collect();
    let row = |line: &str| -> BTreeMap<String, String> {
        let values = line.split(',').map(str::to_owned);
        names
            .iter()
            .map(|name| (*name).to_owned())
            .zip(values)
            .collect()
    };
    lines.map(row).collect()
}
