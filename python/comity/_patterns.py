"""Patterns of names on a command line; `*` stands for anything."""

from __future__ import annotations

import difflib
import fnmatch
from collections.abc import Collection, Sequence


def fits(patterns: Sequence[str], *names: str) -> bool:
    """Whether one of the names fits one of the patterns; any does without patterns."""
    return not patterns or any(fnmatch.filter(names, pattern) for pattern in patterns)


def check(patterns: Sequence[str], names: Collection[str], what: str) -> None:
    """Checks that each pattern fits a name.

    Raises:
        ValueError: A pattern fits none. The message says what there is, and the nearest name.
    """
    for pattern in patterns:
        if not fnmatch.filter(names, pattern):
            near = difflib.get_close_matches(pattern, sorted(names), 1)
            hint = f"; did you mean {near[0]!r}?" if near else ""
            raise ValueError(
                f"no {what} is called {pattern!r}: expected one of "
                f"{', '.join(sorted(names))}{hint}"
            )
