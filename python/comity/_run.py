"""Runs of scenarios."""

from __future__ import annotations

import concurrent.futures
import os
import typing
import warnings
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path

from . import _comity, _pieces, _toml
from ._progress import reporting
from ._results import Results
from .errors import RunError, ScenarioError

Scenario = typing.Union[str, "os.PathLike[str]", Mapping[str, typing.Any]]
Controllers = Mapping[str, Callable[..., _comity.Controller]]


def run(
    scenario: Scenario,
    *,
    seeds: int | Iterable[int] | None = None,
    set: Mapping[str, typing.Any] | None = None,
    points: Mapping[str, typing.Any] | None = None,
    shard: tuple[int, int] | None = None,
    out: str | os.PathLike[str] | None = None,
    force: bool = False,
    controllers: Controllers | None = None,
    threads: int | None = None,
    executor: concurrent.futures.Executor | None = None,
    packets: bool = False,
    progress: bool | Callable[[int, int], None] = False,
) -> Results:
    """Runs every point of a scenario with every seed, and returns the results.

    The same scenario and seeds give the same results as `comity sim run`, whatever the number of
    threads or workers. The GIL is released meanwhile, and an interrupt ends the current runs. A run
    that fails does not end the others. A `UserWarning` names points at which seeds have no effect,
    and groups that the preset's receive window limits, not the network.

    With `out`, each run is stored in the folder `OUT.runs` as it ends, as `comity sim run --out`
    does, and the tables are written to `out` at the end. Stored runs are not done again: the same
    call continues a sweep that was interrupted or failed, whether Python or the command began it.

    Args:
        scenario: The path of a file, its text (with a line break), or a dict of the same structure.
            Paths in a text or dict start at the working directory.
        seeds: Seeds that replace those of the scenario: one, or several.
        set: Values that replace those of the scenario, such as `{"flow.tcp.rwnd": 20}`. The value
            of a swept key replaces the values of its axis, with a `UserWarning`.
        points: Values of axes of the sweep, such as `{"queue": [20, 60]}`: runs at other points are
            left out. The others keep their numbers.
        shard: A part of the runs, such as `(3, 16)` for the third of sixteen. With `out` they are
            only stored; `comity.merge` or `comity results merge` makes tables of all shards.
        out: Where to store the results: NAME (Parquet), NAME.csv or NAME.json.
        force: Whether to do stored runs again, and to replace earlier results at `out` and runs of
            another sweep in `OUT.runs`.
        controllers: Controllers that are written in Python: the name by which flows choose one,
            and the class, or any function of a `comity.Setup` that makes a `comity.Controller`. Not
            with `out` or `executor`.
        threads: How many runs execute at a time. The default is one for each processor, and one
            with `controllers`, because Python executes one of them at a time.
        executor: Workers that do the runs instead of threads: any `concurrent.futures.Executor`,
            such as a `ProcessPoolExecutor` or the `Client.get_executor()` of Dask. Workers need
            Comity of the same version, and no file.
        packets: Whether to record every packet at every link, 120 bytes each, in the table
            `packets`. Packets are not stored as runs end.
        progress: `True` to print how many runs are done to standard error: in a line that changes
            on a terminal, and in a line every ten seconds elsewhere. Or a function of this number
            and of the number of all runs, which is called about ten times a second, or whenever a
            worker has done some runs.

    Raises:
        ScenarioError: The scenario or an argument is wrong.
        RunError: Some runs failed; it has the results of the others, which are stored too.
        ResultsError: Runs cannot be stored, or earlier results would be lost.
        KeyboardInterrupt: The interrupt key was pressed. With `out`, the runs done are stored.
    """
    if threads is not None and (not isinstance(threads, int) or threads < 1):
        raise ScenarioError(f"threads is {threads!r}; expected a number from 1")
    classes = _controllers(controllers)
    _check_together(classes, out, threads, executor, packets)
    if executor is not None and not hasattr(executor, "submit"):
        raise ScenarioError(f"executor is {executor!r}; expected a concurrent.futures.Executor")
    if not (isinstance(progress, bool) or callable(progress)):
        raise ScenarioError(f"progress is {progress!r}; expected a bool or a function")
    if classes and threads is None:
        threads = 1
    name, native = _read(scenario, set, seeds, classes)
    chosen = native.choose(list(_points(_dict("points", points))), _part(shard))
    path = None if out is None else os.fspath(out)
    store = _comity.Store(native, f"comity.run({name!r})", path, force)
    with reporting(progress) as report:
        if executor is None:
            failures = store.run(chosen, threads, packets, report)
        else:
            failures = _pieces.run(executor, native, store, chosen, report)
    done, messages = store.finish(chosen, shard is None)
    for message in messages:
        warnings.warn(message, stacklevel=2)
    results = Results(done)
    if failures:
        raise RunError(f"{len(failures)} of {len(chosen)} runs failed", failures, results)
    return results


class Simulation:
    """A run that pauses at chosen times, so that a controller can be changed in between.

    >>> simulation = comity.Simulation("one.toml", seed=7)
    >>> simulation.run_until(0.5)
    >>> results = simulation.finish()

    Pauses do not change totals: the results are those of `run` with the same seed, though a bin of
    a series may show the sender's window one event earlier or later. A call raises the exceptions
    of controllers that occur in it.

    Args:
        scenario: As for `run`, with one run: one seed, no sweep.
        seed: The seed that replaces that of the scenario.
        set: As for `run`.
        controllers: As for `run`.
        packets: As for `run`.

    Raises:
        ScenarioError: The scenario or an argument is wrong, also one of a method.
        RunError: It is finished.
    """

    def __init__(
        self,
        scenario: Scenario,
        *,
        seed: int | None = None,
        set: Mapping[str, typing.Any] | None = None,
        controllers: Controllers | None = None,
        packets: bool = False,
    ) -> None:
        name, native = _read(scenario, set, seed, _controllers(controllers))
        self._command = f"comity.Simulation({name!r})"
        self._native = _comity.Simulation(native, packets)

    def run_until(self, time_s: float) -> None:
        """Handles all events before a time in seconds, from the start of the run."""
        self._native.run_until(time_s)

    def finish(self) -> Results:
        """Runs the rest, and returns the results. The simulation cannot be used afterwards."""
        return Results(self._native.finish(self._command))


def _check_together(
    controllers: Controllers,
    out: str | os.PathLike[str] | None,
    threads: int | None,
    executor: concurrent.futures.Executor | None,
    packets: bool,
) -> None:
    """Refuses arguments of `run` that exclude each other."""
    if executor is not None and threads is not None:
        raise ScenarioError("threads and executor are both set; expected one of them")
    if packets and (out is not None or executor is not None):
        raise ScenarioError(
            "packets are kept only in memory; expected packets=True without out and executor, and "
            "Results.write to store them"
        )
    if controllers and out is not None:
        raise ScenarioError(
            "controllers and out are both set: a stored run is found again by all that its results "
            "depend on, and the code of a Python class has no such identity; expected controllers "
            "without out, and Results.write to store the results"
        )
    if controllers and executor is not None:
        raise ScenarioError(
            "controllers and executor are both set: a worker gets a scenario as text, and an object "
            "of this process has none; expected controllers without executor, or a worker that "
            "calls comity.run itself"
        )


def _read(
    scenario: Scenario,
    values: Mapping[str, typing.Any] | None,
    seeds: int | Iterable[int] | None,
    controllers: dict[str, typing.Any],
) -> tuple[str, _comity.Scenario]:
    """The name of a scenario, and the scenario with its points checked."""
    name, text, folder = _source(scenario)
    numbers = None if seeds is None else _seeds(seeds)
    native = _comity.Scenario(name, text, folder, _overrides(values), numbers, controllers)
    for note in native.notes():
        warnings.warn(note, stacklevel=3)
    return str(name), native


def _overrides(values: Mapping[str, typing.Any] | None) -> list[str]:
    return [f"{key}={_toml.value(value, key)}" for key, value in _dict("set", values).items()]


def _controllers(controllers: Controllers | None) -> dict[str, typing.Any]:
    for name, make in _dict("controllers", controllers).items():
        if not isinstance(name, str) or not callable(make):
            raise ScenarioError(
                f"controllers has {name!r}: {make!r}; expected a name and a comity.Controller class"
            )
    return dict(controllers or {})


def _dict(name: str, values: Mapping[str, typing.Any] | None) -> Mapping[str, typing.Any]:
    if values is not None and not isinstance(values, Mapping):
        raise ScenarioError(f"{name} is {values!r}; expected a dict")
    return values or {}


def _part(shard: tuple[int, int] | None) -> str | None:
    """A shard in the syntax of the command."""
    if shard is None:
        return None
    if not isinstance(shard, (tuple, list)) or len(shard) != 2:
        raise ScenarioError(f"shard is {shard!r}; expected a pair such as (3, 16)")
    return f"{shard[0]}/{shard[1]}"


def _source(scenario: Scenario) -> tuple[Path, str | None, Path]:
    """The name, the text if it is not in a file, and the folder of a scenario."""
    here = Path()
    if isinstance(scenario, Mapping):
        return Path("<dict>"), _toml.document(scenario), here
    if isinstance(scenario, str) and "\n" in scenario:
        return Path("<text>"), scenario, here
    if isinstance(scenario, (str, os.PathLike)):
        path = Path(scenario)
        return path, None, path.parent
    raise ScenarioError(
        f"the scenario is {type(scenario).__name__}; expected a path, a text or a dict"
    )


def _seeds(seeds: int | Iterable[int]) -> list[int]:
    if isinstance(seeds, (str, bytes)) or not isinstance(seeds, (int, Iterable)):
        raise ScenarioError(f"seeds is {seeds!r}; expected a number or several")
    numbers = [seeds] if isinstance(seeds, int) else list(seeds)
    for seed in numbers:
        if not hasattr(seed, "__index__") or not 0 <= seed < 2**63:
            raise ScenarioError(f"the seed {seed!r} is not one; expected 0 to {2**63 - 1}")
    if not numbers:
        raise ScenarioError("there are no seeds; expected at least one")
    return [int(seed) for seed in numbers]


def _points(points: Mapping[str, typing.Any]) -> Iterable[str]:
    """Points in the syntax of the command: an axis and one of its values."""
    for axis, values in points.items():
        values = values.tolist() if hasattr(values, "tolist") else values
        for value in values if isinstance(values, (list, tuple, range)) else [values]:
            yield f"{axis}={value if isinstance(value, str) else _toml.value(value, axis)}"
