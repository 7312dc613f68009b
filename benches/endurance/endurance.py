#!/usr/bin/env python3
"""Lets chains of `comity` programs run for an hour while faults are injected, and asks whether anything was lost silently.

Two chains of send, emulate, relay, emulate and recv run beside each other, in namespaces of their own for network,
processes and mounts, which go with the last process:

* the kept one has its programs and connections from the beginning to the end: each is suspended for up to 10 s, the
  emulators are restarted with other links (other ports, loss, delay, order, MTU);
* in the struck one, programs are killed (SIGKILL) and started again, and the receiver's disk is full, too.

Both have one interface. It goes down, becomes narrow, has a full queue (ENOBUFS) and gets other
addresses. The faults and their times are drawn from a seed. At the end:

* each unit that a sender of the kept chain read was written by the receiver or is in its list of gaps, never both;
* each unit of the struck chain was written, or is in a list, or was held by a process within the latency before that
  was killed;
* the memory of no process grew, and none lost a file descriptor.

As root, or where the system lets users make namespaces. Without them it says so and ends with 77.
"""

import argparse
import json
import os
import pathlib
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time

import chain
import counts
import faults
import watch

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
SKIPPED = 77
INSIDE = "COMITY_ENDURANCE_INSIDE"
# No faults at the beginning and at the end, and the time between two of one source, in seconds.
CALM, PAUSE = 15, (4, 16)
DISK = "48m"


def enter():
    """Runs this program again in namespaces of its own. Whatever ends it, the system ends all that it started."""
    command = ["unshare", "--net", "--mount", "--pid", "--fork", "--kill-child", "--mount-proc"]
    if os.geteuid() != 0:
        command += ["--user", "--map-root-user"]
    probe = subprocess.run([*command, "ip", "link", "set", "lo", "up"], capture_output=True, text=True, check=False)
    if probe.returncode:
        print(f"skipped: no namespaces of one's own here: {probe.stderr.strip()}")
        sys.exit(SKIPPED)
    child = subprocess.Popen([*command, sys.executable, *sys.argv], env={**os.environ, INSIDE: "1"})
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: child.terminate())
    sys.exit(child.wait())


def draw(kinds, randomness):
    """All kinds in a random order, again and again.

    >>> import itertools
    >>> sorted(itertools.islice(draw(["a", "b", "b"], random.Random(1)), 6))
    ['a', 'a', 'b', 'b', 'b', 'b']
    """
    while True:
        yield from randomness.sample(kinds, len(kinds))


class Run:
    """One run: the chains, the faults and the watch."""

    def __init__(self, options, folder):
        self.options, self.folder = options, folder
        self.began = time.monotonic()
        disk = folder / "disk"
        disk.mkdir()
        subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={DISK}", "comity-endurance", str(disk)], check=True)
        self.kept = chain.Chain("kept", options.comity, self.folder_of("kept"), (9101, 9102, 9103, 9104),
                                {"keys": ["peeridletimeo=60s"]})
        self.struck = chain.Chain("struck", options.comity, self.folder_of("struck"), (9201, 9202, 9203, 9204),
                                  {"disk": disk, "interrupts": True, "arguments": ["--reconnect", "always"]})
        self.chains = (self.kept, self.struck)
        self.injected = []
        self.failures = []
        self.is_over = threading.Event()

    def folder_of(self, name):
        folder = self.folder / name
        folder.mkdir()
        return folder

    def elapsed(self):
        return time.monotonic() - self.began

    def note(self, text):
        print(f"{self.elapsed():7.1f} s  {text}", flush=True)

    def watch(self):
        while not self.is_over.wait(1):
            for one in self.chains:
                for life in list(one.now.values()):
                    if life.ended is None and (found := watch.sample(life.pid)):
                        life.samples.append((time.monotonic() - self.began, *found))
                self.check(one)

    def check(self, one):
        """A program that ended by itself is a failure, but for a receiver whose disk is full."""
        if not one.lock.acquire(blocking=False):
            return
        try:
            for name, child in one.children.items():
                if child.poll() is not None and one.now[name].ended is None:
                    life = one.finish(name)
                    is_full = name == "recv" and life.code == 1 and "No space left" in life.errors.read_text() + life.said.read_text()
                    if not is_full:
                        self.failures.append(f"{one.name}: {name} ended with {life.code}: {life.errors.read_text()[-300:]}")
                    self.note(f"{one.name}: {name} ended with {life.code}{' on a full disk' if is_full else ''}, and is started again")
                    one.launch(name)
                    one.wait_until_it_listens(name)
        finally:
            one.lock.release()

    def inject(self, source, kinds, seed, until):
        """Injects one fault after the other."""
        randomness = random.Random(seed)
        for kind in draw(kinds, randomness):
            if self.is_over.wait(randomness.uniform(*PAUSE)) or self.elapsed() > until:
                return
            try:
                told = source.inject(kind)
            except (OSError, chain.EnduranceError) as error:
                self.failures.append(f"{kind}: {error}")
                told = f"failed: {error}"
            self.injected.append(kind)
            self.note(f"{kind}: {told}")

    def run(self):
        lacking = faults.prepare()
        for kind, reason in lacking.items():
            print(f"no {kind} here: {reason}")
        for one in self.chains:
            one.start()
        seconds = self.options.minutes * 60
        threads = [threading.Thread(target=self.watch, daemon=True)]
        sources = [(faults.Kept(self.kept, random.Random(f"{self.options.seed} kept")), faults.Kept.kinds),
                   (faults.Struck(self.struck, random.Random(f"{self.options.seed} struck")), faults.Struck.kinds),
                   (faults.Shared(random.Random(f"{self.options.seed} shared")),
                    [kind for kind in faults.SHARED if kind not in lacking])]
        for number, (source, kinds) in enumerate(sources):
            seed = f"{self.options.seed} times {number}"
            threads.append(threading.Thread(target=self.inject, args=(source, kinds, seed, seconds - CALM), daemon=True))
        threads[0].start()
        self.is_over.wait(min(CALM, seconds / 4))
        for thread in threads[1:]:
            thread.start()
        for thread in threads[1:]:
            thread.join()
        self.is_over.wait(max(0, seconds - self.elapsed()))
        self.note("the input ends")
        self.is_over.set()
        threads[0].join()
        for one in self.chains:
            one.end()
        return self.report()

    # --- reporting ---

    def record(self):
        """What the counts are made of, to look into a difference."""
        for one in self.chains:
            lives = [{"name": life.name, "began": life.began, "ended": life.ended, "killed": life.was_killed, "first": life.first,
                      "gaps": life.gaps.name, "units": life.units, "samples": life.samples} for life in one.lives]
            text = json.dumps({"times": one.feeder.times, "lives": lives})
            (self.folder / one.name / "record.json").write_text(text)

    def report(self):
        self.record()
        kinds = {kind: self.injected.count(kind) for kind in sorted(set(self.injected))}
        print("\nfaults: " + ", ".join(f"{count} {kind}" for kind, count in kinds.items()))
        print(f"refused by the system for want of room: {refused()} datagrams")
        self.report_processes()
        sums = {"kept": counts.kept(len(self.kept.feeder.times), self.kept.now["recv"]),
                "struck": counts.struck(self.struck.feeder.times, self.struck.lives, chain.LATENCY_S)}
        print("\n| chain | units read | written | in a list | held by a killed process | unaccounted for | written twice | broken |")
        print("|---|---|---|---|---|---|---|---|")
        for name, one in sums.items():
            print(f"| {name} | {one.read:,} | {one.written:,} | {one.listed:,} | {one.held_by_killed:,} | {len(one.unaccounted):,} "
                  f"| {one.repeated:,} | {one.broken:,} |")
        for name, one in sums.items():
            print(f"{name}: reasons {one.reasons}; {one.named_twice} named twice, {one.named_and_written} named and written")
            if one.unaccounted:
                self.failures.append(f"{name}: nothing says what became of units {one.unaccounted[:20]}")
            if one.repeated or (one.broken and name == "kept"):
                self.failures.append(f"{name}: {one.repeated} units written twice, {one.broken} broken")
        kept = sums["kept"]
        if kept.named_twice or kept.named_and_written:
            self.failures.append(f"kept: {kept.named_twice} units named twice, {kept.named_and_written} named and written")
        self.check_ends()
        for failure in self.failures:
            print(f"FAILED: {failure}")
        print("nothing is unaccounted for" if not self.failures else f"{len(self.failures)} failures")
        return bool(self.failures)

    def report_processes(self):
        print("\n| chain | program | s | RSS: first, MiB | settled | last | max | slope, KiB/h | files: settled, max, last |")
        print("|---|---|---|---|---|---|---|---|---|")
        for one in self.chains:
            longest = {}
            for life in one.lives:
                judged = watch.judge(life.samples)
                if judged is None:
                    continue
                # An emulator has a socket for each caller, for a while.
                if judged["grows"] or (judged["loses_files"] and life.name in chain.ENDS):
                    self.failures.append(f"{one.name}: {life.name} grew: {judged}")
                if len(life.samples) > len(longest.get(life.name, (life, judged, []))[2]):
                    longest[life.name] = (life, judged, life.samples)
            for name, (life, judged, samples) in longest.items():
                sizes = " | ".join(f"{judged[key] / 2**20:.1f}" for key in ("first", "settled", "last", "max"))
                print(f"| {one.name} | {name} | {len(samples):,} | {sizes} | {judged['per_hour'] / 1024:+.0f} "
                      f"| {', '.join(map(str, judged['files']))} |")

    def check_ends(self):
        for name in chain.ENDS:
            life = self.kept.now[name]
            if life.code != 0:
                self.failures.append(f"kept: {name} ended with {life.code}: {life.errors.read_text()[-300:]}")
            totals = (life.end.get("output" if name == "send" else "input") or {}).get("totals", {})
            if totals.get("connections") != 1 or totals.get("internalErrors"):
                self.failures.append(f"kept: {name} had {totals.get('connections')} connections, {totals.get('internalErrors')} internal errors")
        for one in self.chains:
            for life in one.lives:
                if "panicked" in life.errors.read_text():
                    self.failures.append(f"{one.name}: {life.name} panicked: {life.errors.read_text()[-500:]}")


def refused():
    """Datagrams that found no room in a queue of the system, of all sockets here: netstat's `SndbufErrors`."""
    lines = [line.split() for line in pathlib.Path("/proc/net/snmp").read_text().splitlines() if line.startswith("Udp:")]
    return dict(zip(*lines)).get("SndbufErrors", "?")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--minutes", type=float, default=60, help="how long (60)")
    parser.add_argument("--seed", type=int, default=1, help="of the faults (1)")
    parser.add_argument("--comity", default=str(ROOT / "target/release/comity"), help="the program (target/release/comity)")
    parser.add_argument("--keep", type=pathlib.Path, help="a folder to keep lists and messages in")
    options = parser.parse_args()
    if INSIDE not in os.environ:
        enter()
    # A signal ends the whole namespace, by the exceptions that it causes here.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(130))
    os.environ.setdefault("COMITY_PASSPHRASE", "endurance of one machine")
    with tempfile.TemporaryDirectory(prefix="comity-endurance-") as name:
        folder = pathlib.Path(name)
        try:
            failed = Run(options, folder).run()
        finally:
            subprocess.run(["umount", str(folder / "disk")], check=False)
            if options.keep:
                shutil.copytree(folder, options.keep, dirs_exist_ok=True)
    sys.stdout.flush()
    # The remaining children are ended by the end of the namespace.
    os._exit(int(failed))


if __name__ == "__main__":
    main()
