"""The verdicts of a run as a page in Markdown."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import groupby
from textwrap import wrap
from typing import Any

__all__ = ["page"]


def page(document: Mapping[str, Any], command: str) -> str:
    """The page of what `--json` prints, made by `command`."""
    claims = document["claims"]
    verdicts = [claim["verdict"] for claim in claims]
    counted = ", ".join(f"{each} {verdicts.count(each)}" for each in dict.fromkeys(verdicts))
    introduction = (
        f"Claims judged in the {document['form']} form: {len(claims)} ({counted}). A verdict counts the "
        "checks that chance does not decide. `make report` shows each check with its numbers, its "
        "picture and, where it fails, the cause. Made by"
    )
    lines = ["# Do the claims of the five papers hold here?", "", *wrap(introduction, 100)]
    lines += ["", "```sh", command, "```"]
    for paper, of_paper in groupby(claims, key=lambda claim: claim["paper"]):
        lines += [
            "",
            f"## {paper.partition(':')[0].strip()}",
            "",
            "| Claim | The paper says | Verdict | Checks that hold |",
            "|---|---|---|---|",
        ]
        lines += [_row(claim) for claim in of_paper]
    return "\n".join(lines) + "\n"


def _row(claim: Mapping[str, Any]) -> str:
    judged = [
        check
        for check in claim["checks"]
        if check["outcome"] in ("holds", "fails") and check["expected"] != "chance"
    ]
    held = sum(check["outcome"] == "holds" for check in judged)
    checks = f"{held} of {len(judged)}" if judged else "tests"
    readings = f": {'; '.join(claim['readings'])}" if "readings" in claim["verdict"] else ""
    says = f"{claim['says']} ({claim['source']})"
    return f"| `{claim['id']}` | {says} | {claim['verdict']}{readings} | {checks} |"
