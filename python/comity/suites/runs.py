"""Runs the scenarios of cases, and keeps the measured tables."""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable, Collection, Mapping, Sequence
from pathlib import Path

import pandas as pd
import pyarrow
import pyarrow.compute

from .._results import Results, read
from .._run import run
from ..reproduction.claims import Form
from ..reproduction.study import Scenario, Study
from .case import Case

__all__ = ["of_the_lab", "studies"]

#: Parts in which a scenario is run: a part's values over time fill the memory, not the scenario's.
PARTS = 16
#: The name of a scenario in its file.
_NAME = re.compile(r'^name = "(.*)"$', re.MULTILINE)
SERIES = ["run", "index", "flow", "bin_start_ns", "delivered_bytes", "sent_wire_bytes"]


def studies(
    case: Case, form: Form, jobs: int | None, progress: Callable[[str, int], None]
) -> Study | Mapping[str, Study]:
    """The runs of a case: a study, or one for each variant. `progress` is called with the path of
    a scenario and the number of its runs that are done.
    """
    found = {
        name: _study(scenario, case.series, jobs, progress)
        for name, scenario in case.scenarios_in(form).items()
    }
    return found[""] if list(found) == [""] else found


def _study(
    scenario: Scenario,
    series: Collection[str],
    jobs: int | None,
    progress: Callable[[str, int], None],
) -> Study:
    parts, done = [], 0
    for part in range(1, PARTS + 1):
        results = run(
            scenario.path, set=dict(scenario.changes()), threads=jobs, shard=(part, PARTS)
        )
        if len(results.runs):
            parts.append(_kept(results, series))
            done += len(results.runs)
            progress(scenario.path, done)
    tables = {
        name: pd.concat([part[name] for part in parts], ignore_index=True).sort_values(
            "run", kind="stable", ignore_index=True
        )
        for name in parts[0]
    }
    return Study(tables)


def _kept(results: Results, series: Collection[str]) -> dict[str, pd.DataFrame]:
    """The tables of flows and links, and the rates over time of the flows of these groups."""
    tables = {
        name: getattr(results, name).arrow().to_pandas() for name in ("runs", "flows", "links")
    }
    if "flow_series" in results:
        flows = tables["flows"]
        kept = flows["group"].map(lambda group: not series or group.partition("+")[0] in series)
        names = pyarrow.array(flows["flow"][kept].unique())
        rows = results.flow_series.arrow()
        rows = rows.select([name for name in SERIES if name in rows.column_names])
        rows = rows.filter(pyarrow.compute.is_in(rows["flow"], value_set=names))
        # The lab does not record what a flow sends over time.
        tables["flow_series"] = rows.to_pandas().reindex(columns=SERIES)
    return tables


def of_the_lab(path: Path, cases: Sequence[Case]) -> tuple[Case, Study]:
    """The results of `comity lab run`, and the case whose scenario it ran.

    Raises:
        ValueError: No case has this scenario.
    """
    results = read(path)
    names = set(results.runs.arrow()["scenario"].to_pylist())
    if "trusted" in results.runs.columns:
        doubtful = results.runs.arrow()["trusted"].to_pylist().count(False)
        if doubtful:
            warnings.warn(f"{path}: {doubtful} runs of the lab are not to be trusted", stacklevel=2)
    for case in cases:
        if isinstance(case.scenario, Scenario) and names == {_name(case.scenario.path)}:
            tables = _kept(results, case.series)
            return case, Study(tables)
    known = [_name(each.path) for case in cases for each in case.scenarios.values()]
    raise ValueError(
        f"{path} has results of {', '.join(sorted(names))}: expected one of "
        f"{', '.join(sorted(set(known)))}"
    )


def _name(path: str) -> str:
    found = _NAME.search(Path(path).read_text(encoding="utf-8"))
    return found[1] if found else ""
