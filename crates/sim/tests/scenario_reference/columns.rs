//! `docs/reference/columns.md` lists every column of stored results with its unit and meaning.
//!
//! To write it anew after a change of the columns:
//!
//! ```text
//! COMITY_UPDATE=1 cargo test -p comity-sim --test it columns
//! ```

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::path::Path;

use comity_sim::report::{Cost, RunReport, Series, World};
use comity_sim::results::{AxisValue, CompletedRun, Format, ResultSet, ScenarioInfo, write};
use comity_units::{Seed, Span};
use serde_json::Value;

const PAGE: &str = concat!(
    env!("CARGO_MANIFEST_DIR"),
    "/../../docs/reference/columns.md"
);

/// The tables and what they have a row for.
const TABLES: [(&str, &str); 7] = [
    ("runs", "One row for each run."),
    ("groups", "One row for each group of flows in a run."),
    ("flows", "One row for each flow of a run."),
    ("links", "One row for each link of a run."),
    (
        "flow_series",
        "One row for each flow and bin, if the scenario sets `bins`.",
    ),
    (
        "link_series",
        "One row for each link and bin, if the scenario sets `bins`.",
    ),
    (
        "flow_variation",
        "One row for each flow and time scale of 1, 2, 5, 10, ... bins, if the scenario sets `bins`.",
    ),
];

/// The numbers of a distribution, by the end of the column's name.
const SUMMARY: [(&str, &str); 8] = [
    ("_count", "number of values of"),
    ("_mean_s", "mean of"),
    ("_stddev_s", "standard deviation of"),
    ("_min_s", "least value of"),
    ("_max_s", "largest value of"),
    ("_median_s", "median, to about 1 %, of"),
    ("_p95_s", "95th percentile, to about 1 %, of"),
    ("_p99_s", "99th percentile, to about 1 %, of"),
];

/// Distributions by the beginning of their columns' names.
const DISTRIBUTIONS: [(&str, &str); 3] = [
    ("delay", "the one-way delay of data packets, measured"),
    (
        "arrival_spacing",
        "the time between two arrivals at the destination, measured; datagrams and sections only",
    ),
    (
        "queueing_delay",
        "the queueing delay: from the arrival of a packet to the start of its service, measured",
    ),
];

/// What a column means, by the table that has it and its name.
const MEANINGS: &str = include_str!("columns.txt");

/// The units of all columns, by table, as the results' own metadata has them.
fn units() -> Value {
    let run = CompletedRun {
        axes: vec![("AXIS".into(), AxisValue::Integer(1))],
        seed: Seed::new(1),
        report: RunReport {
            world: World::Simulator,
            seed: Seed::new(1),
            fingerprint: 0,
            duration: Span::from_secs(1),
            warmup: Span::ZERO,
            flows: Vec::new(),
            links: Vec::new(),
            cost: Cost::default(),
            series: Some(Series::default()),
        },
    };
    let set = ResultSet {
        scenario: ScenarioInfo {
            name: "columns".into(),
            text: String::new(),
        },
        command: String::new(),
        runs: vec![run],
    };
    let file = Path::new(env!("CARGO_TARGET_TMPDIR")).join("columns.json");
    write(&set, Format::Json, &file).unwrap();
    let text = std::fs::read_to_string(file).unwrap();
    let document: Value = serde_json::from_str(&text).unwrap();
    document["metadata"]["units"].clone()
}

/// The table, the column and the meaning of each line of [`MEANINGS`].
fn meanings() -> Vec<[&'static str; 3]> {
    let row = |line: &'static str| {
        let mut parts = line.splitn(3, ' ');
        [(); 3].map(|()| parts.next().expect("a table, a column and a meaning"))
    };
    let lines = MEANINGS.lines().filter(|line| !line.starts_with('#'));
    lines.map(row).collect()
}

/// What a column means; the row that says so is added to `used`.
fn meaning(
    meanings: &[[&str; 3]],
    table: &str,
    column: &str,
    used: &mut BTreeSet<usize>,
) -> String {
    let row = meanings
        .iter()
        .position(|[of, name, _]| *name == column && (*of == table || *of == "*"));
    if let Some(row) = row {
        used.insert(row);
        return meanings[row][2].into();
    }
    for (end, number) in SUMMARY {
        let distribution = DISTRIBUTIONS
            .iter()
            .find(|(start, _)| column.strip_suffix(end) == Some(*start));
        if let Some((_, what)) = distribution {
            return format!("{number} {what}");
        }
    }
    panic!("say in columns.txt what the column {column} of {table} means");
}

fn page() -> String {
    let mut page = String::from(
        "# Result columns\n\n\
         Generated from the tables in `crates/sim/src/results`;\n\
         `COMITY_UPDATE=1 cargo test -p comity-sim --test it columns` writes it anew.\n\n\
         `comity sim run FILE --out PATH` and `comity lab run FILE --out PATH` store these tables as Parquet,\n\
         CSV or JSON. Every table but those of bins repeats the axes and the seed of the run.\n\n\
         \"Measured\" numbers count from the end of the warm-up to the end of the run. All other numbers count\n\
         the whole run. A value that does not exist, such as the mean of no delays, is null in JSON and\n\
         Parquet and empty in CSV. The unit 1 stands for counts, ratios, names and numbers of things.\n",
    );
    let (units, meanings) = (units(), meanings());
    let mut used = BTreeSet::new();
    for (table, rows) in TABLES {
        let columns = units[table].as_object().expect("the table is there");
        write!(
            page,
            "\n## {table}\n\n{rows}\n\n| column | unit | meaning |\n| --- | --- | --- |\n"
        )
        .unwrap();
        for (column, unit) in columns {
            let (unit, meaning) = (
                unit.as_str().unwrap(),
                meaning(&meanings, table, column, &mut used),
            );
            writeln!(page, "| `{column}` | {unit} | {meaning} |").unwrap();
        }
    }
    for (row, [table, column, _]) in meanings.iter().enumerate() {
        assert!(used.contains(&row), "{table} has no column {column}");
    }
    page
}

#[test]
fn the_columns_on_the_page_are_those_of_the_results() {
    comity_testkit::page::assert_up_to_date(PAGE, &page());
}
