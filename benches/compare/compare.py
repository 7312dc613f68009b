#!/usr/bin/env python3
"""Holds Comity against SRT, TCP and QUIC, beside greedy kernel TCP, in the lab.

Each row sends the same frames through one transport over one network, beside greedy flows of the Linux kernel
that are three seconds older. `comity lab run` makes the network and counts the bytes on the wire; the programs of
this folder give the frames and say when they were complete. Needs root and Debian's srt-tools.

    python3 benches/compare/compare.py --quick
    python3 benches/compare/compare.py --only '1-cubic*' --runs 5 --page docs/results/compare.md
"""

import argparse
import concurrent.futures
import csv
import fnmatch
import json
import pathlib
import statistics
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent
# Headers of IPv4, TCP and UDP count: 8 Mb/s are 8 Mb/s of IP packets.
RATE_MBPS = 8.0
LEAD_S = 3
"""How much older the greedy flows are."""
DRAIN_S = 6
"""How long the last frames, and the words of the programs, may take."""

TRANSPORTS = {
    "Comity": "--transport comity",
    "SRT": "--transport srt",
    "TCP": "--transport tcp",
    "QUIC": "--transport quic",
}
# How a frame that others need is told apart, where a transport can be told.
IMPORTANCE = {"Comity": " --importance", "QUIC": " --importance"}

SCENARIO = """
[scenario]
name = "compare"
duration = "{duration}s"
warmup = "{lead}s"

[topology]
kind = "dumbbell"
bottleneck = {{ rate = "8Mbps", delay = "{delay}", queue = {queue}, reverse = {{ queue = 1000 }} }}

[[flow]]
group = "media"
transport = "command"
start = "{lead}s"
sender = "{program} send --connect {{address}}:{{port}} {options}"
receiver = "{program} receive --listen {{address}}:{{port}} {options}"

[[flow]]
group = "tcp"
count = {rivals}
controller = "{controller}"
"""


def points():
    """Every network and source, by name.

    >>> sorted(points())[:2]
    ['1-cubic-above', '1-cubic-below']
    >>> points()["2-reno-below"]["mbps"]
    2.0
    >>> points()["4-cubic-above"]["mbps"]
    4.0
    """
    found = {}
    for controller in ("cubic", "reno"):
        for rivals in (1, 2, 4):
            share = RATE_MBPS / (rivals + 1)
            for load, mbps in (("below", 0.75 * share), ("above", 4.0)):
                found[f"{rivals}-{controller}-{load}"] = {
                    "controller": controller,
                    "rivals": rivals,
                    "mbps": mbps,
                    "delay": "20ms",
                    "queue": 60,
                }
    return found


def scenario(point, transport, frames, seconds, seed, program):
    """The text of one run.

    >>> text = scenario(points()["1-cubic-below"], "SRT", "equal", 10, 3, "compare")
    >>> "send --connect {address}:{port} --transport srt --rate 3000kbps" in text
    True
    """
    options = (
        f"{TRANSPORTS[transport]} --rate {point['mbps'] * 1000:.0f}kbps --seconds {seconds}"
        f" --frames {frames} --seed {seed} --latency 400ms"
    )
    if frames == "key":
        options += IMPORTANCE.get(transport, "")
    return SCENARIO.format(
        duration=LEAD_S + seconds + DRAIN_S, lead=LEAD_S, program=program, options=options, **point
    )


def run(comity, program, point, transport, frames, seconds, seed):
    """One run: what the meter, the network and the machine say of it."""
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        file = folder / "compare.toml"
        file.write_text(scenario(point, transport, frames, seconds, seed, program))
        command = [comity, "lab", "run", file, "--seed", str(seed), "--quiet"]
        command += ["--out", folder / "results.csv", "--logs", folder]
        done = subprocess.run(command, capture_output=True, text=True)
        if done.returncode not in (0, 3):
            raise RuntimeError(done.stderr.strip())
        said = {}
        for end in ("receiver", "sender"):
            text = (folder / f"media-0.{end}.out").read_text()
            if not text:
                words = (folder / f"media-0.{end}.err").read_text().strip() or "it said nothing"
                raise RuntimeError(f"the {end} printed no result: {words}")
            said[end] = json.loads(text)
        receiver, sender = said["receiver"], said["sender"]
        with open(folder / "results.csv" / "flows.csv") as table:
            flows = list(csv.DictReader(table))
    media = next(flow for flow in flows if flow["group"] == "media")
    rivals = [flow for flow in flows if flow["group"] == "tcp"]
    # The run goes on for a moment behind the source; what TCP takes then is its own.
    share = RATE_MBPS * 1e6 / (len(rivals) + 1)
    return {
        "trusted": done.returncode == 0,
        "on_time": receiver["on_time"],
        "decodable": receiver["decodable"],
        "keys_on_time": receiver["keys_on_time"],
        "delay_ms": receiver["delay_ms"],
        "wire": int(media["sent_wire_bytes"]) / max(1, sender["bytes_given"]),
        "tcp": statistics.mean(float(flow["throughput_bps"]) for flow in rivals) / share,
        "cpu_s": sum(sender["processor"].values()) + sum(receiver["processor"].values()),
    }


def table(rows, wanted):
    """The rows as Markdown, the worst run in brackets.

    >>> rows = [("1-cubic-below", "SRT", [{"on_time": 0.5, "decodable": 1.0, "keys_on_time": None, "wire": 1.04,
    ...     "tcp": 1.2, "cpu_s": 2.0, "delay_ms": {"p50": 10.0, "p99": 20.0}, "trusted": True}])]
    >>> print(table(rows, 1).splitlines()[-1])
    | 1-cubic-below | SRT | 50.00 % (50.00) | 100.0 % | – | 10 / 20 ms | 1.04 | 1.20 | 2.0 | |
    """
    lines = [
        "| point | transport | on time (worst run) | decodable | key frames | delay, 50 / 99 % |"
        " wire bytes over bytes given | TCP over its equal share | CPU s | |",
        "|---|---|---|---|---|---|---|---|---|---|",
    ]
    for point, transport, runs in rows:
        mean = lambda key: statistics.mean(run[key] for run in runs)
        keys = [run["keys_on_time"] for run in runs if run["keys_on_time"] is not None]
        middle, most = (statistics.mean(run["delay_ms"][at] for run in runs) for at in ("p50", "p99"))
        doubt = "" if all(run["trusted"] for run in runs) else "not trusted "
        if len(runs) < wanted:
            doubt += f"{wanted - len(runs)} of {wanted} runs failed "
        worst = min(run["on_time"] for run in runs)
        key_frames = f"{statistics.mean(keys):.1%}".replace("%", " %") if keys else "–"
        lines.append(
            f"| {point} | {transport} | {mean('on_time') * 100:.2f} % ({worst * 100:.2f}) |"
            f" {mean('decodable') * 100:.1f} % | {key_frames} | {middle:.0f} / {most:.0f} ms |"
            f" {mean('wire'):.2f} | {mean('tcp'):.2f} | {mean('cpu_s'):.1f} | {doubt}|"
        )
    return "\n".join(lines)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--comity", default=ROOT / "target/release/comity", type=pathlib.Path)
    parser.add_argument("--program", default=HERE / "target/release/compare", type=pathlib.Path)
    parser.add_argument("--only", default="*", help="a pattern of points, such as '1-cubic*'")
    parser.add_argument("--transport", action="append", choices=list(TRANSPORTS))
    parser.add_argument("--frames", choices=("equal", "key"), default="equal")
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--seconds", type=int, default=60)
    parser.add_argument("--jobs", type=int, default=3, help="labs at a time")
    parser.add_argument("--quick", action="store_true", help="one run of 20 s of each")
    parser.add_argument("--page", type=pathlib.Path, help="write the table to this file")
    args = parser.parse_args()
    if args.quick:
        args.runs, args.seconds = 1, 20
    check = subprocess.run([args.comity, "lab", "check"], capture_output=True, text=True)
    if check.returncode:
        sys.exit(f"no comparison: {check.stderr.strip()}")
    chosen = {name: point for name, point in points().items() if fnmatch.fnmatch(name, args.only)}
    if not chosen:
        sys.exit(f"--only {args.only}: no such point; there are: {', '.join(points())}")
    transports = args.transport or list(TRANSPORTS)
    rows = []
    with concurrent.futures.ThreadPoolExecutor(args.jobs) as pool:
        jobs = [
            (name, transport, [
                pool.submit(run, args.comity, args.program, point, transport, args.frames, args.seconds, seed)
                for seed in range(1, args.runs + 1)
            ])
            for name, point in chosen.items()
            for transport in transports
        ]
        for name, transport, futures in jobs:
            done = []
            for seed, future in enumerate(futures, 1):
                try:
                    done.append(future.result())
                except RuntimeError as reason:
                    print(f"{name} {transport}, seed {seed}, failed: {reason}", file=sys.stderr)
            if done:
                rows.append((name, transport, done))
                print(f"{name} {transport}: {done[-1]['on_time']:.4f} on time", file=sys.stderr)
    text = table(rows, args.runs)
    print(text)
    if args.page:
        # Where the programs lie on this machine is nobody's business.
        chosen = f"--only '{args.only}' --frames {args.frames} --runs {args.runs} --seconds {args.seconds}"
        words = f"python3 benches/compare/compare.py {chosen} --page docs/results/compare.md"
        args.page.write_text(
            "# Held against others\n\n"
            f"Made by `{words}`. Do not edit.\n\n"
            f"Frames of {args.frames} kind, 25 a second, 400 ms each, {args.runs} runs of {args.seconds} s, through 8 Mb/s,\n"
            "20 ms each way, a drop-tail queue of 60 packets, beside greedy kernel TCP flows that are three seconds\n"
            "older. *Below* is three quarters of an equal share, *above* 4 Mb/s. Every frame counts from the first.\n"
            f"TCP's share is over the run and {DRAIN_S} s behind it, in which the source is silent.\n"
            "[benches/compare](../../benches/compare/README.md) says what each column means.\n\n"
            f"{text}\n"
        )


if __name__ == "__main__":
    main()
