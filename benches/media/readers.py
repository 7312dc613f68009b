#!/usr/bin/env python3
"""What other programs say of Comity's output and not of its input: ffmpeg, VLC, GStreamer's tsdemux, dvblast.

Clips go through `comity send`, `comity emulate` and `comity recv`, over a path without losses, over one that
loses 2 % with time to repair that, and over one without that time. Each reader then takes the source apart, and
what was received: as it came in, and as a new stream (`--remux`). Printed is how many lines a reader said of the
output beyond those that it said of the source, numbers left aside, and their kinds. The last row of each
stream is the source without 2 % of its datagrams: what a byte carrier that repairs nothing gives.

A reader has to find nothing where no section is missing, and in a new stream. Elsewhere the counters and the
lengths of the source say what is missing, and readers repeat it. Whether the pictures decode is printed beside
it, and not judged: where pictures are missing, others lack their reference.

A reader that cannot be found is left out; with `--strict` that is a failure.
"""

import argparse
import collections
import concurrent.futures
import itertools
import json
import os
import pathlib
import random
import re
import shutil
import socket
import subprocess
import sys
import tempfile
import threading
import time

from media import CLIPS, PACKET, ROOT, Clip, MediaError, Program

sys.path.append(str(ROOT / "benches/video"))
from carriers import clocked, feed, free_ports  # noqa: E402

H264 = ("-c:v", "libx264", "-preset", "veryfast", "-g", "25", "-bf", "2", "-b:v", "800k")
STREAMS = [clip for clip in CLIPS if clip.suffix == ".ts"] + [
    Clip("constant", ".ts", (*H264, "-maxrate", "800k", "-bufsize", "800k", "-muxrate", "1500k", "-f", "mpegts")),
    Clip("programs", ".ts", ("-map", "0:v", "-map", "1:a", "-map", "0:v", "-map", "1:a", *H264, "-program", "program_num=1:st=0:st=1",
                             "-program", "program_num=2:st=2:st=3", "-f", "mpegts")),
]
# The latency in milliseconds, and the options of the emulated path.
PATHS = {
    "clean": (400, ["--delay", "15ms"]),
    "2 % lost, repaired": (400, ["--delay", "15ms", "--loss", "2%"]),
    "2 % lost, no time": (50, ["--delay", "30ms", "--loss", "2%"]),
}
OUTPUTS = {"as it came in": [], "new stream": ["--remux"]}


def said(command, patience=120, **more):
    """The lines that a program writes, whatever it ends with."""
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL, timeout=patience, check=False, **more)
    return done.stdout.decode(errors="replace").splitlines()


def ffmpeg(file):
    """It decodes the beginning, to find out what the streams are, and that is not its demultiplexer's."""
    lines = said(["ffmpeg", "-v", "warning", "-i", str(file), "-map", "0", "-c", "copy", "-f", "null", "-"])
    return [line for line in lines if line.startswith("[mpegts @")]


def decoded(file):
    return said(["ffmpeg", "-v", "warning", "-i", str(file), "-map", "0", "-f", "null", "-"])


def vlc(file):
    # It does not run as root.
    command = ["cvlc", "-I", "dummy", "--no-color", "-vv", "--play-and-exit", "--sout", "#std{access=dummy,mux=dummy,dst=x}", str(file)]
    if os.geteuid() == 0:
        command = ["setpriv", "--reuid=nobody", "--regid=nogroup", "--clear-groups", *command]
    lines = said(command, env={**os.environ, "HOME": "/nonexistent"})
    own = re.compile(r"\] (ts demux|\S+ packetizer|\S+ (PSI|PMT|PAT)\S*|libdvbpsi).*(warning|error)|libdvbpsi (error|warning)")
    return [line for line in lines if own.search(line)]


def tsdemux(file):
    debug = {"GST_DEBUG": "0,*ts*:3,pesparser:3", "GST_DEBUG_NO_COLOR": "1", "GST_REGISTRY_FORK": "no"}
    lines = said(["gst-launch-1.0", "-q", "filesrc", f"location={file}", "!", "decodebin", "name=d", "d.", "!", "queue", "!", "fakesink",
                  "d.", "!", "queue", "!", "fakesink"], env={**os.environ, **debug})
    return [line for line in lines if "WARN" in line or "ERROR" in line]


def dvblast(file):
    """It reads datagrams alone, and takes its time from their arrival."""
    ports = free_ports()
    with tempfile.TemporaryDirectory(prefix="comity-readers-") as name, socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sink:
        sink.bind(("127.0.0.1", ports.output))
        table = pathlib.Path(name) / "outputs"
        table.write_text("".join(f"127.0.0.1:{ports.output}/udp 1 {program}\n" for program in (1, 2)))
        child = subprocess.Popen(["dvblast", "-c", str(table), "-D", f"@127.0.0.1:{ports.feed}/udp"], stdout=subprocess.PIPE,
                                 stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL)
        lines = []
        reading = threading.Thread(target=lambda: lines.extend(child.stdout))
        reading.start()
        try:
            time.sleep(1)
            feed(clocked(file.read_bytes()), ports.feed)
            time.sleep(0.5)
        finally:
            child.terminate()
            child.wait()
            reading.join()
    lines = [line.decode(errors="replace").rstrip() for line in lines]
    return [line for line in lines if line.startswith(("warning", "error"))]


READERS = {"ffmpeg": (ffmpeg, "ffmpeg"), "VLC": (vlc, "cvlc"), "tsdemux": (tsdemux, "gst-launch-1.0"), "dvblast": (dvblast, "dvblast"),
           "decoded": (decoded, "ffmpeg")}
"""For each reader what it says of a file, and the program."""
NOT_JUDGED = {"decoded"}


def kind(line):
    """A line without what differs between two runs.

    >>> kind("[mpegts @ 0x55bed0b39840] Packet corrupt (stream = 0, dts = 172800).")
    '[mpegts @ #] Packet corrupt (stream = #, dts = #).'
    >>> kind("0:00:00.024740358  1680 0x560b0de3c190 WARN  tsdemux tsdemux.c:2742:queue: CONTINUITY")
    'WARN  tsdemux tsdemux.c:#:queue: CONTINUITY'
    """
    line = re.sub(r"^[\d:.]+\s+\d+\s+0x[0-9a-f]+ ", "", line)
    return re.sub(r"0x[0-9a-f]+|\b[0-9a-f]{16}\b|\b\d+\b", "#", line)


def more(output, source):
    """The lines of the output beyond those of the source, kind by kind."""
    left, found = collections.Counter(map(kind, source)), []
    for line in output:
        if left[kind(line)] > 0:
            left[kind(line)] -= 1
        else:
            found.append(line)
    return found


def carry(options, file, out, path, extra):
    """Sends a file over a path; returns how many sections are missing. Raises an error unless all ends in order."""
    latency, network = PATHS[path]
    with tempfile.TemporaryDirectory(prefix="comity-readers-") as name:
        folder, key = pathlib.Path(name), "passphrase=" + os.urandom(8).hex()
        receive = [options.comity, "recv", f"comity://127.0.0.1:0?mode=listener&{key}", str(out), "--json", *extra]
        with Program(receive, folder, "recv") as receiver:
            emulate = [options.comity, "emulate", "--listen", "127.0.0.1:0", "--to", f"127.0.0.1:{receiver.port()}", "--seed", "1", "--json", *network]
            with Program(emulate, folder, "emulate") as between:
                target = f"comity://127.0.0.1:{between.port()}?latency={latency}ms&{key}"
                with Program([options.comity, "send", str(file), target, "--json"], folder, "send") as sender:
                    for program in (sender, receiver):
                        code, report = program.end(3 * options.seconds + 30)
                        if code:
                            raise MediaError(f"{program.name} ended with {code}: {program.words()}")
                    return sum(report["passed"]["gaps"].values())


def thinned(data):
    """A stream without one of 50 datagrams."""
    chance = random.Random(1)
    datagrams = [data[at : at + 7 * PACKET] for at in range(0, len(data), 7 * PACKET)]
    return b"".join(datagram for datagram in datagrams if chance.random() >= 0.02)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--comity", default=str(ROOT / "target/release/comity"), help="the program [target/release/comity]")
    parser.add_argument("--clips", nargs="+", choices=[clip.name for clip in STREAMS], help="only these")
    parser.add_argument("--seconds", type=int, default=10, help="the length of a clip [10]")
    parser.add_argument("--jobs", type=int, default=2, help="as many at a time [2]")
    parser.add_argument("--strict", action="store_true", help="fail where a reader is missing")
    options = parser.parse_args()
    absent = sorted({program for _, program in READERS.values() if not shutil.which(program)})
    if absent:
        print(f"readers: without {', '.join(absent)}, which cannot be found")
    if "ffmpeg" in absent or absent and options.strict:
        return 1 if options.strict else 0
    readers = {name: read for name, (read, program) in READERS.items() if program not in absent}
    folder = ROOT / "target/media"
    folder.mkdir(parents=True, exist_ok=True)
    # VLC reads as another user.
    with tempfile.TemporaryDirectory(prefix="comity-readers-", dir=folder) as outputs:
        pathlib.Path(outputs).chmod(0o755)
        files = {clip: clip.make(folder, options.seconds) for clip in STREAMS if not options.clips or clip.name in options.clips}
        with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
            sources = {clip: {name: pool.submit(read, file) for name, read in readers.items()} for clip, file in files.items()}

            def attempt(number, clip, path, output):
                """How many sections are missing, and what each reader says beyond the source; `None` of the same bytes."""
                out = pathlib.Path(outputs) / f"{number}.ts"
                source = files[clip].read_bytes()
                if path in PATHS:
                    missing = carry(options, files[clip], out, path, OUTPUTS[output])
                else:
                    missing = None
                    out.write_bytes(thinned(source))
                if out.read_bytes() == source:
                    return missing, None
                return missing, {name: more(read(out), sources[clip][name].result()) for name, read in readers.items()}

            runs = [(clip, *run) for clip in files for run in [*itertools.product(PATHS, OUTPUTS), ("2 % lost", "the bytes")]]
            pending = [pool.submit(attempt, number, *run) for number, run in enumerate(runs)]
            print(f"{'stream':10}{'path':20}{'output':15}{'missing':>9}" + "".join(f"{name:>9}" for name in readers))
            faults = 0
            for (clip, path, output), result in zip(runs, pending):
                missing, beyond = result.result()
                row = f"{clip.name:10}{path:20}{output:15}{'' if missing is None else missing:>9}"
                if beyond is None:
                    print(f"{row}  the same bytes", flush=True)
                    continue
                print(row + "".join(f"{len(lines):9}" for lines in beyond.values()))
                is_judged = missing == 0 or output == "new stream"
                for name, lines in beyond.items():
                    if lines and name not in NOT_JUDGED:
                        faults += is_judged
                        kinds = collections.Counter(map(kind, lines)).most_common(3)
                        listed = "; ".join(f"{count} x {line[-100:]}" for line, count in kinds)
                        print(f"    {'FAULT: ' if is_judged else ''}{name}: {listed}")
                sys.stdout.flush()
    print(f"{len(runs)} rows, {faults} faults; load of the machine {os.getloadavg()[0]:.1f} on {os.cpu_count()} processors")
    return 1 if faults else 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except (MediaError, subprocess.TimeoutExpired, json.JSONDecodeError) as error:
        print(f"readers: {error}", file=sys.stderr)
        sys.exit(1)
