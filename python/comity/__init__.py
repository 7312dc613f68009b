"""Comity: a fast, deterministic packet simulator for media with deadlines and for TCP.

>>> import comity
>>> results = comity.run("experiments/demo/dumbbell.toml", seeds=range(1, 6))
>>> results.flows.polars()

`docs/guide/python.md` is the guide. `docs/reference/columns.md` lists every column.
"""

from . import _comity
from ._comity import VERSION as __version__
from ._comity import Controller, Pacing, Setup
from ._results import Results, Table, merge, read
from ._run import Simulation, run
from .errors import Error, PlotError, Problem, ResultsError, RunError, ScenarioError

ENGINE_VERSION: int = _comity.ENGINE_VERSION
"""The version of the simulator. Results of different versions may differ; those of one do not."""

__all__ = [
    "Controller",
    "ENGINE_VERSION",
    "Error",
    "Pacing",
    "PlotError",
    "Problem",
    "Results",
    "ResultsError",
    "RunError",
    "ScenarioError",
    "Setup",
    "Simulation",
    "Table",
    "__version__",
    "merge",
    "read",
    "run",
]
