"""`comity plot`."""

from __future__ import annotations

import os
import sys

from .. import read
from ..errors import Error, PlotError


def draw(
    results: os.PathLike[str],
    kind: str,
    out: os.PathLike[str],
    dark: bool,
    run: int | None,
    only: list[str],
) -> int:
    """Draws a picture of stored results to a file, and returns the exit code."""
    try:
        from . import KINDS
    except ImportError as error:
        advice = "pip install '.[plot]' in a clone of the repository brings what is missing"
        print(f"error: {error}; {advice}", file=sys.stderr)
        return 1
    if kind not in KINDS:
        print(f"error: no kind `{kind}`; expected one of {', '.join(KINDS)}", file=sys.stderr)
        return 2
    try:
        options = {} if run is None else {"run": run}
        figure = KINDS[kind](read(results), dark=dark, only=only, **options)
        figure.savefig(out, dpi=150)
    except (Error, OSError, ValueError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 2 if isinstance(error, PlotError) else 1
    return 0
