"""The progress of runs, on standard error."""

from __future__ import annotations

import contextlib
import sys
import time
import typing
from collections.abc import Callable, Iterator

#: The times in seconds until the first line of a log, and from one line to the next.
_PATIENCE = 2.0
_PERIOD = 10.0

Report = Callable[[int, int], None]


class Due:
    """Whether a log gets its next line: two seconds after the start, and then every ten."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._at = clock() + _PATIENCE

    def __call__(self) -> bool:
        now = self._clock()
        is_due = now >= self._at
        if is_due:
            self._at = now + _PERIOD
        return is_due


@contextlib.contextmanager
def reporting(
    progress: bool | Report,
    stream: typing.TextIO | None = None,
    clock: Callable[[], float] = time.monotonic,
) -> Iterator[Report | None]:
    """The function to call with the numbers of finished and of all runs, if any.

    `True` prints them: in one line that changes on a terminal, and in new lines in a log.
    """
    if progress is not True:
        yield progress or None
        return
    out = stream or sys.stderr
    if out.isatty():
        has_begun = False

        def rewrite(done: int, runs: int) -> None:
            nonlocal has_begun
            has_begun = True
            print(f"\r{done} of {runs} runs", end="", file=out, flush=True)

        try:
            yield rewrite
        finally:
            if has_begun:
                print(file=out, flush=True)
    else:
        is_due = Due(clock)

        def add(done: int, runs: int) -> None:
            if is_due():
                print(f"{done} of {runs} runs", file=out, flush=True)

        yield add
