#!/usr/bin/env python3
"""What a controller in Python costs: the same run with Reno in Python and with the built-in one.

    pip install '.[arrow]'
    python benches/python/controller.py

prints the numbers that docs/guide/python-controller.md states. Both runs give the same results, or
the comparison fails: only the time may differ.
"""

import argparse
import pathlib
import statistics
import sys
import time

import comity

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "python" / "tests"))
from reno import RFC5681, Reno, scenario  # noqa: E402

DURATION = {"scenario.duration": "600s"}


def built_in():
    return comity.run(scenario("reno", parameters=RFC5681), seeds=1, threads=1, set=DURATION)


def in_python(make=Reno, seeds=(1,), threads=1):
    flows = scenario("mine")
    return comity.run(flows, seeds=seeds, threads=threads, set=DURATION, controllers={"mine": make})


def seconds(work):
    began = time.perf_counter()
    work()
    return time.perf_counter() - began


def counting(calls):
    """Reno that counts the events that it takes."""

    def counted(name):
        def method(self, *arguments):
            calls[0] += 1
            getattr(super(Counting, self), name)(*arguments)

        return method

    names = [name for name in vars(Reno) if name.startswith("on_")]
    Counting = type("Counting", (Reno,), {name: counted(name) for name in names})
    return Counting


def main():
    parser = argparse.ArgumentParser(description="Measures the cost of a controller in Python.")
    parser.add_argument("--rounds", type=int, default=15)
    rounds = parser.parse_args().rounds
    calls = [0]
    goodputs = [
        results.flows.arrow()["goodput_bps"].to_pylist()
        for results in (built_in(), in_python(counting(calls)))
    ]
    if goodputs[0] != goodputs[1]:
        sys.exit(f"the two runs differ: goodputs of {goodputs[0]} and {goodputs[1]} b/s")
    pairs = [(seconds(built_in), seconds(in_python)) for _ in range(rounds)]
    rust, python = (statistics.median(column) for column in zip(*pairs))
    low, middle, high = statistics.quantiles([b / a for a, b in pairs], n=4)
    print(f"a run of 600 s, two flows of three with Reno: {rust * 1e3:.1f} ms built in, "
          f"{python * 1e3:.1f} ms in Python (medians of {rounds})")
    print(f"ratio {middle:.2f}, quartiles {low:.2f} and {high:.2f}; "
          f"{calls[0]} events, {(python - rust) / calls[0] * 1e6:.2f} us each")
    for threads in (1, 2):
        both = [seconds(lambda: in_python(seeds=(1, 2), threads=threads)) for _ in range(rounds)]
        print(f"two such runs, threads={threads}: {statistics.median(both) * 1e3:.1f} ms")


if __name__ == "__main__":
    main()
