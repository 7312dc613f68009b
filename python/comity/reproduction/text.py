"""Prints claims, their checks and the outcomes, for a terminal of 80 columns or more."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Console
from rich.padding import Padding
from rich.text import Text

from .claims import Check, Claim, Expected, Form, Outcome, Row
from .verdicts import Verdict, judge

__all__ = [
    "WORDS",
    "Result",
    "at",
    "causes",
    "counts",
    "headline",
    "in_one_sentence",
    "number",
    "outcome",
    "print_claim",
    "source",
    "spread",
    "statement",
    "summary",
    "title",
    "verdict_in_words",
    "wanted",
]

#: A system, one of its claims, and the checks of it.
Result = tuple[str, Claim, list[Check]]

_NUMBERS = ("no", "one", "two", "three", "four", "five")
#: The verdicts of several claims.
_SEVERAL = {
    Verdict.HOLDS: "hold",
    Verdict.HOLDS_IN_PARTS: "hold in parts",
    Verdict.HOLDS_FOR_READINGS: "hold for some readings",
    Verdict.FAILS: "do not hold",
    Verdict.CANNOT_FAIL: "cannot fail",
    Verdict.NOT_JUDGED: "are not judged",
}
#: The verdict of one claim, where it is not the verdict itself.
_ONE = {Verdict.HOLDS_FOR_READINGS: "holds for some readings", Verdict.NOT_JUDGED: "is not judged"}

#: What the words of a verdict mean, for a page.
WORDS = (
    "A claim holds if each of its parts holds. A part is a statement, a table or a network of the "
    "paper. A reading is one interpretation of the paper where it is silent or unclear. If a claim "
    "holds only for some readings, they are named. Parts and readings are counted separately. Two "
    "kinds of checks are marked and not counted: those that chance decides, and those that cannot "
    "fail, because the set-up decides them for any controller. A claim with only such checks is "
    "counted as one that cannot fail. Checks of the other form are left out here, because only the "
    "other form, quick or full, judges them."
)

HEADINGS = ("", "paper", "here", "±95%", "wanted", "")
STYLES = {"holds": "green", "fails": "red"}


def number(value: float | None) -> str:
    """A number of four digits; `-` for none."""
    return "-" if value is None else f"{value:.4g}"


def at(row: Row) -> str:
    """The point of a row."""
    return " ".join(f"{axis}={value}" for axis, value in row.at.items())


def spread(row: Row) -> str:
    """Half the width of the interval, or its two ends where it comes from resamples."""
    if row.interval is None:
        return "-"
    if row.interval.method == "bootstrap":
        return f"{row.interval.low:.3g} to {row.interval.high:.3g}"
    return f"{(row.interval.high - row.interval.low) / 2:.2g}"


def wanted(row: Row) -> str:
    """The bound of the value."""
    return " ".join(f"{bound.relation} {bound.value:.4g}" for bound in row.bounds)


def outcome(check: Check, row: Row) -> str:
    """Whether the check holds here; with a question mark if other seeds might have another outcome.
    """
    if row.holds is None:
        return ""
    word = "holds" if row.holds else "fails"
    known = ", as known" if check.expected is Expected.FAILS and not row.holds else ""
    if check.expected is Expected.CHANCE:
        known = ", by chance"
    if check.expected is Expected.CERTAIN:
        known = ", cannot fail"
    return f"{word}{'' if row.sure else '?'}{known}"


def verdict_in_words(claim: Claim, checks: Sequence[Check]) -> str:
    """The verdict, how many parts hold, for how many readings, and what does not count.

    `holds for these readings, 1 of 13: buffer of 150 packets (chance decides 1 check)`
    """
    found = judge(claim, checks)
    readings, of = "; ".join(found.readings), found.judged_readings
    text = found.verdict.value
    if found.verdict is Verdict.HOLDS and not found.parts:
        text += ", by tests"
    elif found.verdict is Verdict.HOLDS and of > 1:
        text += f" in all {of} readings"
    elif found.verdict is Verdict.HOLDS_FOR_READINGS:
        text += f", {len(found.readings)} of {of}: {readings}"
    elif found.verdict is Verdict.HOLDS_IN_PARTS:
        text = f"holds in {found.holding} of {_counted(found.parts, 'part')}"
        if of > 1:
            text += f" with the best of {of} readings: {readings}"
    elif found.verdict is Verdict.FAILS and of > 1:
        text += f" in any of {of} readings"
    certain = 0 if found.verdict is Verdict.CANNOT_FAIL else found.certain
    notes = [
        f"chance decides {_counted(found.by_chance, 'check')}",
        f"{_counted(certain, 'check')} cannot fail",
        f"{_counted(found.skipped, 'check')} of the other form left out",
        f"{_counted(found.shown, 'number')} of the paper shown but not judged",
    ]
    numbers = (found.by_chance, certain, found.skipped, found.shown)
    said = "; ".join(note for note, number in zip(notes, numbers) if number)
    return f"{text} ({said})" if said else text


def _counted(count: int, what: str) -> str:
    return f"{count} {what}{'' if count == 1 else 's'}"


def title(results: Sequence[Result], form: Form) -> str:
    """The title of a page: `12 of 31 claims of five papers hold here, in the full form`."""
    of_papers = _of_papers(results)
    held = _verdicts(of_papers).count(Verdict.HOLDS)
    hold = _do(Verdict.HOLDS, held)
    return f"{held} of {_claims(of_papers)} {hold} here, in the {form.value} form"


def headline(results: Sequence[Result], form: Form) -> str:
    """How many claims have each verdict, in two or three sentences; see `counts`."""
    return f"In the {form.value} form, {counts(results)}"


def counts(results: Sequence[Result]) -> str:
    """How many claims of the papers have each verdict, how many of ours, and how many checks do not
    count: `of 2 claims of one paper, 1 holds and 1 holds in parts. Of 1 claim of our own, 1 holds.
    3 checks cannot fail and are not counted.`
    """
    of_papers = _of_papers(results)
    ours = [result for result in results if result[1].ours]
    sentences = []
    if of_papers:
        sentences.append(f"of {_claims(of_papers)}, {_tally(_verdicts(of_papers))}")
    if ours:
        sentences.append(f"Of {_counted(len(ours), 'claim')} of our own, {_tally(_verdicts(ours))}")
    certain = sum(judge(claim, checks).certain for _, claim, checks in results)
    if certain:
        do = "cannot fail and is" if certain == 1 else "cannot fail and are"
        sentences.append(f"{_counted(certain, 'check')} {do} not counted")
    text = ". ".join(sentences) + "."
    return text if of_papers else text[0].lower() + text[1:]


def in_one_sentence(results: Sequence[Result], form: Form, quick: Sequence[Result] = ()) -> str:
    """How many claims of the papers have each verdict; without claims of papers, how many of ours:
    `In the full form, of 2 claims of one paper, 1 holds and 1 holds in parts.` With `quick`, the
    verdicts of the quick form follow.
    """
    of_papers = _of_papers(results) or list(results)
    tally = _tally(_verdicts(of_papers))
    text = f"In the {form.value} form, of {_claims(of_papers)}, {tally}"
    if quick:
        in_quick_form = _of_papers(quick) or list(quick)
        text += f"; in the quick form, {_tally(_verdicts(in_quick_form))}"
    return f"{text}."


def _of_papers(results: Sequence[Result]) -> list[Result]:
    return [result for result in results if not result[1].ours]


def _verdicts(results: Sequence[Result]) -> list[Verdict]:
    return [judge(claim, checks).verdict for _, claim, checks in results]


def _tally(found: Sequence[Verdict]) -> str:
    numbers = {each: found.count(each) for each in Verdict if each in found}
    *before, last = [f"{count} {_do(each, count)}" for each, count in numbers.items()]
    return f"{', '.join(before)} and {last}" if before else last


def _claims(results: Sequence[Result]) -> str:
    papers = len({claim.paper for _, claim, _ in results})
    number = _NUMBERS[papers] if papers < len(_NUMBERS) else papers
    return f"{_counted(len(results), 'claim')} of {number} paper{'' if papers == 1 else 's'}"


def _do(each: Verdict, count: int) -> str:
    """The verdict of so many claims."""
    return _ONE.get(each, each.value) if count == 1 else _SEVERAL[each]


def causes(checks: Sequence[Check]) -> list[tuple[str, str]]:
    """Why checks fail or do not count: each cause once, with the readings that have it."""
    found: dict[str, list[str]] = {}
    for check in checks:
        explains = check.outcome is Outcome.FAILS and check.expected is Expected.FAILS
        if check.reason and (explains or (check.rows and not check.counts)):
            why = {Expected.CHANCE: "chance decides: ", Expected.CERTAIN: "cannot fail: "}
            readings = found.setdefault(f"{why.get(check.expected, '')}{check.reason}", [])
            if check.reading and check.reading not in readings:
                readings.append(check.reading)
    return [("; ".join(readings), cause) for cause, readings in found.items()]


def source(claim: Claim) -> str:
    """The place of a claim in its paper, and whether the claim is ours."""
    return f"{claim.source}; a claim of our own" if claim.ours else claim.source


def statement(check: Check) -> str:
    """The statement of a check, and the part of the claim that it concerns."""
    return f"{check.says}, {check.part}" if check.part else check.says


def print_claim(console: Console, claim: Claim, checks: list[Check]) -> None:
    """Prints the checks of a claim, a line for each point."""
    console.print(Text.assemble((claim.id, "bold"), ": ", verdict_in_words(claim, checks)))
    console.print(Padding(Text(f"{claim.says} ({source(claim)})"), (0, 0, 0, 2), expand=False))
    for test in claim.tests:
        console.print(Padding(Text(f"held by a test, {test}"), (0, 0, 0, 2), expand=False))
    lines = {id(row): _line(check, row) for check in checks for row in check.rows}
    widths = [max(map(len, column)) for column in zip(HEADINGS, *lines.values())]
    if lines:
        console.print(Text("    " + _aligned(HEADINGS, widths), "dim"), soft_wrap=True)
    for check in checks:
        reading = f" [{check.reading}]" if check.reading else ""
        skipped = ": not judged in this form" if check.outcome is Outcome.SKIPPED else ""
        about = f"{statement(check)}{reading}{skipped}"
        console.print(Padding(Text(about), (0, 0, 0, 2), expand=False))
        for row in check.rows:
            style = STYLES.get(lines[id(row)][-1][:5], "")
            console.print(Text("    " + _aligned(lines[id(row)], widths), style), soft_wrap=True)
        if check.reason and (check.outcome in (Outcome.FAILS, Outcome.SHOWN) or not check.counts):
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


def summary(results: list[Result], form: Form) -> str:
    """How many claims have each verdict, and which checks are a surprise."""
    lines = [headline(results, form)]
    for _, claim, checks in results:
        lines += [
            f"surprise: {claim.id}: {check.says}: {check.outcome.value}, known to be: "
            f"{check.expected.value}"
            for check in checks
            if not check.is_as_expected
        ]
    return "\n".join(lines)
