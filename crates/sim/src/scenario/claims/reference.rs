//! The reference of files of claims, made from the tables that read them.

use std::fmt::Write as _;

use super::super::reference::tables;
use super::super::schema::Table as _;
use super::expression::{FUNCTIONS, Stage};
use super::tables::ClaimsFile;

/// The reference as Markdown, to be put behind what `docs/reference/claims.md` says by hand.
pub fn markdown() -> String {
    let mut text =
        String::from("\n## Functions\n\n| call | in | what it gives |\n| --- | --- | --- |\n");
    for row in FUNCTIONS {
        let stage = match row.stage {
            Stage::Measure => "measures",
            Stage::Value => "values, checks",
            Stage::Both => "all",
        };
        let _ = writeln!(text, "| `{}` | {stage} | {} |", row.usage, row.doc);
    }
    tables(&text, &ClaimsFile::describe())
}
