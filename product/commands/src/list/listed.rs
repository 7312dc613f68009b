//! The entries of the list.

use serde_json::Value;

/// An item with a name.
pub struct Listed {
    /// Its name.
    pub name: &'static str,
    /// The key of the list in the JSON document that contains it.
    pub key: &'static str,
    /// Its heading in the overview.
    pub heading: &'static str,
    /// Its description in the overview.
    pub entry: Entry,
    /// Its description with every parameter.
    pub text: String,
    /// The same as JSON.
    pub document: Value,
}

/// The description of an item.
pub struct Entry {
    name: &'static str,
    /// Paragraphs of pieces. A piece stays on one line if it fits.
    pub paragraphs: Vec<Vec<String>>,
}

impl Entry {
    /// A description without parameters.
    pub fn new(name: &'static str, summary: &str, source: &str) -> Self {
        Self {
            name,
            paragraphs: vec![words(summary), words(&format!("source: {source}"))],
        }
    }

    /// Adds a list of settings, one line each if it fits.
    pub fn list(&mut self, label: &str, settings: impl Iterator<Item = String>) {
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

    /// Adds the description in lines of at most `length` characters, indented to `indent`.
    pub fn write(&self, text: &mut String, indent: usize, length: usize) {
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

/// Adds pieces with a space between them, indented by `indent` columns. The first line begins with
/// `name`. A piece that is longer than a line is broken at its spaces.
pub(super) fn wrap(text: &mut String, name: &str, indent: usize, length: usize, pieces: &[String]) {
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
    fn pieces_that_fit_are_not_broken() {
        let pieces = ["a = 1;", "b = 22;", "c = a text of words"].map(str::to_owned);
        let mut text = String::new();
        wrap(&mut text, "name", 6, 20, &pieces);
        assert_eq!(
            text,
            "name  a = 1; b = 22;\n      c = a text of\n      words\n"
        );
    }
}
