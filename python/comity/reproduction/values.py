"""Numbers at the points of a sweep, with their uncertainty over the seeds.

A `Values` has a row for each point of a sweep and a column for each *replicate*: the mean
over all seeds, the means with one seed left out (the jackknife), and the means over seeds drawn
with replacement (the bootstrap). Arithmetic applies to every replicate, so a ratio of means has an
interval too.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Union

import numpy as np
import pandas as pd
import scipy.stats

from ..quantity import key

__all__ = ["Interval", "Values", "spearman", "table"]

#: How many resamples the bootstrap draws: odd, so that its percentiles are order statistics.
RESAMPLES = 999
CONFIDENCE = 0.95

Choice = Union[Any, Iterable[Any], Callable[[Any], bool]]


@dataclass(frozen=True)
class Interval:
    """A 95 % interval over the seeds."""

    low: float
    """Its lower end, in the unit of the numbers."""
    high: float
    """Its upper end, in the unit of the numbers."""
    method: str
    """`"jackknife"` or `"bootstrap"`."""


class Values:
    """Numbers at points of a sweep. Two of them meet where the axes that both have agree.

    The jackknife does not work for positions or ranks, so their interval is that of the bootstrap.
    """

    def __init__(
        self, points: pd.DataFrame, numbers: np.ndarray, seeds: int, ordinal: bool = False
    ) -> None:
        self.points = points.reset_index(drop=True)
        """A row for each point, and a column for each axis."""
        self.numbers = numbers
        """A row for each point, and a column for each replicate."""
        self.seeds = seeds
        """The number of seeds."""
        self.ordinal = ordinal
        """Whether the numbers are positions or ranks."""

    @property
    def axes(self) -> list[str]:
        """The names of the axes."""
        return list(self.points.columns)

    @property
    def value(self) -> np.ndarray:
        """The number at each point, over all seeds."""
        return self.numbers[:, 0]

    def __len__(self) -> int:
        return len(self.points)

    def __repr__(self) -> str:
        return f"Values\n{self.frame().to_string(index=False)}"

    def interval(self, row: int) -> Interval | None:
        """The 95 % interval at a point; `None` with one seed or without a number."""
        numbers = self.numbers[row]
        if self.seeds < 2 or not np.isfinite(numbers[0]):
            return None
        if self.ordinal:
            drawn = np.sort(numbers[1 + self.seeds :])
            tail = round((1 - CONFIDENCE) / 2 * (RESAMPLES + 1)) - 1
            return Interval(float(drawn[tail]), float(drawn[-1 - tail]), "bootstrap")
        without = numbers[1 : 1 + self.seeds]
        error = np.sqrt((self.seeds - 1) * np.mean((without - without.mean()) ** 2))
        half = scipy.stats.t.ppf((1 + CONFIDENCE) / 2, self.seeds - 1) * error
        return Interval(float(numbers[0] - half), float(numbers[0] + half), "jackknife")

    def frame(self) -> pd.DataFrame:
        """The points with `value`, `low` and `high`, for pictures."""
        ends = [self.interval(row) or Interval(v, v, "") for row, v in enumerate(self.value)]
        return self.points.assign(
            value=self.value, low=[e.low for e in ends], high=[e.high for e in ends]
        )

    # ------------------------------------------------------------------ points

    def at(self, **choices: Choice) -> Values:
        """The points where axes have these values: one value, a list of values, or a condition on
        the value.

        The result does not have axes for which one value was chosen, nor the axes that advance
        together with them.
        """
        keep = np.ones(len(self), dtype=bool)
        for axis, choice in choices.items():
            if axis not in self.points:
                raise ValueError(f"axis {axis!r}: expected one of {', '.join(self.axes) or 'none'}")
            keep &= self.points[axis].map(condition(choice)).to_numpy(dtype=bool)
        points = self.points[keep]
        chosen = [axis for axis, choice in choices.items() if _is_one(choice)]
        if chosen:
            left = (axis for axis in self.axes if axis not in choices)
            chosen += [
                axis for axis in left if points[axis].nunique() == 1 < self.points[axis].nunique()
            ]
        return Values(points.drop(columns=chosen), self.numbers[keep], self.seeds, self.ordinal)

    def mean(self, over: str | None = None) -> Values:
        """The mean over all points, or over those of one axis and of the axes that advance together
        with it.
        """
        return self._reduce(np.mean, over)

    def min(self, over: str | None = None) -> Values:
        """The minimum over all points, or over those of one axis."""
        return self._reduce(np.min, over)

    def max(self, over: str | None = None) -> Values:
        """The maximum over all points, or over those of one axis."""
        return self._reduce(np.max, over)

    def argmax(self, axis: str) -> Values:
        """The value of an axis at which the numbers are largest: in seconds, bit/s and bytes."""
        return self._place(np.argmax, axis)

    def argmin(self, axis: str) -> Values:
        """The value of an axis at which the numbers are least: in seconds, bit/s and bytes."""
        return self._place(np.argmin, axis)

    def _place(self, find: Callable[..., np.ndarray], axis: str) -> Values:
        place = self.points[axis].map(key).to_numpy()
        found = Values(self.points.assign(_place=place), self.numbers, self.seeds, ordinal=True)
        return found._grouped(
            lambda points, numbers: points["_place"].to_numpy()[find(numbers, axis=0)], axis
        )

    def _reduce(self, function: Callable[..., np.ndarray], over: str | None) -> Values:
        return self._grouped(lambda _, numbers: function(numbers, axis=0), over)

    def _grouped(
        self, function: Callable[[pd.DataFrame, np.ndarray], np.ndarray], over: str | None
    ) -> Values:
        rest = [
            axis
            for axis in self.axes
            if over is not None and axis != "_place" and not self._goes_with(axis, over)
        ]
        groups = (
            self.points.groupby(rest, sort=False).indices.values()
            if rest
            else [np.arange(len(self))]
        )
        if not len(self):
            return Values(self.points[rest], self.numbers, self.seeds, self.ordinal)
        numbers = np.array(
            [function(self.points.iloc[rows], self.numbers[rows]) for rows in groups], dtype=float
        )
        first = self.points.iloc[[rows[0] for rows in groups]]
        return Values(first[rest], numbers, self.seeds, self.ordinal)

    def _goes_with(self, axis: str, other: str) -> bool:
        """Whether an axis is the other one or advances together with it: each value of that has one
        of its own.
        """
        together = self.points.groupby(other, sort=False)[axis].nunique()
        return axis == other or (together.max() == 1 < self.points[axis].nunique())

    # -------------------------------------------------------------- arithmetic

    def __add__(self, other: Values | float) -> Values:
        return _calculated(operator.add, self, other)

    def __radd__(self, other: float) -> Values:
        return _calculated(operator.add, other, self)

    def __sub__(self, other: Values | float) -> Values:
        return _calculated(operator.sub, self, other)

    def __rsub__(self, other: float) -> Values:
        return _calculated(operator.sub, other, self)

    def __mul__(self, other: Values | float) -> Values:
        return _calculated(operator.mul, self, other)

    def __rmul__(self, other: float) -> Values:
        return _calculated(operator.mul, other, self)

    def __truediv__(self, other: Values | float) -> Values:
        return _calculated(operator.truediv, self, other)

    def __rtruediv__(self, other: float) -> Values:
        return _calculated(operator.truediv, other, self)

    def __abs__(self) -> Values:
        return Values(self.points, np.abs(self.numbers), self.seeds, self.ordinal)


def table(over: str, at: Sequence[Any], numbers: Sequence[float]) -> Values:
    """Numbers of a paper's table or figure over one axis; they have no replicates of their own."""
    if len(at) != len(numbers):
        raise ValueError(f"{len(numbers)} numbers at {len(at)} values of {over}: expected as many")
    return Values(pd.DataFrame({over: list(at)}), np.array(numbers, dtype=float)[:, None], 0)


def replicated(runs: pd.DataFrame, axes: list[str], column: str, seeds: Sequence[int]) -> Values:
    """The replicates of one number from every run.

    `runs` has a row for each run, with its axes, its `point` and its `seed`. `seeds` are those of
    all runs that are compared, so that what one seed decides is left out, or drawn, together.
    """
    count = len(seeds)
    draws = np.random.default_rng(1).integers(count, size=(RESAMPLES, count))
    weights = np.array(
        [
            np.ones(count),
            *(1.0 - np.eye(count)),
            *(np.bincount(draw, minlength=count) for draw in draws),
        ]
    )
    wide = runs.pivot(index="point", columns="seed", values=column)
    chosen = weights[:, [list(seeds).index(seed) for seed in wide.columns]]
    # A replicate may have none of the seeds of these runs. Then all of them count.
    chosen[chosen.sum(axis=1) == 0] = 1.0
    numbers = wide.to_numpy(dtype=float) @ (chosen / chosen.sum(axis=1, keepdims=True)).T
    points = runs.drop_duplicates("point").set_index("point").loc[wide.index, axes]
    return Values(points, numbers, count)


def spearman(one: Values, other: Values) -> Values:
    """The rank correlation over the points that both have."""
    one, other = meet(one, other)
    ranks = (scipy.stats.rankdata(values.numbers, axis=0) for values in (one, other))
    a, b = (rank - rank.mean(axis=0) for rank in ranks)
    with np.errstate(divide="ignore", invalid="ignore"):
        numbers = (a * b).sum(axis=0) / np.sqrt((a**2).sum(axis=0) * (b**2).sum(axis=0))
    return Values(pd.DataFrame(index=[0]), numbers[None], one.seeds, ordinal=True)


def meet(one: Values | float, other: Values | float) -> tuple[Values, Values]:
    """Both at the points where their common axes agree, with the same number of replicates."""
    if not isinstance(one, Values):
        one = Values(pd.DataFrame(index=[0]), np.array([[float(one)]]), 0)
    if not isinstance(other, Values):
        other = Values(pd.DataFrame(index=[0]), np.array([[float(other)]]), 0)
    common = [axis for axis in one.axes if axis in other.axes]
    left, right = one.points.map(key).assign(_one=range(len(one))), other.points.map(key)[common]
    joined = left.merge(
        right.assign(_other=range(len(other))),
        how="inner" if common else "cross",
        on=common or None,
    )
    first, second = joined["_one"].to_numpy(), joined["_other"].to_numpy()
    points = one.points.iloc[first].reset_index(drop=True)
    for axis in other.axes:
        if axis not in common:
            points[axis] = other.points[axis].iloc[second].to_numpy()
    seeds, width = max(one.seeds, other.seeds), max(one.numbers.shape[1], other.numbers.shape[1])
    ordinal = one.ordinal or other.ordinal

    def spread(values: Values, rows: np.ndarray) -> Values:
        numbers = np.broadcast_to(values.numbers[rows], (len(rows), width))
        return Values(points, numbers, seeds, ordinal)

    return spread(one, first), spread(other, second)


def _calculated(
    function: Callable[[Any, Any], Any], one: Values | float, other: Values | float
) -> Values:
    one, other = meet(one, other)
    with np.errstate(divide="ignore", invalid="ignore"):
        return Values(one.points, function(one.numbers, other.numbers), one.seeds, one.ordinal)


def _is_one(choice: Choice) -> bool:
    return not callable(choice) and (isinstance(choice, str) or not isinstance(choice, Iterable))


def condition(choice: Choice) -> Callable[[Any], bool]:
    """Whether a value of an axis is chosen."""
    if callable(choice):
        return lambda value: bool(choice(key(value)))
    wanted = {key(choice)} if _is_one(choice) else {key(value) for value in choice}
    return lambda value: key(value) in wanted
