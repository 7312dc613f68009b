//! The meanings of tables and columns.

/// The tables in order, with the meaning of a row.
pub const TABLES: [(&str, &str); 11] = [
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
        "delay_histogram",
        "One row for each flow and bin of its one-way delays that holds values.",
    ),
    (
        "queueing_delay_histogram",
        "One row for each link and bin of its queueing delays that holds values.",
    ),
    (
        "packets",
        "One row for each packet at each link, if packets were requested.",
    ),
    (
        "sections",
        "One row for each section that arrived or never will, if packets were requested.",
    ),
    (
        "flow_variation",
        "One row for each flow and time scale of 1, 2, 5, 10, ... bins, if the scenario sets `bins`.",
    ),
];

/// The values of a distribution, by the end of the column's name.
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

/// Distributions, by the beginning of their columns' names.
const DISTRIBUTIONS: [(&str, &str); 4] = [
    (
        "completion",
        "the completion times of flows that started in measured time: from the start, handshake \
         included, to the acknowledgement of the last byte",
    ),
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

/// The meaning of a column, by its table, or `*`, and its name.
const MEANINGS: &str = include_str!("columns.txt");

/// The table, or `*`, the column and the meaning of every column outside of distributions.
pub fn meanings() -> impl Iterator<Item = [&'static str; 3]> {
    let lines = MEANINGS.lines().filter(|line| !line.starts_with('#'));
    lines.filter_map(|line| {
        let (table, rest) = line.split_once(' ')?;
        let (column, meaning) = rest.split_once(' ')?;
        Some([table, column, meaning])
    })
}

/// What a column of a table means; `None` if the table has no such column.
pub fn meaning(table: &str, column: &str) -> Option<String> {
    if let Some(axis) = column.strip_prefix(super::column::AXIS) {
        return Some(format!("value of the sweep's axis {axis}"));
    }
    let is_it = |[of, name, _]: &[&str; 3]| *name == column && (*of == table || *of == "*");
    if let Some([_, _, meaning]) = meanings().find(is_it) {
        return Some(meaning.into());
    }
    SUMMARY.iter().find_map(|(end, number)| {
        let start = column.strip_suffix(end)?;
        let (_, what) = DISTRIBUTIONS.iter().find(|(name, _)| *name == start)?;
        Some(format!("{number} {what}"))
    })
}
