"""The parts of a suite: cases, their measured numbers, and their pictures."""

from __future__ import annotations

import dataclasses
import importlib.util
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ..reproduction.claims import Form
from ..reproduction.study import Run, Scenario, Study
from ..reproduction.values import Values

__all__ = ["Case", "Column", "Panel", "Steps", "Suite", "found_in"]

#: A quantity over time: it has each value from its second on.
Steps = Sequence[tuple[float, float]]


@dataclass(frozen=True)
class Column:
    """A number of each run, and its form in a table."""

    title: str
    """The heading, with the unit."""
    number: Callable[[Run], float]
    """Computes the number from a run."""
    digits: int = 2
    """The number of digits after the point."""


@dataclass(frozen=True)
class Panel:
    """Rates over time, in a panel for each controller."""

    flows: Mapping[str, str]
    """The name of each curve, and the flows or the group whose rates it adds up."""
    capacity: Steps
    """The capacity, in bit/s."""
    variant: str
    """The variant that is drawn."""


@dataclass(frozen=True)
class Case:
    """A test case: its scenarios and its measured numbers."""

    id: str
    """The number of the section, or a short name."""
    title: str
    """What the case is."""
    expects: str
    """What its source expects."""
    scenario: Scenario | Mapping[str, Scenario]
    """What is run, with an axis `controller`; or one scenario for each variant, by its name."""
    columns: Sequence[Column]
    """The measured numbers."""
    variants: Mapping[str, Mapping[str, Any]] = field(default_factory=lambda: {"": {}})
    """The points of the sweep beside the controller's that tables have, by name."""
    series: Sequence[str] = ("media", "tcp", "tested", "rival")
    """The groups whose rates over time are kept."""
    differs: str = ""
    """What differs from the source, and how its text is read."""
    picture: Panel | None = None
    """The picture over time."""
    scatter: tuple[str, str] | None = None
    """The titles of two columns that are drawn over each other."""

    @property
    def scenarios(self) -> dict[str, Scenario]:
        """What is run, by variant; or under no name for all variants."""
        return {"": self.scenario} if isinstance(self.scenario, Scenario) else dict(self.scenario)

    def choices(self) -> dict[str, Mapping[str, Any]]:
        """The points of each variant."""
        if isinstance(self.scenario, Scenario):
            return dict(self.variants)
        return {name: self.variants.get(name, {}) for name in self.scenario}

    def scenarios_in(self, form: Form) -> dict[str, Scenario]:
        """What is run in this form."""
        quick = form is Form.QUICK
        return {
            name: scenario.in_quick_form() if quick else scenario
            for name, scenario in self.scenarios.items()
        }

    def measured(self, studies: Study | Mapping[str, Study]) -> dict[str, dict[str, Values]]:
        """The numbers over the controllers: by variant, and by the title of a column. Variants that
        were not run are left out.

        Raises:
            ValueError: A scenario has no axis `controller`, or several points of a variant.
        """
        every = {"": studies} if isinstance(studies, Study) else studies
        values = {
            name: {column.title: study.measure(column.number) for column in self.columns}
            for name, study in every.items()
        }
        numbers = {}
        for name, choice in self.choices().items():
            columns = values[name if name in values else ""]
            found = {title: self._at(name, choice, each) for title, each in columns.items()}
            if any(len(each) for each in found.values()):
                numbers[name] = found
        return numbers

    def _at(self, name: str, choice: Mapping[str, Any], values: Values) -> Values:
        """The numbers at the points of a variant, over the controllers alone."""
        scenario = self.scenarios.get(name) or self.scenarios[""]
        found = values.at(**choice)
        if "controller" not in found.axes:
            raise ValueError(f"{scenario.path}: expected a sweep named `controller`")
        if found.points["controller"].duplicated().any():
            raise ValueError(
                f"{scenario.path}: the variant {name!r} has {len(found)} points over "
                f"{', '.join(found.axes)}: expected at most one for each controller"
            )
        return Values(found.points[["controller"]], found.numbers, found.seeds)


@dataclass(frozen=True)
class Suite:
    """Cases of one source."""

    id: str
    """A short name."""
    title: str
    """The heading of its chapter."""
    about: str
    """What it is, in a paragraph or two."""
    cases: Sequence[Case]
    """What is run."""
    overview: Sequence[tuple[str, str, str, str]]
    """The columns of the one table of the page: the heading, the case, the variant, the column."""
    found: str = ""
    """The results in words, for the page."""

    def at(self, folder: Path) -> Suite:
        """The suite with the paths of its scenarios from here."""

        def placed(scenario: Scenario) -> Scenario:
            return dataclasses.replace(scenario, path=str(folder / scenario.path))

        cases = [
            dataclasses.replace(
                case,
                scenario=placed(case.scenario)
                if isinstance(case.scenario, Scenario)
                else {name: placed(scenario) for name, scenario in case.scenario.items()},
            )
            for case in self.cases
        ]
        return dataclasses.replace(self, cases=cases)


def found_in(folder: Path) -> list[Suite]:
    """The suites of the files `suite.py` one level below a folder."""
    suites = []
    for file in sorted(folder.glob("*/suite.py")):
        spec = importlib.util.spec_from_file_location(f"suite_{file.parent.name}", file)
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        suites += [
            value.at(file.parent) for value in vars(module).values() if isinstance(value, Suite)
        ]
    return suites
