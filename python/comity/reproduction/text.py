"""Prints claims, their checks and what came out, for a terminal of 80 columns and more."""

from __future__ import annotations

from rich.console import Console
from rich.padding import Padding
from rich.text import Text

from .claims import Check, Claim, Expected, Outcome, Row, Verdict, readings_that_hold, verdict

__all__ = [
    "Result",
    "at",
    "number",
    "outcome",
    "print_claim",
    "spread",
    "summary",
    "verdict_with_readings",
    "wanted",
]

#: A system, one of its claims, and the checks of it.
Result = tuple[str, Claim, list[Check]]

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


def verdict_with_readings(claim: Claim, checks: list[Check]) -> str:
    """The verdict, and the readings for which the claim holds."""
    found = verdict(claim, checks)
    readings = (
        f": {'; '.join(readings_that_hold(checks))}" if found is Verdict.HOLDS_FOR_READINGS else ""
    )
    return f"{found.value}{readings}"


def print_claim(console: Console, claim: Claim, checks: list[Check]) -> None:
    """Prints the checks of a claim, a line for each point."""
    console.print(Text.assemble((claim.id, "bold"), ": ", verdict_with_readings(claim, checks)))
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


def summary(results: list[Result]) -> str:
    """How many claims have each verdict, and which checks are a surprise."""
    found = [verdict(claim, checks) for _, claim, checks in results]
    counts = [f"{each.value}: {found.count(each)}" for each in Verdict if each in found]
    lines = [f"{len(results)} judged. {', '.join(counts)}"]
    for _, claim, checks in results:
        lines += [
            f"surprise: {claim.id}: {check.says}: {check.outcome.value}, known to be: "
            f"{check.expected.value}"
            for check in checks
            if not check.is_as_expected
        ]
    return "\n".join(lines)
