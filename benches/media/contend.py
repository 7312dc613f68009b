#!/usr/bin/env python3
"""A video with deadlines beside greedy flows, in real time: frames on time by type, shares, fairness.

Each run is one `comity demo`: real, encrypted UDP through the emulated bottleneck of the published comparison
(8 Mb/s, 20 ms each way, 60 packets), one stream of H.264 with B pictures and 0, 1, 2 or 4 greedy flows of the
same library, all of them Reno or CUBIC. The video is made by ffmpeg, with a key picture each second of eight to
nine times the mean, and a buffer of 0.2 s of its rate. It asks for three quarters of an equal share, for which
the bottleneck is made as fast as that takes, 7 to 8 Mb/s; and for 4 Mb/s of 8. Alone it has 120 ms, beside
others 400 ms.

    fair    = min(demand, equal share) for the video, (rate - that) / flows for each other flow
    others  = mean rate of the other flows / their fair rate, and / an equal share
    carried = bytes on time and decodable / min(all that was given, equal share of the bottleneck, headers off)

A run during which the machine was too busy to emulate the path exactly is marked with `*`, and can be
repeated (`--retries`).
"""

import argparse
import itertools
import json
import pathlib
import shutil
import statistics
import subprocess
import sys

from media import ROOT, Clip, MediaError

# Noise makes a test pattern need its rate, and its P and B pictures too.
PICTURE = "testsrc2=size=960x540:rate=25,noise=alls=6:allf=t"
SOUND_AND_HEADERS = 0.2  # Mb/s of the wire that are not video, as `comity demo --json` says in setup.demand_mbps
BUFFER_S = 0.2
BUSY = 3


def wanted(rate, flows, load):
    """What the video is to take on the wire, in Mb/s.

    >>> [wanted(8, flows, "share") for flows in (0, 1, 2, 4)], wanted(8, 2, "4Mbps")
    ([6.0, 3.0, 2.0, 1.2], 4.0)
    """
    return 4.0 if load == "4Mbps" else round(0.75 * rate / (flows + 1), 6)


def clip(mbps, seconds):
    """A file of about this rate on the wire."""
    kbps = round(1000 * (mbps - SOUND_AND_HEADERS))
    encode = ("-c:v", "libx264", "-preset", "veryfast", "-x264-params", "keyint=25:scenecut=0:bframes=2:b-adapt=0", "-b:v", f"{kbps}k",
              "-maxrate", f"{kbps}k", "-bufsize", f"{round(kbps * BUFFER_S)}k", "-f", "mpegts")
    folder = ROOT / "target/media"
    folder.mkdir(parents=True, exist_ok=True)
    return Clip(f"contend-{kbps}k", ".ts", encode, picture=PICTURE).make(folder, seconds)


def play(options, rivals, flows, load, seed):
    """One run: the document of `comity demo`, and whether the machine kept up."""
    latency = options.latency_alone if flows == 0 else options.latency
    file = clip(wanted(options.rate, flows, load), options.seconds)
    command = [str(options.comity), "demo", "--json", "--no-report", "--clip", str(file), "--delay", "20ms", "--queue", "60",
               "--flows", str(flows), "--rivals", rivals, "--latency", f"{latency}ms",
               "--duration", f"{options.seconds}s", "--cc", options.cc, "--seed", str(seed), "--loss", options.loss]
    if load == "4Mbps":
        command += ["--rate", f"{options.rate}Mbps"]
    if options.no_shed:
        command.append("--no-shed")
    for _ in range(options.retries + 1):
        done = subprocess.run(command, capture_output=True, text=True, timeout=options.seconds + 60, check=False)
        if done.returncode not in (0, BUSY):
            raise RuntimeError(f"{' '.join(command)} ended with {done.returncode}: {done.stderr.strip()[-300:]}")
        if done.returncode == 0:
            break
    return json.loads(done.stdout), done.returncode == 0


def figures(document):
    """What the table says of a run."""
    setup = document["setup"]
    equal = setup["rate_mbps"] / (setup["flows"] + 1)
    video, *others = document["flows"]
    kinds = {kind["kind"]: kind for kind in document["kinds"]}
    share = lambda kind: 100 * kinds[kind]["on_time"] / max(kinds[kind]["sent"], 1)
    mean = statistics.mean(flow["mbps"] for flow in others) if others else None
    return {
        "need": setup["demand_mbps"] / equal,
        "on_time": 100 * document["pictures"]["on_time"] / document["pictures"]["sent"],
        "decodable": 100 * document["pictures"]["decodable"] / document["pictures"]["sent"],
        "carried": document["bytes"]["decodable_of_share"],
        "carried_bytes": document["bytes"]["decodable"],
        "carriable_bytes": min(document["bytes"]["sent"], document["bytes"]["equal_share"]),
        "I": share("I"),
        "P": share("P"),
        "B": share("B"),
        "audio": share("audio"),
        "video_mbps": video["mbps"],
        "video_of_fair": video["mbps"] / video["fair_mbps"],
        "others_of_fair": mean / others[0]["fair_mbps"] if others else None,
        "others_of_equal": mean / equal if others else None,
        "jain": document["jain"],
        "jain_of_fair": document["jain_of_fair"],
        "late_bytes": document["bytes_after_deadline"],
    }


HEAD = ("rivals     load    need  | on time %          I      P      B  audio  decodable | decodable / carriable MB = carried (least) | video Mb/s  of fair | others of fair  of equal"
        " | Jain   of fair")


def line(rivals, flows, load, rows, exact):
    """The mean over the runs, the worst run in brackets where there are several."""
    mean = lambda name: statistics.mean(row[name] for row in rows)
    cell = lambda name: "    -" if rows[0][name] is None else f"{mean(name):5.2f}"
    worst = f"({min(row['on_time'] for row in rows):5.1f})" if len(rows) > 1 else " " * 7
    least = f"({min(row['carried'] for row in rows):.2f})" if len(rows) > 1 else ""
    label = "alone" if flows == 0 else f"{flows} {rivals}"
    return (f"{label:10} {load:6} {mean('need'):5.2f}  | {mean('on_time'):5.1f} {worst}    {mean('I'):6.1f} {mean('P'):6.1f} {mean('B'):6.1f}"
            f" {mean('audio'):6.1f} {mean('decodable'):10.1f} |"
            f" {mean('carried_bytes') / 1e6:9.2f} / {mean('carriable_bytes') / 1e6:12.2f} = {mean('carried'):7.2f} {least:>7} | {mean('video_mbps'):10.2f}    {cell('video_of_fair')} |          {cell('others_of_fair')}"
            f"     {cell('others_of_equal')} | {mean('jain'):5.3f}  {mean('jain_of_fair'):5.3f}{'' if exact else ' *'}")


def arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--comity", default=ROOT / "target/release/comity", type=pathlib.Path, help="the program [target/release/comity]")
    parser.add_argument("--rivals", nargs="+", default=["reno", "cubic"], help="controllers of the other flows [reno cubic]")
    parser.add_argument("--flows", nargs="+", type=int, default=[0, 1, 2, 4], help="how many of them [0 1 2 4]")
    parser.add_argument("--loads", nargs="+", choices=["share", "4Mbps"], default=["share", "4Mbps"], help="what the video asks for")
    parser.add_argument("--seconds", type=int, default=20, help="how long a run is [20]")
    parser.add_argument("--runs", type=int, default=1, help="with seeds from 1 on [1]")
    parser.add_argument("--retries", type=int, default=0, help="of a run for which the machine was too busy [0]")
    parser.add_argument("--rate", type=float, default=8.0, help="of the bottleneck, in Mb/s [8]")
    parser.add_argument("--loss", default="0", help="random loss each way, such as 2%% [0]")
    parser.add_argument("--latency", type=int, default=400, help="beside others, in milliseconds [400]")
    parser.add_argument("--latency-alone", type=int, default=120, help="alone, in milliseconds [120]")
    parser.add_argument("--cc", default="steady", help="the video's controller [steady]")
    parser.add_argument("--no-shed", action="store_true", help="never drop pictures to fit the path")
    parser.add_argument("--json", type=pathlib.Path, help="also write every run to this file")
    return parser.parse_args()


def main():
    options = arguments()
    if not options.comity.exists():
        print(f"contend: {options.comity} is not there; cargo build --release -p comity-cli makes it", file=sys.stderr)
        return 2
    if not shutil.which("ffmpeg"):
        print("contend: skipped, since ffmpeg cannot be found; Debian's package ffmpeg has it")
        return 0
    print(HEAD)
    kept, late, has_busy = [], 0, False
    for rivals, flows, load in itertools.product(options.rivals, options.flows, options.loads):
        if flows == 0 and rivals != options.rivals[0]:
            continue
        rows, exact = [], True
        for seed in range(1, options.runs + 1):
            document, kept_up = play(options, rivals, flows, load, seed)
            exact &= kept_up
            rows.append(figures(document))
            kept.append(document)
        late += sum(row["late_bytes"] for row in rows)
        has_busy |= not exact
        print(line(rivals, flows, load, rows, exact), flush=True)
    if has_busy:
        print("* the machine was too busy to emulate the path exactly")
    print(f"bytes sent after their deadline: {late}")
    if options.json:
        options.json.write_text(json.dumps(kept, indent=1))
    return 1 if late else 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except (MediaError, RuntimeError, subprocess.TimeoutExpired) as error:
        print(f"contend: {error}", file=sys.stderr)
        sys.exit(1)
