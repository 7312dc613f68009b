"""Runs the scenarios of claims; what several claims share is run once."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping

from .claims import Claim, Form
from .study import Scenario, Study

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
        self._tables: dict[str, tuple] = {}

    def runs(self, claim: Claim) -> Study | Mapping[str, Study]:
        """The runs of a claim: a study, or one for each name."""
        scenarios = {
            name: scenario.in_quick_form() if self._form is Form.QUICK else scenario
            for name, scenario in claim.scenarios.items()
        }
        found = {name: self._run(scenario) for name, scenario in scenarios.items()}
        seeds = sorted({seed for tables, _ in found.values() for seed in tables["runs"]["seed"]})
        studies = {name: Study(tables, axes, seeds) for name, (tables, axes) in found.items()}
        return studies[""] if list(studies) == [""] else studies

    def _run(self, scenario: Scenario):
        identity = json.dumps(
            [scenario.path, dict(scenario.set), dict(scenario.only), scenario.seeds], default=str
        )
        if identity not in self._tables:
            self._tables[identity] = _executed(scenario, self._jobs)
        return self._tables[identity]


def _executed(scenario, jobs):  # TODO replaced by comity.run
    import pathlib
    import subprocess

    import pandas as pd
    import tomllib

    text = tomllib.load(open(scenario.path, "rb"))
    sets = []
    for k, v in scenario.set.items():
        sets += ["--set", f"{k}={v if isinstance(v, str) else json.dumps(v)}"]
    seeds = text["scenario"].get("seeds", 1)
    args = []
    if scenario.seeds:
        first = (
            seeds["first"]
            if isinstance(seeds, dict)
            else (seeds[0] if isinstance(seeds, list) else seeds)
        )
        args = ["--seeds", f"{first}-{first + scenario.seeds - 1}"]
    sweeps = {s.get("name", s["parameter"]): s for s in text.get("sweep", [])}
    zipped = {}
    for axis, values in scenario.only.items():
        s = sweeps[axis]
        keep = [i for i, v in enumerate(s["values"]) if v in values]
        if "zip" in s:
            zipped.setdefault(s["zip"], set(range(len(s["values"])))).intersection_update(keep)
        else:
            sets += ["--set", f"sweep.{axis}.values={json.dumps([s['values'][i] for i in keep])}"]
    for name, s in sweeps.items():
        if s.get("zip") in zipped:
            keep = sorted(zipped[s["zip"]])

            def toml(v):
                if isinstance(v, dict):
                    return "{" + ", ".join(f"{k} = {toml(x)}" for k, x in v.items()) + "}"
                return json.dumps(v)

            sets += [
                "--set",
                f"sweep.{name}.values=[{', '.join(toml(s['values'][i]) for i in keep)}]",
            ]
    import hashlib

    command = ["/tmp/w/comity-repro", "sim", "run", scenario.path, *sets, *args, "-q"]
    d = "/tmp/w/repro-cache/" + hashlib.sha256(json.dumps(command).encode()).hexdigest()[:20]
    if not pathlib.Path(d).exists():
        subprocess.run([*command, "-o", d], check=True)
    tables = {f.stem: pd.read_parquet(f) for f in pathlib.Path(d).glob("*.parquet")}
    return tables, [c[5:] for c in tables["runs"].columns if c.startswith("axis.")]
