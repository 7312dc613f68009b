#!/usr/bin/env python3
"""Sends real video over bad paths through Comity, SRT and RIST, and counts the pictures that a viewer sees right.

Each clip goes by UDP into a program of the transport, at its own pace, through `comity emulate` to the other program,
and by UDP out of it. A packet that comes 50 ms later than the median one is too late. ffmpeg decodes the others, and a
picture is right if it looks bit for bit as in the clip.

    python3 benches/video/video.py
    python3 benches/video/video.py --only 'refresh*' --transport Comity --runs 3
    python3 benches/video/video.py --random 200 --page
"""

import argparse
import concurrent.futures
import fnmatch
import json
import pathlib
import platform
import shutil
import statistics
import sys
import tempfile
import threading
import time

from carriers import CARRIERS, Running, catch, clocked, feed, start
from cases import at_random, named
from judge import Verdict, hashes, judge

HERE = pathlib.Path(__file__).resolve().parent
sys.path.append(str(HERE.parent))
from wrap import wrapped  # noqa: E402

ROOT = HERE.parent.parent
PAGE = ROOT / "docs/results/video.md"
DRAIN_S = 1.0
"""How long after the latency the last packets may come."""
HELD_UP_S = 0.1
"""A run whose input was this late had no processor, and is played again."""
ATTEMPTS = 3


def play(program, folder, case, transport):
    """One run. It says nothing where a program ended or the machine was too busy."""
    file = case.clip.make(folder)
    datagrams = clocked(file.read_bytes())
    digests = file.with_suffix(".json")
    if not digests.exists():
        digests.write_text(json.dumps(hashes(file)))
    expected = json.loads(digests.read_text())
    arrivals, is_over = [], threading.Event()
    with tempfile.TemporaryDirectory() as logs, Running(pathlib.Path(logs)) as running:
        ports = start(running, transport, case, program)
        catching = threading.Thread(target=catch, args=(ports.output, arrivals, is_over))
        catching.start()
        try:
            began = time.monotonic()
            sent = feed(datagrams, ports.feed)
            late_s = max(at - began - due for at, (due, _) in zip(sent, datagrams))
            time.sleep(case.latency_ms / 1e3 + DRAIN_S)
        finally:
            is_over.set()
            catching.join()
        ended = running.ended()
        verdict = judge(expected, pathlib.Path(logs), [datagram for _, datagram in datagrams], sent, arrivals)
    complaint = "; ".join(ended) or (f"the input was {late_s * 1e3:.0f} ms late" if late_s > HELD_UP_S else "")
    return Verdict(**{**verdict.as_json(), "complaint": complaint})


def attempt(program, folder, case, transport):
    """The first run without a complaint, or the last."""
    for _ in range(ATTEMPTS):
        verdict = play(program, folder, case, transport)
        if not verdict.complaint:
            break
    return verdict


def run_all(options, cases):
    """All runs, several at a time; those of large clips alone. By case and transport."""
    found = {}

    def work(pairs, jobs):
        with concurrent.futures.ProcessPoolExecutor(jobs) as pool:
            futures = {
                pool.submit(attempt, options.comity, options.folder, case, transport): (case, transport)
                for case, transport in pairs
            }
            for future in concurrent.futures.as_completed(futures):
                case, transport = futures[future]
                verdict = future.result()
                found.setdefault((case, transport), []).append(verdict)
                print(f"{case.name}: {transport} {said(verdict)}", file=sys.stderr, flush=True)

    pairs = [(case, transport) for case in cases for transport in options.transport for _ in range(options.runs)]
    for clip in {case.clip for case in cases}:
        clip.make(options.folder)
    work([pair for pair in pairs if not pair[0].clip.is_large], options.jobs)
    work([pair for pair in pairs if pair[0].clip.is_large], 1)
    return found


def said(verdict):
    """
    >>> said(Verdict(375, 360, 361, 0.6, {"p50": 201.4, "p99": 204.0}))
    '360 of 375 right, 0.60 s at most without, delay 201 ms'
    """
    delay = "nothing came" if verdict.delay_ms["p50"] is None else f"delay {verdict.delay_ms['p50']:.0f} ms"
    text = f"{verdict.right} of {verdict.pictures} right, {verdict.longest_s:.2f} s at most without, {delay}"
    return f"{text} ({verdict.complaint})" if verdict.complaint else text


def cell(verdicts):
    """The mean share of right pictures, the longest time without one, and the median delay.

    >>> cell([Verdict(4, 3, 4, 0.04, {"p50": 200.0, "p99": 0}), Verdict(4, 4, 4, 0.0, {"p50": 202.0, "p99": 0})])
    '87.5 %, 0.04 s, 201 ms'
    """
    valid = [verdict for verdict in verdicts if not verdict.complaint]
    if not valid:
        return "no valid run"
    share = statistics.mean(verdict.right / max(1, verdict.pictures) for verdict in valid)
    delays = [verdict.delay_ms["p50"] for verdict in valid if verdict.delay_ms["p50"] is not None]
    delay = f"{statistics.mean(delays):.0f} ms" if delays else "–"
    return f"{100 * share:.1f} %, {max(verdict.longest_s for verdict in valid):.2f} s, {delay}"


def table(found, cases, transports):
    """The cases as Markdown."""
    lines = [f"| clip and path | round trip, latency | {' | '.join(transports)} |", "|" + "---|" * (2 + len(transports))]
    for case in cases:
        cells = [cell(found.get((case, transport), [])) for transport in transports]
        lines.append(f"| {case.name} | {case.round_trip_ms}, {case.latency_ms} ms | {' | '.join(cells)} |")
    return "\n".join(lines)


def against(found, cases, peer):
    """In how many random cases Comity showed more, as many, and fewer right pictures than this peer, and the sums.

    >>> one, two = at_random(1), at_random(2)
    >>> make = lambda right: [Verdict(375, right, 375, 0.0, {"p50": 1.0, "p99": 1.0})]
    >>> found = {(one, "Comity"): make(375), (one, "SRT"): make(370), (two, "Comity"): make(300), (two, "SRT"): make(300)}
    >>> against(found, [one, two], "SRT")
    'SRT: more in 1, as many in 1, fewer in 0 (at most 0 fewer); 675 against 670 of 750 pictures'
    """
    pairs = []
    for case in cases:
        both = [next((v for v in found.get((case, name), []) if not v.complaint), None) for name in ("Comity", peer)]
        if all(both):
            pairs.append(both)
    differences = [ours.right - theirs.right for ours, theirs in pairs]
    return (
        f"{peer}: more in {sum(d > 0 for d in differences)}, as many in {sum(d == 0 for d in differences)}, fewer in "
        f"{sum(d < 0 for d in differences)} (at most {-min(differences, default=0)} fewer); "
        f"{sum(ours.right for ours, _ in pairs)} against {sum(theirs.right for _, theirs in pairs)} of "
        f"{sum(ours.pictures for ours, _ in pairs)} pictures"
    )


def page(found, cases, drawn, options):
    """The page."""
    clips = dict.fromkeys(case.clip for case in cases)
    about = "\n".join(f"- *{clip.name}*: {clip.about}." for clip in clips)
    command = f"python3 benches/video/video.py --runs {options.runs}{f' --random {options.random}' if options.random else ''} --page"
    parts = [
        "# Real video over short faults, long groups and cold starts", "",
        f"Made by `{command}`, kernel {platform.release()}. Do not edit.", "",
        "Clips of 15 s of H.264 with 25 pictures a second enter one program of each transport by UDP, cross `comity emulate`, and",
        "leave the other program by UDP. All transports have the same latency from input to output, and connect 2 s before the clip",
        "begins. A packet that arrives 50 ms later than the median packet is too late for the player. A cell has the share of the",
        "pictures that ffmpeg then shows bit for bit as in the clip, the longest time without one, and the median delay of a packet from",
        f"input to output: the mean of {options.runs} runs, and the longest time of all." if options.runs > 1 else "input to output, in one run.", "",
        "Comity sends a picture, with its layout, when all of it has arrived at the sender. The network then has the rest of the",
        "latency. If that is less than two and a half round trips, the deadline is later, and the delay exceeds the latency by up to",
        "one picture.", "",
        about, "",
        table(found, cases, options.transport), "",
    ]
    if drawn:
        parts += [
            "## Random clips, faults and paths", "",
            f"The {len(drawn)} cases have a clip of 2 Mb/s, a round trip of 10 to 150 ms, a latency of 3 to 10 round trips, and a loss of up to",
            "5 % or an outage of up to 2 s. In half of the cases, the path has 1.5 to 6 times the clip's rate. The number of right pictures",
            "with Comity, compared with each other transport:", "",
            *(f"- {against(found, drawn, peer)}." for peer in options.transport if peer != "Comity"), "",
        ]
    return wrapped("\n".join(parts))


def arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--comity", default=ROOT / "target/release/comity", type=pathlib.Path, help="the program [target/release/comity]")
    parser.add_argument("--only", default="*", metavar="PATTERN", help="cases whose name fits, such as 'refresh*' [all]")
    parser.add_argument("--transport", action="append", choices=CARRIERS, help="may be repeated [all]")
    parser.add_argument("--runs", type=int, default=1, help="of each case [1]")
    parser.add_argument("--random", type=int, default=0, metavar="N", help="also so many random cases, one run of each [0]")
    parser.add_argument("--jobs", type=int, default=3, help="runs of small clips at a time [3]")
    parser.add_argument("--json", type=pathlib.Path, metavar="FILE", help="also write every run to this file")
    parser.add_argument("--page", nargs="?", const=PAGE, type=pathlib.Path, metavar="FILE", help="write the page [docs/results/video.md]")
    options = parser.parse_args()
    options.transport = [name for name in CARRIERS if name in (options.transport or CARRIERS)]
    options.folder = ROOT / "target/video"
    return options


def main():
    options = arguments()
    missing = [tool for tool in ("ffmpeg", *(CARRIERS[name][1] for name in options.transport)) if tool and not shutil.which(tool)]
    if missing:
        print(f"video: {' and '.join(missing)} cannot be found; Debian has them in ffmpeg, srt-tools and rist-tools", file=sys.stderr)
        return 2
    if not options.comity.exists():
        print(f"video: {options.comity} is not there; cargo build --release -p comity-cli makes it", file=sys.stderr)
        return 2
    options.folder.mkdir(parents=True, exist_ok=True)
    cases = [case for case in named() if fnmatch.fnmatchcase(case.name, options.only)]
    drawn = [at_random(seed) for seed in range(1, options.random + 1)]
    found = run_all(options, cases)
    runs, options.runs = options.runs, 1
    found |= run_all(options, drawn) if drawn else {}
    options.runs = runs
    print(table(found, cases, options.transport))
    for peer in options.transport if drawn else ():
        if peer != "Comity":
            print(against(found, drawn, peer))
    if options.json:
        lines = [{"case": case.name, "transport": transport, **verdict.as_json()} for (case, transport), all_of in found.items() for verdict in all_of]
        options.json.write_text(json.dumps(lines, indent=1))
    if options.page:
        options.page.write_text(page(found, cases, drawn, options))
    return 0


if __name__ == "__main__":
    sys.exit(main())
