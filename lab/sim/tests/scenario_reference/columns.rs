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

use comity_frames::FrameType;
use comity_sim::packets::{PacketLog, SectionRecord};
use comity_sim::report::{Cost, RunReport, Series, World};
use comity_sim::results::{
    AxisValue, CompletedRun, Format, ResultSet, ScenarioInfo, TABLES, meaning, meanings, write,
};
use comity_units::{Seed, Span, Time};
use serde_json::Value;

const PAGE: &str = concat!(
    env!("CARGO_MANIFEST_DIR"),
    "/../../docs/reference/columns.md"
);

/// The units of all columns, by table, as the results' own metadata has them.
fn units() -> Value {
    let run = CompletedRun {
        number: 0,
        scenario_hash: 0x0123_4567_89ab_cdef,
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
            packets: Some(PacketLog {
                records: Vec::new(),
                sections: vec![SectionRecord {
                    flow: 0,
                    settled: Time::ZERO,
                    frame_type: FrameType::Key,
                    bytes: 1,
                    deadline: Time::ZERO,
                    completed: None,
                }],
            }),
        },
    };
    let set = ResultSet {
        scenario: ScenarioInfo {
            name: "columns".into(),
            text: String::new(),
            set: Vec::new(),
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

fn page() -> String {
    let mut page = String::from(
        "# Result columns\n\n\
         Generated from the tables in `lab/sim/src/results`;\n\
         `COMITY_UPDATE=1 cargo test -p comity-sim --test it columns` writes it anew.\n\n\
         `comity sim run FILE --out PATH` and `comity lab run FILE --out PATH` store these tables as Parquet,\n\
         CSV or JSON. Every table repeats the axes and the seed of the run. A column that no run fills is\n\
         left out. Counts are signed, so their differences do not wrap.\n\n\
         \"Measured\" numbers count from the end of the warm-up to the end of the run. All other numbers count\n\
         the whole run. A value that does not exist, such as the mean of no delays, is null in JSON and\n\
         Parquet and empty in CSV. The unit 1 stands for counts, ratios, names and numbers of things.\n",
    );
    let units = units();
    let mut columns_of: BTreeSet<(&str, &str)> = BTreeSet::new();
    for (table, rows) in TABLES {
        let columns = units[table].as_object().expect("the table is there");
        write!(
            page,
            "\n## {table}\n\n{rows}\n\n| column | unit | meaning |\n| --- | --- | --- |\n"
        )
        .unwrap();
        for (column, unit) in columns {
            let Some(meaning) = meaning(table, column) else {
                panic!("say in columns.txt what the column {column} of {table} means");
            };
            let unit = unit.as_str().unwrap();
            writeln!(page, "| `{column}` | {unit} | {meaning} |").unwrap();
            columns_of.extend([(table, column.as_str()), ("*", column.as_str())]);
        }
    }
    for [table, column, _] in meanings() {
        assert!(
            columns_of.contains(&(table, column)),
            "{table} has no column {column}"
        );
    }
    page
}

#[test]
fn the_columns_on_the_page_are_those_of_the_results() {
    comity_testkit::page::assert_up_to_date(PAGE, &page());
}
