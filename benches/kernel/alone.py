#!/usr/bin/env python3
"""Measures one TCP flow alone on a veth pair of 1 Gb/s, for each controller in turn, as root.

    sudo benches/kernel/alone.py libra cubic reno --seconds 10 --rounds 5

A veth pair joins two network namespaces. A token bucket of 1 Gb/s shapes the sender's side, with a
queue of 1 MB and no delay. The controllers take turns, so that other work on the machine meets all
of them. Prints the median goodput of each, and its ratio to that of CUBIC. Needs iperf3. The
namespaces are removed at the end.
"""

import argparse
import json
import statistics
import subprocess
import time

SENDER, RECEIVER = "comity-alone-s", "comity-alone-r"
ADDRESS = "198.18.0.2"


def ip(*words):
    subprocess.run(["ip", *words], check=True)


def remove():
    for name in (SENDER, RECEIVER):
        subprocess.run(["ip", "netns", "del", name], check=False, stderr=subprocess.DEVNULL)


def build():
    remove()
    for name in (SENDER, RECEIVER):
        ip("netns", "add", name)
    ip("link", "add", "v0", "netns", SENDER, "type", "veth", "peer", "name", "v0", "netns", RECEIVER)
    for name, address in ((SENDER, "198.18.0.1/24"), (RECEIVER, f"{ADDRESS}/24")):
        ip("-n", name, "address", "add", address, "dev", "v0")
        ip("-n", name, "link", "set", "v0", "up")
        ip("netns", "exec", name, "sysctl", "-q", "net.ipv4.tcp_no_metrics_save=1")
    tbf = "qdisc add dev v0 root tbf rate 1gbit burst 128kb limit 1mb".split()
    subprocess.run(["ip", "netns", "exec", SENDER, "tc", *tbf], check=True)


def goodput(controller, seconds):
    """Bits per second that a greedy flow delivered, from its second second on."""
    server = subprocess.Popen(
        ["ip", "netns", "exec", RECEIVER, "iperf3", "--server", "--one-off", "--bind", ADDRESS],
        stdout=subprocess.DEVNULL,
    )
    try:
        wait_for_listener()
        client = ["iperf3", "--client", ADDRESS, "--congestion", controller, "--time", str(seconds), "--omit", "1", "--json"]
        output = subprocess.run(
            ["ip", "netns", "exec", SENDER, *client], check=True, capture_output=True, timeout=seconds + 30
        )
        return json.loads(output.stdout)["end"]["sum_received"]["bits_per_second"]
    finally:
        server.terminate()
        server.wait()


def wait_for_listener():
    """Waits at most 10 s for the receiver."""
    for _ in range(200):
        command = ["ip", "netns", "exec", RECEIVER, "ss", "--no-header", "--listening", "--tcp"]
        if subprocess.run(command, check=True, capture_output=True).stdout:
            return
        time.sleep(0.05)
    raise SystemExit("iperf3 does not listen")


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("controllers", nargs="+")
    parser.add_argument("--seconds", type=int, default=10)
    parser.add_argument("--rounds", type=int, default=5)
    arguments = parser.parse_args()
    found = {name: [] for name in arguments.controllers}
    try:
        build()
        for _ in range(arguments.rounds):
            for name in arguments.controllers:
                found[name].append(goodput(name, arguments.seconds))
    finally:
        remove()
    medians = {name: statistics.median(rates) for name, rates in found.items()}
    base = medians.get("cubic")
    for name, rate in medians.items():
        ratio = f", {rate / base:.3f} of cubic" if base else ""
        spread = f"{min(found[name]) / 1e6:.0f} to {max(found[name]) / 1e6:.0f}"
        print(f"{name}: {rate / 1e6:.1f} Mb/s ({spread}){ratio}")


if __name__ == "__main__":
    main()
