"""`python -m comity.suites`: runs test cases with every controller, and tells what came out."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

from .. import _patterns
from .._progress import Due
from ..errors import Error
from ..reproduction.claims import Form
from ..reproduction.report import html, templates
from .case import Case, Suite, found_in
from .chapter import Result, chapter, document, overview, paragraphs
from .runs import of_the_lab, studies

__all__ = ["chosen", "main", "ran"]

DESCRIPTION = "Runs suites of test cases for congestion control with every controller."
EXAMPLES = """\
examples:
  python -m comity.suites                       all suites, in the quick form
  python -m comity.suites rfc8867-5.1 'rfc9743-*'
  python -m comity.suites --list                what there is, without running anything
  python -m comity.suites --full --report target/suites.html

exit codes:
  0    everything was run
  2    the command line or a scenario is wrong
  130  interrupted
"""


def chosen(suites: Sequence[Suite], patterns: Sequence[str]) -> list[tuple[Suite, list[Case]]]:
    """The cases with these names, such as `rfc8867-5.1`, and those of these suites; without
    patterns, all.

    Raises:
        ValueError: A pattern names nothing.
    """
    names = {suite.id for suite in suites}
    names |= {f"{suite.id}-{case.id}" for suite in suites for case in suite.cases}
    _patterns.check(patterns, names, "suite and no case")

    def wanted(suite: Suite, case: Case) -> bool:
        return _patterns.fits(patterns, suite.id, f"{suite.id}-{case.id}")

    pairs = [(suite, [case for case in suite.cases if wanted(suite, case)]) for suite in suites]
    return [(suite, cases) for suite, cases in pairs if cases]


def ran(
    pairs: Sequence[tuple[Suite, Sequence[Case]]],
    form: Form,
    *,
    jobs: int | None = None,
    draw: bool = False,
    progress: Callable[[str, int], None] = lambda *_: None,
) -> list[tuple[Suite, list[Result]]]:
    """Runs the cases, with their pictures where they are to be drawn. `progress` is called with the
    path of a scenario and the number of its runs that are done.
    """
    return [
        (suite, [Result.of(case, studies(case, form, jobs, progress), draw) for case in cases])
        for suite, cases in pairs
    ]


def main(arguments: list[str] | None = None) -> int:
    """Runs the command, and returns its exit code."""
    parser = argparse.ArgumentParser(
        prog="python -m comity.suites",
        description=DESCRIPTION,
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "cases", nargs="*", metavar="CASE", help="suites or cases; * stands for anything"
    )
    parser.add_argument("--full", action="store_true", help="all seeds of the scenarios")
    parser.add_argument("--list", action="store_true", help="list the cases and run nothing")
    parser.add_argument(
        "--report", type=Path, metavar="PATH", help="write a page with pictures, for any browser"
    )
    parser.add_argument(
        "--page", type=Path, metavar="PATH", help="write one table for each suite in Markdown"
    )
    parser.add_argument(
        "--lab",
        type=Path,
        action="append",
        default=[],
        metavar="RESULTS",
        help="show results of `comity lab run --out` of a case's scenario beside the simulator's",
    )
    parser.add_argument("--json", action="store_true", help="print one JSON document")
    parser.add_argument(
        "--jobs", type=int, metavar="N", help="how many runs to run in parallel (one per processor)"
    )
    parser.add_argument(
        "--experiments", type=Path, default=Path("experiments"), help="the folder of the suites"
    )
    options = parser.parse_args(arguments)
    form = Form.FULL if options.full else Form.QUICK
    for output in (options.report, options.page):
        if output and not output.parent.is_dir():
            parser.error(
                f"cannot write {output}: no such folder; make it first: mkdir -p {output.parent}"
            )
    try:
        suites = found_in(options.experiments)
        if not suites:
            raise ValueError(
                f"--experiments {options.experiments}: expected a folder of suites, such as "
                "experiments/"
            )
        pairs = chosen(suites, options.cases)
        if options.list:
            for suite, cases in pairs:
                for case in cases:
                    print(f"{f'{suite.id}-{case.id}':24} {case.title}")
            return 0
        results = ran(
            pairs,
            form,
            jobs=options.jobs,
            draw=bool(options.report),
            progress=_Lines(),
        )
        every = [case for _, cases in pairs for case in cases]
        for path in options.lab:
            case, study = of_the_lab(path, every)
            results = [
                (suite, [of.beside(study) if of.case is case else of for of in results_of])
                for suite, results_of in results
            ]
        _write(results, form, options)
        return 0
    except (Error, ValueError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print("interrupted", file=sys.stderr)
        return 130


def _write(
    results: Sequence[tuple[Suite, list[Result]]], form: Form, options: argparse.Namespace
) -> None:
    if options.json:
        print(
            json.dumps(
                {
                    "format": "comity-suites/1",
                    "form": form.value,
                    "suites": [document(suite, cases) for suite, cases in results],
                },
                indent=1,
            )
        )
    else:
        for suite, cases in results:
            print("\n".join([f"{suite.title}\n", *overview(suite, cases), ""]))
    command = f"make suites SUITES='{' '.join(_arguments(options))}'"
    if options.page:
        options.page.write_text(_page(results, form, command), encoding="utf-8")
    if options.report:
        page = templates(Path(__file__).parent).get_template("report.html")
        chapters = [html(chapter(suite, of, form)) for suite, of in results]
        text = page.render(form=form.value, command=command, chapters=chapters)
        options.report.write_text(text, encoding="utf-8")


def _arguments(options: argparse.Namespace) -> list[str]:
    form = ["--full"] if options.full else []
    made = [f"--{name} {path}" for name in ("report", "page") if (path := getattr(options, name))]
    return [*options.cases, *form, *(f"--lab {path}" for path in options.lab), *made]


def _page(results: Sequence[tuple[Suite, list[Result]]], form: Form, command: str) -> str:
    """The page: a table for each suite, and the results in words."""
    lines = [PAGE.format(command=command, form=form.value).strip()]
    for suite, cases in results:
        lines += ["", f"## {suite.title}", *paragraphs(suite.about)]
        lines += ["", *overview(suite, cases), "", suite.found.strip()]
        differs = [(case.case.id, case.case.differs) for case in cases if case.case.differs]
        if differs:
            lines += ["", "What differs from the text, and how it is read:", ""]
        for case, text in differs:
            lines += paragraphs(f"- {case}: {text}", "  ")[1:]
    return "\n".join(lines) + "\n"


PAGE = """
# How do the controllers perform in the suites of RFC 8867 and RFC 9743?

Made by `{command}`. Do not edit.

The numbers are those of the {form} form. The quick form has one seed, and `make suites` prints it.
`make report` has all tables and pictures, and `make suites SUITES=--list` lists the cases.
"""


class _Lines:
    """Lines on standard error, at most one in ten seconds."""

    def __init__(self) -> None:
        self._is_due = Due()

    def __call__(self, scenario: str, done: int) -> None:
        if self._is_due():
            print(f"{Path(scenario).stem}: {done} runs", file=sys.stderr, flush=True)
