"""The verdicts of a run as a page in Markdown."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby
from textwrap import wrap

from .claims import Check, Claim, Form
from .text import Result, headline, title, verdict_with_checks, verdicts

__all__ = ["page", "readme"]

#: The lines of a README between which its sentence stands.
BEGIN = "<!-- claims: begin, made by python -m comity.reproduction --readme -->"
END = "<!-- claims: end -->"


def page(results: Sequence[Result], form: Form, command: str) -> str:
    """The page of claims and their checks, made by `command`."""
    found = verdicts(results)
    introduction = (
        f"{headline(*found)}, judged in the {form.value} form. Where a paper can be read in several "
        "ways, a claim may hold for some readings, which are named. A verdict counts the checks that "
        "chance does not decide. `make report` shows each check with its numbers, its picture and, "
        "where it fails, the cause. Made by"
    )
    lines = [f"# {title(*found)}", "", *wrap(introduction, 100)]
    lines += ["", "```sh", command, "```"]
    for paper, of_paper in groupby(results, key=lambda result: result[1].paper):
        lines += [
            "",
            f"## {paper.partition(':')[0].strip()}",
            "",
            "| Claim | The paper says | Verdict |",
            "|---|---|---|",
        ]
        lines += [_row(claim, checks) for _, claim, checks in of_paper]
    return "\n".join(lines) + "\n"


def _row(claim: Claim, checks: list[Check]) -> str:
    says = f"{claim.says} ({claim.source})"
    return f"| `{claim.id}` | {says} | {verdict_with_checks(claim, checks)} |"


def readme(text: str, results: Sequence[Result], page: str) -> str:
    """The text of a README with the sentence about these results, which leads to their page.

    Raises:
        ValueError: It has no place for the sentence.
    """
    before, begin, rest = text.partition(f"{BEGIN}\n")
    _, end, after = rest.partition(END)
    if not begin or not end:
        raise ValueError(f"expected the lines {BEGIN} and {END}")
    sentence = f"{headline(*verdicts(results))}: [the verdicts]({page})."
    return "\n".join([before + BEGIN, *wrap(sentence, 100), END + after])
