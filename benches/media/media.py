#!/usr/bin/env python3
"""Sends real video through bad networks and compares what arrives with what was sent.

Clips of every kind that Comity takes apart are made with ffmpeg, sent with `comity send` through
`comity emulate` to `comity recv`, all as a user would, and then:

* every access unit of the received file is, byte for byte, the one that was sent, in its order, and every
  one that is not there is named in the list of gaps, and no other: the units of the sent file without those
  that are named are the received file;
* the received file plays: ffmpeg decodes it to the end, and demultiplexes as many video packets as there
  are whole pictures;
* on a clean path the elementary streams are the same to ffmpeg, time stamps included (framemd5), and
  nothing is missing;
* nothing was sent after its deadline.

The share of what arrives is printed, and not judged: that is the transport's business. Transport streams are
taken apart here, as ISO/IEC 13818-1 has them, and not by Comity's own reader.

Without ffmpeg it says so and ends with 0; with `--strict` that is a failure.
"""

import argparse
import collections
import concurrent.futures
import json
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
PACKET = 188
PICTURE = "testsrc2=size=480x270:rate=25"
TONE = "sine=frequency=440:sample_rate=48000"
ADTS = 0x0F  # the kind of a stream, ISO/IEC 13818-1 table 2-34
ADTS_RATES = (96_000, 88_200, 64_000, 48_000, 44_100, 32_000, 24_000, 22_050, 16_000, 12_000, 11_025, 8_000, 7_350)
# A picture in coded order takes its slices with it; these begin the next one.
PICTURE_START, GROUP_START, SEQUENCE_START = 0x00, 0xB8, 0xB3
INCOMPLETE = "sections are missing on a clean path"
DIFFERS = {"v": "framemd5 of the video differs", "a": "framemd5 of the sound differs"}


class MediaError(Exception):
    """Something could not be made or run."""


@dataclass(frozen=True)
class Clip:
    """A file that ffmpeg makes, and the encoders that it takes."""

    name: str
    suffix: str
    encode: tuple
    has_sound: bool = True
    picture: str = PICTURE

    def make(self, folder, seconds):
        path = folder / f"{self.name}-{seconds}s{self.suffix}"
        if path.exists():
            return path
        command = ["ffmpeg", "-hide_banner", "-loglevel", "error", "-y", "-f", "lavfi", "-i", self.picture]
        if self.has_sound:
            command += ["-f", "lavfi", "-i", TONE, "-c:a", "aac", "-b:a", "96k"]
        part = path.with_suffix(f".part{self.suffix}")
        run([*command, "-t", str(seconds), *self.encode, str(part)], patience=120)
        part.rename(path)
        return path


CLIPS = (
    Clip("h264", ".ts", ("-c:v", "libx264", "-preset", "veryfast", "-g", "25", "-bf", "2", "-b:v", "1200k", "-f", "mpegts")),
    Clip("h265", ".ts", ("-c:v", "libx265", "-preset", "ultrafast", "-x265-params", "log-level=error:keyint=25:bframes=2",
                         "-b:v", "1000k", "-f", "mpegts")),
    Clip("mpeg2", ".ts", ("-c:v", "mpeg2video", "-g", "12", "-bf", "2", "-b:v", "1500k", "-f", "mpegts")),
    Clip("mpeg1", ".m1v", ("-c:v", "mpeg1video", "-g", "12", "-bf", "2", "-b:v", "1200k", "-f", "mpeg1video"), False),
)

# What is between the two ends. An outage counts from the emulator's start, a second or so before the media.
PATHS = {
    "clean": [],
    "loss 1%": ["--loss", "1%"],
    "loss 5%": ["--loss", "5%"],
    "loss 20%": ["--loss", "20%"],
    "reordering": ["--jitter", "{ kind = 'uniform', max = '20ms', reorder = true }"],
    "duplication": ["--duplication", "20%"],
    "outage of 3 s": ["--outage", "4s+3s"],
}


def run(command, patience):
    """The standard output of a command that has to succeed."""
    done = subprocess.run(command, capture_output=True, timeout=patience, check=False)
    if done.returncode != 0:
        said = done.stderr.decode(errors="replace").strip()
        raise MediaError(f"{command[0]} ended with {done.returncode}: {said[-500:]}")
    return done.stdout


# --- taking files apart ---


def elementary_units(data):
    """The access units of a transport stream: a list for each stream of its program map, in that order.

    A unit of video is a PES packet without the fixed part of its header, of which only the length can differ. One of AAC is
    a frame with its time, however many a PES packet has. Continuity counters may only jump where a packet announces it.
    """
    units, order, counters, sound = {}, [], {}, set()
    program_map = None
    if len(data) % PACKET:
        raise MediaError("not a whole number of packets")
    for at in range(0, len(data), PACKET):
        packet = data[at : at + PACKET]
        if packet[0] != 0x47:
            raise MediaError(f"no sync byte at {at}")
        pid = (packet[1] & 0x1F) << 8 | packet[2]
        begins, has_field, has_payload = packet[1] & 0x40, packet[3] & 0x20, packet[3] & 0x10
        if has_field and packet[4] and packet[5] & 0x80:
            counters.pop(pid, None)
        if not has_payload:
            continue
        counter = packet[3] & 0x0F
        if pid in counters and counter != (counters[pid] + 1) & 0x0F and pid != 0x1FFF:
            raise MediaError(f"a hole in the continuity counters of PID {pid} at {at}")
        counters[pid] = counter
        payload = packet[5 + packet[4] if has_field else 4 :]
        if pid == 0 and begins:
            section = payload[1 + payload[0] :]
            program_map = (section[10] & 0x1F) << 8 | section[11]
        elif pid == program_map and begins and not order:
            streams = streams_of(payload[1 + payload[0] :])
            order = [stream for _, stream in streams]
            sound = {stream for kind, stream in streams if kind == ADTS}
            units.update({stream: [] for stream in order})
        elif pid in units:
            if begins and payload[:3] == b"\0\0\1":
                units[pid].append(bytearray(payload[8:] if pid in sound else payload[9:]))
            elif units[pid]:
                units[pid][-1] += payload
    return [[part for unit in units[pid] for part in (frames(bytes(unit)) if pid in sound else [bytes(unit)])] for pid in order]


def frames(packet):
    """The frames of AAC in a PES packet, which begins with the length of its optional header; each behind its time.

    >>> frame = bytes([0xFF, 0xF1, 0x4C, 0x80, 0x01, 0x1F, 0xFC, 9])  # 8 bytes, 1,024 samples at 48 kHz
    >>> stamp = bytes([0x21, 0, 1, 0, 1])  # 0
    >>> [int.from_bytes(unit[:5], "big") for unit in frames(b"\5" + stamp + frame + frame)]
    [0, 1920]
    """
    stamp, data, samples, found = packet[1:6], packet[1 + packet[0] :], 0, []
    began = (stamp[0] >> 1 & 7) << 30 | stamp[1] << 22 | stamp[2] >> 1 << 15 | stamp[3] << 7 | stamp[4] >> 1
    while data:
        if data[0] != 0xFF or data[1] & 0xF6 != 0xF0:
            raise MediaError("no frame of AAC where one has to be")
        rate = ADTS_RATES[data[2] >> 2 & 15]
        length = (data[3] & 3) << 11 | data[4] << 3 | data[5] >> 5
        time_stamp = (began + samples * 90_000 // rate) % 2**33
        found.append(time_stamp.to_bytes(5, "big") + data[:length])
        samples += 1024 * ((data[6] & 3) + 1)
        data = data[length:]
    return found


def streams_of(section):
    """The kinds and PIDs of the streams that a program map lists."""
    end = 3 + ((section[1] & 0x0F) << 8 | section[2]) - 4
    at = 12 + ((section[10] & 0x0F) << 8 | section[11])
    found = []
    while at < end:
        found.append((section[at], (section[at + 1] & 0x1F) << 8 | section[at + 2]))
        at += 5 + ((section[at + 3] & 0x0F) << 8 | section[at + 4])
    return found


def pictures(data):
    """The pictures of an MPEG-1 or MPEG-2 elementary stream, each with the headers before it.

    >>> start = b"\\0\\0\\1"
    >>> seq, gop, pic, cut = (start + bytes([code]) for code in (0xB3, 0xB8, 0x00, 0x01))
    >>> [len(unit) for unit in pictures(seq + gop + pic + cut + b"x" + pic + cut + gop + pic)]
    [17, 8, 8]
    """
    cuts, has_picture = [], False
    at = data.find(b"\0\0\1")
    while 0 <= at < len(data) - 3:
        code = data[at + 3]
        if code in (PICTURE_START, GROUP_START, SEQUENCE_START):
            if has_picture or not cuts:
                cuts.append(at)
                has_picture = False
            has_picture = has_picture or code == PICTURE_START
        at = data.find(b"\0\0\1", at + 3)
    return [data[begin:end] for begin, end in zip(cuts, [*cuts[1:], len(data)])]


def units_of(path):
    """The units by stream, as sections number them: 0 is for tables, or for an elementary stream."""
    data = path.read_bytes()
    if path.suffix == ".ts":
        return dict(enumerate(elementary_units(data), 1))
    return {0: pictures(data)}


# --- running ---


class Program:
    """A verb that runs beside the others and prints JSON."""

    def __init__(self, command, folder, name):
        self.name = name
        self.said = (folder / f"{name}.err").open("w+")
        self.child = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=self.said, stdin=subprocess.DEVNULL, text=True)

    def port(self):
        for line in self.child.stdout:
            event = json.loads(line)
            if event["event"] == "listening":
                return int(event["address"].rsplit(":", 1)[1])
        raise MediaError(f"{self.name} does not listen: {self.words()}")

    def end(self, patience):
        """The exit code and the last object."""
        try:
            out, _ = self.child.communicate(timeout=patience)
        except subprocess.TimeoutExpired:
            self.child.kill()
            self.child.communicate()
            raise MediaError(f"{self.name} did not end within {patience} s") from None
        lines = out.splitlines()
        return self.child.returncode, json.loads(lines[-1]) if lines else {}

    def interrupt(self):
        if self.child.poll() is None:
            self.child.send_signal(signal.SIGINT)

    def words(self):
        self.said.seek(0)
        return self.said.read().strip()[-300:]

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.child.poll() is None:
            self.child.kill()
            self.child.wait()
        self.said.close()


@dataclass
class Result:
    """What one clip over one path came to."""

    clip: str
    path: str
    faults: list
    counts: dict
    overloaded: bool = False


def play(comity, clip, file, path, options):
    """Sends one clip over one path and judges what arrived."""
    with tempfile.TemporaryDirectory(prefix="comity-media-") as name:
        folder = pathlib.Path(name)
        out, gaps = folder / f"out{file.suffix}", folder / "gaps.jsonl"
        environment_secret = "passphrase=" + os.urandom(8).hex()
        patience = 3 * options.seconds + 30
        with Program([comity, "recv", f"comity://127.0.0.1:0?mode=listener&{environment_secret}", str(out), "--gaps", str(gaps),
                      "--json"], folder, "recv") as receiver:
            emulate = [comity, "emulate", "--listen", "127.0.0.1:0", "--to", f"127.0.0.1:{receiver.port()}", "--delay", "15ms",
                       "--seed", str(options.seed), "--json", *PATHS[path]]
            with Program(emulate, folder, "emulate") as network:
                target = f"comity://127.0.0.1:{network.port()}?latency={options.latency}ms&{environment_secret}"
                target += "".join(f"&{key}" for key in options.set)
                with Program([comity, "send", str(file), target, "--json"], folder, "send") as sender:
                    sent_code, sent = sender.end(patience)
                    received_code, received = receiver.end(patience)
                    network.interrupt()
                    network_code, _ = network.end(10)
                    faults = [f"{program.name} ended with {code}: {program.words()}"
                              for program, code in ((sender, sent_code), (receiver, received_code)) if code]
        faults += judge(clip, file, out, gaps, path == "clean")
        totals = sent.get("output", {}).get("totals", {})
        if totals.get("byteSentLate", 1):
            faults.append(f"{totals.get('byteSentLate')} bytes were sent after their deadline")
        unsent = sum(sent.get("output", {}).get("unsent", {}).values())
        if totals.get("connections", 0) != 1 or unsent:
            faults.append(f"{totals.get('connections', 0)} connections, and {unsent} sections were given to none")
        counts = {
            "sent": totals.get("sectionsSubmitted", 0) + unsent,
            "on_time": received.get("input", {}).get("totals", {}).get("sectionsOnTime", 0),
            "late": received.get("input", {}).get("totals", {}).get("sectionsLate", 0),
            "whole": received.get("passed", {}).get("whole", {}),
            "given": sent.get("passed", {}).get("whole", {}),
            "gaps": received.get("passed", {}).get("gaps", {}),
        }
        return Result(clip.name, path, faults, counts, network_code == 3)


def judge(clip, file, out, gaps, is_clean):
    """What is wrong with what arrived."""
    if not out.exists():
        return ["nothing was written"]
    faults = []
    named = collections.defaultdict(set)
    for line in gaps.read_text().splitlines():
        gap = json.loads(line)
        for section in range(gap["section"], gap["section"] + gap["count"]):
            if section in named[gap["stream"]]:
                faults.append(f"section {section} of stream {gap['stream']} is named twice")
            named[gap["stream"]].add(section)
    try:
        sent, received = units_of(file), units_of(out)
    except (MediaError, IndexError) as error:
        return [*faults, f"the received file is broken: {error}"]
    for stream, units in sent.items():
        expected = [unit for number, unit in enumerate(units) if number not in named[stream]]
        found = received.get(stream, [])
        if found == expected:
            continue
        known = set(units)
        foreign = sum(unit not in known for unit in found)
        faults.append(f"stream {stream}: {len(found)} units arrived, of which {foreign} were not sent so; "
                      f"{len(units)} were sent and {len(named[stream])} named as missing")
    decoder = subprocess.run(["ffmpeg", "-v", "error", "-i", str(out), "-f", "null", "-"], capture_output=True, timeout=120, check=False)
    if decoder.returncode:
        faults.append(f"ffmpeg does not play it: {decoder.stderr.decode(errors='replace').strip()[-200:]}")
    # Without its first key picture ffprobe may not find out what the stream is.
    video = min(sent)
    counted = run(["ffprobe", "-v", "error", "-select_streams", "v:0", "-count_packets", "-show_entries", "stream=nb_read_packets",
                   "-of", "default=nokey=1:noprint_wrappers=1", str(out)], 60).split()
    whole = len(received.get(video, []))
    if not counted or abs(int(counted[0]) - whole) > (clip.suffix != ".ts"):
        faults.append(f"ffprobe sees {counted[0].decode() if counted else 'no'} video packets of {whole}")
    if is_clean:
        if any(named.values()):
            faults.append(INCOMPLETE)
        for kind in ("v", "a")[: 1 + clip.has_sound]:
            printed = [run(["ffmpeg", "-v", "error", "-i", str(name), "-map", f"0:{kind}:0", "-c", "copy", "-f", "framemd5", "-"], 60)
                       for name in (file, out)]
            # Behind times, length and digest there is what the container has with the first frame of each PES packet.
            digests = [[line.split(b",")[:6] for line in text.splitlines()] for text in printed]
            if digests[0] != digests[1]:
                faults.append(DIFFERS[kind])
    return faults


def describe(result):
    """A line of the table."""
    whole, given = result.counts["whole"], result.counts["given"]
    kinds = "  ".join(
        f"{kind} {whole.get(kind, {}).get('sections', 0)}/{given[kind]['sections']}"
        for kind in ("key", "I", "P", "B", "audio") if kind in given
    )
    share = result.counts["on_time"] / max(result.counts["sent"], 1)
    gaps = ", ".join(f"{reason} {count}" for reason, count in sorted(result.counts["gaps"].items()))
    mark = "FAULT" if result.faults else "ok"
    busy = "  (machine too busy)" if result.overloaded else ""
    return f"{result.clip:6} {result.path:14} {mark:5} {100 * share:5.1f} % on time  {kinds}  gaps: {gaps or 'none'}{busy}"


def arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--comity", default=ROOT / "target/release/comity", type=pathlib.Path, help="the program [target/release/comity]")
    parser.add_argument("--clips", nargs="+", choices=[clip.name for clip in CLIPS], help="only these")
    parser.add_argument("--paths", nargs="+", choices=list(PATHS), help="only these")
    parser.add_argument("--seconds", type=int, default=10, help="the length of a clip [10]")
    parser.add_argument("--latency", type=int, default=400, help="of the connection, in milliseconds [400]")
    parser.add_argument("--seed", type=int, default=1, help="of the emulated path [1]")
    parser.add_argument("--set", nargs="+", default=[], metavar="KEY=VALUE", help="keys for the sender's URI, such as cc=cubic")
    parser.add_argument("--jobs", type=int, default=min(4, 2 * (os.cpu_count() or 1)), help="as many at a time")
    parser.add_argument("--strict", action="store_true", help="fail where ffmpeg is missing")
    parser.add_argument("--json", type=pathlib.Path, help="also write the results to this file")
    return parser.parse_args()


def main():
    options = arguments()
    missing = [tool for tool in ("ffmpeg", "ffprobe") if not shutil.which(tool)]
    if missing:
        print(f"media: skipped, since {' and '.join(missing)} cannot be found; Debian's package ffmpeg has them")
        return 1 if options.strict else 0
    if not options.comity.exists():
        print(f"media: {options.comity} is not there; cargo build --release -p comity-cli makes it", file=sys.stderr)
        return 2
    folder = ROOT / "target/media"
    folder.mkdir(parents=True, exist_ok=True)
    clips = [clip for clip in CLIPS if not options.clips or clip.name in options.clips]
    paths = [path for path in PATHS if not options.paths or path in options.paths]
    began = time.monotonic()
    results, late = [], []
    files = {clip: clip.make(folder, options.seconds) for clip in clips}

    def attempt(clip, path):
        try:
            result = play(str(options.comity), clip, files[clip], path, options)
        except (MediaError, subprocess.TimeoutExpired, json.JSONDecodeError) as error:
            result = Result(clip.name, path, [str(error)], {"sent": 0, "on_time": 0, "late": 0, "whole": {}, "given": {}, "gaps": {}})
        print("\n    ".join([describe(result), *result.faults]), flush=True)
        return result

    runs = [(clip, path) for path in paths for clip in clips]
    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        for run, result in zip(runs, pool.map(lambda run: attempt(*run), runs)):
            # What a machine that was too busy left out on a clean path says nothing of the program: with nothing beside it,
            # it may. Every other fault counts.
            repeats = result.overloaded and INCOMPLETE in result.faults and set(result.faults) <= {INCOMPLETE, *DIFFERS.values()}
            late.append(run) if repeats else results.append(result)
    for clip, path in late:
        print(f"again, with nothing beside it: {clip.name} {path}", flush=True)
        results.append(attempt(clip, path))
    if options.json:
        options.json.write_text(json.dumps([vars(result) for result in results], indent=1))
    bad = sum(bool(result.faults) for result in results)
    print(f"{len(results)} runs, {bad} with faults, {time.monotonic() - began:.0f} s")
    return 1 if bad else 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except MediaError as error:
        print(f"media: {error}", file=sys.stderr)
        sys.exit(1)
