"""Runs single points through single transports, and keeps what is finished."""

import concurrent.futures
import csv
import hashlib
import json
import pathlib
import platform
import subprocess
import sys
import tempfile
import threading
import time

import bound
from scenario import LEAD_S, scenario

HERE = pathlib.Path(__file__).resolve().parent
sys.path.append(str(HERE.parent / "worlds"))
from play import DOUBTFUL, INTERRUPTED, digest, first_complaint  # noqa: E402
from watch import Watch  # noqa: E402

LAB = HERE.parent.parent / "lab"
UNUSED_QUEUES = {"fq_codel", "pie", "red"}
"""Queues of `link` that no point has: a change of them changes no run."""
ATTEMPTS = 3
SWITCH_S = 0.0005
SETTLE_S = 1
"""From the start of the programs on, until what TCP gets counts: the source may have to connect first."""


def rows(folder, table):
    with open(folder / f"{table}.csv", newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def rivals_mbps(link_bins, media_bins, seconds):
    """The rate on the wire of all rivals together while the source runs, from bytes in bins of one second.

    Everything that the bottleneck carried and that is not the source's is theirs.

    >>> link, media = [1_000_000] * 12, [0, 0, 0, 250_000, *[500_000] * 3, 0, 0, 0, 0, 0]
    >>> rivals_mbps(link, media, 4)
    4.0
    """
    measured = range(LEAD_S + SETTLE_S, LEAD_S + seconds)
    return sum(link_bins[at] - media_bins[at] for at in measured) * 8 / 1e6 / len(measured)


def bins_of(table, column, name):
    """
    >>> bins_of([{"flow": "a", "delivered_bytes": "7"}, {"flow": "b", "delivered_bytes": ""}], "flow", "b")
    [0]
    """
    value = "delivered_bytes" if column == "flow" else "carried_bytes"
    return [int(row[value] or 0) for row in table if row[column] == name]


def sources_digest():
    """Of all that the peers' results depend on: the sources of the program and of the lab, and the libraries of both.

    >>> len(sources_digest()), {f"{name}.rs" for name in UNUSED_QUEUES} <= {file.name for file in (LAB / "link/src").iterdir()}
    (16, True)
    """
    folders = [HERE, *(LAB / name for name in ("lab", "emulator", "link"))]
    files = sorted(file for folder in folders for file in folder.glob("src/**/*.rs") if file.stem not in UNUSED_QUEUES)
    files.append(HERE / "Cargo.lock")
    return digest(*(file.read_text() for file in files))


STARTS_APART_S = 2
"""Labs that start at once hold each other up for some tenths of a second, and their first frames are late for it."""
MAX_LATE_SOURCE_MS = 40
"""A source that submitted a frame this much later than planned had no processor: a frame interval at 25 frames a second."""


def source_was_held_up(sender):
    """
    >>> [source_was_held_up({"source_late_ms": {"max": late}}) for late in (39.9, 40.1)]
    [False, True]
    """
    return sender["source_late_ms"]["max"] > MAX_LATE_SOURCE_MS


class Failed(Exception):
    """A run that has no result, and why."""


def said_by(folder):
    """What the programs at both ends printed."""
    said = {}
    for end in ("receiver", "sender"):
        text = (folder / f"media-0.{end}.out").read_text()
        if not text:
            words = (folder / f"media-0.{end}.err").read_text().strip() or "it said nothing"
            raise Failed(f"the {end} printed no result: {words}")
        said[end] = json.loads(text)
    if said["sender"]["broken"]:
        raise Failed(f"the sender stopped early: {said['sender']['broken']}")
    return said


class Keeper:
    """Plays runs in the lab, or finds what an earlier call kept."""

    def __init__(self, comity, program, folder, seconds, is_fresh=False, attempts=ATTEMPTS, say=print):
        self.comity, self.program, self.folder, self.seconds = comity, program, folder, seconds
        self.is_fresh, self.attempts, self.say = is_fresh, attempts, say
        version = subprocess.run([comity, "--version"], capture_output=True, text=True, check=True).stdout.strip()
        hashed = (hashlib.sha256(file.read_bytes()).hexdigest() for file in (comity, program))
        self.peers = digest(sources_digest(), version, platform.release())
        self.comitys = digest(*hashed, self.peers)
        self.failures = []
        self.is_interrupted = False
        self.lock, self.start = threading.Lock(), threading.Lock()
        self.watch = None

    def file(self, chosen, point, transport, seed):
        """Where a run is kept. A new build plays Comity again; the peers only where the program beside them changed."""
        build = self.comitys if transport == "Comity" else self.peers
        text = scenario(point, transport, self.seconds, seed, "compare")
        return self.folder / chosen / point.name / f"{transport.lower()}-{seed}-{digest(text, build)}.json"

    def kept(self, chosen, point, transport, seeds):
        """What is kept of a transport at a point, in the order of the seeds."""
        files = [self.file(chosen, point, transport, seed) for seed in seeds]
        return [json.loads(file.read_text()) for file in files if file.exists()]

    def lab(self, point, transport, seed):
        """One run, and what the meter, the network and the machine say of it."""
        with tempfile.TemporaryDirectory() as folder:
            folder = pathlib.Path(folder)
            file, out, capture = folder / "compare.toml", folder / "results.csv", folder / "bottleneck.pcapng"
            file.write_text(scenario(point, transport, self.seconds, seed, self.program))
            command = [self.comity, "lab", "run", file, "--seed", str(seed), "--quiet", "--out", out, "--logs", folder]
            if point.needs_bound:
                command += ["--pcapng", f"bottleneck={capture}"]
            with self.start:
                time.sleep(STARTS_APART_S)
            # The capture has wall-clock time, and the programs have that of the monotonic clock.
            clocks_ns = time.time_ns() - time.monotonic_ns()
            began = time.monotonic()
            done = subprocess.run(command, capture_output=True, text=True, check=False)
            is_starved = self.watch.was_busy(began, time.monotonic())
            if done.returncode == INTERRUPTED:
                self.is_interrupted = True
                raise KeyboardInterrupt
            if done.returncode not in (0, DOUBTFUL):
                raise Failed(first_complaint(done.stderr))
            said = said_by(folder)
            media = next(row for row in rows(out, "flows") if row["group"] == "media")
            link_bins = bins_of(rows(out, "link_series"), "link", "bottleneck")
            media_bins = bins_of(rows(out, "flow_series"), "flow", media["flow"])
            result = {
                "trusted": done.returncode == 0 and not is_starved and not source_was_held_up(said["sender"]),
                "seconds": self.seconds,
                **said,
                "media": {key: int(media[key]) for key in ("sent_wire_bytes", "sent_packets", "dropped_data_packets")},
                "bottleneck": next(row for row in rows(out, "links") if row["link"] == "bottleneck"),
                "rivals_mbps": rivals_mbps(link_bins, media_bins, self.seconds) if point.rivals else None,
            }
            if point.needs_bound:
                first_ns = said["sender"]["source_start_ns"] + clocks_ns
                result["bound"] = bound.measure(capture, point, first_ns, self.seconds)
            return result

    def play(self, chosen, point, transport, seed):
        """Makes sure that a run is kept. A run that failed, or that cannot be trusted, is played again."""
        file = self.file(chosen, point, transport, seed)
        if self.is_interrupted or file.exists() and not self.is_fresh:
            return
        result, failed = None, []
        for _ in range(self.attempts):
            try:
                result = self.lab(point, transport, seed)
            except Failed as reason:
                failed.append(str(reason))
                self.say(f"failed: {chosen} {point.name}, {transport}, seed {seed}: {reason}")
                continue
            if result["trusted"]:
                break
        if result is None:
            with self.lock:
                self.failures.append(f"{chosen} {point.name}, {transport}, seed {seed}: {failed[-1]}")
            return
        result["failed_attempts"] = failed
        file.parent.mkdir(parents=True, exist_ok=True)
        part = file.with_suffix(".part")
        part.write_text(json.dumps(result))
        part.rename(file)
        self.say(f"{chosen} {point.name}, {transport}, seed {seed}: {result['receiver']['on_time']:.4f} on time")

    def play_all(self, chosen, seeds, transports, jobs):
        """Plays `[(set, point)]`: slow networks `jobs` at a time, fast ones one by one; the first seed of all first."""
        # The replay of a capture computes for a moment, which must not look to the watch like a busy machine.
        sys.setswitchinterval(SWITCH_S)
        self.watch = Watch()
        runs = [(name, point, transport, seed) for seed in seeds for name, point in chosen for transport in transports]
        slow = [run for run in runs if not run[1].is_fast]
        for together, workers in ((slow, jobs), ([run for run in runs if run[1].is_fast], 1)):
            with concurrent.futures.ThreadPoolExecutor(workers) as pool:
                futures = [pool.submit(self.play, *run) for run in together]
                try:
                    for future in concurrent.futures.as_completed(futures):
                        future.result()
                except BaseException:
                    pool.shutdown(wait=False, cancel_futures=True)
                    raise
