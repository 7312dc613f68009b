"""The exceptions of Comity.

    Error
    +-- ScenarioError   a scenario, an override or an argument is wrong; also a ValueError
    +-- RunError        runs failed; also a RuntimeError
    +-- ResultsError    results cannot be stored or read; also an OSError
    +-- PlotError       results lack what a picture needs; also a ValueError
"""

from __future__ import annotations

import traceback
import typing
from dataclasses import dataclass

if typing.TYPE_CHECKING:
    from ._results import Results


class Error(Exception):
    """The base of all exceptions of Comity."""


@dataclass(frozen=True)
class Problem:
    """One problem of a scenario, as the command line reports it."""

    message: str
    """The problem in one sentence."""
    expected: str
    """What was expected, or what to do; empty if unknown."""
    key: str
    """The path of its key, such as `flow.tcp.rwnd`."""
    value: str | None
    """The value as written."""
    file: str | None
    """The file, or `--set KEY` for an override."""
    line: int | None
    """The line, from 1."""
    column: int | None
    """The column, from 1, in characters."""
    point: str | None
    """The first point of the sweep with this problem, if not all have it."""


class ScenarioError(Error, ValueError):
    """A scenario or an argument is wrong. The message is that of the command line."""

    def __init__(self, message: str, problems: typing.Sequence[Problem] = ()) -> None:
        super().__init__(message)
        self.problems: tuple[Problem, ...] = tuple(problems)
        """All problems, in the order of the text; empty if an argument is wrong."""


@dataclass(frozen=True)
class Failure:
    """A run that failed."""

    run: int
    """The number of the run."""
    seed: int
    """Its seed."""
    reason: str
    """The reason, with the traceback if a controller raised an exception."""
    exception: BaseException | None = None
    """The exception of a controller that is written in Python."""


class RunError(Error, RuntimeError):
    """Some runs failed. The other runs are done, and `results` has them."""

    def __init__(
        self,
        message: str,
        failures: typing.Iterable[tuple[int, int, str, BaseException | None]] = (),
        results: Results | None = None,
    ) -> None:
        self.failures: tuple[Failure, ...] = tuple(_failure(*failure) for failure in failures)
        """The runs that failed, in the order of their numbers."""
        reasons = [f"run {it.run} (seed {it.seed}): {it.reason}" for it in self.failures]
        super().__init__("\n".join([message, *reasons]))
        self.results: Results | None = results
        """The results of the runs that did not fail."""


def _failure(run: int, seed: int, reason: str, exception: BaseException | None) -> Failure:
    if exception is not None:
        lines = traceback.format_exception(type(exception), exception, exception.__traceback__)
        reason = "".join(lines).rstrip()
    return Failure(run, seed, reason, exception)


class ResultsError(Error, OSError):
    """Results cannot be stored or read."""


class PlotError(Error, ValueError):
    """Results lack what a picture needs."""
