"""Runs in pieces, by the workers of an executor."""

from __future__ import annotations

import concurrent.futures
import functools
import typing
from collections.abc import Callable, Sequence

from . import _comity

#: The most pieces of a sweep. A worker that dies loses the work on one piece.
_MOST = 1000

#: The number, the seed and the reason; no controller of Python runs in a worker.
Failure = tuple[int, int, str, None]


def run(
    executor: concurrent.futures.Executor,
    scenario: _comity.Scenario,
    store: _comity.Store,
    numbers: Sequence[int],
    report: Callable[[int, int], None] | None,
) -> list[Failure]:
    """Lets workers do the runs that are not stored, and stores each piece as it ends.

    Returns the failed runs, those of workers that died included.
    """
    todo = store.missing(list(numbers))
    pieces = [todo[first::_MOST] for first in range(min(len(todo), _MOST))]
    parts = _hashable(scenario.parts())
    futures = {_submit(executor, parts, piece): piece for piece in pieces}
    failures: list[Failure] = []
    done = len(numbers) - len(todo)
    try:
        for future in concurrent.futures.as_completed(list(futures)):
            piece = futures.pop(future)
            error = future.exception()
            ended = [(number, _reason(error)) for number in piece] if error else future.result()
            for number, run in ended:
                if isinstance(run, bytes):
                    store.add(run)
                else:
                    failures.append((number, scenario.seed(number), run, None))
            done += len(piece)
            if report is not None:
                report(done, len(numbers))
    except BaseException:
        for future in futures:
            future.cancel()
        raise
    return sorted(failures)


def _submit(
    executor: concurrent.futures.Executor, parts: typing.Any, piece: list[int]
) -> concurrent.futures.Future:
    """The future of a piece. It fails if the executor accepts no more, because its workers died."""
    try:
        return executor.submit(simulate, parts, piece)
    except Exception as error:
        future: concurrent.futures.Future = concurrent.futures.Future()
        future.set_exception(error)
        return future


def simulate(parts: typing.Any, piece: list[int]) -> list[tuple[int, bytes | str]]:
    """A worker's task: the records of runs, or why they failed."""
    return _scenario(parts).simulate(piece)


@functools.lru_cache(maxsize=2)
def _scenario(parts: typing.Any) -> _comity.Scenario:
    """The scenario. A worker reads and checks it once for all of its pieces."""
    return _comity.Scenario.from_parts(*(list(it) if isinstance(it, tuple) else it for it in parts))


def _hashable(parts: typing.Any) -> tuple:
    return tuple(tuple(it) if isinstance(it, list) else it for it in parts)


def _reason(error: BaseException) -> str:
    return f"its worker failed: {type(error).__name__}: {error}".rstrip(": ")
