//! What can be wrong with an expression.

use std::fmt;
use std::ops::Range;

use super::expression::Stage;

/// What is wrong, and with which bytes of the expression's text.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Faulty {
    pub(super) range: Range<usize>,
    pub(super) fault: Fault,
}

impl Faulty {
    pub(super) fn new(range: &Range<usize>, fault: Fault) -> Self {
        Self {
            range: range.clone(),
            fault,
        }
    }
}

/// What is wrong with an expression.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Fault {
    /// Something else belongs here.
    Unexpected {
        /// What stands here.
        found: String,
        /// What belongs here.
        expected: &'static str,
    },
    /// A number with letters behind it that are no unit.
    Unit {
        /// As written.
        found: String,
    },
    /// Too many words and signs.
    TooLong,
    /// Parentheses within parentheses within parentheses.
    TooDeep,
    /// A name that is not known here.
    Unknown {
        /// What kind of name.
        what: &'static str,
        /// As written.
        name: String,
        /// The names that there are.
        known: Vec<String>,
        /// The one that is spelled most like it.
        nearest: Option<String>,
    },
    /// A function with too few or too many arguments.
    Arguments {
        /// How it is called.
        usage: &'static str,
        /// How many there are.
        found: usize,
    },
    /// Something that only measures, or only values and checks can have.
    WrongStage {
        /// What it is.
        what: String,
        /// Where it may stand.
        stage: Stage,
    },
    /// A list where one number is needed.
    List {
        /// The list: of flows, of links, of bins.
        of: &'static str,
    },
    /// One number where a list is needed.
    NoList {
        /// The function that needs it.
        function: &'static str,
    },
    /// Lists of different things in one calculation.
    Mixed,
    /// Values over time, of a scenario that has none.
    NoBins,
    /// No point is left.
    NoPoint {
        /// What the axis, or the two sides, have.
        there: String,
    },
    /// More than one axis is left where there can be one only.
    Axes {
        /// Those that are left.
        left: Vec<String>,
    },
    /// An axis of words, where numbers are needed.
    Words {
        /// The axis.
        axis: String,
    },
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unexpected { found, .. } => write!(f, "{found} cannot stand here"),
            Self::Unit { found } => write!(f, "{found} is no quantity"),
            Self::TooLong => f.write_str("it is too long"),
            Self::TooDeep => f.write_str("it is nested too deeply"),
            Self::Unknown { what, name, .. } => write!(f, "there is no {what} called `{name}`"),
            Self::Arguments { found, .. } => {
                let s = if *found == 1 { "" } else { "s" };
                write!(f, "the function is given {found} argument{s}")
            }
            Self::WrongStage { what, stage } => match stage {
                Stage::Measure => write!(f, "{what} can be had in measures only"),
                _ => write!(f, "{what} cannot be had in measures, which look at one run"),
            },
            Self::List { of } => write!(f, "this is a number for each {of}"),
            Self::NoList { function } => write!(f, "`{function}` is given one number"),
            Self::Mixed => f.write_str("these are lists of different things"),
            Self::NoBins => f.write_str("the scenario has no values over time"),
            Self::NoPoint { .. } => f.write_str("no point is like this"),
            Self::Axes { left } => write!(f, "this is a number for each {}", left.join(", ")),
            Self::Words { axis } => write!(f, "the values of `{axis}` are no numbers"),
        }
    }
}

impl Fault {
    /// What was expected instead.
    pub(crate) fn expected(&self) -> String {
        const MOST: usize = 40;
        match self {
            Self::Unexpected { expected, .. } => format!("expected {expected}"),
            Self::Unit { .. } => {
                "expected a number, or one with a unit such as 40ms, 1.5Mbps or 1500B".into()
            }
            Self::TooDeep => "expected at most 50 levels; give a part of it a name".into(),
            Self::TooLong => "expected at most 1000 words and signs".into(),
            Self::Unknown {
                nearest: Some(nearest),
                ..
            } => format!("did you mean `{nearest}`?"),
            Self::Unknown { known, .. } if known.is_empty() => "there are none".into(),
            Self::Unknown { known, .. } => {
                let some: Vec<_> = known.iter().take(MOST).map(String::as_str).collect();
                let more = if known.len() > MOST { ", ..." } else { "" };
                format!("expected one of {}{more}", some.join(", "))
            }
            Self::Arguments { usage, .. } => format!("expected `{usage}`"),
            Self::WrongStage {
                stage: Stage::Measure,
                ..
            } => "expected names of measures and values; put this into a measure".into(),
            Self::WrongStage { .. } => "put this into a value or a check".into(),
            Self::List { .. } => {
                "expected one number; take the mean(...) or the sum(...) of it".into()
            }
            Self::NoList { .. } => "expected a list such as flow.GROUP.throughput_bps".into(),
            Self::Mixed => "expected numbers, or lists of the same flows".into(),
            Self::NoBins => "set `bins` in the scenario, or `scenario.bins` by `set`".into(),
            Self::NoPoint { there } => format!("there are {there}"),
            Self::Axes { .. } => {
                "expected one axis; choose points of the others, as in x[axis = 5]".into()
            }
            Self::Words { .. } => "expected an axis of numbers or quantities".into(),
        }
    }
}
