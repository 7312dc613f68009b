"""The verdicts of a run as a page in Markdown."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby
from textwrap import wrap

from .claims import Check, Claim, Form
from .text import Result, counts, headline, title, verdict_with_checks, verdicts

__all__ = ["page", "readme"]

#: The lines of a README between which its sentence stands.
BEGIN = "<!-- claims: begin, made by python -m comity.reproduction --readme -->"
END = "<!-- claims: end -->"


def page(
    results: Sequence[Result], form: Form, command: str, quick: Sequence[Result] = ()
) -> str:
    """The page of claims and their checks, made by `command`; with `quick`, those of the quick
    form stand beside them.
    """
    found = verdicts(results)
    beside = {claim.id: verdict_with_checks(claim, checks) for _, claim, checks in quick}
    introduction = f"{headline(*found, form)}."
    if quick:
        introduction += f" {in_quick_form(quick)}"
    introduction += (
        " Where a paper can be read in several ways, a claim may hold for some readings, which are "
        "named. A verdict counts the checks that chance does not decide. `make report` shows each "
        "check with its numbers, its picture and, where it fails, the cause. Made by"
    )
    lines = [f"# {title(*found, form)}", "", *wrap(introduction, 100)]
    lines += ["", "```sh", command, "```"]
    for paper, of_paper in groupby(results, key=lambda result: result[1].paper):
        lines += [
            "",
            f"## {paper.partition(':')[0].strip()}",
            "",
            "| Claim | The paper says | Verdict |" + (" In the quick form |" if quick else ""),
            "|---|---|---|" + ("---|" if quick else ""),
        ]
        lines += [_row(claim, checks, beside.get(claim.id)) for _, claim, checks in of_paper]
    return "\n".join(lines) + "\n"


def in_quick_form(quick: Sequence[Result]) -> str:
    """What the quick form gives, in a sentence."""
    return (
        "In the quick form, that of `make report`, with fewer seeds and points and shorter runs, "
        f"{counts(verdicts(quick)[0])}."
    )


def _row(claim: Claim, checks: list[Check], quick: str | None) -> str:
    says = f"{claim.says} ({claim.source})"
    verdict = verdict_with_checks(claim, checks)
    row = f"| `{claim.id}` | {says} | {verdict} |"
    return row if quick is None else f"{row} {'the same' if quick == verdict else quick} |"


def readme(
    text: str, results: Sequence[Result], form: Form, page: str, quick: Sequence[Result] = ()
) -> str:
    """The text of a README with the sentences about these results, which lead to their page.

    Raises:
        ValueError: It has no place for the sentence.
    """
    before, begin, rest = text.partition(f"{BEGIN}\n")
    _, end, after = rest.partition(END)
    if not begin or not end:
        raise ValueError(f"expected the lines {BEGIN} and {END}")
    sentence = f"{headline(*verdicts(results), form)}: [the verdicts]({page})."
    if quick:
        sentence += f" {in_quick_form(quick)}"
    return "\n".join([before + BEGIN, *wrap(sentence, 100), END + after])
