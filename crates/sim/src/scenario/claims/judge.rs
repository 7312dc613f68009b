//! Whether checks hold.

use super::coordinate::Coordinate;
use super::expression::{Claimed, Expression, Relation, Statement};
use super::fault::{Fault, Faulty};
use super::grid::{Aligned, Grid, Names, Samples, align, evaluate, look};
use super::interval::{Interval, Weights, intervals};
use super::run::Measured;
use super::{Book, Check, Claim, Expected, Form};

/// What came out for one claim.
#[derive(Clone, Debug)]
pub struct ClaimReport<'b> {
    /// The claim.
    pub claim: &'b Claim,
    /// Its checks.
    pub checks: Vec<CheckReport<'b>>,
}

/// What came out for one check.
#[derive(Clone, Debug)]
pub struct CheckReport<'b> {
    /// What is checked.
    pub says: &'b str,
    /// The statement or expression as written.
    pub text: &'b str,
    /// What was known to come out.
    pub expected: Expected,
    /// Why it does not hold, where that is known.
    pub reason: Option<&'b str>,
    /// What came out.
    pub outcome: Outcome,
    /// Point by point.
    pub rows: Vec<Row>,
}

/// What came out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// It holds at every point; of a claim, all that the paper has a number for.
    Holds,
    /// A part of the claim holds. Another fails, is not judged in this form, or is only shown
    /// although the paper has a number for it.
    HoldsInPart,
    /// It does not; of a claim, nothing that is judged does.
    Fails,
    /// It is only shown, or the claim has nothing to judge.
    Shown,
    /// It is not judged in this form.
    Skipped,
}

/// One point of a check.
#[derive(Clone, Debug, PartialEq)]
pub struct Row {
    /// The axes that are left, with their values.
    pub at: Vec<(String, String)>,
    /// What the paper has.
    pub paper: Option<f64>,
    /// What is here; none when it does not exist.
    pub value: Option<f64>,
    /// Where it is with 95 % confidence; none with one seed.
    pub interval: Option<Interval>,
    /// What it is compared with.
    pub bounds: Vec<Bound>,
    /// Whether that holds; none where nothing is compared.
    pub holds: Option<bool>,
    /// Whether the interval of the distance to every bound lies on one side.
    pub is_sure: bool,
}

/// Something to compare with.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Bound {
    /// `<`, `<=`, `=`, `>=`, `>`; `<<` and `>>` for intervals that do not meet; `<~` and `>~` for
    /// what is not beyond the interval of the one before it.
    pub relation: &'static str,
    /// The value.
    pub value: f64,
}

impl ClaimReport<'_> {
    /// Holds when all of it is judged and does, fails when nothing that is judged holds.
    pub fn outcome(&self) -> Outcome {
        let has = |outcome| self.checks.iter().any(|check| check.outcome == outcome);
        let is_unjudged = |check: &CheckReport<'_>| match check.outcome {
            Outcome::Skipped => true,
            Outcome::Shown => check.rows.iter().any(|row| row.paper.is_some()),
            _ => false,
        };
        let is_whole = !has(Outcome::Fails) && !self.checks.iter().any(is_unjudged);
        if has(Outcome::Holds) && is_whole {
            Outcome::Holds
        } else if has(Outcome::Holds) {
            Outcome::HoldsInPart
        } else if has(Outcome::Fails) {
            Outcome::Fails
        } else if has(Outcome::Skipped) {
            Outcome::Skipped
        } else {
            Outcome::Shown
        }
    }
}

impl CheckReport<'_> {
    /// Whether it came out as it was known to.
    pub fn is_as_expected(&self) -> bool {
        match self.outcome {
            Outcome::Holds => self.expected != Expected::Fails,
            Outcome::Fails => self.expected != Expected::Holds,
            Outcome::HoldsInPart | Outcome::Shown | Outcome::Skipped => true,
        }
    }
}

impl Book {
    /// What the measurements say about a claim.
    pub fn judge<'b>(&self, claim: &'b Claim, measured: &Measured, form: Form) -> ClaimReport<'b> {
        let samples = measured.samples(claim);
        let sizes: Vec<usize> = self.samples.iter().map(Vec::len).collect();
        let names = Names {
            measures: &samples,
            values: &claim.values,
            papers: &claim.papers,
        };
        let checks = claim.checks.iter();
        ClaimReport {
            claim,
            checks: checks
                .map(|check| report(check, names, &sizes, form))
                .collect(),
        }
    }
}

/// What is wrong with a check, and where.
pub(super) enum DryFault {
    Statement(Faulty),
    Paper(Faulty),
}

/// Whether a check can be calculated from measures with these points.
pub(super) fn dry(check: &Check, names: Names<'_>, ones: &Weights) -> Result<(), DryFault> {
    let aligned = table(&check.statement, names, ones).map_err(DryFault::Statement)?;
    if let Some(paper) = &check.paper {
        let grid = evaluate(paper, names, ones).map_err(DryFault::Paper)?;
        let left: Vec<String> = grid
            .axes
            .iter()
            .filter(|axis| !aligned.axes.contains(axis))
            .cloned()
            .collect();
        if !left.is_empty() {
            let fault = Fault::Axes { left };
            return Err(DryFault::Paper(Faulty::new(&paper.range, fault)));
        }
    }
    Ok(())
}

/// The subject and what it is compared with, at every point that is meant.
fn table(statement: &Statement, names: Names<'_>, weights: &Weights) -> Result<Aligned, Faulty> {
    let subject = &statement.subject;
    let mut grids = vec![evaluate(subject, names, weights)?];
    for expression in statement.bounds() {
        grids.push(evaluate(expression, names, weights)?);
    }
    let mut aligned = align(&grids, &subject.range)?;
    for condition in &statement.conditions {
        aligned.choose(condition)?;
    }
    if let Claimed::Monotone {
        axis, axis_range, ..
    } = &statement.claim
    {
        aligned.axis(axis, axis_range)?;
    }
    Ok(aligned)
}

impl Statement {
    fn bounds(&self) -> Vec<&Expression> {
        match &self.claim {
            Claimed::Compares(bounds) => bounds.iter().map(|(_, expression)| expression).collect(),
            Claimed::Within(_, expression) => vec![expression],
            Claimed::Nothing | Claimed::Monotone { .. } => Vec::new(),
        }
    }

    /// How far inside each bound the subject is: below zero is outside.
    fn margins(&self, subject: f64, bounds: &[f64]) -> Vec<f64> {
        match &self.claim {
            Claimed::Compares(relations) => {
                let each = relations.iter().zip(bounds);
                each.map(|((relation, _), bound)| match relation {
                    Relation::Below | Relation::AtMost | Relation::WhollyBelow => bound - subject,
                    Relation::Above | Relation::AtLeast | Relation::WhollyAbove => subject - bound,
                    Relation::Equal => -(subject - bound).abs(),
                })
                .collect()
            }
            Claimed::Within(share, _) => bounds
                .iter()
                .map(|bound| share * bound.abs() - (subject - bound).abs())
                .collect(),
            Claimed::Nothing | Claimed::Monotone { .. } => Vec::new(),
        }
    }

    /// How many numbers there are for each point: the subject, its bounds, its margins.
    fn width(&self) -> usize {
        1 + 2 * self.bounds().len()
    }
}

fn report<'b>(check: &'b Check, names: Names<'_>, sizes: &[usize], form: Form) -> CheckReport<'b> {
    let mut report = CheckReport {
        says: &check.says,
        text: &check.text,
        expected: check.expected,
        reason: check.reason.as_deref(),
        outcome: Outcome::Skipped,
        rows: Vec::new(),
    };
    if check.form.is_some_and(|only| only != form) {
        return report;
    }
    let statement = &check.statement;
    let ones: Weights = sizes.iter().map(|&size| vec![1.0; size]).collect();
    // That it can be calculated was found when the check was read.
    let Ok(aligned) = table(statement, names, &ones) else {
        report.outcome = Outcome::Fails;
        return report;
    };
    let flat = |weights: &Weights| -> Vec<f64> {
        table(statement, names, weights)
            .map_or_else(|_| Vec::new(), |aligned| flatten(statement, &aligned))
    };
    let full = flatten(statement, &aligned);
    let mut used = vec![false; sizes.len()];
    let mut is_smooth = true;
    for expression in [&statement.subject].into_iter().chain(statement.bounds()) {
        look(expression, names, &mut used, &mut is_smooth);
    }
    let found = intervals(sizes, &used, &full, is_smooth, |weights| {
        let mut values = flat(weights);
        values.resize(full.len(), f64::NAN);
        values
    });
    let paper = check
        .paper
        .as_ref()
        .and_then(|paper| evaluate(paper, names, &ones).ok());
    let width = statement.width();
    let shown = shown_axes(&aligned);
    for (at, (coordinates, _)) in aligned.points.iter().enumerate() {
        let numbers = full.get(at * width..(at + 1) * width).unwrap_or_default();
        let around = found.get(at * width..(at + 1) * width).unwrap_or_default();
        let mut row = row(statement, numbers, around);
        row.paper = paper
            .as_ref()
            .and_then(|paper| in_paper(paper, &aligned.axes, coordinates));
        row.at = shown
            .iter()
            .filter_map(|&axis| {
                let name = aligned.axes.get(axis)?;
                Some((name.clone(), coordinates.get(axis)?.to_string()))
            })
            .collect();
        report.rows.push(row);
    }
    if let Claimed::Monotone {
        axis,
        axis_range,
        rises,
    } = &statement.claim
        && let Ok(axis) = aligned.axis(axis, axis_range)
    {
        follow(&mut report.rows, &aligned, axis, *rises);
    }
    report.outcome = match statement.is_judged() {
        false => Outcome::Shown,
        true if report.rows.iter().all(|row| row.holds == Some(true)) => Outcome::Holds,
        true => Outcome::Fails,
    };
    report
}

/// All numbers of all points: for each its subject, its bounds and its margins.
fn flatten(statement: &Statement, aligned: &Aligned) -> Vec<f64> {
    let points = aligned.points.iter();
    points
        .flat_map(|(_, values)| {
            let subject = values.first().copied().unwrap_or(f64::NAN);
            let bounds = values.get(1..).unwrap_or_default();
            let margins = statement.margins(subject, bounds);
            [&[subject], bounds, margins.as_slice()].concat()
        })
        .collect()
}

/// The axes in which points differ.
fn shown_axes(aligned: &Aligned) -> Vec<usize> {
    let differs = |axis: &usize| {
        let mut values = aligned.points.iter().map(|(at, _)| at.get(*axis));
        let first = values.next().flatten();
        values.any(|value| value != first)
    };
    (0..aligned.axes.len()).filter(differs).collect()
}

fn in_paper(paper: &Grid, axes: &[String], coordinates: &[Coordinate]) -> Option<f64> {
    let agrees = |(at, _): &&(Vec<Coordinate>, f64)| {
        paper.axes.iter().zip(at).all(|(axis, value)| {
            let here = axes.iter().position(|other| other == axis);
            here.and_then(|here| coordinates.get(here)) == Some(value)
        })
    };
    paper
        .points
        .iter()
        .find(agrees)
        .map(|(_, value)| *value)
        .filter(|value| value.is_finite())
}

/// Judges one point from its numbers (subject, bounds, margins) and their intervals.
fn row(statement: &Statement, numbers: &[f64], around: &[Option<Interval>]) -> Row {
    let count = statement.bounds().len();
    let exists = numbers.iter().all(|number| number.is_finite());
    let value = numbers.first().copied().filter(|value| value.is_finite());
    let bounds = numbers.get(1..=count).unwrap_or_default();
    let margins = numbers.get(count + 1..).unwrap_or_default();
    let interval_at = |at: usize| around.get(at).copied().flatten();
    let interval = interval_at(0);
    let each = |at: usize, margin: f64| -> bool {
        match &statement.claim {
            Claimed::Compares(relations) => {
                match relations.get(at).map(|(relation, _)| *relation) {
                    Some(Relation::Below | Relation::Above) => margin > 0.0,
                    Some(relation @ (Relation::WhollyBelow | Relation::WhollyAbove)) => {
                        let bound = interval_at(1 + at);
                        interval
                            .zip(bound)
                            .is_some_and(|(subject, bound)| match relation {
                                Relation::WhollyBelow => subject.high < bound.low,
                                _ => subject.low > bound.high,
                            })
                    }
                    _ => margin >= 0.0,
                }
            }
            _ => margin >= 0.0,
        }
    };
    let holds = margins
        .iter()
        .enumerate()
        .all(|(at, margin)| each(at, *margin));
    let is_sure = (0..margins.len()).all(|at| {
        interval_at(1 + count + at).is_some_and(|margin| {
            margin.low > 0.0 || margin.high < 0.0 || margin.low == margin.high
        })
    });
    Row {
        at: Vec::new(),
        paper: None,
        value,
        interval: interval.filter(|_| value.is_some()),
        bounds: shown_bounds(statement, bounds),
        holds: statement.is_judged().then_some(exists && holds),
        is_sure,
    }
}

fn shown_bounds(statement: &Statement, bounds: &[f64]) -> Vec<Bound> {
    match &statement.claim {
        Claimed::Compares(relations) => {
            let each = relations.iter().zip(bounds);
            each.map(|((relation, _), &value)| Bound {
                relation: relation.sign(),
                value,
            })
            .collect()
        }
        Claimed::Within(share, _) => bounds
            .iter()
            .flat_map(|bound| {
                let [low, high] = [bound - share * bound.abs(), bound + share * bound.abs()];
                [(">=", low), ("<=", high)].map(|(relation, value)| Bound { relation, value })
            })
            .collect(),
        Claimed::Nothing | Claimed::Monotone { .. } => Vec::new(),
    }
}

/// Judges each point by the one before it on an axis, the others being equal.
fn follow(rows: &mut [Row], aligned: &Aligned, axis: usize, rises: bool) {
    let others = |at: usize| -> Vec<Option<&Coordinate>> {
        let coordinates = aligned.points.get(at).map(|(coordinates, _)| coordinates);
        (0..aligned.axes.len())
            .filter(|&other| other != axis)
            .map(|other| coordinates.and_then(|coordinates| coordinates.get(other)))
            .collect()
    };
    for at in 0..rows.len() {
        let before = (0..at).rev().find(|&before| others(before) == others(at));
        let before = before.and_then(|before| rows.get(before)).cloned();
        let Some(row) = rows.get_mut(at) else {
            continue;
        };
        let Some(before) = before else {
            row.holds = Some(row.value.is_some());
            row.is_sure = row.value.is_some();
            continue;
        };
        let (Some(value), Some(old)) = (row.value, before.value) else {
            row.holds = Some(false);
            continue;
        };
        let is_beyond = match (row.interval, before.interval) {
            (Some(new), Some(old)) => {
                if rises {
                    new.high < old.low
                } else {
                    new.low > old.high
                }
            }
            _ => {
                if rises {
                    value < old
                } else {
                    value > old
                }
            }
        };
        row.holds = Some(!is_beyond);
        row.is_sure = is_beyond || if rises { value >= old } else { value <= old };
        row.bounds = vec![Bound {
            relation: if rises { ">~" } else { "<~" },
            value: old,
        }];
    }
}

impl Measured {
    /// The samples of a claim's measures, in their order.
    fn samples(&self, claim: &Claim) -> Vec<Samples> {
        claim
            .measures
            .iter()
            .map(|measure| self.sample(&claim.id, &measure.outline))
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::super::parser;
    use super::*;

    /// `x` at n = 1, 2, 3, with three seeds; `y` is 2 at every seed.
    fn report_of(text: &str) -> CheckReport<'static> {
        let point = |n: f64, values: [f64; 3]| (vec![Coordinate::number(n)], values.to_vec());
        let samples = vec![
            Samples {
                name: "x".into(),
                sample: 0,
                axes: vec!["n".into()],
                points: vec![
                    point(1.0, [9.9, 10.0, 10.1]),
                    point(2.0, [4.0, 5.0, 6.0]),
                    point(3.0, [5.0, 6.0, 4.5]),
                ],
            },
            Samples {
                name: "y".into(),
                sample: 0,
                axes: Vec::new(),
                points: vec![(Vec::new(), vec![2.0; 3])],
            },
            Samples {
                name: "hole".into(),
                sample: 0,
                axes: Vec::new(),
                points: vec![(Vec::new(), vec![2.0, f64::NAN, 2.0])],
            },
        ];
        let check = Box::leak(Box::new(Check {
            says: "a check".into(),
            text: text.into(),
            statement: parser::statement(text).unwrap(),
            paper: Some(parser::expression("paper.x").unwrap()),
            form: None,
            expected: Expected::Holds,
            reason: None,
        }));
        let paper = Grid {
            axes: vec!["n".into()],
            points: vec![(vec![Coordinate::number(2.0)], 5.5)],
        };
        let names = Names {
            measures: &samples,
            values: &[],
            papers: &[("x".into(), paper)],
        };
        report(check, names, &[3], Form::Full)
    }

    #[test]
    fn a_check_holds_when_it_does_at_every_point() {
        let got = report_of("4 < x <= 10");
        assert_eq!(got.outcome, Outcome::Holds);
        assert_eq!(got.rows.len(), 3);
        let second = &got.rows[1];
        assert_eq!(second.at, [("n".into(), "2".into())]);
        assert_eq!(
            (second.value, second.paper, second.holds),
            (Some(5.0), Some(5.5), Some(true))
        );
        // Deviation 1 of three: 4.302653 / sqrt(3) either way, which reaches across the 4.
        let interval = second.interval.unwrap();
        assert!((interval.high - 5.0 - 4.302_653 / 3.0_f64.sqrt()).abs() < 1e-6);
        assert!(!second.is_sure);
        assert!(report_of("2 < x").rows.iter().all(|row| row.is_sure));
        assert_eq!(report_of("5 < x").outcome, Outcome::Fails);
        assert_eq!(report_of("5 < x for n in [1, 3]").outcome, Outcome::Holds);
    }

    #[test]
    fn bounds_may_be_measured_too() {
        let got = report_of("x[n = 1] = 5 * y");
        assert_eq!(
            (got.outcome, got.rows[0].bounds[0].value),
            (Outcome::Holds, 10.0)
        );
        assert_eq!(
            report_of("x[n = 1] within 1% of 10.2").outcome,
            Outcome::Fails
        );
        assert_eq!(
            report_of("x[n = 1] within 2% of 10.2").outcome,
            Outcome::Holds
        );
        let bounds = &report_of("x[n = 1] within 10% of 10").rows[0].bounds;
        assert_eq!((bounds[0].value, bounds[1].value), (9.0, 11.0));
    }

    #[test]
    fn apart_are_intervals_that_do_not_meet() {
        assert_eq!(report_of("x[n = 1] >> x[n = 2]").outcome, Outcome::Holds);
        assert_eq!(report_of("x[n = 2] << x[n = 1]").outcome, Outcome::Holds);
        // 5.17 is above 5, within its interval.
        assert_eq!(report_of("x[n = 3] > x[n = 2]").outcome, Outcome::Holds);
        assert_eq!(report_of("x[n = 3] >> x[n = 2]").outcome, Outcome::Fails);
    }

    #[test]
    fn what_falls_may_rise_within_its_interval() {
        let got = report_of("x falls over n");
        assert_eq!(got.outcome, Outcome::Holds);
        let sure: Vec<_> = got.rows.iter().map(|row| row.is_sure).collect();
        assert_eq!(sure, [true, true, false]);
        assert_eq!(report_of("x rises over n").outcome, Outcome::Fails);
        assert_eq!(
            report_of("x rises over n for n >= 2").outcome,
            Outcome::Holds
        );
    }

    #[test]
    fn what_does_not_exist_does_not_hold() {
        let got = report_of("hole <= 5");
        assert_eq!((got.outcome, got.rows[0].value), (Outcome::Fails, None));
        assert_eq!(report_of("hole").outcome, Outcome::Shown);
    }
}
