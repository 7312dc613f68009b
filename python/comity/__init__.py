"""Comity: a fast, deterministic packet simulator for media with deadlines and for TCP.

>>> import comity
>>> results = comity.run("experiments/demo/dumbbell.toml", seeds=range(1, 6))  # doctest: +SKIP
>>> results.flows.polars()  # doctest: +SKIP

`docs/guide/python.md` is the guide. `docs/reference/columns.md` lists every column.
"""

from ._comity import ENGINE_VERSION, VERSION as __version__
from ._results import Results, Table, read
from ._run import run
from .errors import Error, PlotError, Problem, ResultsError, RunError, ScenarioError

__all__ = [
    "ENGINE_VERSION",
    "Error",
    "PlotError",
    "Problem",
    "Results",
    "ResultsError",
    "RunError",
    "ScenarioError",
    "Table",
    "__version__",
    "read",
    "run",
]
