#!/usr/bin/env python3
"""Races Comity's simulator against ns-2 on the same networks, in one go.

Each contestant is a whole process, start-up included, and the two take turns, so that a machine that
slows down slows both. The measure is packet-hops (packets carried, summed over links) per second of wall
time. ns-2 runs in its fastest configuration: only the packet headers that a scenario looks at, no traces,
and the event scheduler that was fastest on that scenario a moment before.

A race between different simulations would prove nothing, so mean goodput and packet-hops of the two are
compared as well. If they differ by more than the tolerances, the race reports that and fails.
"""

import argparse
import json
import os
import pathlib
import shutil
import statistics
import subprocess
import sys
import time
from dataclasses import dataclass

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent
SCHEDULERS = ("Heap", "Calendar", "List", "Splay")
GOODPUT_TOLERANCE = 0.02
HOPS_TOLERANCE = 0.03


@dataclass(frozen=True)
class Scenario:
    """One network, as a script for ns-2 and as a scenario file for Comity, and how long to simulate it."""

    name: str
    script: str
    file: str
    seconds: int

    def ns2_command(self, ns, scheduler):
        return [ns, str(HERE / self.script), f"seconds={self.seconds}", f"scheduler={scheduler}"]

    def comity_command(self, comity):
        return [comity, "sim", "run", str(HERE / self.file), "--set", f'scenario.duration="{self.seconds}s"', "--json"]


SCENARIOS = (
    Scenario("dumbbell-500", "dumbbell.tcl", "dumbbell.toml", 500),
    Scenario("dumbbell-5000", "dumbbell.tcl", "dumbbell.toml", 5000),
    Scenario("spacing-500", "spacing.tcl", "spacing.toml", 500),
)


class RaceError(Exception):
    """A contestant could not be run or gave no result."""


def run_timed(command):
    """The standard output of a command and the wall seconds that the whole process took."""
    began = time.perf_counter()
    try:
        done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
    except OSError as error:
        raise RaceError(f"{command[0]}: {error.strerror}") from error
    seconds = time.perf_counter() - began
    if done.returncode != 0:
        raise RaceError(f"{' '.join(command)}: exit code {done.returncode}\n{done.stderr.strip()}")
    return done.stdout, seconds


def read_ns2(output):
    """Mean goodput in bit/s and packet-hops from the closing line of a script.

    >>> read_ns2("mean_goodput_bps=49932.640 packet_hops=375390\\n")
    (49932.64, 375390)
    >>> read_ns2("nonsense")
    Traceback (most recent call last):
    ...
    race.RaceError: ns-2 printed no result but 'nonsense'
    """
    words = dict(word.split("=", 1) for word in output.split() if "=" in word)
    try:
        return float(words["mean_goodput_bps"]), int(words["packet_hops"])
    except (KeyError, ValueError):
        raise RaceError(f"ns-2 printed no result but {output.strip()!r}") from None


def read_comity(output):
    """Mean goodput in bit/s on the wire over all flows, as ns-2 counts it, and packet-hops from a JSON summary.

    >>> read_comity('{"totals": {"packet_hops": 90}, "points": [{"groups": ['
    ...     '{"flows": 1, "throughput_bps": {"mean": 10.0}}, {"flows": 3, "throughput_bps": {"mean": 20.0}}]}]}')
    (17.5, 90)
    >>> read_comity('{"points": []}')
    Traceback (most recent call last):
    ...
    race.RaceError: Comity's summary has no packet-hops or no groups of flows
    """
    try:
        summary = json.loads(output)
        groups = summary["points"][0]["groups"]
        total = sum(group["flows"] * group["throughput_bps"]["mean"] for group in groups)
        return total / sum(group["flows"] for group in groups), summary["totals"]["packet_hops"]
    except (ValueError, KeyError, TypeError, IndexError, ZeroDivisionError) as error:
        raise RaceError("Comity's summary has no packet-hops or no groups of flows") from error


def differences(ns2, comity):
    """Sentences about what the two did differently; none when they simulated the same thing.

    >>> differences((100.0, 1000), (101.0, 1020))
    []
    >>> differences((100.0, 1000), (97.0, 1100))
    ['mean goodput differs by -3.0 % (at most 2 %)', 'packet-hops differ by +10.0 % (at most 3 %)']
    """
    found = []
    for text, index, tolerance in (
        ("mean goodput differs", 0, GOODPUT_TOLERANCE),
        ("packet-hops differ", 1, HOPS_TOLERANCE),
    ):
        difference = comity[index] / ns2[index] - 1 if ns2[index] else float("inf")
        if abs(difference) > tolerance:
            found.append(f"{text} by {100 * difference:+.1f} % (at most {100 * tolerance:.0f} %)")
    return found


def spread(values):
    """Median, least and most.

    >>> spread([3.0, 1.0, 2.0])
    {'median': 2.0, 'min': 1.0, 'max': 3.0}
    """
    return {"median": statistics.median(values), "min": min(values), "max": max(values)}


def race(scenario, ns, comity, rounds):
    """Runs one scenario in both simulators, turn by turn."""
    trials = {
        scheduler: run_timed(scenario.ns2_command(ns, scheduler))[1] for scheduler in SCHEDULERS
    }
    scheduler = min(trials, key=trials.get)
    commands = {
        "ns2": (scenario.ns2_command(ns, scheduler), read_ns2),
        "comity": (scenario.comity_command(comity), read_comity),
    }
    seconds = {name: [] for name in commands}
    results = {}
    for turn in range(rounds):
        # Who goes first changes from round to round.
        for name in sorted(commands, reverse=turn % 2 == 1):
            command, read = commands[name]
            output, wall = run_timed(command)
            result = read(output)
            if results.setdefault(name, result) != result:
                raise RaceError(f"{scenario.name}: {name} gave two results for one seed")
            seconds[name].append(wall)
    rates = {name: [results[name][1] / wall for wall in walls] for name, walls in seconds.items()}
    return {
        "scenario": scenario.name,
        "ns2_scheduler": scheduler,
        "ns2_scheduler_seconds": trials,
        "rounds": rounds,
        "mean_goodput_bps": {name: result[0] for name, result in results.items()},
        "packet_hops": {name: result[1] for name, result in results.items()},
        "wall_seconds": seconds,
        "packet_hops_per_second": {name: spread(values) for name, values in rates.items()},
        "ratio": spread([ours / theirs for ours, theirs in zip(rates["comity"], rates["ns2"])]),
        "differences": differences(results["ns2"], results["comity"]),
    }


def report(races):
    """The races as a table, and below it what has to be said about them."""
    head = ("scenario", "packet-hops", "ns-2 (M/s)", "Comity (M/s)", "ratio", "ns-2 scheduler")
    rows = [head]
    for entry in races:
        cells = [entry["scenario"], f"{entry['packet_hops']['comity']:,}"]
        for name in ("ns2", "comity"):
            rate = entry["packet_hops_per_second"][name]
            cells.append("{median:.2f} ({min:.2f}..{max:.2f})".format(**{k: v / 1e6 for k, v in rate.items()}))
        cells.append("{median:.1f} ({min:.1f}..{max:.1f})".format(**entry["ratio"]))
        cells.append(entry["ns2_scheduler"])
        rows.append(cells)
    widths = [max(len(row[column]) for row in rows) for column in range(len(head))]
    lines = ["  ".join(cell.ljust(width) for cell, width in zip(row, widths)).rstrip() for row in rows]
    lines.append("")
    lines.append("packet-hops per second of wall time, whole processes in turns: median (least..most)")
    for entry in races:
        for sentence in entry["differences"]:
            lines.append(f"NOT THE SAME: {entry['scenario']}: {sentence}")
    return "\n".join(lines)


def main(arguments):
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=5, help="how often each simulator runs each scenario")
    parser.add_argument(
        "--scenario", action="append", choices=[scenario.name for scenario in SCENARIOS],
        help="only this scenario; may be repeated",
    )
    parser.add_argument("--comity", default=str(ROOT / "target" / "release" / "comity"), help="the comity command")
    parser.add_argument("--ns", default=shutil.which("ns") or "ns", help="the ns-2 command")
    parser.add_argument("--json", action="store_true", help="print the whole measurement as JSON")
    options = parser.parse_args(arguments)
    if options.rounds < 1:
        parser.error("--rounds must be at least 1")

    chosen = [s for s in SCENARIOS if not options.scenario or s.name in options.scenario]
    races = []
    try:
        for scenario in chosen:
            print(f"racing {scenario.name}", file=sys.stderr)
            races.append(race(scenario, options.ns, options.comity, options.rounds))
    except RaceError as error:
        print(f"race: {error}", file=sys.stderr)
        return 2
    if options.json:
        print(json.dumps({"cores": os.cpu_count(), "races": races}, indent=2))
    else:
        print(report(races))
    return 1 if any(entry["differences"] for entry in races) else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
