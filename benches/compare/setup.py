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
import signal
import socket
import statistics
import subprocess

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
PATHS = [(20, 0), (100, 0), (100, 5)]
TRANSPORTS = ["comity", "quic"]
FRAME = ["--rate", "8kbps", "--fps", "1", "--seconds", "1", "--frames", "equal", "--latency", "1s"]


def free_port():
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def call(programs, transport, round_trip_ms, loss, seed):
    """The time until the caller was connected in ms, and the packets and bytes of the call."""
    server = f"127.0.0.1:{free_port()}"
    emulate = [programs.comity, "emulate", "--listen", "127.0.0.1:0", "--to", server, "--json", "--seed", str(seed)]
    emulate += ["--delay", f"{round_trip_ms / 2}ms", "--loss", f"{loss}%"]
    with subprocess.Popen(emulate, stdout=subprocess.PIPE, text=True) as path:
        try:
            proxy = json.loads(path.stdout.readline())["address"]
            receive = [programs.compare, "receive", "--transport", transport, "--listen", server, *FRAME]
            with subprocess.Popen(receive, stdout=subprocess.PIPE, text=True) as receiver:
                send = [programs.compare, "send", "--transport", transport, "--connect", proxy, *FRAME]
                sent = json.loads(subprocess.run(send, check=True, stdout=subprocess.PIPE, text=True).stdout)
                received = json.loads(receiver.communicate()[0])
        finally:
            path.send_signal(signal.SIGTERM)
            report = json.loads(path.communicate()[0].splitlines()[-1])
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
