//! Calculations with one number for each point of a sweep.

use std::ops::Range;

use comity_congestion::table::nearest;

use super::coordinate::Coordinate;
use super::expression::{Condition, Expression, Function, Kind, Relation, Stage, Test};
use super::fault::{Fault, Faulty};
use super::interval::Weights;
use crate::metrics;

/// A number for each of some points.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Grid {
    pub(super) axes: Vec<String>,
    pub(super) points: Vec<(Vec<Coordinate>, f64)>,
}

/// What seeds gave for one measure.
#[derive(Clone, Debug)]
pub(super) struct Samples {
    pub(super) name: String,
    /// Which seeds: measures with the same number were run with the same ones.
    pub(super) sample: usize,
    pub(super) axes: Vec<String>,
    /// For each point a number from every seed; one that does not exist is no number.
    pub(super) points: Vec<(Vec<Coordinate>, Vec<f64>)>,
}

/// What names stand for.
#[derive(Clone, Copy, Debug)]
pub(super) struct Names<'a> {
    pub(super) measures: &'a [Samples],
    /// Each may name those before it.
    pub(super) values: &'a [(String, Expression)],
    pub(super) papers: &'a [(String, Grid)],
}

/// Some numbers for each of some points.
pub(super) struct Aligned {
    pub(super) axes: Vec<String>,
    pub(super) points: Vec<(Vec<Coordinate>, Vec<f64>)>,
}

impl Grid {
    pub(super) fn constant(value: f64) -> Self {
        Self {
            axes: Vec::new(),
            points: vec![(Vec::new(), value)],
        }
    }

    fn map(mut self, apply: impl Fn(f64) -> f64) -> Self {
        for (_, value) in &mut self.points {
            *value = apply(*value);
        }
        self
    }

    fn values(&self) -> impl Iterator<Item = f64> {
        self.points.iter().map(|(_, value)| *value)
    }

    fn axis(&self, name: &str, range: &Range<usize>) -> Result<usize, Faulty> {
        axis(&self.axes, name, range)
    }
}

/// Which of `axes` is called `name`.
fn axis(axes: &[String], name: &str, range: &Range<usize>) -> Result<usize, Faulty> {
    axes.iter().position(|axis| axis == name).ok_or_else(|| {
        Faulty::new(
            range,
            unknown("axis", name, axes.iter().map(String::as_str)),
        )
    })
}

pub(super) fn unknown<'n>(
    what: &'static str,
    name: &str,
    known: impl Iterator<Item = &'n str>,
) -> Fault {
    let known: Vec<String> = known.map(Into::into).collect();
    Fault::Unknown {
        what,
        name: name.into(),
        nearest: nearest(name, known.iter().map(String::as_str)).map(Into::into),
        known,
    }
}

impl Condition {
    fn admits(&self, there: &Coordinate) -> bool {
        match &self.test {
            Test::Is(value) => value == there,
            Test::OneOf(values) => values.contains(there),
            Test::Compares(relation, value) => {
                there.compare(value).is_some_and(|order| match relation {
                    Relation::Below => order.is_lt(),
                    Relation::AtMost => order.is_le(),
                    Relation::AtLeast => order.is_ge(),
                    Relation::Above => order.is_gt(),
                    Relation::Equal | Relation::WhollyAbove | Relation::WhollyBelow => {
                        order.is_eq()
                    }
                })
            }
        }
    }
}

/// Leaves the points that meet a condition.
fn filter<T>(
    axes: &[String],
    points: &mut Vec<(Vec<Coordinate>, T)>,
    condition: &Condition,
) -> Result<(), Faulty> {
    let at = axis(axes, &condition.axis, &condition.range)?;
    let there = distinct(points, at);
    points.retain(|(at_all, _)| at_all.get(at).is_some_and(|there| condition.admits(there)));
    if points.is_empty() {
        let there: Vec<String> = there.iter().map(ToString::to_string).collect();
        let fault = Fault::NoPoint {
            there: there.join(", "),
        };
        return Err(Faulty::new(&condition.range, fault));
    }
    Ok(())
}

/// The values that points have on an axis.
fn distinct<T>(points: &[(Vec<Coordinate>, T)], axis: usize) -> Vec<Coordinate> {
    let mut values: Vec<Coordinate> = Vec::new();
    for value in points.iter().filter_map(|(at, _)| at.get(axis)) {
        if !values.contains(value) {
            values.push(value.clone());
        }
    }
    values
}

impl Grid {
    /// The points that meet all conditions, without the axes on which a condition asks for one
    /// value. Axes that advance together with such a one have one value left too, and go with it:
    /// otherwise what has been chosen of two kinds of flows could not be compared.
    fn choose(mut self, conditions: &[Condition]) -> Result<Self, Faulty> {
        let counts = |grid: &Self| -> Vec<usize> {
            let axes = 0..grid.axes.len();
            axes.map(|axis| distinct(&grid.points, axis).len())
                .collect()
        };
        let before = counts(&self);
        for condition in conditions {
            filter(&self.axes, &mut self.points, condition)?;
        }
        let chosen: Vec<&str> = conditions
            .iter()
            .filter(|condition| matches!(condition.test, Test::Is(_)))
            .map(|condition| condition.axis.as_str())
            .collect();
        if chosen.is_empty() {
            return Ok(self);
        }
        let after = counts(&self);
        let stays: Vec<bool> = (self.axes.iter().zip(before.iter().zip(&after)))
            .map(|(axis, (before, after))| {
                !(chosen.contains(&axis.as_str()) || *before > 1 && *after == 1)
            })
            .collect();
        let mut kept = stays.iter();
        self.axes
            .retain(|_| kept.next().is_some_and(|stays| *stays));
        for (coordinates, _) in &mut self.points {
            let mut kept = stays.iter();
            coordinates.retain(|_| kept.next().is_some_and(|stays| *stays));
        }
        Ok(self)
    }
}

/// Puts grids side by side: the points in which they agree on the axes that they share.
pub(super) fn align(grids: &[Grid], range: &Range<usize>) -> Result<Aligned, Faulty> {
    let mut aligned = Aligned {
        axes: Vec::new(),
        points: vec![(Vec::new(), Vec::new())],
    };
    for grid in grids {
        let shared: Vec<Option<usize>> = grid
            .axes
            .iter()
            .map(|axis| aligned.axes.iter().position(|other| other == axis))
            .collect();
        let mut points = Vec::new();
        for (coordinates, values) in &aligned.points {
            for (others, value) in &grid.points {
                let agree = shared.iter().zip(others).all(|(shared, other)| {
                    shared.is_none_or(|at| coordinates.get(at) == Some(other))
                });
                if agree {
                    let new = shared
                        .iter()
                        .zip(others)
                        .filter(|(shared, _)| shared.is_none());
                    let coordinates = coordinates.iter().chain(new.map(|(_, other)| other));
                    let mut values = values.clone();
                    values.push(*value);
                    points.push((coordinates.cloned().collect(), values));
                }
            }
        }
        if points.is_empty() {
            let there = "no points that both sides have".into();
            return Err(Faulty::new(range, Fault::NoPoint { there }));
        }
        let new = grid
            .axes
            .iter()
            .zip(&shared)
            .filter(|(_, shared)| shared.is_none());
        aligned.axes.extend(new.map(|(axis, _)| axis.clone()));
        aligned.points = points;
    }
    Ok(aligned)
}

impl Aligned {
    /// Leaves the points that meet a condition, with all their axes.
    pub(super) fn choose(&mut self, condition: &Condition) -> Result<(), Faulty> {
        filter(&self.axes, &mut self.points, condition)
    }

    /// Which axis is called `name`.
    pub(super) fn axis(&self, name: &str, range: &Range<usize>) -> Result<usize, Faulty> {
        axis(&self.axes, name, range)
    }
}

/// Calculates an expression; names of measures stand for their means under the weights.
pub(super) fn evaluate(
    expression: &Expression,
    names: Names<'_>,
    weights: &Weights,
) -> Result<Grid, Faulty> {
    let range = &expression.range;
    match &expression.kind {
        Kind::Number(number) => Ok(Grid::constant(*number)),
        Kind::Name(name) => named(name, range, names, weights),
        Kind::Paper(name) => names
            .papers
            .iter()
            .find(|(paper, _)| paper == name)
            .map(|(_, grid)| grid.clone())
            .ok_or_else(|| {
                let known = names.papers.iter().map(|(name, _)| name.as_str());
                Faulty::new(range, unknown("number of the paper", name, known))
            }),
        Kind::Column(_) => Err(Faulty::new(
            range,
            Fault::WrongStage {
                what: "results of runs".into(),
                stage: Stage::Measure,
            },
        )),
        Kind::Select(inner, conditions) => evaluate(inner, names, weights)?.choose(conditions),
        Kind::Call(function, arguments) => call(*function, arguments, range, names, weights),
        Kind::Minus(inner) => Ok(evaluate(inner, names, weights)?.map(|value| -value)),
        Kind::Binary(operator, left, right) => {
            let (left, right) = (
                evaluate(left, names, weights)?,
                evaluate(right, names, weights)?,
            );
            let aligned = align(&[left, right], range)?;
            let both = |values: &[f64]| match values {
                [left, right] => operator.apply(*left, *right),
                _ => f64::NAN,
            };
            let points = aligned.points.into_iter();
            Ok(Grid {
                axes: aligned.axes,
                points: points.map(|(at, values)| (at, both(&values))).collect(),
            })
        }
    }
}

fn named(
    name: &str,
    range: &Range<usize>,
    names: Names<'_>,
    weights: &Weights,
) -> Result<Grid, Faulty> {
    if let Some(samples) = names.measures.iter().find(|samples| samples.name == name) {
        let ones = Vec::new();
        let weights = weights.get(samples.sample).unwrap_or(&ones);
        return Ok(Grid {
            axes: samples.axes.clone(),
            points: samples
                .points
                .iter()
                .map(|(at, values)| (at.clone(), mean(values, weights)))
                .collect(),
        });
    }
    if let Some(place) = names.values.iter().position(|(value, _)| value == name)
        && let Some((_, expression)) = names.values.get(place)
    {
        let before = names.values.get(..place).unwrap_or_default();
        return evaluate(
            expression,
            Names {
                values: before,
                ..names
            },
            weights,
        )
        // What is wrong within it is reported where it is declared.
        .map_err(|faulty| Faulty::new(range, faulty.fault));
    }
    let measures = names.measures.iter().map(|samples| samples.name.as_str());
    let values = names.values.iter().map(|(name, _)| name.as_str());
    let fault = unknown(
        "measure or value before this one",
        name,
        measures.chain(values),
    );
    Err(Faulty::new(range, fault))
}

/// The mean of the values that count. One that counts and does not exist leaves no mean.
fn mean(values: &[f64], weights: &[f64]) -> f64 {
    let counted = || {
        values
            .iter()
            .zip(weights)
            .filter(|(_, weight)| **weight > 0.0)
    };
    let sum: f64 = counted().map(|(value, weight)| value * weight).sum();
    sum / counted().map(|(_, weight)| weight).sum::<f64>()
}

fn call(
    function: Function,
    arguments: &[Expression],
    range: &Range<usize>,
    names: Names<'_>,
    weights: &Weights,
) -> Result<Grid, Faulty> {
    let row = function.row();
    if row.is_none_or(|row| row.stage == Stage::Measure) {
        let fault = Fault::WrongStage {
            what: format!("`{}`", row.map_or("", |row| row.name)),
            stage: Stage::Measure,
        };
        return Err(Faulty::new(range, fault));
    }
    let [first, rest @ ..] = arguments else {
        return Ok(Grid::constant(f64::NAN));
    };
    let grid = evaluate(first, names, weights)?;
    let all = |reduced: f64| Ok(Grid::constant(reduced));
    match (function, rest) {
        (Function::Abs, _) => Ok(grid.map(f64::abs)),
        (Function::Sqrt, _) => Ok(grid.map(f64::sqrt)),
        (Function::Sum, _) => all(grid.values().sum()),
        (Function::Mean, _) => all(grid.values().sum::<f64>() / grid.points.len() as f64),
        (Function::Max, _) => all(extreme(grid.values(), f64::max)),
        (Function::Min, _) => all(extreme(grid.values(), f64::min)),
        (Function::Argmax | Function::Argmin, [axis]) => {
            place(function == Function::Argmax, &grid, axis)
        }
        (Function::Spearman, [other]) => {
            let other = evaluate(other, names, weights)?;
            let aligned = align(&[grid, other], range)?;
            let column = |at: usize| -> Vec<f64> {
                let points = aligned.points.iter();
                points
                    .filter_map(|(_, values)| values.get(at).copied())
                    .collect()
            };
            all(metrics::spearman(&column(0), &column(1)).unwrap_or(f64::NAN))
        }
        _ => all(f64::NAN),
    }
}

/// The largest or the least; none when a value does not exist.
pub(super) fn extreme(values: impl Iterator<Item = f64>, of: fn(f64, f64) -> f64) -> f64 {
    values
        .reduce(|a, b| {
            if a.is_nan() || b.is_nan() {
                f64::NAN
            } else {
                of(a, b)
            }
        })
        .unwrap_or(f64::NAN)
}

/// Where on an axis the largest or the least value is; the first of several.
fn place(largest: bool, grid: &Grid, axis: &Expression) -> Result<Grid, Faulty> {
    let Kind::Name(name) = &axis.kind else {
        let fault = Fault::Unexpected {
            found: "this".into(),
            expected: "the name of an axis",
        };
        return Err(Faulty::new(&axis.range, fault));
    };
    let at = grid.axis(name, &axis.range)?;
    if grid.axes.len() > 1 {
        let left = grid.axes.clone();
        return Err(Faulty::new(&axis.range, Fault::Axes { left }));
    }
    let mut best: Option<(f64, f64)> = None;
    for (coordinates, value) in &grid.points {
        let Some(here) = coordinates.get(at).and_then(Coordinate::value) else {
            return Err(Faulty::new(
                &axis.range,
                Fault::Words { axis: name.clone() },
            ));
        };
        if value.is_nan() {
            return Ok(Grid::constant(f64::NAN));
        }
        let is_better = |(_, most): (f64, f64)| {
            if largest {
                *value > most
            } else {
                *value < most
            }
        };
        if best.is_none_or(is_better) {
            best = Some((here, *value));
        }
    }
    Ok(Grid::constant(best.map_or(f64::NAN, |(here, _)| here)))
}

/// Which samples an expression is calculated from, and whether leaving one seed out says how sure
/// it is.
pub(super) fn look(
    expression: &Expression,
    names: Names<'_>,
    used: &mut [bool],
    smooth: &mut bool,
) {
    match &expression.kind {
        Kind::Number(_) | Kind::Paper(_) | Kind::Column(_) => {}
        Kind::Name(name) => {
            if let Some(samples) = names.measures.iter().find(|samples| samples.name == *name) {
                if let Some(used) = used.get_mut(samples.sample) {
                    *used = true;
                }
            } else if let Some(at) = names.values.iter().position(|(value, _)| value == name)
                && let Some((_, inner)) = names.values.get(at)
            {
                let values = names.values.get(..at).unwrap_or_default();
                look(inner, Names { values, ..names }, used, smooth);
            }
        }
        Kind::Select(inner, _) | Kind::Minus(inner) => look(inner, names, used, smooth),
        Kind::Call(function, arguments) => {
            *smooth &= !matches!(
                function,
                Function::Argmax | Function::Argmin | Function::Spearman
            );
            for argument in arguments {
                look(argument, names, used, smooth);
            }
        }
        Kind::Binary(_, left, right) => {
            look(left, names, used, smooth);
            look(right, names, used, smooth);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::parser;
    use super::*;

    /// Goodput by controller and drop, two seeds each; and a measure of another run without axes.
    fn samples() -> Vec<Samples> {
        let point = |cc: &str, drop: f64, values: [f64; 2]| {
            let at = vec![Coordinate::text(cc), Coordinate::number(drop)];
            (at, values.to_vec())
        };
        vec![
            Samples {
                name: "goodput".into(),
                sample: 0,
                axes: vec!["cc".into(), "drop".into()],
                points: vec![
                    point("real", 0.0, [9.0, 11.0]),
                    point("real", 0.1, [6.0, 6.0]),
                    point("real", 0.5, [4.0, 2.0]),
                    point("reno", 0.0, [20.0, 20.0]),
                    point("reno", 0.1, [3.0, 3.0]),
                    point("reno", 0.5, [1.0, 2.0]),
                ],
            },
            Samples {
                name: "other".into(),
                sample: 1,
                axes: Vec::new(),
                points: vec![(Vec::new(), vec![5.0])],
            },
        ]
    }

    fn result(text: &str) -> Result<Grid, Faulty> {
        let samples = samples();
        let gain = parser::expression("goodput[cc = real] / goodput[cc = reno]").unwrap();
        let table = Grid {
            axes: vec!["drop".into()],
            points: [(0.0, 0.6), (0.1, 1.4), (0.2, 1.5), (0.5, 1.6)]
                .map(|(at, value)| (vec![Coordinate::number(at)], value))
                .into(),
        };
        let names = Names {
            measures: &samples,
            values: &[("gain".into(), gain)],
            papers: &[("gain".into(), table)],
        };
        evaluate(
            &parser::expression(text).unwrap(),
            names,
            &vec![vec![1.0; 2], vec![1.0]],
        )
    }

    fn numbers(text: &str) -> Vec<f64> {
        result(text).unwrap().values().collect()
    }

    #[test]
    fn means_are_taken_before_ratios_and_points_meet_where_they_agree() {
        // 10/20, 6/3, 3/1.5.
        assert_eq!(numbers("gain"), [0.5, 2.0, 2.0]);
        assert_eq!(numbers("gain * other - 1"), [1.5, 9.0, 9.0]);
        assert_eq!(numbers("goodput[cc = reno, drop = 0.1]"), [3.0]);
        assert_eq!(numbers("gain[drop >= 0.1]"), [2.0, 2.0]);
        assert_eq!(numbers("gain[drop in [0, 0.5]] + 0"), [0.5, 2.0]);
        // The paper has 0.2 besides, which nobody ran.
        assert_eq!(
            numbers("10 * paper.gain - 10 * paper.gain / gain * gain"),
            [0.0; 3]
        );
        assert_eq!(numbers("-abs(3 - goodput[cc = real])"), [-7.0, -3.0, 0.0]);
    }

    /// As with three kinds of flows whose controller and recovery advance together.
    #[test]
    fn axes_that_advance_together_go_together() {
        let point = |cc: &str, recovery: &str, value: f64| {
            (
                vec![Coordinate::text(cc), Coordinate::text(recovery)],
                vec![value],
            )
        };
        let samples = [Samples {
            name: "x".into(),
            sample: 0,
            axes: vec!["cc".into(), "recovery".into()],
            points: vec![
                point("libra", "newreno", 6.0),
                point("reno", "reno", 3.0),
                point("reno", "tahoe", 2.0),
            ],
        }];
        let names = Names {
            measures: &samples,
            values: &[],
            papers: &[],
        };
        let calculate = |text: &str| {
            evaluate(&parser::expression(text).unwrap(), names, &vec![vec![1.0]]).unwrap()
        };
        let gain = calculate("x[cc = libra] / x[cc = reno]");
        assert_eq!(gain.axes, ["recovery"]);
        assert_eq!(gain.values().collect::<Vec<_>>(), [2.0, 3.0]);
        assert!(calculate("x[cc = reno, recovery = tahoe]").axes.is_empty());
        assert!(
            calculate("x[cc = libra, recovery = newreno]")
                .axes
                .is_empty()
        );
        assert_eq!(calculate("x[cc = libra]").axes.len(), 0);
        assert_eq!(calculate("x[recovery = reno]").axes.len(), 0);
    }

    #[test]
    fn functions_go_over_all_points() {
        assert_eq!(numbers("max(goodput)"), [20.0]);
        assert_eq!(numbers("min(goodput)"), [1.5]);
        assert_eq!(numbers("sum(gain) / mean(gain)"), [3.0]);
        assert_eq!(numbers("argmax(goodput[cc = real], drop)"), [0.0]);
        assert_eq!(numbers("argmin(goodput[cc = real], drop)"), [0.5]);
        // Ranks 1, 2.5, 2.5 against 1, 2, 3: 1.5 / sqrt(1.5 · 2).
        let rank = numbers("spearman(gain, paper.gain)")[0];
        assert!((rank - 1.5 / 3.0_f64.sqrt()).abs() < 1e-12);
    }

    #[test]
    fn a_seed_that_does_not_count_is_left_out() {
        let samples = samples();
        let names = Names {
            measures: &samples,
            values: &[],
            papers: &[],
        };
        let expression = parser::expression("goodput[cc = real]").unwrap();
        let weights = vec![vec![0.0, 1.0], vec![1.0]];
        let grid = evaluate(&expression, names, &weights).unwrap();
        assert_eq!(grid.values().collect::<Vec<_>>(), [11.0, 6.0, 2.0]);
    }

    #[test]
    fn mistakes_are_told() {
        let fault = |text: &str| result(text).unwrap_err().fault;
        assert!(matches!(
            fault("gain[drip = 1]"),
            Fault::Unknown { what: "axis", nearest: Some(near), .. } if near == "drop"
        ));
        assert_eq!(
            fault("gain[drop = 0.3]"),
            Fault::NoPoint {
                there: "0, 0.1, 0.5".into()
            }
        );
        assert!(
            matches!(fault("gian"), Fault::Unknown { nearest: Some(near), .. } if near == "gain")
        );
        assert!(matches!(fault("argmax(goodput, drop)"), Fault::Axes { .. }));
        assert!(matches!(
            fault("argmax(goodput[drop = 0], cc)"),
            Fault::Words { .. }
        ));
        assert!(matches!(fault("jain(gain)"), Fault::WrongStage { .. }));
        assert!(matches!(fault("flow.*.x"), Fault::WrongStage { .. }));
        assert!(matches!(fault("paper.x"), Fault::Unknown { .. }));
        assert!(matches!(
            fault("gain[drop = 0.5] + gain[drop <= 0.1] + paper.gain[drop > 0.1]"),
            Fault::NoPoint { .. }
        ));
    }
}
