"""`comity plot`."""

from __future__ import annotations

import os
import sys
import threading

from .. import read
from ..errors import Error, PlotError, ResultsError


def draw(
    results: os.PathLike[str],
    kind: str,
    out: os.PathLike[str],
    dark: bool,
    run: int | None,
    only: list[str],
) -> int:
    """Draws a picture of stored results to a file, and returns the exit code."""
    # Matplotlib alone takes seconds to load.
    patience = threading.Timer(2.0, _say, [f"drawing {kind}"])
    patience.daemon = True
    patience.start()
    try:
        code = _drawn(results, kind, out, dark, run, only)
    finally:
        patience.cancel()
    if code == 0:
        _say(f"wrote {os.fspath(out)}")
    return code


def _say(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


def _drawn(
    results: os.PathLike[str],
    kind: str,
    out: os.PathLike[str],
    dark: bool,
    run: int | None,
    only: list[str],
) -> int:
    try:
        from . import KINDS
    except ImportError as error:
        advice = "pip install '.[plot]' in a clone of the repository brings what is missing"
        _say(f"error: {error}; {advice}")
        return 1
    if kind not in KINDS:
        _say(f"error: no kind `{kind}`; expected one of {', '.join(KINDS)}")
        return 2
    try:
        stored = read(results)
    except ResultsError as error:
        _say(f"error: {error}")
        return 6
    try:
        options = {} if run is None else {"run": run}
        figure = KINDS[kind](stored, dark=dark, only=only, **options)
        figure.savefig(out, dpi=150)
    except (Error, OSError, ValueError) as error:
        _say(f"error: {error}")
        return 2 if isinstance(error, PlotError) else 1
    return 0
