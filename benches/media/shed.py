#!/usr/bin/env python3
"""A video of more than the path carries, with shedding and without: what arrives, and what of it decodes.

H.264 with B pictures goes with `comity send` through `comity emulate` to `comity recv`, once as it is and once
with `--no-shed`. The goal: the sender sheds B pictures first, then P pictures, and no I picture, so that
the rest can be decoded. ffmpeg decodes the received file; a picture that it shows needs all its references.
"""

import argparse
import json
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

from media import ROOT, Clip, MediaError, Program, run

KINDS = ("key", "P", "B", "audio")


def play(options, file, extra):
    """One transfer: the account of both ends, the pictures that ffmpeg shows, and its complaints."""
    with tempfile.TemporaryDirectory(prefix="comity-shed-") as name:
        folder = pathlib.Path(name)
        out = folder / "out.ts"
        key = "passphrase=what is left out is told"
        with Program([options.comity, "recv", f"comity://127.0.0.1:0?mode=listener&{key}", str(out), "--json"], folder, "recv") as receiver, \
             Program([options.comity, "emulate", "--listen", "127.0.0.1:0", "--to", f"127.0.0.1:{receiver.port()}", "--rate", options.rate,
                      "--delay", "20ms", "--queue", "60", "--json"], folder, "emulate") as network:
            uri = f"comity://127.0.0.1:{network.port()}?latency={options.latency}ms&{key}" + "".join(f"&{pair}" for pair in options.set)
            with Program([options.comity, "send", str(file), uri, "--json", *extra], folder, "send") as sender:
                sent = sender.end(3 * options.seconds + 30)[1]
            received = receiver.end(30)[1]
            network.interrupt()
            network_code, _ = network.end(10)
        decoder = subprocess.run(["ffmpeg", "-v", "info", "-nostats", "-i", str(out), "-map", "0:v", "-f", "null", "-"], capture_output=True, text=True,
                                 timeout=120, check=False)
        errors = len(re.findall(r"error|missing|corrupt|conceal|reference", decoder.stderr, re.IGNORECASE))
        shown = run(["ffprobe", "-v", "quiet", "-flags", "output_corrupt", "-select_streams", "v:0", "-count_frames", "-show_entries",
                     "stream=nb_read_frames", "-of", "default=nokey=1:noprint_wrappers=1", str(out)], 120).split()
        return sent, received, network_code == 3, errors, int(shown[0]) if shown and shown[0].isdigit() else 0


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--comity", default=str(ROOT / "target/release/comity"), help="the program [target/release/comity]")
    parser.add_argument("--rate", default="2Mbps", help="of the path [2Mbps]")
    parser.add_argument("--source", default="3000k", help="of the video [3000k]")
    parser.add_argument("--seconds", type=int, default=20, help="the length of the clip [20]")
    parser.add_argument("--latency", type=int, default=400, help="in milliseconds [400]")
    parser.add_argument("--set", nargs="+", default=[], metavar="KEY=VALUE", help="keys for the sender's URI, such as cc=cubic")
    options = parser.parse_args()
    if not shutil.which("ffmpeg") or not shutil.which("ffprobe"):
        print("shed: skipped, since ffmpeg cannot be found; Debian's package ffmpeg has it")
        return 0
    folder = ROOT / "target/media"
    folder.mkdir(parents=True, exist_ok=True)
    encode = ("-c:v", "libx264", "-preset", "veryfast", "-x264-params", "keyint=25:scenecut=0:bframes=2:b-adapt=0", "-b:v", options.source, "-maxrate", options.source,
              "-bufsize", options.source, "-f", "mpegts")
    # The picture of a test pattern is too easily coded: noise makes it need its rate.
    clip = Clip(f"h264-{options.source}-noise", ".ts", ("-vf", "noise=alls=20:allf=t", *encode))
    file = clip.make(folder, options.seconds)
    print(f"{file.stat().st_size * 8 / options.seconds / 1e6:.2f} Mb/s of media over {options.rate}, {options.latency} ms")
    print(f"{'':12}" + "".join(f"{kind + ' arrived':>16}" for kind in KINDS) + f"{'shown':>8}{'complaints':>12}  gaps")
    for label, extra in (("shedding", ()), ("--no-shed", ("--no-shed",))):
        sent, received, is_busy, errors, shown = play(options, file, extra)
        given, whole = sent["passed"]["whole"], received["passed"]["whole"]
        count = lambda counts, kind: counts.get(kind, {}).get("sections", 0)
        cells = "".join(f"{f'{count(whole, kind)} of {count(given, kind)}':>16}" for kind in KINDS)
        gaps = ", ".join(f"{reason} {number}" for reason, number in sorted(received["passed"]["gaps"].items()))
        totals = sent["output"]["totals"]
        if totals["connections"] != 1 or any(sent["output"]["unsent"].values()):
            gaps += f"; {totals['connections']} connections, not given to any: {sent['output']['unsent']}"
        print(f"{label:12}{cells}{shown:>8}{errors:>12}  {gaps or 'none'}{'  (machine too busy)' if is_busy else ''}", flush=True)
    return 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except (MediaError, subprocess.TimeoutExpired, json.JSONDecodeError) as error:
        print(f"shed: {error}", file=sys.stderr)
        sys.exit(1)
