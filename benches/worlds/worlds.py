#!/usr/bin/env python3
"""Runs scenarios in the simulator and in the lab (`comity lab`), and prints them side by side.

Each scenario of experiments/worlds runs at each of its points with each of its seeds in both worlds. The table has
the medians over the seeds, with half the distance between the quartiles:

    Mb/s a flow      bytes on the wire that arrived, the mean over the flows of a group
    share            that over the mean of all flows: 1 is an equal share
    Jain             the index of fairness within a group of several flows
    queueing delay   mean time that packets waited at the bottleneck
    loss per mille   packets dropped or lost at the bottleneck, of those offered
    on time          sections within their deadline

All count from the end of the warm-up. Rates, delays and losses agree within 10 %, shares and indices within 0.05,
per cent within 2 points; delays also within 0.5 ms and losses within 0.1 per mille. Differences that are known have
their cause in experiments/worlds/causes.toml. Finished runs are kept in target/worlds and not played again.
"""

import argparse
import pathlib
import subprocess
import sys
import tomllib

from measure import cause_of, compare, is_trusted, quantities
from page import csv_of, page, row_of, table
from picture import picture
from play import Player, processors
from points import points_of

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
sys.path.append(str(ROOT / "benches"))
from wrap import wrapped  # noqa: E402

SCENARIOS = ROOT / "experiments/worlds"
LABS_EACH = 3


def numbers(text):
    """
    >>> numbers("1-3,7")
    [1, 2, 3, 7]
    """
    found = []
    for part in text.split(","):
        first, _, last = part.partition("-")
        found += range(int(first), int(last or first) + 1)
    return found


def has_deadlines(point):
    return any("latency" in flow for flow in point.table["flow"])


def runs_of(player, world, point, seeds):
    """The quantities of the runs that are kept, and how many of them the lab distrusts."""
    folders = [folder for seed in seeds if (folder := player.folder(world, point, seed)).exists()]
    doubtful = sum(not is_trusted(folder) for folder in folders)
    return [quantities(folder, has_deadlines(point)) for folder in folders], doubtful


def arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--comity", default=ROOT / "target/release/comity", type=pathlib.Path, help="the program [target/release/comity]")
    parser.add_argument("--only", nargs="+", default=[], metavar="PATTERN", help="points whose label begins so, such as tcp-* [all]")
    parser.add_argument("--seeds", type=numbers, help="such as 1-5 [those of the scenarios]")
    parser.add_argument("--quick", action="store_true", help="three seeds, and runs of 30 s")
    parser.add_argument("--jobs", type=int, default=LABS_EACH * processors(), help="labs of at most 20 Mb/s at a time [three a processor]")
    parser.add_argument("--fresh", action="store_true", help="play again what is kept")
    parser.add_argument("--kept", action="store_true", help="play nothing, and show what is kept")
    parser.add_argument("--page", type=pathlib.Path, help="also write a page to this file, and all rows (.csv) and a picture (.svg) beside it")
    parser.add_argument("--command", default="make worlds", help="what the page says that it was made by [make worlds]")
    return parser.parse_args()


def main():
    options = arguments()
    say = lambda text: print(f"worlds: {text}", file=sys.stderr, flush=True)
    if not options.comity.exists():
        say(f"{options.comity} is not there; cargo build --release -p comity-cli makes it")
        return 2
    points = points_of(SCENARIOS, options.only)
    if not points:
        say(f"no point matches {' '.join(options.only)}")
        return 2
    check = subprocess.run([options.comity, "lab", "check"], capture_output=True, text=True, check=False)
    if check.returncode:
        print(check.stdout + check.stderr, end="")
        say("skipped: the lab cannot run here, and without it there is one world only")
        return 0
    overrides = ['scenario.duration="30s"'] if options.quick else []
    seeds_of = lambda point: options.seeds or ([1, 2, 3] if options.quick else point.seeds)
    player = Player(options.comity, ROOT / "target/worlds", overrides, options.fresh, say)
    say(f"{len(points)} points, {sum(len(seeds_of(point)) for point in points)} runs in each world")
    if not options.kept:
        player.play_all("sim", points, seeds_of, processors())
        player.play_all("lab", points, seeds_of, options.jobs)
    causes = tomllib.loads((SCENARIOS / "causes.toml").read_text())["cause"]
    compared, doubts = [], {}
    for point in points:
        sim, _ = runs_of(player, "sim", point, seeds_of(point))
        lab, doubtful = runs_of(player, "lab", point, seeds_of(point))
        if doubtful:
            doubts[point.label] = doubtful
        compared += [(comparison, cause_of(comparison, causes)) for comparison in compare(point.label, sim, lab)]
    rows = [row_of(comparison, cause) for comparison, cause in compared]
    print(table(rows, doubts))
    for (world, label), reason in player.refusals.items():
        print(f"{world} skips {label}: {reason}")
    for label in {label for _, label in player.refusals}:
        if all((world, label) in player.refusals for world in ("sim", "lab")):
            player.failures.append(f"{label}: no world has it")
    for failure in player.failures:
        print(f"failed: {failure}")
    if options.page:
        options.page.parent.mkdir(parents=True, exist_ok=True)
        data, drawing = (options.page.with_suffix(suffix) for suffix in (".csv", ".svg"))
        data.write_text(csv_of(rows))
        drawing.write_text(picture(compared))
        text = page(rows, doubts, player.refusals, options.command, data.name, drawing.name)
        options.page.write_text(wrapped(text))
    return 1 if player.failures else 0


if __name__ == "__main__":
    sys.exit(main())
