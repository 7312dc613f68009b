"""A suite that was run as Markdown: tables and pictures, for a page and for a report."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from textwrap import wrap

import numpy as np

from ..reproduction.claims import Form
from ..reproduction.pictures import Drawing
from ..reproduction.study import Study
from ..reproduction.values import Values
from . import metrics
from .case import Case, Suite

__all__ = ["Result", "chapter", "document", "markdown", "overview", "paragraphs"]

WHOLE = {"break_long_words": False, "break_on_hyphens": False}


@dataclass(frozen=True)
class Result:
    """A case that was run."""

    case: Case
    numbers: dict[str, dict[str, Values]]
    """By variant, and by the title of a column."""
    picture: str
    """An element of HTML, or nothing."""

    @classmethod
    def of(cls, case: Case, studies: Study | Mapping[str, Study], draw: bool) -> Result:
        """The result of a case's runs, with its picture where it is to be drawn."""
        numbers = case.measured(studies)
        return cls(case, numbers, _picture(case, studies, numbers) if draw else "")

    def cell(self, variant: str, title: str, controller: str) -> float:
        """A number of the tables."""
        found = self.numbers[variant][title].at(controller=controller).value
        return float(found[0]) if len(found) else np.nan

    def beside(self, study: Study) -> Result:
        """The result with the numbers of the lab's runs, each variant after the simulator's."""
        lab = self.case.measured(study)
        numbers = {}
        for variant, columns in self.numbers.items():
            numbers[variant] = columns
            if variant in lab:
                numbers[f"{variant}, in the lab"] = lab[variant]
        return Result(self.case, numbers, self.picture)

    @property
    def controllers(self) -> list[str]:
        """The controllers, in their order in the scenario."""
        return _controllers(self.numbers)


def _controllers(numbers: Mapping[str, Mapping[str, Values]]) -> list[str]:
    columns = next(iter(numbers.values()))
    return list(next(iter(columns.values())).points["controller"])


def chapter(suite: Suite, results: Sequence[Result], form: Form, level: int = 2) -> str:
    """The suite in Markdown, with a table and a picture for each case."""
    marks = "#" * level
    lines = [f"{marks} {suite.title}", *paragraphs(suite.about), "", *overview(suite, results)]
    for result in results:
        case = result.case
        lines += ["", f"{marks}# {suite.id}-{case.id}: {case.title}"]
        lines += paragraphs(f"Expected: {case.expects}")
        if case.differs:
            lines += paragraphs(f"Differs: {case.differs}")
        for name, scenario in case.scenarios_in(form).items():
            said = f"Scenario{f' of {name}' if name else ''}: `{scenario.path}`"
            said += f", with `{scenario.differences}`" if scenario.differences else ""
            lines += ["", f"{said}."]
        if result.picture:
            lines += ["", f'<div class="picture">{result.picture}</div>']
        for variant, columns in result.numbers.items():
            titles = {column.title: column.digits for column in case.columns}
            lines += ["", f"**{variant}**"] if variant else []
            lines += ["", *_table(result.controllers, columns, titles)]
    return "\n".join(lines) + "\n"


def overview(suite: Suite, results: Sequence[Result]) -> list[str]:
    """The one table of the suite: what matters most of each case that was run, by controller."""
    of = {result.case.id: result for result in results}
    chosen = [pick for pick in suite.overview if pick[1] in of and pick[2] in of[pick[1]].numbers]
    if not chosen:
        return []
    rows = []
    for controller in of[chosen[0][1]].controllers:
        cells = []
        for _, case, variant, title in chosen:
            column = next(each for each in of[case].case.columns if each.title == title)
            cells.append(written(of[case].cell(variant, title, controller), column.digits))
        rows.append([f"`{controller}`", *cells])
    return markdown(["controller", *(heading for heading, *_ in chosen)], rows)


def document(suite: Suite, results: Sequence[Result]) -> dict:
    """The numbers for programs."""
    return {
        "suite": suite.id,
        "cases": [
            {
                "id": f"{suite.id}-{result.case.id}",
                "title": result.case.title,
                "numbers": list(_numbers(result)),
            }
            for result in results
        ],
    }


def _numbers(result: Result) -> Iterator[dict]:
    for variant, columns in result.numbers.items():
        for title, values in columns.items():
            for row in values.frame().to_dict("records"):
                numbers = {
                    name: float(row[name]) if np.isfinite(row[name]) else None
                    for name in ("value", "low", "high")
                }
                yield {
                    "variant": variant,
                    "controller": row["controller"],
                    "metric": title,
                    **numbers,
                }


def _table(
    controllers: Sequence[str], columns: dict[str, Values], digits: dict[str, int]
) -> list[str]:
    rows = []
    for controller in controllers:
        cells = []
        for title, values in columns.items():
            at = values.at(controller=controller)
            interval = at.interval(0) if len(at) else None
            cell = written(float(at.value[0]) if len(at) else np.nan, digits[title])
            if interval and cell != "–":
                cell += f" ±{(interval.high - interval.low) / 2:.{digits[title]}f}"
            cells.append(cell)
        rows.append([f"`{controller}`", *cells])
    return markdown(["controller", *columns], rows)


def written(value: float, digits: int) -> str:
    """A number, or a dash for none."""
    if np.isinf(value):
        return "∞"
    return f"{value:.{digits}f}" if np.isfinite(value) else "–"


def markdown(head: Iterable[str], rows: Iterable[Iterable[str]]) -> list[str]:
    """The lines of a table: names in the first column, and numbers in the others."""
    head = list(head)
    lines = [head, ["---", *["---:"] * (len(head) - 1)], *rows]
    return [f"| {' | '.join(line)} |" for line in lines]


def paragraphs(text: str, indent: str = "") -> list[str]:
    """The lines of paragraphs, an empty one before each; `indent` is before all but the first."""
    lines = []
    for paragraph in text.strip().split("\n\n"):
        words = " ".join(paragraph.split())
        lines += ["", *wrap(words, 100, subsequent_indent=indent, **WHOLE)]
    return lines


def _picture(
    case: Case, studies: Study | Mapping[str, Study], numbers: dict[str, dict[str, Values]]
) -> str:
    """The rates over time under each controller, and one number over another."""
    drawing = Drawing(case.id)
    if case.picture:
        panel = case.picture
        choice = dict(case.choices()[panel.variant])
        study = studies if isinstance(studies, Study) else studies[panel.variant]
        for controller in _controllers(numbers):
            run = study.first(controller=controller, **choice)
            curves = {}
            for name, flows in panel.flows.items():
                seconds = metrics.rates(run, flows).sum(axis=0) / 1e6
                curves[name] = (np.arange(len(seconds)) + 0.5, seconds)
            end = max(len(times) for times, _ in curves.values())
            starts, values = zip(*panel.capacity)
            steps = (np.array([*starts, end]), np.array([*values, values[-1]]) / 1e6)
            drawing.over_time(controller, curves, steps, y="goodput, Mb/s")
    if case.scatter:
        across, up = case.scatter
        for variant, columns in numbers.items():
            pairs = columns[across].frame().merge(columns[up].frame(), on="controller")
            marks = {row.controller: (row.value_x, row.value_y) for row in pairs.itertuples()}
            drawing.scatter(variant or case.title, marks, x=across, y=up)
    # A blank line would end the element in Markdown.
    return "\n".join(line for line in drawing.svg().splitlines() if line) if len(drawing) else ""
