#!/usr/bin/env python3
"""Run the demo, and keep its picture as docs/demo.svg and its numbers in docs/reference/demo.md.

    scripts/demo.py target/release/comity

Nothing is changed unless the machine was fast enough to emulate the bottleneck exactly.
"""

import json
import pathlib
import subprocess
import sys
import tempfile
import textwrap

ROOT = pathlib.Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs/reference/demo.md"
PICTURE = ROOT / "docs/demo.svg"
BEGIN = "<!-- run: begin, made by scripts/demo.py -->\n"
END = "<!-- run: end -->"


def milliseconds(delay):
    """A delay in a cell: a picture that never came has none."""
    return "never" if delay is None else f"{delay:.0f}"


def percent(part, whole):
    """A share with one decimal, rounded down: only all is 100 %."""
    tenths = 1000 * part // whole
    return f"{tenths // 10}.{tenths % 10} %" if tenths < 1000 else "100 %"


def numbers(run):
    """The block of the page about a run."""
    sections, flows = run["sections"], run["flows"]
    setup = run["setup"]
    others = " and ".join(f"{100 * flow['share']:.1f} %" for flow in flows[1:])
    missing = sections["late"] + sections["gaps"] + sections["unreported"]
    text = (
        f"{sections['on_time']:,} of {sections['sent']:,} sections were on time, and {missing:,} were late "
        f"or missing. The bottleneck had {setup['rate_mbps']:.1f} Mb/s. The video got "
        f"{100 * flows[0]['share']:.1f} % of it, the others {others}. Jain's index against the fair "
        f"rates is {run['jain_of_fair']:.3f}. {run['retransmitted_bytes']:,} bytes were retransmitted, "
        f"and {run['bytes_after_deadline']:,} bytes were sent after their deadline."
    )
    lines = [
        *textwrap.wrap(text, 100),
        "",
        f"| transport | shown in time | median delay (ms) | 99 % (ms) | longest (ms) | freezes of "
        f"{setup['copies']} copies | frozen, a copy (s) | longest freeze (s) |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for one in run["transports"]:
        if "failure" in one:
            sys.exit(f"{one['name']} did not run: {one['failure']}")
        delay = one["delay_ms"]
        cells = [
            one["name"],
            percent(one["shown_in_time"], one["pictures"]),
            *(milliseconds(delay[name]) for name in ("p50", "p99", "max")),
            f"{one['freezes']:,}",
            f"{one['frozen_s_per_copy']:.2f}",
            f"{one['longest_freeze_s']:.2f}",
        ]
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


def main():
    """Run the program that the command line names."""
    if len(sys.argv) != 2:
        sys.exit("usage: scripts/demo.py COMITY")
    with tempfile.TemporaryDirectory() as folder:
        picture = pathlib.Path(folder) / "demo.svg"
        command = [sys.argv[1], "demo", "--no-report", "--json", "--picture", str(picture)]
        done = subprocess.run(command, stdout=subprocess.PIPE, check=False)
        if done.returncode:
            sys.exit(f"nothing was changed: the demo ended with code {done.returncode}")
        run = json.loads(done.stdout)
        before, rest = PAGE.read_text().split(BEGIN)
        _, after = rest.split(END)
        PAGE.write_text(before + BEGIN + numbers(run) + END + after)
        PICTURE.write_text(picture.read_text())
    print(f"wrote {PICTURE.relative_to(ROOT)} and the numbers in {PAGE.relative_to(ROOT)}")


if __name__ == "__main__":
    main()
