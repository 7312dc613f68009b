"""`python -m comity.reproduction`: runs the claims and prints what comes out."""

from __future__ import annotations

import argparse
import dataclasses
import json
import os
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from .. import _patterns
from .._progress import Due
from ..errors import Error
from ..suites.case import found_in as suites_in
from ..suites.chapter import chapter
from ..suites.command import ran
from .claims import Check, Claim, Form
from .figures import found_in
from .page import page, readme
from .report import Report
from .runner import Runner
from .text import Result, print_claim, summary
from .verdicts import judge

DESCRIPTION = (
    "Runs the experiments of the five papers, and says of each claim whether it holds here."
)
EXAMPLES = """\
examples:
  python -m comity.reproduction                    all claims, in the quick form
  python -m comity.reproduction 'libra-*' psp-fig7-single
  python -m comity.reproduction --list             what there is, without running anything
  python -m comity.reproduction --full --json      all seeds, points and lengths, for programs

exit codes:
  0    every check came out as it was known to
  1    a check that was known to hold fails, or one that was known to fail holds
  2    the command line or a scenario is wrong
  130  interrupted
"""


def chosen(claims: list[tuple[str, Claim]], patterns: list[str]) -> list[tuple[str, Claim]]:
    """The claims with these ids or of these systems; without patterns, all.

    Raises:
        ValueError: A pattern names nothing.
    """
    names = {system for system, _ in claims} | {claim.id for _, claim in claims}
    _patterns.check(patterns, names, "claim and no system")
    return [
        (system, claim)
        for system, claim in claims
        if _patterns.fits(patterns, claim.id, system)
    ]


def main(arguments: list[str] | None = None) -> int:
    """Runs the command and gives its exit code."""
    parser = argparse.ArgumentParser(
        prog="python -m comity.reproduction",
        description=DESCRIPTION,
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "claims", nargs="*", metavar="CLAIM", help="ids or systems; * stands for anything"
    )
    parser.add_argument(
        "--full", action="store_true", help="all seeds, all points and runs of full length"
    )
    parser.add_argument("--list", action="store_true", help="list the claims and run nothing")
    parser.add_argument(
        "--report", type=Path, metavar="PATH", help="write a page with pictures, for any browser"
    )
    parser.add_argument(
        "--page",
        type=Path,
        metavar="PATH",
        help="write what was claimed, run and found as a page in Markdown; with --full, the "
        "verdicts of both forms",
    )
    parser.add_argument(
        "--readme",
        type=Path,
        metavar="PATH",
        help="with --page, write how many claims hold between the markers of this file",
    )
    parser.add_argument("--json", action="store_true", help="print one JSON document")
    parser.add_argument(
        "--jobs", type=int, metavar="N", help="how many runs to run in parallel (one per processor)"
    )
    parser.add_argument(
        "--experiments", type=Path, default=Path("experiments"), help="the folder of the figures"
    )
    options = parser.parse_args(arguments)
    form = Form.FULL if options.full else Form.QUICK
    if not options.experiments.is_dir():
        parser.error(
            f"--experiments {options.experiments}: expected a folder of figures, such as "
            "experiments/"
        )
    if options.readme and not options.page:
        parser.error("--readme: expected --page too, which it leads to")
    for output in (options.report, options.page):
        if output and not output.parent.is_dir():
            parser.error(
                f"cannot write {output}: no such folder; make it first: mkdir -p {output.parent}"
            )
    try:
        claims = chosen(found_in(options.experiments), options.claims)
        if options.list:
            for system, claim in claims:
                print(f"{claim.id:28} {system:15} {claim.says}")
            return 0
        return _run(claims, form, options)
    except (Error, TypeError, ValueError) as error:
        # A figure or its scenario is wrong; the place of a figure's mistake is in the traceback.
        print(f"error: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print("interrupted", file=sys.stderr)
        return 130


def _run(claims: list[tuple[str, Claim]], form: Form, options: argparse.Namespace) -> int:
    console = Console(highlight=False)
    report = Report(form) if options.report else None
    results: list[Result] = []
    quick: list[Result] = []
    with _progress(
        console if not options.json and console.is_terminal else Console(stderr=True)
    ) as progress:
        follow = _Follow(progress, len(claims))

        def take(system: str, claim: Claim, checks: list[Check], runs: Any) -> None:
            results.append((system, claim, checks))
            if report:
                report.add(system, claim, checks, runs)
            if not options.json:
                print_claim(console, claim, checks)

        with follow:
            _judge(claims, form, options, follow, take)
            if report and not options.claims:
                _add_suites(report, form, options, follow)
            if options.page and form is Form.FULL:
                follow.begin("quick form: ")

                def take_quick(system: str, claim: Claim, checks: list[Check], _: Any) -> None:
                    quick.append((system, claim, checks))

                _judge(claims, Form.QUICK, options, follow, take_quick)
    if report:
        beyond = options.experiments.parent / "docs" / "results" / "controllers.md"
        command = _command(options, "report")
        report.write(options.report, command, beyond if beyond.exists() else None)
    if options.page:
        command = _command(options, "page")
        text = page(results, form, command, quick, options.page.parent)
        options.page.write_text(text, encoding="utf-8")
    if options.readme:
        text = options.readme.read_text(encoding="utf-8")
        link = os.path.relpath(options.page, options.readme.parent)
        options.readme.write_text(readme(text, results, form, link, quick), encoding="utf-8")
    print(
        json.dumps(document(results, form), indent=1) if options.json else summary(results, form)
    )
    surprises = [check for _, _, checks in results for check in checks if not check.is_as_expected]
    return 1 if surprises else 0


def _add_suites(
    report: Report, form: Form, options: argparse.Namespace, follow: _Follow
) -> None:
    """Runs the suites of test cases, and adds a chapter for each to the report."""
    pairs = [(suite, suite.cases) for suite in suites_in(options.experiments)]

    def progress(scenario: str, done: int) -> None:
        follow.runs(scenario, done, done)

    for suite, results in ran(pairs, form, jobs=options.jobs, draw=True, progress=progress):
        report.chapters.append((suite.id, suite.title, chapter(suite, results, form)))


def _judge(
    claims: list[tuple[str, Claim]],
    form: Form,
    options: argparse.Namespace,
    follow: _Follow,
    take: Callable[[str, Claim, list[Check], Any], None],
) -> None:
    """Runs and judges the claims in one form, and passes each to `take`."""
    runner = Runner(form, options.jobs, follow.runs)
    for system, claim in claims:
        runs = runner.runs(claim)
        take(system, claim, claim.checks(runs, form), runs)
        follow.judged()


class _Follow:
    """Says how far the claims are: as a bar on a terminal, elsewhere in lines."""

    def __init__(self, progress: Progress, claims: int) -> None:
        self._progress = progress
        self._whole = progress.add_task("claims", total=claims)
        self._part = progress.add_task("")
        self._log = _Log(claims)
        self._ended = threading.Event()

    def __enter__(self) -> None:
        if self._progress.disable:
            threading.Thread(target=self._watch, daemon=True).start()

    def __exit__(self, *_: object) -> None:
        self._ended.set()

    def begin(self, what: str) -> None:
        """Starts again with the first claim."""
        self._progress.reset(self._whole, description=f"{what}claims")
        self._log.begin(what)

    def runs(self, scenario: str, done: int, runs: int) -> None:
        """Takes the number of finished runs of a scenario."""
        name = Path(scenario).name
        self._progress.update(
            self._part, description=f"runs of {name}", completed=done, total=runs
        )
        self._log.runs = f"{done} of {runs} runs of {name}, "

    def judged(self) -> None:
        """Counts a judged claim."""
        self._progress.advance(self._whole)
        self._log.judged += 1

    def _watch(self) -> None:
        """A single run, or the pictures of a claim, can take longer than the interval of lines."""
        while not self._ended.wait(0.5):
            self._log.tick()


class _Log:
    """Lines on standard error if that is not a terminal, at most one in ten seconds."""

    def __init__(self, claims: int, clock: Callable[[], float] = time.monotonic) -> None:
        self._claims, self._clock, self._began = claims, clock, clock()
        self._is_due = Due(clock)
        self._what = ""
        self.judged = 0
        """How many claims are judged."""
        self.runs = ""
        """How many runs of the latest scenario are done."""

    def begin(self, what: str) -> None:
        self._what, self.judged, self.runs = what, 0, ""

    def tick(self) -> None:
        if not self._is_due():
            return
        print(
            f"{self._what}{self.judged} of {self._claims} claims, {self.runs}"
            f"{self._clock() - self._began:.0f} s",
            file=sys.stderr,
            flush=True,
        )


def _command(options: argparse.Namespace, made: str) -> str:
    """The command of `make` that makes the same report or page."""
    form = ["--full"] if options.full else []
    chosen = [*options.claims, *form, f"--{made} {getattr(options, made)}"]
    if made == "page" and options.readme:
        chosen.append(f"--readme {options.readme}")
    return f"make claims CLAIMS='{' '.join(chosen)}'"


def _progress(console: Console) -> Progress:
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
    )
    shown = console.is_terminal
    return Progress(
        *columns, console=console, transient=True, disable=not shown, redirect_stdout=False
    )


def document(results: list[Result], form: Form) -> dict:
    """What `--json` prints."""
    return {
        "format": "comity-reproduction/2",
        "form": form.value,
        "claims": [
            {
                "id": claim.id,
                "system": system,
                "says": claim.says,
                "source": claim.source,
                "tests": list(claim.tests),
                "ours": claim.ours,
                **dataclasses.asdict(judge(claim, checks)),
                "checks": [dataclasses.asdict(check) for check in checks],
            }
            for system, claim, checks in results
        ],
    }
