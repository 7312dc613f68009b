//! `docs/reference/controllers.md` says what the table says.
//!
//! To write it anew after a change of the table:
//!
//! ```text
//! COMITY_UPDATE=1 cargo test -p comity-congestion --test it documentation
//! ```

use std::fmt::Write as _;

use comity_congestion::table::{Domain, Row, TABLE, Value};

const PAGE: &str = concat!(
    env!("CARGO_MANIFEST_DIR"),
    "/../../docs/reference/controllers.md"
);

fn unit(domain: &Domain) -> &'static str {
    match domain {
        Domain::Number { unit, .. } | Domain::Whole { unit, .. } => unit,
        Domain::Span { .. } => "time",
        Domain::Rate { .. } => "rate",
        Domain::Bytes { .. } => "data",
        Domain::Flag | Domain::Choice(_) => "",
    }
}

fn range(domain: &Domain) -> String {
    let to = |min: &dyn std::fmt::Display, max: Value| match max.to_string().as_str() {
        "unlimited" => format!("at least {min}"),
        max => format!("{min} to {max}"),
    };
    match *domain {
        Domain::Number { min, max, .. } => format!("{min} to {max}"),
        Domain::Whole { min, max, .. } => format!("{min} to {max}, whole"),
        Domain::Span { min, max } => to(&min, Value::Span(max)),
        Domain::Rate { min, max } => to(&min, Value::Rate(max)),
        Domain::Bytes { min, max } => to(&min, Value::Bytes(max)),
        Domain::Flag => "`true`, `false`".into(),
        Domain::Choice(choices) => choices
            .iter()
            .map(|choice| format!("`{choice}`"))
            .collect::<Vec<_>>()
            .join(", "),
    }
}

/// The text with the name of each page in `docs/results` as a link.
fn with_links(text: &str) -> String {
    let linked = |word: &str| match word.strip_prefix("docs/results/") {
        Some(name) => format!("[{name}](../results/{name})"),
        None => word.into(),
    };
    text.split(' ').map(linked).collect::<Vec<_>>().join(" ")
}

fn section(page: &mut String, row: &Row) -> std::fmt::Result {
    writeln!(
        page,
        "\n## {}\n\n{}\n\n{}",
        row.name,
        textwrap::fill(&with_links(row.summary), 100),
        textwrap::fill(&format!("Source: {}.", row.source), 100)
    )?;
    if row.has_meter() {
        writeln!(page, "\nPart of it runs at the receiver.")?;
    }
    if !row.repeats_losses {
        writeln!(
            page,
            "\nIn its paper, lost packets are not retransmitted, and this is the default here. If\n\
             `reliability` is `timeline`, lost data are retransmitted until their deadline."
        )?;
    }
    if row.parameters.is_empty() {
        return writeln!(page, "\nNo parameters.");
    }
    writeln!(
        page,
        "\n| parameter | what it does | default | values | unit |"
    )?;
    writeln!(page, "| --- | --- | --- | --- | --- |")?;
    for parameter in row.parameters {
        let (name, summary) = (parameter.name, parameter.summary);
        let (values, unit) = (range(&parameter.domain), unit(&parameter.domain));
        writeln!(
            page,
            "| `{name}` | {summary} | `{}` | {values} | {unit} |",
            parameter.default
        )?;
    }
    Ok(())
}

fn page() -> Result<String, std::fmt::Error> {
    let mut page = String::from(
        "# Controllers\n\n\
         Generated from the table in `base/congestion/src/table`;\n\
         `COMITY_UPDATE=1 cargo test -p comity-congestion --test it documentation` writes it anew.\n",
    );
    for row in TABLE {
        section(&mut page, row)?;
    }
    Ok(page)
}

#[test]
fn page_matches_the_table() -> Result<(), Box<dyn std::error::Error>> {
    let expected = page()?;
    if std::env::var_os("COMITY_UPDATE").is_some() {
        std::fs::write(PAGE, &expected)?;
    }
    let found = std::fs::read_to_string(PAGE)?;
    for (line, (found, expected)) in found.lines().zip(expected.lines()).enumerate() {
        assert_eq!(
            found,
            expected,
            "docs/reference/controllers.md, line {}, is not what the table says",
            line + 1
        );
    }
    assert_eq!(
        found.lines().count(),
        expected.lines().count(),
        "docs/reference/controllers.md is cut or too long"
    );
    Ok(())
}
