"""The `comity` command: `comity ...` or `python -m comity ...`."""

from __future__ import annotations

import os
import signal
import sys

from . import _comity


def main() -> int:
    """Runs the command with the words of this process, and returns its exit code."""
    # The command sets its own handlers where it needs one; Python's would hide the key from it.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    return _comity.command(["comity", *sys.argv[1:]], _plot)


def _plot(results: os.PathLike[str], kind: str, out: os.PathLike[str], *options) -> int:
    from .plot import _command

    return _command.draw(results, kind, out, *options)


if __name__ == "__main__":
    sys.exit(main())
