"""Runs the scenarios of claims. A scenario that several claims share is run once."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping

import pandas as pd

from .._run import run
from .claims import Claim, Form
from .study import Scenario, Study, frames

__all__ = ["Runner"]


class Runner:
    """Runs scenarios in one form, and keeps what it ran.

    `progress` is called with the path of the scenario, and the numbers of its finished and of all
    runs.
    """

    def __init__(
        self,
        form: Form,
        jobs: int | None = None,
        progress: Callable[[str, int, int], None] = lambda *_: None,
    ) -> None:
        self._form = form
        self._jobs = jobs
        self._progress = progress
        self._tables: dict[str, dict[str, pd.DataFrame]] = {}

    def runs(self, claim: Claim) -> Study | Mapping[str, Study]:
        """The runs of a claim: a study, or one for each name."""
        found = {
            name: self._run(scenario)
            for name, scenario in claim.scenarios_in(self._form).items()
        }
        seeds = sorted({seed for tables in found.values() for seed in tables["runs"]["seed"]})
        studies = {name: Study(tables, seeds) for name, tables in found.items()}
        return studies[""] if list(studies) == [""] else studies

    def _run(self, scenario: Scenario) -> dict[str, pd.DataFrame]:
        changes = dict(scenario.changes())
        identity = json.dumps([scenario.path, changes])
        if identity not in self._tables:
            results = run(
                scenario.path,
                set=changes,
                threads=self._jobs,
                progress=lambda done, runs: self._progress(scenario.path, done, runs),
            )
            self._tables[identity] = frames(results)
        return self._tables[identity]
