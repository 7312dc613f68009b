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

use super::Listed;

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
pub(super) fn overview(listed: &[Listed], length: usize) -> String {
    let mut text = String::new();
    for group in listed.chunk_by(|one, next| one.heading == next.heading) {
        let Some(first) = group.first() else { continue };
        wrap(&mut text, "", 0, length, &words(first.heading));
        text.push('\n');
        let longest = group.iter().map(|one| one.name.chars().count()).max();
        let indent = longest.unwrap_or(0) + 2;
        for one in group {
            one.entry.write(&mut text, indent, length);
        }
        text.push('\n');
    }
    let more = "`comity list NAME` describes each parameter and its values.";
    wrap(&mut text, "", 0, length, &words(more));
    text
}

/// The description of one name.
pub(super) struct Entry {
    name: &'static str,
    /// Pieces that are not broken where they fit into a line, paragraph by paragraph.
    pub(super) paragraphs: Vec<Vec<String>>,
}

impl Entry {
    pub(super) fn new(name: &'static str, summary: &str, source: &str) -> Self {
        Self {
            name,
            paragraphs: vec![words(summary), words(&format!("source: {source}"))],
        }
    }

    /// Adds a list of settings, one line each if it fits.
    pub(super) fn list(&mut self, label: &str, settings: impl Iterator<Item = String>) {
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

pub(super) fn words(text: &str) -> Vec<String> {
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
