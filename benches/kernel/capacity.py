#!/usr/bin/env python3
"""Measures what the kernel's Libra makes of the capacity of a link, in the lab, as root.

    sudo benches/kernel/capacity.py --seeds 5

Libra is loaded without a capacity. Each run of experiments/kernel/capacity.toml lasts 15 s; after 10 s
the estimates of its flows are read from `comity kernel status`. Prints for each network how many
flows know the capacity to within 10 %, how many say that it is unknown, and how many are wrong.
"""

import argparse
import json
import subprocess
import time

from three import loaded

SCENARIO = "experiments/kernel/capacity.toml"
CAPACITY = 20e6
#: The flows of Libra, of Reno beside them, and of Reno on the reverse path.
NETWORKS = {
    "alone": (1, 0, 0),
    "beside 2 Reno": (1, 2, 0),
    "2 Reno on the reverse path": (1, 0, 2),
    "10 beside 10 Reno": (10, 10, 0),
}
#: When the estimates are read, in seconds after the start; the lab needs about one to begin.
READ = 11.0


def judged(flows):
    """How many flows know the capacity, say that it is unknown, and are wrong.

    >>> judged([{"capacity_bps": 19e6, "capacity_is_exact": True}, {"capacity_bps": 9e6, "capacity_is_exact": False},
    ...         {"capacity_bps": 9e6, "capacity_is_exact": True}])
    (1, 1, 1)
    """
    known = [flow["capacity_bps"] for flow in flows if flow["capacity_is_exact"]]
    right = sum(abs(rate / CAPACITY - 1) <= 0.1 for rate in known)
    return right, len(flows) - len(known), len(known) - right


def flows_of(comity):
    """The flows of Libra on this machine by their ends: those of earlier runs may still be closing."""
    status = subprocess.run([comity, "kernel", "status", "--json"], check=True, capture_output=True)
    flows = [flow for flow in json.loads(status.stdout)["flows"] if flow["controller"] == "libra"]
    return {(flow["namespace"], flow["local"], flow["remote"]): flow for flow in flows}


def estimates(comity, flows, seed):
    """The state of the flows of one run, ten seconds in."""
    changes = [f"flow.{group}.count={count}" for group, count in zip(("libra", "reno", "back"), flows)]
    words = [word for change in [*changes, "sweep=[]"] for word in ("--set", change)]
    before = flows_of(comity)
    lab = subprocess.Popen([comity, "lab", "run", SCENARIO, *words, "--seed", str(seed), "--quiet"])
    time.sleep(READ)
    found = flows_of(comity)
    if lab.wait():
        raise SystemExit("the lab failed")
    return [flow for ends, flow in found.items() if ends not in before]


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--comity", default="target/release/comity")
    parser.add_argument("--seeds", type=int, default=5)
    arguments = parser.parse_args()
    with loaded(arguments.comity, "libra"):
        for network, flows in NETWORKS.items():
            found = [flow for seed in range(1, arguments.seeds + 1) for flow in estimates(arguments.comity, flows, seed)]
            right, unknown, wrong = judged(found)
            rates = sorted(flow["capacity_bps"] / 1e6 for flow in found if flow["capacity_is_exact"])
            known = ", ".join(f"{rate:.1f}" for rate in rates)
            print(f"{network}: {right} within 10 %, {unknown} unknown, {wrong} wrong; known, Mb/s: {known}", flush=True)


if __name__ == "__main__":
    main()
