"""The verdicts of a run as a page in Markdown."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby
from textwrap import wrap

from .claims import Check, Claim, Expected, Form, Outcome, verdict
from .text import Result, verdict_with_readings

__all__ = ["page"]


def page(results: Sequence[Result], form: Form, command: str) -> str:
    """The page of claims and their checks, made by `command`."""
    found = [verdict(claim, checks).value for _, claim, checks in results]
    counted = ", ".join(f"{each} {found.count(each)}" for each in dict.fromkeys(found))
    introduction = (
        f"Claims judged in the {form.value} form: {len(results)} ({counted}). A verdict counts the "
        "checks that chance does not decide. `make report` shows each check with its numbers, its "
        "picture and, where it fails, the cause. Made by"
    )
    lines = ["# Do the claims of the five papers hold here?", "", *wrap(introduction, 100)]
    lines += ["", "```sh", command, "```"]
    for paper, of_paper in groupby(results, key=lambda result: result[1].paper):
        lines += [
            "",
            f"## {paper.partition(':')[0].strip()}",
            "",
            "| Claim | The paper says | Verdict | Checks that hold |",
            "|---|---|---|---|",
        ]
        lines += [_row(claim, checks) for _, claim, checks in of_paper]
    return "\n".join(lines) + "\n"


def _row(claim: Claim, checks: list[Check]) -> str:
    judged = [
        check
        for check in checks
        if check.outcome in (Outcome.HOLDS, Outcome.FAILS) and check.expected is not Expected.CHANCE
    ]
    held = sum(check.outcome is Outcome.HOLDS for check in judged)
    counted = f"{held} of {len(judged)}" if judged else "tests"
    says = f"{claim.says} ({claim.source})"
    return f"| `{claim.id}` | {says} | {verdict_with_readings(claim, checks)} | {counted} |"
