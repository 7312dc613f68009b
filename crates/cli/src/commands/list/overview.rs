//! Everything that has a name, in groups: what it is, its source, its parameters with what stands
//! for those that are left out.
//!
//! ```text
//! psp     Spaces packets and adjusts the spacing once per round trip ..
//!         transports: sections; receiver: has a half of its own; losses: not retransmitted, ..
//!         source: Feng, Feng and Belford, ..
//!         parameters: damped = true; link = 100Mbps; scale = fixed; ..
//! ```

use std::io::{self, IsTerminal};

use comity_congestion::table::{Row, TABLE};
use comity_sim::scenario::applications::{APPLICATIONS, Application};
use comity_sim::scenario::reference::Key;

use super::controller::{first_sentence, losses, receiver, transports};
use super::systems::{Kind, System};

/// The length of a line where no terminal limits it. Longer ones are hard to read.
const LONGEST_LINE: usize = 100;
/// Below this, what is broken into lines cannot be read either.
const SHORTEST_LINE: usize = 40;

/// The characters of a line of the standard output.
pub(super) fn line_length() -> usize {
    let out = io::stdout();
    let columns = out
        .is_terminal()
        .then(|| rustix::termios::tcgetwinsize(&out).ok())
        .flatten()
        .map(|size| usize::from(size.ws_col))
        .filter(|columns| *columns > 0);
    columns
        .unwrap_or(LONGEST_LINE)
        .clamp(SHORTEST_LINE, LONGEST_LINE)
}

/// All of it, in lines of at most so many characters, but for single words that are longer.
pub(super) fn overview(systems: &[System], length: usize) -> String {
    let mut text = String::new();
    let mut group = |heading: &str, entries: Vec<Entry>| {
        wrap(&mut text, "", 0, length, &words(heading));
        text.push('\n');
        let longest = entries.iter().map(|entry| entry.name.chars().count()).max();
        let indent = longest.unwrap_or(0) + 2;
        for entry in entries {
            entry.write(&mut text, indent, length);
        }
        text.push('\n');
    };
    group(
        "Controllers (cc=NAME&cc.PARAMETER=VALUE in a URI, controller and parameters in a scenario)",
        TABLE.iter().map(of_row).collect(),
    );
    for kind in Kind::ALL {
        let of_kind = systems.iter().filter(|system| system.kind == kind);
        group(kind.heading(), of_kind.map(of_system).collect());
    }
    group(
        "Applications of the papers, made of the keys of a flow",
        APPLICATIONS.iter().map(of_application).collect(),
    );
    let more = "`comity list NAME` describes each parameter and its values.";
    wrap(&mut text, "", 0, length, &words(more));
    text
}

/// The description of one name.
struct Entry {
    name: &'static str,
    /// Pieces that are not broken where they fit into a line, paragraph by paragraph.
    paragraphs: Vec<Vec<String>>,
}

impl Entry {
    fn new(name: &'static str, summary: &str, source: &str) -> Self {
        Self {
            name,
            paragraphs: vec![words(summary), words(&format!("source: {source}"))],
        }
    }

    /// Adds a list of settings, one line each if it fits.
    fn list(&mut self, label: &str, settings: impl Iterator<Item = String>) {
        let mut settings: Vec<String> = settings.collect();
        let Some((_, before)) = settings.split_last_mut() else {
            return self.paragraphs.push(words(&format!("no {label}")));
        };
        for setting in before {
            setting.push(';');
        }
        let label = format!("{label}:");
        self.paragraphs
            .push(std::iter::once(label).chain(settings).collect());
    }

    fn write(&self, text: &mut String, indent: usize, length: usize) {
        let mut name = self.name;
        for paragraph in &self.paragraphs {
            wrap(text, name, indent, length, paragraph);
            name = "";
        }
    }
}

fn of_row(row: &Row) -> Entry {
    let mut entry = Entry::new(row.name, first_sentence(row.summary), row.source);
    let kind = format!(
        "transports: {}; receiver: {}; losses: {}",
        transports(row),
        receiver(row),
        losses(row)
    );
    entry.paragraphs.insert(1, words(&kind));
    let defaults = row.parameters.iter();
    let defaults = defaults.map(|known| format!("{} = {}", known.name, known.default));
    entry.list("parameters", defaults);
    entry
}

fn of_system(system: &System) -> Entry {
    let mut entry = Entry::new(system.name, &system.summary, system.source);
    let settings = system.settings();
    if !settings.is_empty() {
        let settings = settings.into_iter();
        let settings = settings.map(|(key, value)| format!("{key} = {value}"));
        entry.list("settings", settings);
    }
    if let Some(keys) = system.keys() {
        entry.list("parameters", keys.iter().map(|key| default("", key)));
    }
    entry
}

/// With its own value of each parameter; those of its tables that it leaves out have their default.
fn of_application(application: &Application) -> Entry {
    let mut entry = Entry::new(
        application.name,
        first_sentence(application.summary),
        application.source,
    );
    let keys = application.keys.iter();
    entry.list("keys", keys.map(|(key, value)| format!("{key} = {value}")));
    let left_out = application.parameters().into_iter();
    let left_out = left_out.filter(|parameter| parameter.value.is_none());
    let left_out = left_out.map(|parameter| default(&format!("{}.", parameter.of), &parameter.key));
    let mut left_out = left_out.peekable();
    if left_out.peek().is_some() {
        entry.list("defaults", left_out);
    }
    entry
}

fn default(of: &str, key: &Key) -> String {
    match &key.default {
        Some(default) => format!("{of}{} = {default}", key.name),
        None => format!("{of}{} (required)", key.name),
    }
}

fn words(text: &str) -> Vec<String> {
    text.split_whitespace().map(str::to_owned).collect()
}

/// Adds pieces with a space between them, from the column `indent` on. The first line begins with
/// `name`. A piece that is longer than a line is broken at its spaces.
fn wrap(text: &mut String, name: &str, indent: usize, length: usize, pieces: &[String]) {
    let width = length.saturating_sub(indent);
    let mut line = format!("{name:indent$}");
    let mut free = width;
    for piece in pieces {
        let parts = match piece.chars().count() <= width {
            true => vec![piece.as_str()],
            false => piece.split(' ').collect(),
        };
        for part in parts {
            let taken = part.chars().count();
            if free < width && taken + 1 > free {
                text.push_str(&line);
                text.push('\n');
                line = " ".repeat(indent);
                free = width;
            }
            if free < width {
                line.push(' ');
                free -= 1;
            }
            line.push_str(part);
            free = free.saturating_sub(taken);
        }
    }
    text.push_str(&line);
    text.push('\n');
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_stay_whole_where_they_fit() {
        let pieces = ["a = 1;", "b = 22;", "c = a text of words"].map(str::to_owned);
        let mut text = String::new();
        wrap(&mut text, "name", 6, 20, &pieces);
        assert_eq!(
            text,
            "name  a = 1; b = 22;\n      c = a text of\n      words\n"
        );
    }
}
