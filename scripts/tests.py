#!/usr/bin/env python3
"""Builds every test of the workspace and runs the test programs in two rows.

`cargo test` runs one program after the other. Those of the command line and of the TCP host mostly
wait for the clock, so they have a row of their own, with more tests at a time than processors. The
other row computes beside it, at a lower priority. What a program says is printed when it ends.
Arguments go to every test program.
"""

import json
import os
import pathlib
import signal
import subprocess
import sys
import threading
import time

# The packages whose tests wait, and how many of them run at a time on two processors.
WAIT = ["cli", "tcp-host"]
AT_A_TIME = 6

CARGO = [os.environ.get("CARGO", "cargo"), "test", "--workspace"]


def programs():
    """The test programs as cargo builds them: package, what was compiled and the file."""
    build = [*CARGO, "--no-run", "--message-format=json-render-diagnostics"]
    with subprocess.Popen(build, stdout=subprocess.PIPE, text=True) as cargo:
        for line in cargo.stdout:
            message = json.loads(line)
            if message.get("executable") and message["profile"]["test"]:
                yield (
                    pathlib.Path(message["manifest_path"]).parent,
                    message["target"],
                    message["executable"],
                )
    if cargo.returncode:
        sys.exit(cargo.returncode)


def run(row, arguments, printing, failed):
    """Runs the commands of a row in turn; the names of those that fail go to `failed`."""
    for name, command, options in row:
        began = time.monotonic()
        ended = subprocess.run(
            command + arguments, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, **options
        )
        with printing:
            print(f"     Tests of {name}, in {time.monotonic() - began:.1f} s", flush=True)
            sys.stdout.buffer.write(ended.stdout)
            sys.stdout.buffer.flush()
        if ended.returncode < 0:
            failed.append(f"{name} (ended by {signal.Signals(-ended.returncode).name})")
        elif ended.returncode:
            failed.append(name)


def main(arguments):
    waiting, computing = [], []
    for package, target, program in programs():
        name = f"{package.name} {'/'.join(target['kind'])} {target['name']}"
        environment = {**os.environ, "CARGO_MANIFEST_DIR": str(package)}
        if "test" in target["kind"] and package.name in WAIT:
            environment.setdefault("RUST_TEST_THREADS", str(AT_A_TIME))
            waiting.append((name, [program], {"cwd": package, "env": environment}))
        else:
            computing.append((name, ["nice", program], {"cwd": package, "env": environment}))
    computing.append(("documentation", ["nice", *CARGO, "--no-fail-fast", "--doc", "--"], {}))
    printing, failed = threading.Lock(), []
    rows = [
        threading.Thread(target=run, args=(row, arguments, printing, failed))
        for row in (waiting, computing)
    ]
    for row in rows:
        row.start()
    for row in rows:
        row.join()
    if failed:
        sys.exit("error: tests failed in " + ", ".join(failed))


if __name__ == "__main__":
    main(sys.argv[1:])
