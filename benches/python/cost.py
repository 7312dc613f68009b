#!/usr/bin/env python3
"""What Python costs: crossing into it, a million rows, and the processors in a long sweep.

    pip install '.[polars,arrow]'
    python benches/python/cost.py

prints the three numbers that docs/guide/python.md states.
"""

import os
import statistics
import subprocess
import sys
import tempfile
import time

import comity

SCENARIO = {
    "scenario": {"name": "cost", "duration": "100s", "warmup": "5s"},
    "topology": {
        "kind": "dumbbell",
        "bottleneck": {"rate": "20Mbps", "delay": "20ms", "queue": 100},
        "access": {"rate": "100Mbps", "delay": "2ms"},
    },
    "flow": [{"group": "tcp", "count": 10}],
}


def seconds(work):
    began = time.perf_counter()
    result = work()
    return time.perf_counter() - began, result


def crossing(rounds=7):
    """A run of about a second: the command alone, and Python with every table as a data frame."""
    pairs = []
    # The length that takes the command about a second.
    length, _ = seconds(lambda: comity.run(SCENARIO, seeds=1, threads=1))
    duration = f"{max(1, round(100 / length))}s"
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "cost.toml")
        with open(path, "w", encoding="utf-8") as file:
            file.write(comity.run(SCENARIO, seeds=1).text)
        words = ["sim", "run", path, "--quiet", "--seed", "1", "--jobs", "1"]
        words += ["--set", f"scenario.duration={duration}"]
        command = [*COMMAND, *words]

        def frames():
            changed = {"scenario.duration": duration}
            results = comity.run(path, seeds=1, threads=1, set=changed)
            return [table.polars() for table in results]

        frames()
        for _ in range(rounds):
            alone, _ = seconds(lambda: subprocess.run(command, check=True))
            both, _ = seconds(frames)
            started, _ = seconds(lambda: subprocess.run([*COMMAND, "--version"], check=True,
                                                        stdout=subprocess.DEVNULL))
            pairs.append((alone - started, both))
    alone, both = (statistics.median(column) for column in zip(*pairs))
    print(f"a run by the command {alone:.3f} s, by Python with all tables {both:.3f} s: "
          f"{(both / alone - 1) * 100:+.1f} %")


def million():
    """A million rows: made, shared, and where they lie."""
    changed = {"scenario.duration": "150s"}
    results = comity.run(SCENARIO, seeds=1, packets=True, set=changed)
    made, table = seconds(lambda: results.packets)
    shared, frame = seconds(table.polars)
    arrow = table.arrow()
    address = table._source.address("offered_ns")
    same = frame["offered_ns"].to_arrow().buffers()[1].address == address
    same &= arrow["offered_ns"].chunk(0).buffers()[1].address == address
    print(f"{len(table):,} rows of {len(table.columns)} columns: made in {made:.2f} s, "
          f"in Polars after {shared * 1e3:.1f} ms, at the same address: {same}")


def sweep(points=1000):
    """A sweep of short runs, in memory and stored: the share of both processors that it uses."""
    scenario = {
        **SCENARIO,
        "scenario": {"name": "sweep", "duration": "20s", "max_runs": points},
        "sweep": [{"parameter": "topology.bottleneck.queue",
                   "range": {"from": 10, "to": 9 + points, "step": 1}}],
    }
    cores = len(os.sched_getaffinity(0))
    with tempfile.TemporaryDirectory() as folder:
        for out in None, os.path.join(folder, "out"):
            before = os.times()
            wall, results = seconds(lambda out=out: comity.run(scenario, seeds=1, out=out))
            after = os.times()
            used = after.user + after.system - before.user - before.system
            print(f"{len(results)} points in {wall:.1f} s, {'stored' if out else 'in memory'}: "
                  f"{used / wall / cores * 100:.1f} % of {cores} processors")


COMMAND = sys.argv[1:] or [sys.executable, "-m", "comity"]

if __name__ == "__main__":
    crossing()
    million()
    sweep()
