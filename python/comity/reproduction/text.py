"""Prints claims, their checks and what came out, for a terminal of 80 columns and more."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Console
from rich.padding import Padding
from rich.text import Text

from .claims import (
    Check,
    Claim,
    Expected,
    Form,
    Outcome,
    Row,
    Verdict,
    held_and_judged,
    readings_that_hold,
    verdict,
)

__all__ = [
    "Result",
    "at",
    "counts",
    "headline",
    "number",
    "outcome",
    "print_claim",
    "spread",
    "summary",
    "title",
    "verdict_with_checks",
    "verdicts",
    "wanted",
]

#: A system, one of its claims, and the checks of it.
Result = tuple[str, Claim, list[Check]]

_NUMBERS = ("no", "one", "two", "three", "four", "five")
#: The verdicts of several claims.
_SEVERAL = {
    Verdict.HOLDS: "hold",
    Verdict.HOLDS_FOR_READINGS: "hold for some readings",
    Verdict.HOLDS_IN_PART: "hold in part",
    Verdict.FAILS: "do not hold",
    Verdict.CANNOT: "cannot hold",
    Verdict.NOT_JUDGED: "are not judged",
}

HEADINGS = ("", "paper", "here", "±95%", "wanted", "")
STYLES = {"holds": "green", "fails": "red"}


def number(value: float | None) -> str:
    """A number of four digits; `-` for none."""
    return "-" if value is None else f"{value:.4g}"


def at(row: Row) -> str:
    """The point that a row is about."""
    return " ".join(f"{axis}={value}" for axis, value in row.at.items())


def spread(row: Row) -> str:
    """Half the width of the interval, or its two ends where it comes from resamples."""
    if row.interval is None:
        return "-"
    if row.interval.method == "bootstrap":
        return f"{row.interval.low:.3g} to {row.interval.high:.3g}"
    return f"{(row.interval.high - row.interval.low) / 2:.2g}"


def wanted(row: Row) -> str:
    """What the value is compared with."""
    return " ".join(f"{bound.relation} {bound.value:.4g}" for bound in row.bounds)


def outcome(check: Check, row: Row) -> str:
    """Whether the check holds here; with a question mark where other seeds might have said
    otherwise.
    """
    if row.holds is None:
        return ""
    word = "holds" if row.holds else "fails"
    known = ", as known" if check.expected is Expected.FAILS and not row.holds else ""
    if check.expected is Expected.CHANCE:
        known = ", by chance"
    return f"{word}{'' if row.sure else '?'}{known}"


def verdict_with_checks(claim: Claim, checks: list[Check]) -> str:
    """The verdict, how many checks hold, and the readings for which the claim holds.

    `holds for some readings, 1 of 13 checks: buffer of 150 packets`
    """
    found = verdict(claim, checks)
    held, judged = held_and_judged(checks)
    text = found.value
    if judged:
        text += f", {held} of {_checks(judged)}"
    elif found is Verdict.HOLDS:
        text += ", by tests"
    if found is Verdict.HOLDS_IN_PART and held == judged:
        text += f"; {_left_open(checks)}"
    if found is Verdict.HOLDS_FOR_READINGS:
        text += f": {'; '.join(readings_that_hold(checks))}"
    return text


def _checks(count: int) -> str:
    return f"{count} check{'' if count == 1 else 's'}"


def _left_open(checks: Sequence[Check]) -> str:
    """Why a claim holds in part only although each check that is judged holds."""
    skipped = sum(check.outcome is Outcome.SKIPPED for check in checks)
    shown = sum(check.compares_without_judging for check in checks)
    numbers = f"{shown} number{'' if shown == 1 else 's'} of the paper"
    return " and ".join(
        [f"{_checks(skipped)} of the other form left out"] * bool(skipped)
        + [f"{numbers} shown but not judged"] * bool(shown)
    )


def title(found: Sequence[Verdict], papers: int, form: Form) -> str:
    """The title of a page: `12 of 37 claims of five papers hold here, in the full form`."""
    held = found.count(Verdict.HOLDS)
    holds = _do(Verdict.HOLDS, held)
    return f"{held} of {_claims(found, papers)} {holds} here, in the {form.value} form"


def headline(found: Sequence[Verdict], papers: int, form: Form) -> str:
    """How many claims have each verdict: `In the quick form, of 3 claims of one paper 1 holds and 2
    hold in part`.
    """
    return f"In the {form.value} form, of {_claims(found, papers)} {counts(found)}"


def counts(found: Sequence[Verdict]) -> str:
    """How many claims have each verdict: `1 holds and 2 hold in part`."""
    numbers = {each: found.count(each) for each in Verdict if each in found}
    *before, last = [f"{count} {_do(each, count)}" for each, count in numbers.items()]
    return f"{', '.join(before)} and {last}" if before else last


def _claims(found: Sequence[Verdict], papers: int) -> str:
    number = _NUMBERS[papers] if papers < len(_NUMBERS) else papers
    claims = "claim" if len(found) == 1 else "claims"
    return f"{len(found)} {claims} of {number} paper{'' if papers == 1 else 's'}"


def _do(each: Verdict, count: int) -> str:
    """The verdict of so many claims."""
    return each.value if count == 1 else _SEVERAL[each]


def print_claim(console: Console, claim: Claim, checks: list[Check]) -> None:
    """Prints the checks of a claim, a line for each point."""
    console.print(Text.assemble((claim.id, "bold"), ": ", verdict_with_checks(claim, checks)))
    console.print(Padding(Text(f"{claim.says} ({claim.source})"), (0, 0, 0, 2), expand=False))
    for test in claim.tests:
        console.print(Padding(Text(f"held by a test, {test}"), (0, 0, 0, 2), expand=False))
    lines = {id(row): _line(check, row) for check in checks for row in check.rows}
    widths = [max(map(len, column)) for column in zip(HEADINGS, *lines.values())]
    if lines:
        console.print(Text("    " + _aligned(HEADINGS, widths), "dim"), soft_wrap=True)
    for check in checks:
        reading = f" [{check.reading}]" if check.reading else ""
        skipped = ": not judged in this form" if check.outcome is Outcome.SKIPPED else ""
        console.print(Padding(Text(f"{check.says}{reading}{skipped}"), (0, 0, 0, 2), expand=False))
        for row in check.rows:
            style = STYLES.get(lines[id(row)][-1][:5], "")
            console.print(Text("    " + _aligned(lines[id(row)], widths), style), soft_wrap=True)
        if check.reason and check.outcome in (Outcome.FAILS, Outcome.SHOWN):
            console.print(Padding(Text(check.reason, "dim"), (0, 0, 0, 6), expand=False))
    console.print()


def _line(check: Check, row: Row) -> tuple[str, ...]:
    return (
        at(row),
        number(row.paper),
        number(row.value),
        spread(row),
        wanted(row),
        outcome(check, row),
    )


def _aligned(cells: tuple[str, ...], widths: list[int]) -> str:
    """The cells of a line; numbers to the right."""
    place, *numbers, bound, holds = cells
    right = [f"{cell:>{width}}" for cell, width in zip(numbers, widths[1:])]
    return "  ".join([f"{place:<{widths[0]}}", *right, f"{bound:<{widths[4]}}", holds]).rstrip()


def verdicts(results: Sequence[Result]) -> tuple[list[Verdict], int]:
    """The verdicts of claims, and of how many papers they are."""
    found = [verdict(claim, checks) for _, claim, checks in results]
    return found, len({claim.paper for _, claim, _ in results})


def summary(results: list[Result], form: Form) -> str:
    """How many claims have each verdict, and which checks are a surprise."""
    lines = [f"{headline(*verdicts(results), form)}."]
    for _, claim, checks in results:
        lines += [
            f"surprise: {claim.id}: {check.says}: {check.outcome.value}, known to be: "
            f"{check.expected.value}"
            for check in checks
            if not check.is_as_expected
        ]
    return "\n".join(lines)
