"""The runs of a scenario, and numbers computed from each of them."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas as pd

from .._results import Results, unfilled
from .values import Values, condition, replicated

__all__ = ["Run", "Scenario", "Study", "frames"]

#: The tables that measures look at.
TABLES = ("runs", "flows", "links", "flow_series")


def frames(results: Results) -> dict[str, pd.DataFrame]:
    """The tables that measures look at, with plain columns of NumPy."""
    tables = {name: getattr(results, name) for name in TABLES if name in results}
    return {name: table.arrow().to_pandas() for name, table in tables.items()}


@dataclass(frozen=True)
class Scenario:
    """A scenario file, and the part of it that is run.

    Axes of the sweep that advance together have to be named together in `only`.
    """

    path: str
    """The file, from the folder of the file that names it."""
    set: Mapping[str, Any] = field(default_factory=dict)
    """Values to replace, as `--set` of the command does."""
    only: Mapping[str, Sequence[Any]] = field(default_factory=dict)
    """The values that replace those of axes of the sweep."""
    seeds: int | None = None
    """How many of the file's seeds are run, from the first."""
    quick: Mapping[str, Any] = field(default_factory=dict)
    """The differences of the quick form: further `set` and `only`, and its own `seeds`."""

    def in_quick_form(self) -> Scenario:
        """The scenario of the quick form."""
        return Scenario(
            self.path,
            set={**self.set, **self.quick.get("set", {})},
            only={**self.only, **self.quick.get("only", {})},
            seeds=self.quick.get("seeds", self.seeds),
        )

    @property
    def differences(self) -> str:
        """The differences from the file, for a reader."""
        changes = [f"{key} = {value}" for key, value in self.set.items()]
        changes += [
            f"{axis}: {', '.join(map(str, values))} only" for axis, values in self.only.items()
        ]
        changes += [f"the first {self.seeds} seeds"] if self.seeds else []
        return "; ".join(changes)

    def changes(self) -> Iterator[tuple[str, Any]]:
        """All differences from the file: keys and values, in the syntax of `--set`."""
        yield from self.set.items()
        for axis, values in self.only.items():
            yield f"sweep.{axis}.values", list(values)
        if self.seeds is not None:
            yield "scenario.seeds.count", self.seeds


class Run:
    """The tables of one run: its flows, its links and their values over time.

    `names` are those that flows, groups and links have in any run of the study.
    """

    def __init__(self, tables: Mapping[str, pd.DataFrame], names: Collection[str]) -> None:
        self._tables = tables
        self._names = names
        # Each column over time, a row for each flow: computed once, and read often.
        self._wide: dict[str, pd.DataFrame] = {}

    def flows(self, *names: str) -> pd.DataFrame:
        """The flows with these names and those of these groups and of parts of them; without names,
        all.

        `"net"` has the flows of the groups `net` and `net+long`. A group that has flows in other
        runs only has none.
        """
        flows = self._tables["flows"]
        self._check(names)
        if not names:
            return flows
        chosen = flows["flow"].isin(names)
        for name in names:
            chosen |= (flows["group"] == name) | flows["group"].str.startswith(f"{name}+")
        return flows[chosen]

    def links(self, *names: str) -> pd.DataFrame:
        """The links with these names; without names, all."""
        links = self._tables["links"]
        self._check(names)
        return links[links["link"].isin(names)] if names else links

    def bins(
        self, *names: str, column: str, start_s: float = 0.0, end_s: float = np.inf
    ) -> np.ndarray:
        """A column of flows over time: a row for each flow, a column for each bin that begins in
        `[start_s, end_s)`.
        """
        if column not in self._wide:
            self._wide[column] = self._series().pivot(
                index=["index", "flow"], columns="bin_start_ns", values=column
            )
        wide = self._wide[column]
        rows = wide.index.get_level_values("flow").isin(self.flows(*names)["flow"])
        starts = wide.columns.to_numpy() / 1e9
        inside = (starts >= start_s - 1e-9) & (starts < end_s - 1e-9)
        return wide.to_numpy(dtype=float)[np.ix_(rows, inside)]

    @property
    def bin_s(self) -> float:
        """The length of the bins of values over time, in seconds."""
        starts = self._series()["bin_start_ns"].unique()
        return float(starts[1] - starts[0]) / 1e9 if len(starts) > 1 else np.nan

    def _series(self) -> pd.DataFrame:
        series = self._tables.get("flow_series")
        if series is None:
            raise ValueError("there is nothing over time: expected `bins` in the scenario")
        return series

    def _check(self, names: Sequence[str]) -> None:
        for name in names:
            if name not in self._names:
                raise ValueError(
                    f"nothing is called {name!r}: expected one of {', '.join(sorted(self._names))}"
                )


class Study:
    """All runs of a scenario, as tables of pandas by their names. Runs of other scenarios may be
    compared with them; `seeds` are then those of all.
    """

    def __init__(
        self, tables: Mapping[str, pd.DataFrame], seeds: Sequence[int] | None = None
    ) -> None:
        runs = tables["runs"]
        self._columns = {name: set(table) for name, table in tables.items()}
        axes = [name for name in runs if name.startswith("axis.")]
        self.axes = [name[len("axis.") :] for name in axes]
        """The names of the axes of the sweep."""
        self.seeds = sorted(set(runs["seed"])) if seeds is None else list(seeds)
        """The seeds of all runs that are compared."""
        self._points = runs[["run", "seed", *axes]].rename(columns=dict(zip(axes, self.axes)))
        self._points = self._points.assign(point=runs.groupby("seed").cumcount())
        split = {
            name: dict(list(table.groupby("run")))
            for name, table in tables.items()
            if name != "runs"
        }
        groups = tables["flows"]["group"].unique()
        names = {whole for group in groups for whole in _wholes(group)}
        names |= {*tables["flows"]["flow"].unique(), *tables["links"]["link"].unique()}
        self._runs = [
            Run({name: parts[run] for name, parts in split.items() if run in parts}, names)
            for run in runs["run"]
        ]

    @classmethod
    def of(cls, results: Results) -> Study:
        """The runs of `comity.run` or `comity.read`."""
        return cls(frames(results))

    def first(self, **choices: Any) -> Run:
        """The first run at the point where axes have these values."""
        chosen = self._points
        for axis, value in choices.items():
            chosen = chosen[chosen[axis].map(condition(value))]
        if not len(chosen):
            raise ValueError(f"no run at {choices}: expected values of {', '.join(self.axes)}")
        return self._runs[chosen.index[0]]

    def measure(self, number: Callable[[Run], float]) -> Values:
        """One number from every run, at every point of the sweep, with its replicates over the
        seeds.

        If a number does not exist for a run, such as the mean of no values, its point has no
        number.

        Raises:
            ValueError: `number` reads a column that no run of the scenario fills.
        """
        try:
            with np.errstate(divide="ignore", invalid="ignore"):
                numbers = np.array([float(number(run)) for run in self._runs])
        except (AttributeError, KeyError) as error:
            for name in re.findall(r"'(\w+)'$", str(error)):
                for table, columns in self._columns.items():
                    reason = unfilled(table, name)
                    if reason and name not in columns:
                        raise ValueError(reason) from error
            raise
        numbers[~np.isfinite(numbers)] = np.nan
        table = self._points.assign(number=numbers)
        return replicated(table, self.axes, "number", self.seeds)


def _wholes(group: str) -> list[str]:
    """The group and the groups that it is part of: `net` and `net+long` of `net+long`."""
    parts = group.split("+")
    return ["+".join(parts[:length]) for length in range(1, len(parts) + 1)]
