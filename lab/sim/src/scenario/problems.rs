//! All problems of a scenario together.

use std::fmt;
use std::sync::Arc;

use annotate_snippets::Renderer;

use super::problem::Problem;
use super::source::{SourceSpan, Sources};

/// All problems of a scenario, in the order of the text.
#[derive(Clone, Debug)]
pub struct Problems {
    sources: Arc<Sources>,
    list: Vec<Problem>,
    more: usize,
}

impl Problems {
    /// The most problems that are kept. Further ones are only counted.
    pub const MOST: usize = 50;

    pub(super) fn new(sources: Arc<Sources>, mut list: Vec<Problem>) -> Self {
        list.sort_by_key(|problem| problem.span);
        // A setting from outside of the scenario may apply to several keys. Only the first one
        // reports its error.
        let is_setting = |span: Option<SourceSpan>| span.is_some_and(|span| span.source() > 0);
        list.dedup_by(|a, b| {
            let is_same = a.span == b.span && (is_setting(a.span) || a.path == b.path);
            is_same && a.kind == b.kind
        });
        let more = list.len().saturating_sub(Self::MOST);
        list.truncate(Self::MOST);
        Self {
            sources,
            list,
            more,
        }
    }

    /// The problems.
    pub fn iter(&self) -> impl Iterator<Item = &Problem> {
        self.list.iter()
    }

    /// The texts with the problems.
    pub fn sources(&self) -> &Sources {
        &self.sources
    }

    /// The number of problems.
    pub fn count(&self) -> usize {
        self.list.len() + self.more
    }

    /// All problems with their lines of text, for a terminal with or without colours.
    pub fn render(&self, colours: bool) -> String {
        let renderer = if colours {
            Renderer::styled()
        } else {
            Renderer::plain()
        };
        let mut text = self
            .list
            .iter()
            .map(|problem| problem.render(&self.sources, &renderer))
            .collect::<Vec<_>>()
            .join("\n\n");
        if self.more > 0 {
            text.push_str(&format!("\n\nand {} more", self.more));
        }
        text
    }
}

impl fmt::Display for Problems {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.render(false))
    }
}

impl std::error::Error for Problems {}
