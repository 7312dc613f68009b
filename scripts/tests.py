#!/usr/bin/env python3
"""Runs every test: `make test`.

Rust's tests are built at once. Then three rows run beside each other: the programs of the command
line and of the TCP host, which mostly wait for the clock and run more tests at a time than there
are processors; the other programs of Rust; and the tests of Python. All stages run, also after a
failure; the last lines name the tests that failed, and the command that runs them again.
"""

import argparse
import json
import os
import pathlib
import re
import signal
import subprocess
import sys
import threading
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
CARGO = [os.environ.get("CARGO", "cargo"), "test", "--workspace"]
TARGET = pathlib.Path(os.environ.get("CARGO_TARGET_DIR", "target"))

# The packages whose tests wait, and how many of them run at a time on two processors.
WAIT = ["program", "tcp-host"]
AT_A_TIME = 6

# What failed in the last run: program names and their tests, for --failed.
FAILED = TARGET / "failed-tests.json"

# The other tests: a name, a folder, and a program or the files there that have doctests. Each folder
# has a process of its own, since modules of two folders may share a name.
OTHERS = [
    ("doctests of scripts", "scripts", ["vocabulary.py", "promises.py", "coverage.py", "progress.py", "guides.py", "growth.py", "demo.py", "tests.py"]),
    ("doctests of experiments/tltcp", "experiments/tltcp", ["section_reader.py"]),
    *((f"doctests of {folder}", folder, ["*.py"]) for folder in [
        "benches", "benches/race", "benches/media", "benches/deadline", "benches/endurance",
        "benches/worlds", "benches/kernel", "benches/compare", "benches/attack", "benches/video",
    ]),
    ("interoperability peer", ".", "program/tests/interoperability/run.sh"),
    ("Python package", ".", "scripts/python.sh"),
]

# How a failed test is reported by libtest, libtest-mimic, pytest and doctest.
REPORTS = re.compile(
    r"^test (.+?) +\.\.\. FAILED$|^FAILED (\S+)|^(File \".+\", line \d+, in .+)$", re.MULTILINE
)

# A test of libtest that takes long, as it says itself.
SLOW = re.compile(r"^test (.+?) has been running for over", re.MULTILINE)

# Longer than this nothing is silent.
SILENCE_S = 10

# Longer than this no program runs, however busy the machine is.
LIMIT_S = 1500


class Console:
    """Prints whole outputs, and a line about what runs when nothing was printed for a while."""

    def __init__(self):
        self.lock = threading.Lock()
        self.running = {}
        self.printed = time.monotonic()
        threading.Thread(target=self._tell, daemon=True).start()

    def print(self, text, output=b""):
        with self.lock:
            print(text, flush=True)
            sys.stdout.buffer.write(output)
            sys.stdout.buffer.flush()
            self.printed = time.monotonic()

    def _tell(self):
        while True:
            time.sleep(1)
            now = time.monotonic()
            if self.running and now - self.printed >= SILENCE_S:
                running = [f"{name} ({now - at:.0f} s)" for name, at in list(self.running.items())]
                self.print("     Still running: " + ", ".join(running))

    def run(self, name, command, failed, **options):
        """Runs a command and prints what it said; what failed goes to `failed`."""
        began = self.running[name] = time.monotonic()
        try:
            ended = subprocess.run(
                command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=LIMIT_S, **options
            )
            output, code = ended.stdout, ended.returncode
        except subprocess.TimeoutExpired as error:
            output, code = error.output or b"", -signal.SIGKILL
        del self.running[name]
        took = time.monotonic() - began
        self.print(f"     Tests of {name}, in {took:.1f} s", output)
        if code:
            text = output.decode(errors="replace")
            tests = [next(filter(None, found)) for found in REPORTS.findall(text)]
            if took >= LIMIT_S:
                tests += hung(text)
                self.print(f"     {name} was ended: no program runs for more than {LIMIT_S} s")
            elif code < 0:
                self.print(f"     {name} was ended by {signal.Signals(-code).name}")
                tests = []
            failed.setdefault(name, []).extend(dict.fromkeys(tests))


def hung(text):
    """The tests that took long and came to no result.

    >>> hung("test a has been running for over 60 seconds\\n"
    ...      "test b has been running for over 60 seconds\\ntest a ... ok\\n")
    ['b']
    """
    return [test for test in SLOW.findall(text) if f"\ntest {test} ..." not in text]


def programs(console):
    """The test programs as cargo builds them: a name, the file, its folder, and whether it waits."""
    console.running["the build"] = time.monotonic()
    build = [*CARGO, "--no-run", "--message-format=json-render-diagnostics"]
    found = []
    with subprocess.Popen(build, stdout=subprocess.PIPE, text=True) as cargo:
        for line in cargo.stdout:
            console.printed = time.monotonic()
            message = json.loads(line)
            if message.get("executable") and message["profile"]["test"]:
                package, target = pathlib.Path(message["manifest_path"]).parent, message["target"]
                name = f"{package.name} {'/'.join(target['kind'])} {target['name']}"
                waits = "test" in target["kind"] and package.name in WAIT
                found.append((name, message["executable"], package, waits))
    del console.running["the build"]
    if cargo.returncode:
        sys.exit(cargo.returncode)
    return found


def commands(console, chosen):
    """The rows of Rust's programs, each a list of names, commands and options."""
    waiting, computing = [], []
    for name, program, package, waits in programs(console):
        environment = {**os.environ, "CARGO_MANIFEST_DIR": str(package)}
        if waits:
            environment.setdefault("RUST_TEST_THREADS", str(AT_A_TIME))
        options = {"cwd": package, "env": environment}
        for arguments in chosen(name):
            (waiting if waits else computing).append((name, [program, *arguments], options))
    if any(True for _ in chosen("documentation")):
        doc = [*CARGO, "--no-fail-fast", "--doc"]
        computing.append(("documentation", doc, {}))
    return waiting, computing


def others(chosen):
    """The tests that are not Rust's."""
    for name, folder, files in OTHERS:
        if any(True for _ in chosen(name)):
            folder = ROOT / folder
            command = [files]
            if isinstance(files, list):
                paths = sorted(str(path.relative_to(folder)) for file in files for path in folder.glob(file))
                command = ["python3", "-m", "doctest", *paths]
            yield name, command, {"cwd": folder}


def _exactly(tests):
    """Lists of arguments for these tests of a program; for all of it, if it names none."""
    return [["--exact", test] for test in tests] or [[]]


def choice(options):
    """Which programs run: a function from a name to the lists of arguments that it runs with."""
    if options.failed:
        failed = json.loads(FAILED.read_text()) if FAILED.exists() else {}
        return lambda name: _exactly(failed[name]) if name in failed else []
    return lambda name: [[]] if all(word in name for word in options.only) else []


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("only", nargs="*", help="run only programs with these words in their names, such as 'program test stream'")
    parser.add_argument("--failed", action="store_true", help="run the tests that failed the last time")
    parser.add_argument("--busy", type=int, default=0, metavar="N", help="run beside N programs that compute all the time")
    options = parser.parse_args()
    os.chdir(ROOT)
    console, chosen, failed = Console(), choice(options), {}
    rows = [*commands(console, chosen), others(chosen)]
    busy = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(options.busy)]
    try:
        def run(row):
            for name, command, more in row:
                console.run(name, command, failed, **more)

        threads = [threading.Thread(target=run, args=(row,)) for row in rows]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    finally:
        for program in busy:
            program.kill()
    if not options.only:
        FAILED.write_text(json.dumps(failed))
    if failed:
        tests = [f"  {name}: {test}" for name, tests in failed.items() for test in tests or ["all tests"]]
        again = " ".join(sys.argv) if options.only else "make test FAILED=1"
        sys.exit("\n".join(["error: these tests failed:", *tests, f"run them again: {again}"]))


if __name__ == "__main__":
    main()
