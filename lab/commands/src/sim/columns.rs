//! The tables of a summary, column by column.

use comity_sim::results::AxisValue;

use super::super::figures::{RateUnit, digits, or_dash, percent};
use super::super::tables::Table;
use super::entry::Entry;
use crate::numbers::thousands;

/// A column of a table.
pub(super) struct Column {
    /// Its heading; `{unit}` stands for the unit of rates.
    heading: &'static str,
    text: fn(&Entry, &Style) -> String,
    /// The column is left out if this is false for every row; `None` for never.
    is_of: Option<fn(&Entry, &Style) -> bool>,
}

/// How the cells of a table are written.
pub(super) struct Style {
    pub(super) unit: RateUnit,
    /// Whether means have confidence intervals, because there are several seeds.
    pub(super) has_intervals: bool,
}

impl Style {
    fn rate(&self, value: Option<f64>) -> String {
        or_dash(value, |value| self.unit.show(value))
    }
}

const fn column(heading: &'static str, text: fn(&Entry, &Style) -> String) -> Column {
    Column {
        heading,
        text,
        is_of: None,
    }
}

const fn column_of(
    is_of: fn(&Entry, &Style) -> bool,
    heading: &'static str,
    text: fn(&Entry, &Style) -> String,
) -> Column {
    Column {
        heading,
        text,
        is_of: Some(is_of),
    }
}

/// The table of groups.
pub(super) const GROUPS: &[Column] = &[
    column("group", |of, _| of.name.clone()),
    column("flows", |of, _| of.flows.to_string()),
    column("base RTT ms", |of, _| base_rtt(of)),
    column("goodput {unit}", |of, style| {
        style.rate(of.mean("mean_goodput_bps"))
    }),
    column_of(
        |_, style| style.has_intervals,
        "±95%",
        |of, style| {
            let estimate = of.estimate("mean_goodput_bps");
            style.rate(estimate.and_then(|estimate| estimate.half_width))
        },
    ),
    column("min", |of, style| style.rate(of.least("goodput_min_bps"))),
    column("max", |of, style| style.rate(of.most("goodput_max_bps"))),
    column("Jain", |of, _| {
        // The index of a single flow is always 1.
        let jain = of.mean("jain").filter(|_| of.flows > 1);
        or_dash(jain, |jain| format!("{jain:.4}"))
    }),
    column("loss", |of, _| share(of, "data_loss_ratio")),
    column("retransmitted", |of, _| share(of, "retransmitted_ratio")),
    column("timeouts", |of, style| {
        let decimals = usize::from(style.has_intervals);
        or_dash(of.mean("timeouts"), |mean| format!("{mean:.decimals$}"))
    }),
    column("delay ms", |of, _| scaled(of, "mean_delay_s", 1e3)),
    column_of(
        |of, _| of.sought > 0,
        "fair after s",
        |of, _| convergence(of),
    ),
    column_of(has_readers, "reads in time", |of, _| {
        share(of, "reads_satisfied_ratio")
    }),
    column_of(has_readers, "begins after s", |of, _| {
        scaled(of, "startup_delay_s", 1.0)
    }),
    column_of(has_readers, "stalls", |of, _| scaled(of, "stalls", 1.0)),
    column_of(has_readers, "stalled s", |of, _| {
        scaled(of, "stalled_s", 1.0)
    }),
    column_of(has_ends, "done after s", |of, _| {
        scaled(of, "completion_mean_s", 1.0)
    }),
    column_of(has_ends, "transfer {unit}", |of, style| {
        style.rate(of.mean("transfer_bps"))
    }),
    column_of(
        |of, _| of.unfinished > 0,
        "unfinished",
        |of, _| thousands(of.unfinished),
    ),
];

/// The table of the outcomes of sections.
pub(super) const SECTIONS: &[Column] = &[
    column("group", |of, _| of.name.clone()),
    column("sections", |of, _| count(of, "sections_submitted")),
    column("shed", |of, _| count(of, "sections_shed")),
    column("on time", |of, _| share(of, "sections_on_time_ratio")),
    column("least", |of, _| {
        or_dash(of.least("sections_on_time_ratio"), percent)
    }),
    column("late", |of, _| share(of, "sections_late_ratio")),
    column("given up", |of, _| share(of, "sections_given_up_ratio")),
    column("overdue", |of, _| share(of, "sections_overdue_ratio")),
    column("I", |of, _| share(of, "sections_intra_on_time_ratio")),
    column("P", |of, _| share(of, "sections_predicted_on_time_ratio")),
    column("B", |of, _| {
        share(of, "sections_bidirectional_on_time_ratio")
    }),
    column("decodable", |of, _| share(of, "sections_decodable_ratio")),
    column("on time MB", |of, _| {
        scaled(of, "sections_on_time_bytes", 1e-6)
    }),
    column("decodable MB", |of, _| {
        scaled(of, "sections_decodable_bytes", 1e-6)
    }),
    column("of share", |of, _| {
        let ratio = of.mean("sections_decodable_of_share_ratio");
        or_dash(ratio, |ratio| format!("{ratio:.2}"))
    }),
    column("late bytes", |of, _| count(of, "sections_sent_late_bytes")),
    column("retransmitted kB", |of, _| {
        scaled(of, "sections_retransmitted_bytes", 1e-3)
    }),
    column("lost", |of, _| count(of, "sections_lost_packets")),
    column("slack p1 ms", |of, _| {
        scaled(of, "sections_slack_p1_s", 1e3)
    }),
    column("p50", |of, _| scaled(of, "sections_slack_p50_s", 1e3)),
    column("target {unit}", |of, style| {
        style.rate(of.mean("sections_target_bitrate_bps"))
    }),
];

/// The table of links.
pub(super) const LINKS: &[Column] = &[
    column("link", |of, _| of.name.clone()),
    column("utilisation", |of, _| share(of, "utilisation")),
    column("mean queue", |of, _| scaled(of, "mean_queue_packets", 1.0)),
    column("dropped", |of, _| count(of, "dropped_packets")),
    column("queueing delay ms", |of, _| {
        scaled(of, "queueing_delay_s", 1e3)
    }),
];

/// A table with a row for each entry, after the values of the axes at its point.
pub(super) fn table(
    axes: &[&str],
    rows: &[(&[AxisValue], &Entry)],
    columns: &[Column],
    style: &Style,
) -> Table {
    let is_shown = |column: &&Column| match column.is_of {
        Some(is_of) => rows.iter().any(|(_, entry)| is_of(entry, style)),
        None => true,
    };
    let columns: Vec<&Column> = columns.iter().filter(is_shown).collect();
    let headings = columns.iter().map(|column| column.heading);
    let headings = headings.map(|heading| heading.replace("{unit}", style.unit.name));
    let axis_headings = axes.iter().map(|axis| (*axis).to_owned());
    let mut table = Table::new(axis_headings.chain(headings));
    for right in axes.len() + 1..axes.len() + columns.len() {
        table.right(right);
    }
    for (values, entry) in rows {
        let cells = columns.iter().map(|column| (column.text)(entry, style));
        table.row(values.iter().map(AxisValue::to_string).chain(cells));
    }
    table
}

fn has_readers(of: &Entry, _: &Style) -> bool {
    of.has("reads_satisfied_ratio")
}

fn has_ends(of: &Entry, _: &Style) -> bool {
    of.completed > 0
}

/// The mean as a percentage.
fn share(of: &Entry, measure: &str) -> String {
    or_dash(of.mean(measure), percent)
}

/// The mean as a whole number.
fn count(of: &Entry, measure: &str) -> String {
    or_dash(of.mean(measure), |mean| thousands(mean.round() as u64))
}

/// The mean times a factor.
fn scaled(of: &Entry, measure: &str, factor: f64) -> String {
    or_dash(of.mean(measure), |mean| digits(mean * factor))
}

/// The mean time to equal shares, and the number of runs that reached them, unless all did.
fn convergence(of: &Entry) -> String {
    match (of.mean("convergence_s"), of.sought) {
        (_, 0) => "-".into(),
        (None, _) => "never".into(),
        (Some(mean), sought) => match of.values("convergence_s").len() {
            reached if reached == sought => digits(mean),
            reached => format!("{} in {reached} of {sought}", digits(mean)),
        },
    }
}

/// The base round-trip time in milliseconds, or its minimum and maximum.
fn base_rtt(of: &Entry) -> String {
    let (Some(least), Some(most)) = (of.least("base_rtt_min_s"), of.most("base_rtt_max_s")) else {
        return "-".into();
    };
    let [least, most] = [least, most].map(|rtt| {
        let text = digits(rtt * 1e3);
        match text.contains('.') {
            true => text.trim_end_matches('0').trim_end_matches('.').to_owned(),
            false => text,
        }
    });
    match least == most {
        true => least,
        false => format!("{least}-{most}"),
    }
}
