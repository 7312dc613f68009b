#!/usr/bin/env python3
"""Runs a command that takes long, and says how far it is where nobody else does.

    progress.py cargo build --release
    progress.py pip install polars

On a terminal cargo and pip show their own progress. Elsewhere, and for other commands, a line with the elapsed time
comes after 10 s in which standard error got none; that of cargo says how many crates are built.
"""

import os
import re
import selectors
import signal
import subprocess
import sys
import time

# The longest silence in seconds.
SILENCE = 10.0
# The line that cargo writes over and over.
BAR = re.compile(r"^\s*(?:Building|Checking|Updating|Downloading)\b.*?\] *(\d+)/(\d+)(?:: *(.*))?")
# The two that it writes while it fetches: of the index, and of crates.
FETCH = re.compile(r"^\s*(?:Fetch \[.*?\] *|Downloading +)(\d+ (?:complete; \d+ pending|crates?))")
COLOUR = re.compile(r"\x1b\[[0-9;]*[A-Za-z]")


def bar(line):
    """What a line of cargo's progress says; nothing of another line.

    >>> bar("    Building [=====>      ] 12/240: comity-sim(build)")
    '12 of 240, comity-sim(build)'
    >>> bar("    Building [===========>] 240/240")
    '240 of 240'
    >>> bar("       Fetch [==>          ] 60 complete; 136 pending   ")
    '60 complete; 136 pending'
    >>> bar(" Downloading 23 crates, remaining bytes: 1.2MiB")
    '23 crates'
    >>> bar("   Compiling bytes v1.12.0")
    >>> bar("  Downloaded bytes v1.12.0")
    """
    if found := FETCH.match(line):
        return found[1]
    found = BAR.match(line)
    if not found:
        return None
    now = (found[3] or "").strip().removesuffix("...").strip()
    return f"{found[1]} of {found[2]}" + (f", {now}" if now else "")


def split(data):
    r"""The lines of some bytes, and the rest behind the last.

    >>> split(b"a\r\nb\rc")
    ([b'a', b'b'], b'c')
    """
    *lines, rest = re.split(rb"\r\n|\n|\r", data)
    return lines, rest


def main(command):
    name = os.path.basename(next((word for word in command if word.endswith(".py")), command[0]))
    environment = {**os.environ}
    if name in ("cargo", "pip") and sys.stderr.isatty():
        os.execvp(command[0], command)
    if name == "cargo":
        environment.update(CARGO_TERM_PROGRESS_WHEN="always", CARGO_TERM_PROGRESS_WIDTH="100")
    began = said = time.monotonic()
    how_far, rest, data = "", b"", None
    child = subprocess.Popen(command, env=environment, stderr=subprocess.PIPE)
    # The command gets it too, and its end is awaited.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    ready = selectors.DefaultSelector()
    ready.register(child.stderr, selectors.EVENT_READ)
    while data != b"":
        if ready.select(max(0.0, said + SILENCE - time.monotonic())):
            data = os.read(child.stderr.fileno(), 65536)
            lines, rest = split(rest + data) if data else ([rest], b"")
            for line in lines:
                text = line.decode(errors="replace")
                if name == "cargo":
                    text = COLOUR.sub("", text)
                if progress := bar(text):
                    how_far = f"{progress}, "
                elif text.strip():
                    print(text, file=sys.stderr, flush=True)
                    said = time.monotonic()
        if time.monotonic() >= said + SILENCE:
            said = time.monotonic()
            print(f"     {name}: {how_far}{said - began:.0f} s", file=sys.stderr, flush=True)
    code = child.wait()
    return 128 - code if code < 0 else code


if __name__ == "__main__":
    if len(sys.argv) < 2:
        sys.exit("usage: progress.py COMMAND [ARGUMENT...]")
    try:
        sys.exit(main(sys.argv[1:]))
    except FileNotFoundError as error:
        sys.exit(f"progress.py: {error}")
