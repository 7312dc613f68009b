#!/usr/bin/env python3
"""What it takes to set up a call: Comity and QUIC, through `comity emulate`.

    cargo build --release --package comity-cli && cargo build --release --manifest-path benches/compare/Cargo.toml
    python3 benches/compare/setup.py [--calls 20]

Each call sends one frame of 1,000 bytes and ends. *Connected* is the time from the call to the caller's connection.
Comity's has the key of a passphrase (Argon2id, 64 MiB) in it; QUIC checks no certificate. Packets and bytes on the wire
are those of the whole call, both ways, with the search for a larger packet size and the end.
"""

import argparse
import json
import pathlib
import statistics
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
sys.path += [str(ROOT / "benches/media"), str(ROOT / "benches/video")]
from carriers import free_ports  # noqa: E402
from media import Program  # noqa: E402

PATHS = [(20, 0), (100, 0), (100, 5)]
TRANSPORTS = ["comity", "quic"]
FRAME = ["--rate", "8kbps", "--fps", "1", "--seconds", "1", "--frames", "equal", "--latency", "1s"]


def call(programs, transport, round_trip_ms, loss, seed):
    """The time until the caller was connected in ms, and the packets and bytes of the call."""
    server = f"127.0.0.1:{free_ports().receiver}"
    emulate = [programs.comity, "emulate", "--listen", "127.0.0.1:0", "--to", server, "--json", "--seed", str(seed)]
    emulate += ["--delay", f"{round_trip_ms / 2}ms", "--loss", f"{loss}%"]
    receive = [programs.compare, "receive", "--transport", transport, "--listen", server, *FRAME]
    with tempfile.TemporaryDirectory() as folder, Program(emulate, pathlib.Path(folder), "emulate") as path:
        proxy = f"127.0.0.1:{path.port()}"
        with subprocess.Popen(receive, stdout=subprocess.PIPE, text=True) as receiver:
            send = [programs.compare, "send", "--transport", transport, "--connect", proxy, *FRAME]
            sent = json.loads(subprocess.run(send, check=True, stdout=subprocess.PIPE, text=True).stdout)
            received = json.loads(receiver.communicate()[0])
        path.interrupt()
        _, report = path.end(10)
    assert received["frames_never_complete"] == 0, received
    ways = [report["forward"]["arrived"], report["backward"]["arrived"]]
    return sent["connected_ms"], *(sum(way[key] for way in ways) for key in ("packets", "bytes"))


def main():
    parser = argparse.ArgumentParser(description="Measure how long calls of Comity and QUIC take to set up.")
    parser.add_argument("--calls", type=int, default=20, help="calls of each kind (default: 20)")
    parser.add_argument("--comity", default=ROOT / "target/release/comity", type=pathlib.Path)
    parser.add_argument("--compare", default=ROOT / "benches/compare/target/release/compare", type=pathlib.Path)
    arguments = parser.parse_args()
    print("| round trip | lost | transport | connected, ms: median, worst | packets | bytes on the wire |")
    print("|---|---|---|---|---|---|")
    for round_trip_ms, loss in PATHS:
        for transport in TRANSPORTS:
            calls = [call(arguments, transport, round_trip_ms, loss, seed) for seed in range(1, arguments.calls + 1)]
            connected, packets, size = zip(*calls)
            print(
                f"| {round_trip_ms} ms | {loss} % | {transport} | {statistics.median(connected):.0f}, {max(connected):.0f} | "
                f"{statistics.median(packets):.0f} | {statistics.median(size):,.0f} |",
                flush=True,
            )


if __name__ == "__main__":
    main()
