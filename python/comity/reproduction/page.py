"""The verdicts of a run as a page in Markdown: the claims, the runs, the outcomes and the
causes."""

from __future__ import annotations

import os
import tomllib
from collections.abc import Iterator, Sequence
from itertools import groupby
from pathlib import Path
from textwrap import wrap

from .claims import Check, Claim, Expected, Form, Outcome, Row
from .text import (
    WORDS,
    Result,
    at,
    causes,
    counts,
    headline,
    in_one_sentence,
    number,
    source,
    statement,
    title,
    verdict_in_words,
    wanted,
)

__all__ = ["page", "readme"]

#: The lines of a README between which its sentence stands.
BEGIN = "<!-- claims: begin, made by python -m comity.reproduction --readme -->"
END = "<!-- claims: end -->"


def page(
    results: Sequence[Result],
    form: Form,
    command: str,
    quick: Sequence[Result] = (),
    folder: Path = Path("."),
) -> str:
    """The page of claims and their checks, made by `command` for this folder; with `quick`, the
    verdicts of the quick form stand beside them.
    """
    beside = {claim.id: verdict_in_words(claim, checks) for _, claim, checks in quick}
    introduction = headline(results, form)
    if quick:
        introduction += f" {in_quick_form(quick)}"
    elif form is Form.QUICK:
        introduction += (
            " The quick form has fewer seeds and points and shorter runs than the full form, and "
            "lacks some of its checks."
        )
    introduction += (
        f" {WORDS} After the verdicts, the page has the scenarios, the checks with their numbers, "
        "and the causes for each claim. A question mark means that other seeds might give the "
        "opposite result. `make report` has the pictures and the settings. This command makes the "
        "page:"
    )
    lines = [f"# {title(results, form)}", "", *_wrapped(introduction)]
    lines += ["", "```sh", command, "```"]
    of_papers = [list(group) for _, group in groupby(results, key=lambda result: result[1].paper)]
    for group in of_papers:
        lines += [
            "",
            f"## {_system(group)}",
            "",
            "| Claim | The paper says | Verdict |" + (" In the quick form |" if quick else ""),
            "|---|---|---|" + ("---|" if quick else ""),
        ]
        lines += [_verdict(claim, checks, beside.get(claim.id)) for _, claim, checks in group]
    for group in of_papers:
        lines += ["", f"## {_system(group)}: what was run, and what came out"]
        for paragraph in group[0][1].paper.strip().split("\n\n"):
            lines += ["", *_wrapped(" ".join(paragraph.split()))]
        for _, claim, checks in group:
            lines += _section(claim, checks, form, folder)
    return "\n".join(lines) + "\n"


def in_quick_form(quick: Sequence[Result]) -> str:
    """The results of the quick form, in two or three sentences."""
    return (
        "In the quick form, that of `make report`, with fewer seeds and points and shorter runs, "
        f"{counts(quick)}"
    )


def _system(group: Sequence[Result]) -> str:
    return group[0][1].paper.partition(":")[0].strip()


def _verdict(claim: Claim, checks: list[Check], quick: str | None) -> str:
    says = _cell(f"{claim.says} ({source(claim)})")
    verdict = verdict_in_words(claim, checks)
    row = f"| [`{claim.id}`](#{claim.id}) | {says} | {_cell(verdict)} |"
    return row if quick is None else f"{row} {'the same' if quick == verdict else _cell(quick)} |"


def _section(claim: Claim, checks: list[Check], form: Form, folder: Path) -> Iterator[str]:
    """A claim, its runs, the outcomes and the causes."""
    yield from ("", f"### {claim.id}", "")
    yield from _wrapped(f"Claimed: {claim.says} ({source(claim)}).")
    about = " ".join(claim.about.split())
    if about:
        yield from ("", *_wrapped(about))
    yield ""
    for name, scenario in claim.scenarios_in(form).items():
        run = f"- Run: [`{Path(scenario.path).name}`]({os.path.relpath(scenario.path, folder)})"
        run += f" ({name})" if name else ""
        run += _described(Path(scenario.path).read_text(encoding="utf-8"))
        run += f". Changed here: `{scenario.differences}`" if scenario.differences else ""
        yield from _wrapped(f"{run}.", subsequent_indent="  ")
    for test in claim.tests:
        yield from _wrapped(f"- Held by a test: `{test}`", subsequent_indent="  ")
    yield from ("", *_wrapped(f"**{verdict_in_words(claim, checks)}**"))
    rows = [_check(check) for check in checks if _is_of_interest(check)]
    if rows:
        yield from ("", "| Check | Reading | Wanted | Paper | Here | |", "|---" * 6 + "|")
        yield from rows
    why = causes(checks)
    if why:
        yield from ("", "Why checks fail or do not count:", "")
    for readings, cause in why:
        of = f"{readings}: " if readings else ""
        yield from _wrapped(f"- {of}{cause}.", subsequent_indent="  ")


def _described(scenario: str) -> str:
    """The description, the duration and the seeds of a scenario file."""
    table = tomllib.loads(scenario)["scenario"]
    said = [table["description"]] if "description" in table else []
    length = [table["duration"]] if "duration" in table else []
    if seeds := table.get("seeds"):
        length.append(f"{len(seeds) if isinstance(seeds, list) else seeds['count']} seeds")
    said += [f"In the file: {', '.join(length)}"] if length else []
    return f": {'. '.join(said)}" if said else ""


def _wrapped(text: str, **options: str) -> list[str]:
    return wrap(text, 100, break_long_words=False, break_on_hyphens=False, **options)


def _is_of_interest(check: Check) -> bool:
    return check.outcome is not Outcome.SHOWN or check.compares_without_judging


def _check(check: Check) -> str:
    """A check in one line: over all its points, with those at which it fails."""
    cells = (
        statement(check),
        check.reading or "",
        _over(check.rows, wanted),
        _range([row.paper for row in check.rows]),
        _range([row.value for row in check.rows]),
        _outcome(check),
    )
    return f"| {' | '.join(map(_cell, cells))} |"


def _over(rows: Sequence[Row], say) -> str:
    """A text about every row, if it is the same for all; otherwise about the first and the last."""
    said = list(dict.fromkeys(say(row) for row in rows if say(row)))
    return said[0] if len(said) == 1 else f"{said[0]} … {said[-1]}" if said else ""


def _range(values: Sequence[float | None]) -> str:
    """The only value, or the minimum and maximum of several."""
    found = sorted({value for value in values if value is not None})
    if not found:
        return ""
    low, high = number(found[0]), number(found[-1])
    return low if low == high else f"{low} to {high}"


def _outcome(check: Check) -> str:
    if check.outcome is Outcome.SHOWN:
        return "shown"
    if check.outcome is Outcome.SKIPPED:
        return "not judged in this form"
    word = check.outcome.value
    if not all(row.sure for row in check.rows):
        word += "?"
    failing = [at(row) for row in check.rows if row.holds is False and row.at]
    if failing and len(failing) < len(check.rows):
        word += f" at {'; '.join(failing)}"
    if check.expected is Expected.CHANCE:
        word += ", by chance"
    if check.expected is Expected.CERTAIN:
        word += ", cannot fail"
    return word


def _cell(text: str) -> str:
    """A text in one line of a table."""
    return " ".join(text.replace("|", "\\|").split())


def readme(
    text: str, results: Sequence[Result], form: Form, page: str, quick: Sequence[Result] = ()
) -> str:
    """The text of a README with the sentence about these results, which leads to their page.

    Raises:
        ValueError: It has no place for the sentence.
    """
    before, begin, rest = text.partition(f"{BEGIN}\n")
    _, end, after = rest.partition(END)
    if not begin or not end:
        raise ValueError(f"expected the lines {BEGIN} and {END}")
    sentence = f"{in_one_sentence(results, form, quick)[:-1]} ([verdicts]({page}))."
    return "\n".join([before + BEGIN, *_wrapped(sentence), END + after])
