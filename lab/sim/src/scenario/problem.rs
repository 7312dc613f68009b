//! The problems of scenarios, and their reports. The readers find them; unknown keys are found in
//! `schema.rs`.

use std::fmt;

use annotate_snippets::{AnnotationKind, Group, Level, Renderer, Snippet};
use comity_congestion::table::ParameterError;
use comity_link::{ConfigError, TraceError};
use comity_units::{ParseError, Span};

use super::source::{SourceSpan, Sources};
use crate::frames::FramesError;
use crate::network::{FlowError, NetworkError};
use crate::transfers::TransfersError;

/// One problem of a scenario.
#[derive(Clone, Debug, PartialEq)]
pub struct Problem {
    /// Its span in the text; `None` if it concerns the whole file.
    pub span: Option<SourceSpan>,
    /// The keys that lead there, such as `flow.tcp.rwnd`.
    pub path: String,
    /// What is wrong.
    pub kind: ProblemKind,
    /// The first point of the sweep with this problem, such as `flow.tcp.rwnd = 20`.
    pub point: Option<String>,
}

/// What is wrong.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum ProblemKind {
    /// The text is not TOML.
    Syntax {
        /// What the TOML reader says.
        message: String,
    },
    /// The text is too long.
    TextTooLong {
        /// The most bytes.
        limit: usize,
    },
    /// The scenario file cannot be read.
    Unreadable {
        /// What the system says.
        reason: String,
    },
    /// A key that this table does not have.
    UnknownKey {
        /// The keys that it has.
        known: Vec<String>,
        /// The known key that is spelled most like it.
        nearest: Option<String>,
        /// Where the key does exist: a tag and its value, such as `transport` and `datagram`.
        elsewhere: Option<(String, String)>,
    },
    /// A required key is missing.
    Missing {
        /// What is expected as its value.
        expected: String,
    },
    /// A value of another kind than expected.
    WrongKind {
        /// The kind that was found.
        found: &'static str,
        /// The value as written.
        value: String,
        /// What was expected.
        expected: String,
    },
    /// A text that is not a quantity.
    Quantity {
        /// The text as written.
        value: String,
        /// Why not.
        error: ParseError,
    },
    /// A value beyond its bounds.
    OutOfBounds {
        /// The value as written.
        value: String,
        /// The least.
        min: String,
        /// The largest.
        max: String,
    },
    /// A word that is not among the choices.
    UnknownChoice {
        /// The word as written.
        value: String,
        /// The words to choose from.
        known: Vec<String>,
        /// The one that is spelled most like it.
        nearest: Option<String>,
        /// The meaning of the word elsewhere, and what to write for it.
        elsewhere: Option<String>,
    },
    /// A text that cannot serve as a name.
    BadName {
        /// The text as written.
        value: String,
    },
    /// A name with an expansion that is not `{i}`, `{i+1}` or `{i-1}`.
    BadTemplate {
        /// The text as written.
        value: String,
    },
    /// A list with too few or too many entries.
    Length {
        /// How many there are.
        found: usize,
        /// The least.
        min: usize,
        /// The most.
        max: usize,
    },
    /// A name that appears twice.
    Duplicate {
        /// What has the name: a flow, a link, a node.
        what: &'static str,
        /// The name.
        name: String,
        /// Its first use.
        first: Option<SourceSpan>,
    },
    /// A node that the network does not have.
    UnknownNode {
        /// The name.
        name: String,
        /// The nodes of the network.
        known: Vec<String>,
        /// The one that is spelled most like it.
        nearest: Option<String>,
    },
    /// A flow that ends where it begins.
    FlowToItself {
        /// The name of the flow.
        flow: String,
        /// The node.
        node: String,
    },
    /// No links lead from one end of a flow to the other.
    Unreachable {
        /// The name of the flow.
        flow: String,
        /// The source node.
        from: String,
        /// The destination node.
        to: String,
    },
    /// Two keys that exclude each other.
    Excludes {
        /// The other key.
        other: &'static str,
    },
    /// A key without another one that it needs.
    Needs {
        /// The other key.
        other: &'static str,
    },
    /// A value that contradicts the rest of the scenario.
    Unfit {
        /// The value, and why not.
        reason: Unfit,
    },
    /// An impossible flow.
    Flow {
        /// What the network says.
        error: FlowError,
    },
    /// An impossible network.
    Network {
        /// What it says.
        error: NetworkError,
    },
    /// A file that the scenario names cannot be read.
    File {
        /// The file.
        file: String,
        /// What the system says.
        reason: String,
    },
    /// A file that the scenario names does not hold a trace.
    Trace {
        /// The file.
        file: String,
        /// What is wrong with it.
        error: TraceError,
    },
    /// A file that the scenario names does not hold frames.
    Frames {
        /// The file.
        file: String,
        /// What is wrong with it.
        error: FramesError,
    },
    /// A file of sizes or of connections is invalid.
    Transfers {
        /// The file.
        file: String,
        /// What is wrong with it.
        error: TransfersError,
    },
    /// A trace has too few connections for the flows of a group.
    FewConnections {
        /// How many it has.
        found: u64,
        /// How many the group needs.
        needed: u64,
    },
    /// A custom controller has the name of one of Comity's.
    ControllerTaken,
    /// Parameters that the controller does not take.
    Controller {
        /// What the table of controllers says.
        error: ParameterError,
    },
    /// An impossible link.
    Link {
        /// What the link says.
        error: ConfigError,
    },
    /// A path in a sweep or an override that does not exist.
    UnknownPath {
        /// The unknown part of the path.
        part: String,
        /// The known names.
        known: Vec<String>,
        /// The one that is spelled most like it.
        nearest: Option<String>,
    },
    /// A path into a value that is written in its short form.
    PathIntoValue {
        /// The part of the path that is a plain value.
        part: String,
        /// The value as written.
        value: String,
    },
    /// A path to a setting of the whole scenario, which cannot be swept.
    NotSwept,
    /// An override that is not `key=value`.
    BadOverride {
        /// The text of the override.
        text: String,
    },
    /// An override whose keys an axis sets as well, and which cannot replace the axis's values.
    SetAndSwept {
        /// The name of the axis.
        axis: String,
        /// The keys that the axis sets.
        keys: Vec<String>,
    },
    /// An override, or an axis, whose keys later ones set again.
    SetAgain {
        /// The later one.
        by: String,
    },
    /// A key that has no effect at any point of the sweep.
    Idle {
        /// Why.
        why: &'static str,
    },
    /// Seeds in the scenario, and others from outside.
    SeedsTwice,
    /// Axes that advance together have different lengths.
    UnevenZip {
        /// The name of the group.
        group: String,
        /// How many values this axis has.
        found: usize,
        /// How many the first one has.
        expected: usize,
    },
    /// A range without values, or with too many.
    BadRange {
        /// Why.
        reason: RangeFault,
    },
    /// A base round trip that is shorter than that of the links with delays of their own.
    RttTooShort {
        /// The requested round trip.
        rtt: Span,
        /// The round trip of the other links.
        rest: Span,
    },
    /// More runs than allowed.
    TooManyRuns {
        /// The product, as in `20 (a) * 30 (b) * 5 seeds`.
        product: String,
        /// The number of runs.
        runs: u128,
        /// The most.
        limit: u64,
    },
    /// More flows, nodes or links than allowed.
    TooManyThings {
        /// The kind of thing.
        what: &'static str,
        /// How many.
        found: u64,
        /// The most.
        limit: u64,
    },
}

/// Why a range has no usable values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum RangeFault {
    /// Neither `step` nor `factor`, or both.
    StepOrFactor,
    /// `to` is below `from`; exchange them.
    Reversed,
    /// A step of zero or less.
    Step,
    /// A factor of one or less.
    Factor,
    /// A factor, from zero.
    FactorFromZero,
    /// `from`, `to` and `step` are not of one kind.
    MixedUnits,
    /// More values than any sweep may have.
    TooMany,
}

impl fmt::Display for RangeFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::StepOrFactor => "a range needs exactly one of `step` and `factor`",
            Self::Reversed => "`to` is below `from`; exchange them",
            Self::Step => "`step` must be above zero",
            Self::Factor => "`factor` must be above 1",
            Self::FactorFromZero => "with `factor`, `from` must be above zero",
            Self::MixedUnits => {
                "`from`, `to` and `step` must have the same type: integers, numbers, \
                 or quantities with the unit of the swept key"
            }
            Self::TooMany => {
                "the range has more values than a sweep may have runs; choose a larger step"
            }
        })
    }
}

/// Why a value contradicts the rest of the scenario.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Unfit {
    /// A seed that appears twice.
    RepeatedSeed,
    /// A point of the sweep that appears twice.
    RepeatedPoint,
    /// The bins are so short that their number would exhaust memory.
    BinsTooShort,
    /// A workload of a flow of programs, which produce their own data.
    WorkloadOfCommand,
    /// SACK recovery without the option.
    SackRecoveryWithoutSack,
    /// A window above the maximum without window scaling.
    WindowNeedsScaling,
    /// A flow that stops before it can start.
    StopBeforeStart,
    /// A floor above the ceiling.
    TimeoutFloorAboveCeiling,
    /// A parking lot needs named ends.
    EndsMissing,
    /// A variant of NewReno without NewReno.
    KeyOfNewReno,
    /// A link without a speed.
    NoRate,
    /// A link without a delay.
    NoDelay,
    /// Two of `rate`, `interval` and `gap`, or none of them.
    SpacingNotOne,
    /// Both of `bytes` and `frames`, or none of them.
    ReadsNotOne,
    /// Reads larger than the receive buffer can never be satisfied.
    ReadBeyondWindow,
    /// The name of a flow expands to the same text every time.
    NameWithoutIndex,
    /// An expansion below zero.
    IndexBelowZero,
    /// A flow that starts after the end of the run.
    StartAfterEnd,
    /// A rule for the pipe without SACK recovery.
    PipeWithoutSack,
    /// A variant of RACK without RACK.
    KeyOfRack,
    /// RACK for a time-lined stream.
    RackWithTimeline,
    /// A time-line with `holds_passed`, but with SACK or without the blind spot.
    NothingToHold,
    /// Delays of an access link that does not exist.
    DelaysWithoutAccess,
    /// A token bucket that could never hold the tokens of one interval.
    RefillBeyondDepth,
    /// A mean size that is not below the maximum.
    MeanBeyondMax,
    /// Losses of a reverse direction with a direction.
    DirectionOfReverse,
    /// A loss model that depends on the packets of one direction, for both directions.
    NoStateOfBoth,
}

impl From<Unfit> for ProblemKind {
    fn from(reason: Unfit) -> Self {
        Self::Unfit { reason }
    }
}

impl fmt::Display for Unfit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::RepeatedSeed => "a seed is listed twice; list it once, because runs with the same seed are identical",
            Self::RepeatedPoint => {
                "the sweep has this value twice; list it once, because the runs would be identical"
            }
            Self::BinsTooShort => "the run would have more than 100,000,000 values over time; choose longer bins",
            Self::WorkloadOfCommand => {
                "a command generates its own traffic; expected no workload, or another transport"
            }
            Self::SackRecoveryWithoutSack => {
                "recovery \"sack\" and \"rack\" need the option: leave `sack` out or set it to true"
            }
            Self::WindowNeedsScaling => "a window above 65,535 bytes needs window_scaling = true",
            Self::StopBeforeStart => "the flow would stop before it starts; choose a later stop",
            Self::TimeoutFloorAboveCeiling => "min_timeout is above max_timeout",
            Self::EndsMissing => "only a dumbbell has default ends for flows; expected the name of a node",
            Self::KeyOfNewReno => "only recovery = \"newreno\" has this variant; leave it out",
            Self::NoRate => "a link needs a `rate` or a `trace`",
            Self::NoDelay => "a link needs a `delay`; write \"0s\" for none",
            Self::SpacingNotOne => {
                "constant rate needs exactly one of `rate`, `interval` and `gap`"
            }
            Self::ReadsNotOne => "playback needs exactly one of `bytes` and `frames`",
            Self::ReadBeyondWindow => {
                "the reader waits for more bytes than the receive window holds; expected fewer bytes, \
                 or a larger `rwnd`"
            }
            Self::NameWithoutIndex => {
                "several flows need different names; put {i} into the name"
            }
            Self::IndexBelowZero => "the name of the first flow would have a number below zero; use {i} or {i+1}",
            Self::StartAfterEnd => "the flow would start after the end of the run; choose an earlier start",
            Self::PipeWithoutSack => "only recovery = \"sack\" counts a pipe; leave it out",
            Self::KeyOfRack => "only recovery = \"rack\" has this variant; leave it out",
            Self::RackWithTimeline => "a time-line works with every recovery except \"rack\"; choose another one",
            Self::DelaysWithoutAccess => "there is no access link; add `access` to the flow or the topology",
            Self::NothingToHold => {
                "`holds_passed` needs blind_spot = true and a recovery without SACK; leave it out"
            }
            Self::RefillBeyondDepth => "`refill` is larger than the `depth` of the bucket",
            Self::MeanBeyondMax => "the mean has to be smaller than `max`",
            Self::DirectionOfReverse => {
                "losses in `reverse` are those of the reverse direction; leave it out, or move the \
                 loss to the link's own `losses`"
            }
            Self::NoStateOfBoth => {
                "this model follows the packets of one direction; expected \"each\" or \"forward\", \
                 or one of the models on_off, outage and bernoulli"
            }
        })
    }
}

impl Problem {
    pub(super) fn new(span: Option<SourceSpan>, path: &str, kind: ProblemKind) -> Self {
        Self {
            span,
            path: path.into(),
            kind,
            point: None,
        }
    }

    /// The problem in one sentence.
    pub fn message(&self) -> String {
        self.headline()
    }

    /// What was expected, or what to do, in one line; empty where nothing is known.
    pub fn expected(&self) -> String {
        let label = Some(self.label()).filter(|label| !label.is_empty());
        let lines: Vec<String> = label.into_iter().chain(self.notes()).collect();
        lines.join("; ")
    }

    /// The problem in one sentence, which begins with its key path.
    fn headline(&self) -> String {
        let path = &self.path;
        match &self.kind {
            ProblemKind::Syntax { message } => format!("this is not TOML: {message}"),
            ProblemKind::TextTooLong { limit } => {
                format!("the text is longer than {limit} bytes")
            }
            ProblemKind::Unreadable { reason } => format!("`{path}` cannot be read: {reason}"),
            ProblemKind::UnknownKey { .. } => format!("`{path}` is not a known key"),
            ProblemKind::Missing { .. } => format!("`{path}` is missing"),
            ProblemKind::WrongKind { found, value, .. } => {
                format!("`{path}` is {found}, {value}")
            }
            ProblemKind::Quantity { value, .. } | ProblemKind::BadName { value } => {
                format!("`{path}` cannot be {value}")
            }
            ProblemKind::OutOfBounds { value, .. } => {
                format!("`{path}` = {value} is out of bounds")
            }
            ProblemKind::UnknownChoice { value, .. } => {
                format!("`{path}` cannot be {value}")
            }
            ProblemKind::BadTemplate { value } => {
                format!("`{path}` = {value} cannot be expanded")
            }
            ProblemKind::Length { found, .. } => format!(
                "`{path}` has {found} {}",
                if *found == 1 { "entry" } else { "entries" }
            ),
            ProblemKind::Duplicate { what, name, .. } => {
                format!("`{path}`: there is already a {what} called \"{name}\"")
            }
            ProblemKind::UnknownNode { name, .. } => {
                format!("`{path}`: there is no node called \"{name}\"")
            }
            ProblemKind::FlowToItself { flow, node } => {
                format!("`{path}`: the flow \"{flow}\" goes from \"{node}\" to itself")
            }
            ProblemKind::Unreachable { flow, from, to } => format!(
                "`{path}`: no links lead from \"{from}\" to \"{to}\"; the flow \"{flow}\" needs links in both directions"
            ),
            ProblemKind::Excludes { other } => {
                format!("`{path}` cannot be used together with `{other}`")
            }
            ProblemKind::Needs { other } => format!("`{path}` needs `{other}` as well"),
            ProblemKind::Unfit { reason } => format!("`{path}`: {reason}"),
            ProblemKind::Flow { error } => format!("`{path}`: {error}"),
            ProblemKind::Network { error } => format!("`{path}`: {error}"),
            ProblemKind::File { file, reason } => {
                format!("`{path}`: the file \"{file}\" cannot be read: {reason}")
            }
            ProblemKind::Trace { file, error } => {
                format!("`{path}`: the file \"{file}\" is not a valid trace: {error}")
            }
            ProblemKind::Frames { file, error } => {
                format!("`{path}`: the file \"{file}\" is not a valid list of frames: {error}")
            }
            ProblemKind::Transfers { file, error } => {
                format!("`{path}`: the file \"{file}\" is invalid: {error}")
            }
            ProblemKind::FewConnections { found, needed } => format!(
                "`{path}`: {found} of the trace's connections start before the end of the run and have \
                 data of this sender; expected at least {needed}"
            ),
            ProblemKind::ControllerTaken => {
                format!(
                    "`{path}` is a controller of Comity; expected another name for a custom one"
                )
            }
            ProblemKind::Controller { error } => format!("`{path}`: {error}"),
            ProblemKind::Link { error } => format!("`{path}`: {error}"),
            ProblemKind::UnknownPath { part, .. } => {
                if path == part {
                    format!("no such key: `{path}`")
                } else {
                    format!("no such key: `{path}`, for there is no `{part}`")
                }
            }
            ProblemKind::PathIntoValue { part, value } => {
                format!("`{path}` is a key in `{part}`, but that is the plain value {value}")
            }
            ProblemKind::NotSwept => {
                format!("`{path}` is the same for all runs and cannot be swept")
            }
            ProblemKind::BadOverride { text } => format!("{text:?} is not of the form key=value"),
            ProblemKind::SetAndSwept { axis, .. } => {
                format!("`{path}` is set, and the axis \"{axis}\" of the sweep sets it as well")
            }
            ProblemKind::SetAgain { by } => {
                format!("`{path}` has no effect, because `{by}` sets all its keys again")
            }
            ProblemKind::Idle { why } => format!("`{path}` has no effect: {why}"),
            ProblemKind::SeedsTwice => {
                format!(
                    "`{path}` has no effect beside the seeds that the call or the command requests"
                )
            }
            ProblemKind::UnevenZip {
                group,
                found,
                expected,
            } => format!(
                "the axes of the zip group \"{group}\" need the same number of values: \
                 `{path}` has {found}, the first one {expected}"
            ),
            ProblemKind::BadRange { reason } => format!("`{path}`: {reason}"),
            ProblemKind::RttTooShort { rtt, rest } => format!(
                "`{path}` = {rtt} is less than {rest}, which the other links of the path take"
            ),
            ProblemKind::TooManyRuns {
                product,
                runs,
                limit,
            } => format!("{product} = {runs} runs are more than the limit of {limit}"),
            ProblemKind::TooManyThings { what, found, limit } => {
                format!("`{path}`: {found} {what} are more than the limit of {limit}")
            }
        }
    }

    /// The expected form, or why the message points at this span.
    fn label(&self) -> String {
        match &self.kind {
            ProblemKind::UnknownKey { nearest, .. } => match nearest {
                Some(nearest) => format!("did you mean `{nearest}`?"),
                None => "unknown key".into(),
            },
            ProblemKind::Missing { .. } => "this table lacks the key".into(),
            ProblemKind::WrongKind { expected, .. } => format!("expected {expected}"),
            ProblemKind::Quantity { error, .. } => error.to_string(),
            ProblemKind::OutOfBounds { min, max, .. } => format!("expected {min} to {max}"),
            ProblemKind::UnknownChoice { nearest, known, .. } => match nearest {
                Some(nearest) => format!("did you mean \"{nearest}\"?"),
                None => format!("expected {}", one_of(known)),
            },
            ProblemKind::RttTooShort { rest, .. } => format!("expected at least {rest}"),
            ProblemKind::BadName { .. } => "expected 1 to 64 letters, digits or any of -_.+".into(),
            ProblemKind::BadTemplate { .. } => {
                "expected a name in which {i}, {i+1} or {i-1} stand for the flow's number, from 0"
                    .into()
            }
            ProblemKind::Length { min, max, .. } => match (*min, *max) {
                (min, usize::MAX) => format!("expected at least {min}"),
                (min, max) if min == max => format!("expected {min}"),
                (min, max) => format!("expected {min} to {max}"),
            },
            ProblemKind::UnknownNode { nearest, .. } | ProblemKind::UnknownPath { nearest, .. } => {
                match nearest {
                    Some(nearest) => format!("did you mean \"{nearest}\"?"),
                    None => String::new(),
                }
            }
            _ => String::new(),
        }
    }

    /// Further lines: what exists here, and what to do.
    fn notes(&self) -> Vec<String> {
        let mut notes = Vec::new();
        match &self.kind {
            ProblemKind::UnknownKey {
                known,
                nearest,
                elsewhere,
            } => {
                if let Some((tag, value)) = elsewhere {
                    notes.push(format!("it is a key of {tag} = \"{value}\""));
                }
                if nearest.is_none() {
                    notes.push(format!("known keys here: {}", known.join(", ")));
                }
            }
            ProblemKind::Unreadable { .. } => notes.push("expected a scenario in TOML".into()),
            ProblemKind::Missing { expected } => notes.push(format!("expected {expected}")),
            ProblemKind::UnknownChoice {
                known,
                nearest,
                elsewhere,
                ..
            } => {
                notes.extend(elsewhere.clone());
                if nearest.is_some() {
                    notes.push(format!("expected {}", one_of(known)));
                }
            }
            ProblemKind::UnknownNode { known, .. } => {
                notes.push(format!("the nodes are {}", some(known)));
            }
            ProblemKind::UnknownPath { known, .. } if !known.is_empty() => {
                notes.push(format!("known here: {}", some(known)));
            }
            ProblemKind::PathIntoValue { part, .. } => notes.push(format!(
                "write `{part}` as a table to reach the keys in it"
            )),
            ProblemKind::SetAndSwept { keys, .. } => notes.push(format!(
                "expected one value for all keys of the axis, {}, which replaces its values; \
                 or `sweep=[]` for no sweep",
                some(keys)
            )),
            ProblemKind::Idle { .. } => notes.push("leave it out".into()),
            ProblemKind::SetAgain { .. } => notes.push("leave one of them out".into()),
            ProblemKind::SeedsTwice => notes.push("expected seeds in one place".into()),
            ProblemKind::NotSwept => notes.push(
                "sweeps reach `topology`, `flow` and the `duration`, `warmup` and `bins` of `scenario`"
                    .into(),
            ),
            ProblemKind::TooManyRuns { .. } => notes.push(
                "sweep fewer values, or raise `scenario.max_runs`".into(),
            ),
            _ => {}
        }
        if let Some(point) = &self.point {
            notes.push(format!("at the point {point}"));
        }
        notes
    }

    pub(super) fn render(&self, sources: &Sources, renderer: &Renderer) -> String {
        let headline = self.headline();
        let label = self.label();
        let notes = self.notes();
        let mut group = Group::with_title(Level::ERROR.primary_title(headline.as_str()));
        let placed = self
            .span
            .and_then(|span| Some((span, sources.source(span)?)));
        if let Some((span, source)) = placed {
            let end = source.text.len();
            let fit = |range: std::ops::Range<usize>| {
                let start = floor_boundary(&source.text, range.start.min(end));
                start..floor_boundary(&source.text, range.end.min(end)).max(start)
            };
            let mut annotation = AnnotationKind::Primary.span(fit(span.range()));
            if !label.is_empty() {
                annotation = annotation.label(label.as_str());
            }
            let mut snippet = Snippet::source(source.text.as_str())
                .path(source.name.as_str())
                .annotation(annotation);
            if let ProblemKind::Duplicate {
                first: Some(first), ..
            } = &self.kind
                && first.source() == span.source()
                && *first != span
            {
                snippet = snippet.annotation(
                    AnnotationKind::Context
                        .span(fit(first.range()))
                        .label("first used here"),
                );
            }
            group = group.element(snippet);
        } else if !label.is_empty() {
            group = group.element(Level::NOTE.message(label.as_str()));
        }
        for note in &notes {
            group = group.element(Level::NOTE.message(note.as_str()));
        }
        renderer.render(&[group])
    }
}

/// The largest boundary of a character at or before `at`.
fn floor_boundary(text: &str, at: usize) -> usize {
    (0..=at)
        .rev()
        .find(|&at| text.is_char_boundary(at))
        .unwrap_or(0)
}

fn one_of(words: &[String]) -> String {
    match words {
        [] => "nothing".into(),
        [one] => format!("\"{one}\""),
        many => format!("one of \"{}\"", many.join("\", \"")),
    }
}

fn some(words: &[String]) -> String {
    const MOST: usize = 12;
    let mut text = words
        .iter()
        .take(MOST)
        .map(String::as_str)
        .collect::<Vec<_>>()
        .join(", ");
    if words.len() > MOST {
        text.push_str(&format!(" and {} more", words.len() - MOST));
    }
    text
}
