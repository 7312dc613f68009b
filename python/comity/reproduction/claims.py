"""Claims of the papers, their checks and the outcomes."""

from __future__ import annotations

import enum
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from .study import Scenario, Study
from .values import Interval, Values, meet

__all__ = [
    "Bound",
    "Cause",
    "Check",
    "Checks",
    "Claim",
    "Expected",
    "Form",
    "Outcome",
    "Row",
    "claim",
    "held_by_tests",
]


class Form(str, enum.Enum):
    """The size of the runs: `quick` has fewer seeds and points and shorter runs; `full` has those
    of the paper.
    """

    QUICK = "quick"
    FULL = "full"


class Expected(str, enum.Enum):
    """The expected outcome. `chance`: the compared values differ only by chance. `cannot fail`: it
    holds by the set-up. Neither counts.
    """

    HOLDS = "holds"
    FAILS = "fails"
    CHANCE = "chance"
    CERTAIN = "cannot fail"


class Outcome(str, enum.Enum):
    """The outcome of one check."""

    HOLDS = "holds"
    FAILS = "fails"
    SHOWN = "shown"
    SKIPPED = "skipped"


@dataclass(frozen=True)
class Bound:
    """A value to compare with, and the comparison: `<`, `<=`, `=`, `>=`, `>`, `<<`, `>>` or
    `<=~`."""

    relation: str
    value: float


@dataclass
class Row:
    """One point of a check. `sure`: other seeds would have the same outcome."""

    at: dict[str, Any]
    paper: float | None
    value: float | None
    interval: Interval | None
    bounds: list[Bound] = field(default_factory=list)
    holds: bool | None = None
    sure: bool = True


@dataclass
class Check:
    """One statement of a claim, judged at every point that it has."""

    says: str
    outcome: Outcome
    expected: Expected
    reason: str | None
    reading: str | None
    rows: list[Row]
    part: str | None = None

    @property
    def is_as_expected(self) -> bool:
        """Whether the outcome is the expected one."""
        surprising = {
            Outcome.HOLDS: (Expected.FAILS,),
            Outcome.FAILS: (Expected.HOLDS, Expected.CERTAIN),
        }
        return self.expected not in surprising.get(self.outcome, ())

    @property
    def counts(self) -> bool:
        """Whether a verdict counts it where it is judged: neither chance nor the set-up decides."""
        return self.expected not in (Expected.CHANCE, Expected.CERTAIN)

    @property
    def part_of_claim(self) -> str:
        """The part of the claim that it belongs to: the named one, or the statement itself."""
        return self.part or self.says

    @property
    def compares_without_judging(self) -> bool:
        """Whether it shows a number beside the paper's without judging it."""
        return self.outcome is Outcome.SHOWN and any(row.paper is not None for row in self.rows)


@dataclass(frozen=True)
class Cause:
    """Why a check fails. It is for causes with numbers from the full form or from other runs: the
    quick form quotes no number that it did not measure.
    """

    says: str
    """The cause in every form."""
    measured: str
    """The part that only the full form quotes."""

    def in_form(self, form: Form) -> str:
        """The text of the cause in this form."""
        return f"{self.says}. {self.measured}" if form is Form.FULL else self.says


#: The comparisons of a check, by the name of the argument: the sign, and how far inside the bound a
#: value is.
_RELATIONS: dict[str, tuple[str, Callable[[Values, Values], Values]]] = {
    "above": (">", lambda value, bound: value - bound),
    "at_least": (">=", lambda value, bound: value - bound),
    "below": ("<", lambda value, bound: bound - value),
    "at_most": ("<=", lambda value, bound: bound - value),
    "equal": ("=", lambda value, bound: 0.0 - abs(value - bound)),
    "wholly_above": (">>", lambda value, bound: value - bound),
    "wholly_below": ("<<", lambda value, bound: bound - value),
}


class Checks:
    """Collects the checks of a claim, in one form.

    The function of a claim calls it with a statement that has to hold at every point of `value`:

        check("index of Libra", index, above=index_of_tcp, paper=0.99)

    `above`, `at_least`, `below`, `at_most` and `equal` compare with a number or with other values.
    `wholly_above` and `wholly_below` require that the 95 % intervals do not meet. `within=(0.1, x)`
    requires a distance of at most 10 % of x. `falls_over="axis"` requires that each value of the
    axis has a number below that of the value before, with 95 % intervals that do not meet;
    `rises_over` likewise. `never_rises_over="axis"` requires that no number is above the one before
    with intervals that do not meet. `paper` is the paper's number. With `form` the check is judged
    in that form alone. `fails` says that the failure is known, and why; `chance` that chance
    decides, and why; `cannot_fail` that the set-up decides, and how. What chance or the set-up
    decides does not count. Each is a text, or a `Cause` where it quotes numbers of the full form.

    `part` names the part of the claim that the check concerns: a table, a buffer, a link rate.
    Without it, the statement is a part of its own. A part holds if all of its checks do. `reading`
    names a way to read the paper if it is silent or unclear. The claim holds for a reading if each
    part does.
    """

    def __init__(self, form: Form) -> None:
        self.form = form
        """The form in which checks are judged."""
        self.list: list[Check] = []
        """The checks so far."""

    def __call__(
        self,
        says: str,
        value: Values | float,
        *,
        within: tuple[float, Values | float] | None = None,
        falls_over: str | None = None,
        rises_over: str | None = None,
        never_rises_over: str | None = None,
        paper: Values | float | None = None,
        form: str | None = None,
        fails: str | Cause | None = None,
        chance: str | Cause | None = None,
        cannot_fail: str | Cause | None = None,
        reading: str | None = None,
        part: str | None = None,
        **bounds: Values | float,
    ) -> None:
        """Adds a statement that has to hold at every point of `value`; see `Checks`."""
        known = {
            Expected.FAILS: fails,
            Expected.CHANCE: chance,
            Expected.CERTAIN: cannot_fail,
        }
        known = {expected: why for expected, why in known.items() if why}
        if len(known) > 1:
            raise TypeError(f"{says!r}: expected one of `fails`, `chance` and `cannot_fail`")
        if within is not None:
            share, of = within
            near, far = (of * (1 - share), of * (1 + share))
            bounds |= {"at_least": near, "at_most": far}
        unknown = set(bounds) - set(_RELATIONS)
        if unknown:
            raise TypeError(
                f"{unknown.pop()!r} is no relation: expected one of {', '.join(_RELATIONS)}"
            )
        steps = {"<<": falls_over, ">>": rises_over, "<=~": never_rises_over}
        steps = {relation: axis for relation, axis in steps.items() if axis}
        if bool(bounds) + len(steps) != 1:
            raise TypeError(
                f"{says!r}: expected either bounds or an axis over which it falls or rises"
            )
        rows: list[Row] = []
        outcome = Outcome.SKIPPED
        if form is None or Form(form) is self.form:
            subject = _values(value)
            for bound in bounds.values():
                # The points at which the value and all its bounds have numbers.
                subject = meet(subject, bound)[0]
            rows = [_row(subject, at, paper) for at in range(len(subject))]
            for relation, axis in steps.items():
                _follow(rows, subject, axis, relation)
            if bounds:
                _compare(rows, subject, bounds)
            if not rows:
                raise ValueError(f"{says!r} has no point")
            outcome = Outcome.HOLDS if all(row.holds for row in rows) else Outcome.FAILS
        expected, why = next(iter(known.items()), (Expected.HOLDS, None))
        self.list.append(Check(says, outcome, expected, self._said(why), reading, rows, part))

    def show(
        self,
        says: str,
        value: Values | float,
        *,
        paper: Values | float | None = None,
        form: str | None = None,
        note: str | Cause | None = None,
        reading: str | None = None,
    ) -> None:
        """Shows a value without judging it. `note` says why it is far from the paper's."""
        rows: list[Row] = []
        outcome = Outcome.SKIPPED
        if form is None or Form(form) is self.form:
            values = _values(value)
            rows = [_row(values, at, paper) for at in range(len(values))]
            outcome = Outcome.SHOWN
        self.list.append(Check(says, outcome, Expected.HOLDS, self._said(note), reading, rows))

    def _said(self, why: str | Cause | None) -> str | None:
        return why.in_form(self.form) if isinstance(why, Cause) else why


@dataclass
class Claim:
    """A numeric statement of a paper, and the function that checks it."""

    id: str
    """Its name on the command line."""
    says: str
    """What the paper says, in one sentence."""
    source: str
    """The section, figure or table of the paper."""
    scenarios: dict[str, Scenario]
    """The scenarios by their names; a single one has the name `""`."""
    judge: Callable[[Any, Checks], None] | None
    """The function that gets the runs and checks them."""
    tests: tuple[str, ...] = ()
    """Functions of the project's tests that check what no number of a run can show."""
    ours: bool = False
    """Whether the claim is this project's own: the paper says it in words or not at all, and the
    bound is ours."""
    paper: str = ""
    """The paper, and what all of its claims have in common: the documentation of the folder."""
    about: str = ""
    """The documentation of the file after its first line."""
    draw: Callable[[Any, Any], None] | None = None
    """The function that draws the figure, if one does."""

    def picture(self, draw: Callable[[Any, Any], None]) -> Callable[[Any, Any], None]:
        """Registers the function that draws the figure of the claim. It gets the runs and a
        `Drawing`.
        """
        self.draw = draw
        return draw

    def scenarios_in(self, form: Form) -> dict[str, Scenario]:
        """The scenarios as this form runs them."""
        return {
            name: scenario.in_quick_form() if form is Form.QUICK else scenario
            for name, scenario in self.scenarios.items()
        }

    def checks(self, runs: Study | Mapping[str, Study], form: Form) -> list[Check]:
        """Judges the claim by its runs."""
        checks = Checks(form)
        if self.judge is not None:
            self.judge(runs, checks)
        return checks.list


def claim(
    id: str,
    *,
    says: str,
    source: str,
    scenario: str | Scenario | Mapping[str, Scenario],
    quick: Mapping[str, Any] | None = None,
    tests: Sequence[str] = (),
    ours: bool = False,
) -> Callable[[Callable[[Any, Checks], None]], Claim]:
    """Makes a claim of the function that judges it.

    The function gets the runs, a `Study` or one for each name of `scenario`, and the
    `Checks` that it calls. `quick` has the differences of the quick form: `seeds`, `set` and `only`
    of a `Scenario`. `tests` are functions of the project's tests, `"file: function"`, that check
    what no number of a run can show. `ours` marks a claim whose bounds are this project's own.
    """
    if isinstance(scenario, str):
        scenario = Scenario(scenario, quick=quick or {})
    elif quick is not None:
        raise TypeError(f"{id}: `quick` stands in the Scenario")
    scenarios = {"": scenario} if isinstance(scenario, Scenario) else dict(scenario)
    return lambda judge: Claim(
        id, says, source, scenarios, judge, tests=tuple(tests), ours=ours
    )


def held_by_tests(id: str, *, says: str, source: str, tests: Sequence[str]) -> Claim:
    """A claim that no number of a run can show: tests of the project check it, as `"file:
    function"`.
    """
    return Claim(id, says, source, {}, None, tests=tuple(tests))


def _values(value: Values | float) -> Values:
    return meet(value, 0.0)[0]


def _row(values: Values, at: int, paper: Values | float | None) -> Row:
    point = {axis: values.points[axis].iloc[at] for axis in values.axes}
    if isinstance(paper, Values):
        here = paper.at(**{axis: point[axis] for axis in paper.axes if axis in point})
        paper = float(here.value[0]) if len(here) == 1 else None
    number = float(values.value[at])
    exists = math.isfinite(number)
    return Row(
        at={
            axis: _plain(value)
            for axis, value in point.items()
            if values.points[axis].nunique() > 1
        },
        paper=paper,
        value=number if exists else None,
        interval=values.interval(at) if exists else None,
    )


def _plain(value: Any) -> Any:
    """A value of an axis as a Python value."""
    return value.item() if hasattr(value, "item") else value


def _compare(rows: list[Row], subject: Values, bounds: Mapping[str, Values | float]) -> None:
    """Judges each point by its bounds."""
    for row in rows:
        row.holds = row.value is not None
    for name, bound in bounds.items():
        sign, margin_of = _RELATIONS[name]
        values, limits = meet(subject, bound)
        margins = margin_of(values, limits)
        for at, row in enumerate(rows):
            limit, margin = float(limits.value[at]), float(margins.value[at])
            row.bounds.append(Bound(sign, limit))
            if sign in ("<<", ">>"):
                ours, theirs = row.interval, limits.interval(at)
                apart = ours is not None and theirs is not None
                apart = apart and (
                    ours.low > theirs.high if sign == ">>" else ours.high < theirs.low
                )
                row.holds = bool(row.holds and apart)
            else:
                # A missing number satisfies no bound.
                row.holds = row.holds and (margin > 0 if sign in ("<", ">") else margin >= 0)
            around = margins.interval(at)
            # Without an interval, the outcome with other seeds is unknown.
            across = (
                around is not None and around.low <= 0 <= around.high and around.low < around.high
            )
            row.sure = row.sure and not across


def _follow(rows: list[Row], subject: Values, axis: str, relation: str) -> None:
    """Judges each point by the one before it on an axis, with the other axes equal.

    `<<` and `>>` require intervals that do not meet. `<=~` allows a rise within the intervals.
    """
    others = subject.points.drop(columns=axis)
    latest: dict[tuple[Any, ...], Row] = {}
    for row, place in zip(rows, others.itertuples(index=False, name=None)):
        before, latest[place] = latest.get(place), row
        if before is None or before.value is None or row.value is None:
            row.holds = row.sure = row.value is not None and before is None
            continue
        below = _are_apart(row, before)
        above = _are_apart(before, row)
        if relation == "<=~":
            has_intervals = row.interval is not None and before.interval is not None
            row.holds = not above if has_intervals else row.value <= before.value
            row.sure = above or row.value <= before.value
        else:
            row.holds = below if relation == "<<" else above
        row.bounds = [Bound(relation, before.value)]


def _are_apart(lower: Row, upper: Row) -> bool:
    """Whether the intervals of two points do not meet. Without intervals they do not differ."""
    if lower.interval is None or upper.interval is None:
        return False
    return lower.interval.high < upper.interval.low
