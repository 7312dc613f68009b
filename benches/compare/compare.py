#!/usr/bin/env python3
"""Compares Comity with SRT, TCP and QUIC, beside greedy kernel TCP, in the lab.

Each run sends the same frames through one transport over one network, beside greedy flows of the Linux kernel
that are three seconds older. `comity lab run` makes the network and counts the bytes on the wire. The programs of
this folder submit the frames and report when they were complete. Needs root and Debian's srt-tools.

Finished runs are kept in target/compare and not repeated: those of Comity while the two programs stay the same,
those of its peers while the sources of this folder and of the lab do.

    python3 benches/compare/compare.py --quick
    python3 benches/compare/compare.py --set networks --only 'codel*' --runs 5
    python3 benches/compare/compare.py --set all --kept --page --readme
"""

import argparse
import fnmatch
import pathlib
import subprocess
import sys

from goals import all_goals, summary
from keep import Keeper
from outcome import outcomes
from page import kind_of, page, put_between_markers, readme_part, table
from picture import picture
from points import SETS, points_of
from scenario import TRANSPORTS

HERE = pathlib.Path(__file__).resolve().parent
sys.path.append(str(HERE.parent))
from wrap import wrapped  # noqa: E402

ROOT = HERE.parent.parent
PAGE = ROOT / "docs/results/compare.md"
README = ROOT / "README.md"


def sets_of(text):
    """The sets that a list names.

    >>> sets_of("bbr,tight"), sets_of("all") == list(SETS)
    (['bbr', 'tight'], True)
    """
    names = list(SETS) if text == "all" else text.split(",")
    for name in names:
        if name not in SETS:
            raise argparse.ArgumentTypeError(f"no set {name}; there are: {', '.join(SETS)}, all")
    return names


def chosen_points(names, pattern="*"):
    """The points of these sets whose name fits, as (set, point).

    >>> [(name, point.name) for name, point in chosen_points(["published", "bbr"], "*-4*")]
    [('bbr', 'buffer-40-packets'), ('bbr', 'buffer-4')]
    """
    return [(name, point) for name in names for label, point in points_of(name).items() if fnmatch.fnmatchcase(label, pattern)]


def drawing_of(file, chosen):
    """Where the picture of a set stands, beside the page.

    >>> drawing_of(pathlib.Path("a.md"), "published").name, drawing_of(pathlib.Path("a.md"), "bbr").name
    ('a.svg', 'a-bbr.svg')
    """
    return file.with_name(f"{file.stem}.svg" if chosen == "published" else f"{file.stem}-{chosen}.svg")


def arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--comity", default=ROOT / "target/release/comity", type=pathlib.Path)
    parser.add_argument("--program", default=HERE / "target/release/compare", type=pathlib.Path)
    parser.add_argument("--set", default=["published"], type=sets_of, metavar="NAMES", help=f"such as bbr,tight; or all: {', '.join(SETS)} [published]")
    parser.add_argument("--only", default="*", metavar="PATTERN", help="points whose name fits, such as '1-cubic*' [all]")
    parser.add_argument("--transport", action="append", choices=TRANSPORTS, help="may be repeated [all]")
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--seconds", type=int, default=60)
    parser.add_argument("--jobs", type=int, default=3, help="labs of at most 20 Mb/s at a time [3]")
    parser.add_argument("--attempts", type=int, default=3, help="how often a run that fails or cannot be trusted is played [3]")
    parser.add_argument("--quick", action="store_true", help="one run of 20 s of each, played once")
    parser.add_argument("--fresh", action="store_true", help="play again what is kept")
    parser.add_argument("--kept", action="store_true", help="play nothing, and show what is kept")
    parser.add_argument("--keep", default=ROOT / "target/compare", type=pathlib.Path, help="where runs are kept [target/compare]")
    parser.add_argument("--page", nargs="?", const=PAGE, type=pathlib.Path, metavar="FILE",
                        help="write every set in which Comity has kept runs to this file, with pictures beside it [docs/results/compare.md]")
    parser.add_argument("--readme", nargs="?", const=README, type=pathlib.Path, metavar="FILE",
                        help="write the picture and the rows below the share between the markers of this file [README.md]")
    options = parser.parse_args()
    if options.quick:
        options.runs, options.seconds, options.attempts = 1, 20, 1
    return options


def of_compared_sets(found):
    """The outcomes of the sets in which Comity has runs: without them there is nothing to hold against the others.

    >>> from outcome import Outcome
    >>> rows = [Outcome(chosen, None, name, (), 1) for chosen, name in (("bbr", "SRT"), ("bbr", "Comity"), ("tight", "SRT"))]
    >>> [(row.chosen, row.transport) for row in of_compared_sets(rows)]
    [('bbr', 'SRT'), ('bbr', 'Comity')]
    """
    compared = {row.chosen for row in found if row.is_comity}
    return [row for row in found if row.chosen in compared]


def write_page(file, found, options):
    """The page of all that is kept, and a picture of each set beside it."""
    drawings = {}
    for chosen in dict.fromkeys(row.chosen for row in found):
        drawing = drawing_of(file, chosen)
        drawing.write_text(picture([row for row in found if row.chosen == chosen]))
        drawings[chosen] = drawing.name
    # Where the programs lie on this machine is nobody's business.
    sets = "all" if list(drawings) == list(SETS) else ",".join(drawings)
    command = f"python3 benches/compare/compare.py --set {sets} --runs {options.runs} --seconds {options.seconds} --page"
    file.write_text(wrapped(page(found, drawings, command, options.runs, options.seconds)))


def main():
    options = arguments()
    say = lambda text: print(f"compare: {text}", file=sys.stderr, flush=True)
    for file in (options.comity, options.program):
        if not file.exists():
            sys.exit(f"{file} is not there; `make compare` builds it")
    chosen = chosen_points(options.set, options.only)
    if not chosen:
        sys.exit(f"--only {options.only}: no such point; there are: {', '.join(point.name for _, point in chosen_points(options.set))}")
    seeds = range(1, options.runs + 1)
    keeper = Keeper(options.comity, options.program, options.keep, options.seconds, options.fresh, options.attempts, say)
    transports = [name for name in TRANSPORTS if name in (options.transport or TRANSPORTS)]
    if not options.kept:
        check = subprocess.run([options.comity, "lab", "check"], capture_output=True, text=True, check=False)
        if check.returncode:
            sys.exit(f"no comparison: {check.stderr.strip()}")
        say(f"{len(chosen)} points, {len(chosen) * len(transports) * options.runs} runs")
        try:
            keeper.play_all(chosen, seeds, transports, options.jobs)
        except KeyboardInterrupt:
            sys.exit("interrupted: finished runs are kept, and the same command plays the rest")
    shown = outcomes(keeper, chosen, transports, seeds)
    for kind in dict.fromkeys(map(kind_of, shown)):
        print(table([row for row in shown if kind_of(row) == kind], kind), end="\n\n")
    print(summary(all_goals(shown)))
    for failure in keeper.failures:
        print(f"failed: {failure}")
    kept = of_compared_sets(outcomes(keeper, chosen_points(SETS), TRANSPORTS, seeds))
    if options.page:
        if not kept:
            sys.exit("--page: no run of these programs with these --runs and --seconds is kept")
        write_page(options.page, kept, options)
    if options.readme:
        if not any(row.chosen == "published" and row.point.load == "below" for row in kept):
            sys.exit("--readme: no run of the set published is kept")
        part = wrapped(readme_part(kept, str(drawing_of(PAGE, "published").relative_to(ROOT)), str(PAGE.relative_to(ROOT))))
        options.readme.write_text(put_between_markers(options.readme.read_text(), part))
    sys.exit(1 if keeper.failures else 0)


if __name__ == "__main__":
    main()
