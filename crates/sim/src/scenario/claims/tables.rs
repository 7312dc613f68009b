//! The tables of a file of claims, each declared once.

use super::super::document::Node;
use super::super::kinds::{Anything, Choice, Count, Either, List, Name, Placed, Real, Text};
use super::super::schema::{Default, Nested, Optional, Required, table};
use super::super::source::Place;
use super::{Expected, Form};

const NUMBER: Real = Real {
    min: f64::MIN,
    max: f64::MAX,
};

/// A list of anything.
const fn many<K>(item: K) -> List<K> {
    List {
        item,
        min: 1,
        max: 1_000,
    }
}

table! {
    /// The claims of one paper about its system.
    struct ClaimsFile ("a file of claims") {
        /// The paper.
        source: Option<String> = Optional(Text("the paper"), "not said");
        /// What it claims.
        claim: Vec<ClaimTable> = Required(many(Nested::<ClaimTable>::KIND));
    }
}

table! {
    /// Something that the paper says in numbers, and how it is looked for here.
    struct ClaimTable ("[[claim]]") {
        /// What it is called, on the command line too.
        id: (String, Place) = Required(Placed(Name("a short name")));
        /// What the paper says, in a sentence.
        says: String = Required(Text("what the paper says"));
        /// The section, figure or table that says it.
        source: Option<String> = Optional(Text("where the paper says it"), "not said");
        /// The scenario that is run, from the folder of this file.
        scenario: Option<(String, Place)> = Optional(
            Placed(Text("the path of a scenario")),
            "set in `run`, or nothing is run",
        );
        /// Values that replace those of the scenario, as `comity sim run --set` has them.
        set: Option<Vec<String>> = Optional(many(Text("path=value")), "as in the scenario");
        /// Of which points of the sweep; all others are left out.
        only: Option<Vec<OnlyTable>> = Optional(many(Nested::<OnlyTable>::KIND), "all points");
        /// What is different in the quick form.
        quick: Option<QuickTable> = Optional(Nested::<QuickTable>::KIND, "the quick form is the full one");
        /// Several scenarios instead of the one.
        run: Option<Vec<RunTable>> = Optional(many(Nested::<RunTable>::KIND), "`scenario` is the only one");
        /// Numbers that the paper gives, as `paper.NAME` in values and checks.
        paper: Option<Vec<PaperTable>> = Optional(many(Nested::<PaperTable>::KIND), "none have a name");
        /// What is taken from every run.
        measure: Option<Vec<MeasureTable>> = Optional(many(Nested::<MeasureTable>::KIND), "nothing is measured");
        /// What is calculated from the means of measures.
        value: Option<Vec<ValueTable>> = Optional(many(Nested::<ValueTable>::KIND), "nothing further");
        /// What has to hold.
        check: Option<Vec<CheckTable>> = Optional(many(Nested::<CheckTable>::KIND), "none, with `test` or `missing`");
        /// Tests of the project that hold what no number of a run can.
        test: Option<Vec<TestTable>> = Optional(many(Nested::<TestTable>::KIND), "none");
        /// Why it is not reproduced yet.
        missing: Option<String> = Optional(Text("why it is not reproduced yet"), "it is reproduced");
    }
}

table! {
    /// A scenario among several.
    struct RunTable ("a run") {
        /// What measures call it.
        name: (String, Place) = Required(Placed(Name("a short name")));
        /// The scenario that is run, from the folder of this file.
        scenario: (String, Place) = Required(Placed(Text("the path of a scenario")));
        /// Values that replace those of the scenario.
        set: Option<Vec<String>> = Optional(many(Text("path=value")), "as in the scenario");
        /// Of which points of the sweep; all others are left out.
        only: Option<Vec<OnlyTable>> = Optional(many(Nested::<OnlyTable>::KIND), "all points");
        /// What is different in the quick form.
        quick: Option<QuickTable> = Optional(Nested::<QuickTable>::KIND, "the quick form is the full one");
    }
}

table! {
    /// The quick form: the same with less of everything.
    struct QuickTable ("the quick form") {
        /// How many of the scenario's seeds, from the first.
        seeds: Option<u32> = Optional(Count { min: 1, max: 1_000_000 }, "all seeds");
        /// Further values that replace those of the scenario.
        set: Option<Vec<String>> = Optional(many(Text("path=value")), "as in the full form");
        /// Of which points of the sweep, further to those of the full form.
        only: Option<Vec<OnlyTable>> = Optional(many(Nested::<OnlyTable>::KIND), "as in the full form");
    }
}

table! {
    /// Some of the values of an axis.
    struct OnlyTable ("some points") {
        /// The axis.
        axis: (String, Place) = Required(Placed(Name("the name of an axis")));
        /// The values that are run.
        values: Vec<Node> = Required(many(Anything));
    }
}

table! {
    /// Numbers that the paper gives.
    struct PaperTable ("numbers of the paper") {
        /// What they are called.
        name: (String, Place) = Required(Placed(Name("a short name")));
        /// The number, or one for each value of the axis.
        is: Numbers = Required(Either::<Numbers, _, _>::of(NUMBER, many(NUMBER)));
        /// The axis.
        over: Option<String> = Optional(Name("the name of an axis"), "it is one number");
        /// The values of the axis.
        at: Option<Vec<Node>> = Optional(many(Anything), "it is one number");
    }
}

/// One number or several.
#[derive(Clone, Debug)]
pub(super) enum Numbers {
    One(f64),
    Many(Vec<f64>),
}

impl From<f64> for Numbers {
    fn from(number: f64) -> Self {
        Self::One(number)
    }
}

impl From<Vec<f64>> for Numbers {
    fn from(numbers: Vec<f64>) -> Self {
        Self::Many(numbers)
    }
}

table! {
    /// A number from every run.
    struct MeasureTable ("a measure") {
        /// What it is called.
        name: (String, Place) = Required(Placed(Name("a short name")));
        /// How it is calculated from the results of one run.
        is: (String, Place) = Required(Placed(Text("an expression")));
        /// The run whose results the measure reads.
        run: Option<(String, Place)> = Optional(Placed(Name("the name of a run")), "the first");
    }
}

table! {
    /// Something calculated from the means that measures have over the seeds.
    struct ValueTable ("a value") {
        /// What it is called.
        name: (String, Place) = Required(Placed(Name("a short name")));
        /// How it is calculated from measures and from values before this one.
        is: (String, Place) = Required(Placed(Text("an expression")));
    }
}

table! {
    /// Something that has to hold, or that is worth looking at.
    struct CheckTable ("a check") {
        /// What it is about, in a few words.
        says: String = Required(Text("what is checked"));
        /// The statement that has to hold.
        holds: Option<(String, Place)> = Optional(Placed(Text("a statement")), "none, with `shows`");
        /// An expression that is shown without being judged.
        shows: Option<(String, Place)> = Optional(Placed(Text("an expression")), "none, with `holds`");
        /// What the paper has in its place: a number, or an expression such as
        /// `paper.real / paper.reno`.
        paper: Option<PaperValue> = Optional(
            Either::<PaperValue, _, _>::of(NUMBER, Placed(Text("an expression"))),
            "the paper gives no number",
        );
        /// In which form it is judged.
        form: Option<Form> = Optional(
            Choice(&[
                ("full", Form::Full, "the full form only, where the quick one has too little of something"),
                ("quick", Form::Quick, "the quick form only"),
            ]),
            "both",
        );
        /// What is known to come out.
        expected: Expected = Default(
            Choice(&[
                ("holds", Expected::Holds, "it holds"),
                ("fails", Expected::Fails, "it does not, for the `reason`"),
                ("chance", Expected::Chance, "what is compared is the same but for chance, for the `reason`"),
            ]),
            "\"holds\"",
        );
        /// Why it does not hold: the mechanism. With `shows`, why it is far from what the paper
        /// has.
        reason: Option<String> = Optional(
            Text("why it does not hold, or is far from the paper"),
            "it holds, or is near",
        );
    }
}

/// What the paper has in the place of a check.
#[derive(Clone, Debug)]
pub(super) enum PaperValue {
    Number(f64),
    Text((String, Place)),
}

impl From<f64> for PaperValue {
    fn from(number: f64) -> Self {
        Self::Number(number)
    }
}

impl From<(String, Place)> for PaperValue {
    fn from(text: (String, Place)) -> Self {
        Self::Text(text)
    }
}

table! {
    /// A test that holds the claim, or a part of it.
    struct TestTable ("a test") {
        /// The file, from the root of the repository.
        file: String = Required(Text("the path of a file"));
        /// The function.
        name: String = Required(Text("the name of a function"));
    }
}
