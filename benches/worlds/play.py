"""Runs points in the simulator and in the lab, and keeps what is finished."""

import concurrent.futures
import hashlib
import os
import platform
import shutil
import subprocess
import threading
import time

from measure import STARVED
from watch import Watch

DOUBTFUL = 3
WRONG = 2
INTERRUPTED = 130
ATTEMPTS = 3


def digest(*parts):
    """A short name for these texts.

    >>> digest("a", "b") == digest("a", "b") != digest("ab", "")
    True
    """
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()[:16]


def first_complaint(text):
    """
    >>> first_complaint("error: `controller` cannot be \\"bbr\\"\\n  --> a.toml:3\\n")
    '`controller` cannot be "bbr"'
    """
    lines = [line for line in text.splitlines() if line.startswith("error: ")]
    return lines[0].removeprefix("error: ") if lines else text.strip()[-200:]


class Player:
    """Runs single points with single seeds, or finds what an earlier call kept."""

    def __init__(self, comity, keep, overrides, fresh, say):
        self.comity, self.keep, self.overrides, self.fresh, self.say = comity, keep, overrides, fresh, say
        self.program = hashlib.sha256(comity.read_bytes()).hexdigest()
        version = subprocess.run([comity, "--version"], capture_output=True, text=True, check=True)
        self.version = version.stdout.strip()
        self.refusals, self.failures = {}, []
        self.lock = threading.Lock()
        self.watch = Watch()

    def folder(self, world, point, seed):
        """Where the tables of a run are kept. A new build runs again what it may change."""
        build = platform.release() if world == "lab" and point.has_kernel_only else self.program
        key = digest(point.text, *point.settings, *self.overrides, str(seed), self.version, build)
        return self.keep / world / point.name / f"{key}.csv"

    def command(self, world, point, seed, out):
        settings = [part for setting in (*self.overrides, *point.settings) for part in ("--set", setting)]
        one_thread = ["--jobs", "1"] if world == "sim" else []
        return [str(self.comity), world, "run", str(point.file), "--quiet", "--seed", str(seed), *settings, *one_thread, "--out", str(out)]

    def play(self, world, point, seed):
        """The folder with the tables of a run; `None` where the world has no such thing, or it failed.

        A lab that failed or cannot be trusted is run again. What cannot be trusted to the end is kept, and marked.
        """
        kept = self.folder(world, point, seed)
        if kept.exists() and not self.fresh:
            return kept
        if (world, point.label) in self.refusals:
            return None
        kept.parent.mkdir(parents=True, exist_ok=True)
        out = kept.with_name(f"{kept.stem}.part.csv")
        for _ in range(ATTEMPTS if world == "lab" else 1):
            shutil.rmtree(out, ignore_errors=True)
            began = time.monotonic()
            done = subprocess.run(self.command(world, point, seed, out), capture_output=True, text=True, check=False)
            is_starved = world == "lab" and self.watch.was_busy(began, time.monotonic())
            if done.returncode == WRONG:
                self.refuse(world, point, first_complaint(done.stderr))
                return None
            if done.returncode == INTERRUPTED or done.returncode == 0 and not is_starved:
                break
        if done.returncode not in (0, DOUBTFUL):
            self.fail(world, point, seed, first_complaint(done.stderr))
            return None
        if is_starved:
            (out / STARVED).touch()
        shutil.rmtree(kept, ignore_errors=True)
        out.rename(kept)
        return kept

    def refuse(self, world, point, reason):
        with self.lock:
            if (world, point.label) not in self.refusals:
                self.refusals[world, point.label] = reason
                self.say(f"{world} skips {point.label}: {reason}")

    def fail(self, world, point, seed, reason):
        failure = f"{world}, {point.label}, seed {seed}: {reason}"
        with self.lock:
            self.failures.append(failure)
        self.say(f"failed: {failure}")

    def play_all(self, world, points, seeds_of, jobs):
        """Runs all points of a world: slow labs and simulations `jobs` at a time, fast labs one by one."""
        runs = [(point, seed) for seed in sorted({seed for point in points for seed in seeds_of(point)})
                for point in points if seed in seeds_of(point)]
        is_alone = lambda point: world == "lab" and not point.is_slow
        for together, workers in (([run for run in runs if not is_alone(run[0])], jobs), ([run for run in runs if is_alone(run[0])], 1)):
            with concurrent.futures.ThreadPoolExecutor(workers) as pool:
                futures = [pool.submit(self.play, world, point, seed) for point, seed in together]
                try:
                    for number, future in enumerate(concurrent.futures.as_completed(futures), 1):
                        future.result()
                        if number % 20 == 0:
                            self.say(f"{world}: {number} of {len(futures)} runs")
                except BaseException:
                    pool.shutdown(wait=False, cancel_futures=True)
                    raise


def processors():
    """How many processors this process may use."""
    return len(os.sched_getaffinity(0))
