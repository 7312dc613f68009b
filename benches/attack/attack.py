#!/usr/bin/env python3
"""Attacks the command on loopback and prints what came of it.

Strangers send from addresses of 127.0.0.0/8, a hostile peer has the passphrase, somebody on the path records, changes
and repeats packets, and programs are killed. Honest callers and streams are beside them. `attack` in this folder
makes the packets. Each row says whether the outcome is what docs/design/threat-model.md states; if one is not, this
ends with 1. It takes some nine minutes, and is worth something only where nothing else runs.

    python3 benches/attack/attack.py
    python3 benches/attack/attack.py --only 'floors' --only 'restarted*'
    python3 benches/attack/attack.py --page
"""

import argparse
import fnmatch
import pathlib
import signal
import sys
import tempfile
import time

import ends
import peers
import sources
import strangers
import tcp
from outcome import Outcome, table
from programs import CLIP, ROOT, AttackError, Programs, Skipped

HERE = pathlib.Path(__file__).resolve().parent
PAGE = ROOT / "docs/design/threat-model.md"
MARKERS = "<!-- make attack: begin -->", "<!-- make attack: end -->"
MODULES = strangers, peers, sources, ends, tcp
ATTACKS = {attack.__name__: attack for module in MODULES for attack in module.ATTACKS}


def between_markers(page, text):
    """The page with other text between the markers.

    >>> page = f"a\\n{MARKERS[0]}\\nold\\n{MARKERS[1]}\\nb\\n"
    >>> between_markers(page, "new") == page.replace("old", "\\nnew\\n")
    True
    """
    before, rest = page.split(MARKERS[0])
    _, after = rest.split(MARKERS[1])
    return f"{before}{MARKERS[0]}\n\n{text}\n\n{MARKERS[1]}{after}"


def merged(page, text):
    """A table with its rows in the places of those that the page has of the same attacks, and behind the others.

    >>> old = "| attack | x |\\n| --- | --- |\\n| a | 1 |\\n| b | 2 |\\n| b | 3 |\\n| c | 4 |"
    >>> page = f"{MARKERS[0]}\\n\\n{old}\\n\\n{MARKERS[1]}\\n"
    >>> print(merged(page, "| attack | x |\\n| --- | --- |\\n| d | 5 |\\n| b | 6 |"))
    | attack | x |
    | --- | --- |
    | a | 1 |
    | b | 6 |
    | c | 4 |
    | d | 5 |
    """
    head, line, *old = page.split(MARKERS[0])[1].split(MARKERS[1])[0].strip().splitlines()
    new = {}
    for row in text.splitlines()[2:]:
        new.setdefault(row.split(" | ")[0], []).append(row)
    rows = [head, line]
    for row in old:
        attack = row.split(" | ")[0]
        if attack in new:
            # The first row of an attack gives its place to all.
            rows += new[attack]
            new[attack] = []
        else:
            rows.append(row)
    return "\n".join([*rows, *(row for rest in new.values() for row in rest)])


def chosen(patterns):
    """The attacks whose names fit a pattern; all without one.

    >>> chosen(["floors", "restarted*"])
    ['floors', 'restarted_sender', 'restarted_receiver']
    """
    return [name for name in ATTACKS if not patterns or any(fnmatch.fnmatchcase(name, pattern) for pattern in patterns)]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--comity", default=ROOT / "target/release/comity", type=pathlib.Path)
    parser.add_argument("--attack", default=HERE / "target/release/attack", type=pathlib.Path)
    parser.add_argument("--only", action="append", metavar="PATTERN", help=f"may be repeated: {', '.join(ATTACKS)} [all]")
    parser.add_argument("--page", action="store_true", help="write the table into docs/design/threat-model.md; with --only, its rows beside the others")
    options = parser.parse_args()
    for program in (options.comity, options.attack):
        if not program.exists():
            sys.exit(f"{program} is not there; make attack builds it")
    # The programs of an attack end with it.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("terminated"))
    outcomes, began = [], time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        programs = Programs(options.comity, options.attack, pathlib.Path(folder), CLIP)
        for name in chosen(options.only):
            try:
                for outcome in ATTACKS[name](programs):
                    outcomes.append(outcome)
                    print(f"{name}: " + " | ".join(outcome.cells()), flush=True)
            except Skipped as reason:
                print(f"{name}: skipped: {reason}", flush=True)
            except (AttackError, OSError, KeyError) as error:
                outcomes.append(Outcome(name, "", f"could not be run: {error!r}", False))
                print(outcomes[-1].cells(), flush=True)
    print(f"{time.monotonic() - began:.0f} s", file=sys.stderr)
    print(table(outcomes))
    if options.page:
        page = PAGE.read_text(encoding="utf-8")
        text = merged(page, table(outcomes)) if options.only else table(outcomes)
        PAGE.write_text(between_markers(page, text), encoding="utf-8")
    if not all(outcome.holds for outcome in outcomes):
        sys.exit(1)


if __name__ == "__main__":
    main()
