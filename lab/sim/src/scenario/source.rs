//! The texts that a scenario is read from, and spans in them.

use std::ops::Range;

/// The most bytes that a text may have, so that spans fit into half a machine word.
pub const MAX_TEXT: usize = 16 << 20;

/// A range of bytes in one of the texts of a [`Sources`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SourceSpan {
    source: u32,
    start: u32,
    end: u32,
}

impl SourceSpan {
    pub(super) fn new(source: u32, range: Range<usize>) -> Self {
        let fit = |value| u32::try_from(value).unwrap_or(u32::MAX);
        Self {
            source,
            start: fit(range.start),
            end: fit(range.end),
        }
    }

    /// Which text.
    pub fn source(self) -> usize {
        self.source as usize
    }

    /// Which bytes.
    pub fn range(self) -> Range<usize> {
        self.start as usize..self.end as usize
    }
}

/// A text with its name in messages: the path of a file, or `--set`.
#[derive(Clone, Debug)]
pub struct Source {
    /// The name.
    pub name: String,
    /// The text.
    pub text: String,
}

/// All texts that one scenario was read from.
#[derive(Clone, Debug, Default)]
pub struct Sources {
    list: Vec<Source>,
}

impl Sources {
    /// Adds a text. A text that is already present, such as an option for both directions of a
    /// link, is not added again.
    pub(super) fn add(&mut self, name: &str, text: &str) -> u32 {
        let is_same = |source: &Source| source.name == name && source.text == text;
        if let Some(at) = self.list.iter().position(is_same) {
            return at as u32;
        }
        self.list.push(Source {
            name: name.into(),
            text: text.into(),
        });
        self.list.len() as u32 - 1
    }

    /// The text of the scenario itself.
    pub fn first(&self) -> Option<&Source> {
        self.list.first()
    }

    /// The text that `span` is in.
    pub fn source(&self, span: SourceSpan) -> Option<&Source> {
        self.list.get(span.source())
    }

    /// The text at `span`.
    pub fn text(&self, span: SourceSpan) -> Option<&str> {
        self.source(span)?.text.get(span.range())
    }

    /// The line and the column where a span begins, both from 1. The column counts characters.
    pub fn line_and_column(&self, span: SourceSpan) -> Option<(usize, usize)> {
        let text = &self.source(span)?.text;
        let before = text.get(..span.range().start)?;
        let line_start = before.rfind('\n').map_or(0, |at| at + 1);
        Some((
            before.matches('\n').count() + 1,
            before.get(line_start..)?.chars().count() + 1,
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_and_columns_count_from_one_in_characters() {
        let mut sources = Sources::default();
        let id = sources.add("x.toml", "a = 1\nµµ = 2\n");
        assert_eq!(
            sources.line_and_column(SourceSpan::new(id, 0..1)),
            Some((1, 1))
        );
        // "µµ " is five bytes and three characters.
        assert_eq!(
            sources.line_and_column(SourceSpan::new(id, 11..12)),
            Some((2, 4))
        );
        assert_eq!(sources.line_and_column(SourceSpan::new(id, 99..100)), None);
        assert_eq!(sources.line_and_column(SourceSpan::new(7, 0..1)), None);
    }
}
