//! Expressions and statements as trees.

use std::ops::Range;

use super::coordinate::Coordinate;

/// A part of an expression, and which bytes of its text it is.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Expression {
    pub(super) range: Range<usize>,
    pub(super) kind: Kind,
}

#[derive(Clone, Debug, PartialEq)]
pub(super) enum Kind {
    Number(f64),
    /// A measure or a value.
    Name(String),
    /// `paper.NAME`: numbers that the paper gives.
    Paper(String),
    Column(Column),
    /// `x[drop = 0.05, n <= 40]`
    Select(Box<Expression>, Vec<Condition>),
    Call(Function, Vec<Expression>),
    Minus(Box<Expression>),
    Binary(Operator, Box<Expression>, Box<Expression>),
}

/// A column of the results of a run.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Column {
    pub(super) table: Table,
    /// Of which groups, flows or links; empty for all.
    pub(super) names: Vec<(String, Range<usize>)>,
    /// Over time instead of over the whole run.
    pub(super) bins: bool,
    pub(super) column: String,
    pub(super) column_range: Range<usize>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Table {
    Flow,
    Link,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Operator {
    Add,
    Subtract,
    Multiply,
    Divide,
}

impl Operator {
    pub(super) fn apply(self, left: f64, right: f64) -> f64 {
        match self {
            Self::Add => left + right,
            Self::Subtract => left - right,
            Self::Multiply => left * right,
            Self::Divide => left / right,
        }
    }
}

/// What can be called: which arguments it takes, where it may stand and what it gives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Function {
    Abs,
    Argmax,
    Argmin,
    Between,
    Count,
    Deviation,
    Friendliness,
    Jain,
    Max,
    Mean,
    Median,
    Min,
    Or,
    Separation,
    Spearman,
    Sqrt,
    Sum,
    Variation,
    Worst,
}

/// Where a function may stand.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stage {
    /// In measures, which look at one run.
    Measure,
    /// In values and checks, which look at the means of all points.
    Value,
    /// Anywhere.
    Both,
}

/// A line of the reference of functions.
pub(super) struct FunctionRow {
    pub(super) name: &'static str,
    pub(super) function: Function,
    pub(super) arguments: usize,
    pub(super) stage: Stage,
    pub(super) usage: &'static str,
    pub(super) doc: &'static str,
}

const fn row(
    name: &'static str,
    function: Function,
    arguments: usize,
    stage: Stage,
    usage: &'static str,
    doc: &'static str,
) -> FunctionRow {
    FunctionRow {
        name,
        function,
        arguments,
        stage,
        usage,
        doc,
    }
}

/// All functions, by name.
pub(super) const FUNCTIONS: &[FunctionRow] = &[
    row(
        "abs",
        Function::Abs,
        1,
        Stage::Both,
        "abs(x)",
        "The absolute value.",
    ),
    row(
        "argmax",
        Function::Argmax,
        2,
        Stage::Value,
        "argmax(x, axis)",
        "The value of the axis at which x is largest; quantities in seconds, bit/s and bytes.",
    ),
    row(
        "argmin",
        Function::Argmin,
        2,
        Stage::Value,
        "argmin(x, axis)",
        "The value of the axis at which x is least.",
    ),
    row(
        "between",
        Function::Between,
        3,
        Stage::Measure,
        "between(flow.a.bins.sent_packets, 10s, 20s)",
        "The bins that begin in this time, the end not included.",
    ),
    row(
        "count",
        Function::Count,
        1,
        Stage::Measure,
        "count(list)",
        "How many there are.",
    ),
    row(
        "stddev",
        Function::Deviation,
        1,
        Stage::Measure,
        "stddev(list)",
        "The standard deviation, over n.",
    ),
    row(
        "friendliness",
        Function::Friendliness,
        2,
        Stage::Measure,
        "friendliness(list, list)",
        "F of TLTCP, section 6.2: the mean of the first over the mean of the other.",
    ),
    row(
        "jain",
        Function::Jain,
        1,
        Stage::Measure,
        "jain(list)",
        "Jain's fairness index.",
    ),
    row(
        "max",
        Function::Max,
        1,
        Stage::Both,
        "max(list)",
        "The largest; in values, over all points.",
    ),
    row(
        "mean",
        Function::Mean,
        1,
        Stage::Both,
        "mean(list)",
        "The mean, likewise.",
    ),
    row(
        "median",
        Function::Median,
        1,
        Stage::Measure,
        "median(list)",
        "The median.",
    ),
    row(
        "min",
        Function::Min,
        1,
        Stage::Both,
        "min(list)",
        "The least, likewise.",
    ),
    row(
        "or",
        Function::Or,
        2,
        Stage::Measure,
        "or(list, x)",
        "The list, with x where it has no value.",
    ),
    row(
        "max_min_ratio",
        Function::Separation,
        1,
        Stage::Measure,
        "max_min_ratio(list)",
        "S of TLTCP, section 6.2: the largest over the least.",
    ),
    row(
        "spearman",
        Function::Spearman,
        2,
        Stage::Value,
        "spearman(x, y)",
        "The rank correlation over the points that both have.",
    ),
    row(
        "sqrt",
        Function::Sqrt,
        1,
        Stage::Both,
        "sqrt(x)",
        "The square root.",
    ),
    row(
        "sum",
        Function::Sum,
        1,
        Stage::Both,
        "sum(list)",
        "The sum; in values, over all points.",
    ),
    row(
        "variation",
        Function::Variation,
        1,
        Stage::Measure,
        "variation(list)",
        "The coefficient of variation: standard deviation over mean.",
    ),
    row(
        "worst",
        Function::Worst,
        1,
        Stage::Measure,
        "worst(list)",
        "F_worst of TLTCP, section 6.2: the mean of the upper half over the mean of the lower.",
    ),
];

impl Function {
    pub(super) fn row(self) -> Option<&'static FunctionRow> {
        FUNCTIONS.iter().find(|row| row.function == self)
    }
}

/// Which points are meant.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Condition {
    pub(super) range: Range<usize>,
    pub(super) axis: String,
    pub(super) test: Test,
}

#[derive(Clone, Debug, PartialEq)]
pub(super) enum Test {
    Is(Coordinate),
    OneOf(Vec<Coordinate>),
    Compares(Relation, Coordinate),
}

/// How two numbers compare.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Relation {
    Below,
    AtMost,
    Equal,
    AtLeast,
    Above,
    /// The whole interval lies below the other one.
    WhollyBelow,
    /// The whole interval lies above the other one.
    WhollyAbove,
}

impl Relation {
    pub(super) const fn sign(self) -> &'static str {
        match self {
            Self::Below => "<",
            Self::AtMost => "<=",
            Self::Equal => "=",
            Self::AtLeast => ">=",
            Self::Above => ">",
            Self::WhollyBelow => "<<",
            Self::WhollyAbove => ">>",
        }
    }

    /// The relation seen from the other side.
    pub(super) const fn flipped(self) -> Self {
        match self {
            Self::Below => Self::Above,
            Self::AtMost => Self::AtLeast,
            Self::Equal => Self::Equal,
            Self::AtLeast => Self::AtMost,
            Self::Above => Self::Below,
            Self::WhollyBelow => Self::WhollyAbove,
            Self::WhollyAbove => Self::WhollyBelow,
        }
    }
}

/// What a check says.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Statement {
    pub(super) subject: Expression,
    pub(super) claim: Claimed,
    /// Only at these points.
    pub(super) conditions: Vec<Condition>,
}

#[derive(Clone, Debug, PartialEq)]
pub(super) enum Claimed {
    /// Nothing: the value is shown.
    Nothing,
    /// It compares so with each of these.
    Compares(Vec<(Relation, Expression)>),
    /// It is within a share of this.
    Within(f64, Expression),
    /// From one value of the axis to the next it does not rise (or fall) beyond the intervals.
    Monotone {
        axis: String,
        axis_range: Range<usize>,
        rises: bool,
    },
}
