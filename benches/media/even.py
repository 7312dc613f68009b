#!/usr/bin/env python3
"""How even a UDP output is: its peaks, the jitter of its clock references, and its delay, beside its source.

A multiplex of constant rate goes in as UDP, through `comity send`, `comity emulate` and `comity recv`, and out
as UDP. The kernel stamps each datagram that arrives. The goals: peaks over 1, 10 and 40 ms at most 1.2 times
those of the source, references within 500 us (p99), a delay of the latency and 30 ms, and nothing lost in a
socket of the default size. Another load on the machine makes all of them worse: the page states it.
"""

import argparse
import os
import pathlib
import shutil
import socket
import struct
import subprocess
import sys
import tempfile
import threading
import time

from media import ROOT, Clip, MediaError, Program

sys.path.append(str(ROOT / "benches/video"))
from carriers import PACKET, feed  # noqa: E402

DATAGRAM = 7 * PACKET


def wall_clock():
    """The clock of the kernel's time stamps."""
    return time.clock_gettime(time.CLOCK_REALTIME)


def send(stream, rate, port, log, done):
    """Sends a stream at its rate; logs when each datagram left."""
    datagrams = [(at * 8 / rate, stream[at : at + DATAGRAM]) for at in range(0, len(stream), DATAGRAM)]
    sent = feed(datagrams, port, wall_clock)
    log.extend((at, datagram) for at, (_, datagram) in zip(sent, datagrams))
    done.set()


def receive(into, log, done):
    """Logs the datagrams of a socket with the kernel's time stamps, until two seconds after the source's end."""
    into.settimeout(2)
    while True:
        try:
            data, ancillary, _, _ = into.recvmsg(65_536, 64)
        except TimeoutError:
            if done.is_set():
                return
            continue
        seconds, nanos = struct.unpack("qq", ancillary[0][2][:16])
        log.append((seconds + nanos / 1e9, data))


def peak(log, window):
    """The highest rate over such windows, in Mb/s."""
    most = first = held = 0
    for when, data in log:
        held += len(data)
        while when - log[first][0] >= window:
            held -= len(log[first][1])
            first += 1
        most = max(most, held)
    return most * 8 / window / 1e6


def packets(log):
    """Each packet with the time of its datagram."""
    for when, data in log:
        for at in range(0, len(data), PACKET):
            yield when, data[at : at + PACKET]


def references(log):
    """Arrival and clock reference, in seconds, of the first PID with any."""
    pid = None
    for when, packet in packets(log):
        if packet[3] & 0x20 and packet[4] >= 7 and packet[5] & 0x10:
            own = (packet[1] & 0x1F) << 8 | packet[2]
            pid = pid or own
            if own == pid:
                field = int.from_bytes(packet[6:12], "big")
                yield when, ((field >> 15) * 300 + (field & 0x1FF)) / 27e6


def jitter(log):
    """The 99th percentile of how far references are from a line through all of them, in microseconds."""
    points = [(clock, when) for when, clock in references(log)]
    count = len(points)
    mean = [sum(point[axis] for point in points) / count for axis in (0, 1)]
    moved = [(clock - mean[0], when - mean[1]) for clock, when in points]
    slope = sum(x * y for x, y in moved) / sum(x * x for x, _ in moved)
    errors = sorted(abs(y - slope * x) for x, y in moved)
    return errors[count * 99 // 100] * 1e6


def delays(source, log, counted):
    """From the time at which each packet went in to that at which it came out, in milliseconds, sorted; and how many are
    missing of those that went in at the times that count."""
    sent, delays = {}, []
    for when, packet in packets(source):
        sent.setdefault(packet, []).append(when)
    known = {packet: whens[0] for packet, whens in sent.items() if len(whens) == 1 and counted[0] <= whens[0] <= counted[1]}
    for when, packet in packets(log):
        if (left := known.pop(packet, None)) is not None:
            delays.append(1e3 * (when - left))
    return sorted(delays), len(known)


def play(options, stream, rate, loss, delay):
    """One transfer: what went in and what came out."""
    into = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    into.setsockopt(socket.SOL_SOCKET, socket.SO_TIMESTAMPNS if hasattr(socket, "SO_TIMESTAMPNS") else 35, 1)
    into.bind(("127.0.0.1", 0))
    source, log, done = [], [], threading.Event()
    with tempfile.TemporaryDirectory(prefix="comity-even-") as name:
        folder = pathlib.Path(name)
        key = "passphrase=an even output"
        out = f"udp://127.0.0.1:{into.getsockname()[1]}"
        with Program([options.comity, "recv", f"comity://127.0.0.1:0?mode=listener&{key}", out, "--json"], folder, "recv") as receiver, \
             Program([options.comity, "emulate", "--listen", "127.0.0.1:0", "--to", f"127.0.0.1:{receiver.port()}",
                      "--loss", f"{loss}%", "--delay", f"{delay}ms", "--json"], folder, "emulate") as network:
            uri = f"comity://127.0.0.1:{network.port()}?latency={options.latency}ms&{key}"
            with Program([options.comity, "send", "udp://@127.0.0.1:0", uri, "--json"], folder, "send") as sender:
                port = sender.port()
                threads = [threading.Thread(target=receive, args=(into, log, done)),
                           threading.Thread(target=send, args=(stream, rate, port, source, done))]
                for thread in threads:
                    thread.start()
                for thread in threads:
                    thread.join()
                sender.interrupt()
                sender.end(30)
            receiver.interrupt()
            receiver.end(30)
            network.interrupt()
            network.end(10)
    return source, log


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--comity", default=str(ROOT / "target/release/comity"), help="the program [target/release/comity]")
    parser.add_argument("--rate", type=float, default=20, help="of the multiplex, in Mb/s [20]")
    parser.add_argument("--seconds", type=int, default=20, help="the length of the source [20]")
    parser.add_argument("--settle", type=int, default=4, help="seconds at the beginning that do not count [4]")
    parser.add_argument("--latency", type=int, default=300, help="in milliseconds [300]")
    options = parser.parse_args()
    if not shutil.which("ffmpeg"):
        print("even: skipped, since ffmpeg cannot be found; Debian's package ffmpeg has it")
        return 0
    folder = ROOT / "target/media"
    folder.mkdir(parents=True, exist_ok=True)
    kilobits = int(options.rate * 1e3)
    video = f"{kilobits // 2}k"
    encode = ("-vf", "noise=alls=20:allf=t", "-c:v", "libx264", "-preset", "ultrafast", "-b:v", video, "-maxrate", video, "-bufsize", video,
              "-pes_payload_size", "0", "-muxrate", f"{kilobits}k", "-f", "mpegts")
    file = Clip(f"even-{kilobits}k", ".ts", encode).make(folder, options.seconds)
    stream = file.read_bytes()
    print(f"{options.rate:g} Mb/s, {options.latency} ms; load of the machine {os.getloadavg()[0]:.1f} on {os.cpu_count()} processors")
    print(f"{'':26}{'peaks, Mb/s':>24}{'p99, us':>10}{'delay, ms':>22}{'packets':>10}")
    print(f"{'':26}{'1 ms':>8}{'10 ms':>8}{'40 ms':>8}{'PCR':>10}{'median':>8}{'p99':>7}{'most':>7}{'missing':>10}")
    for label, loss, delay in (("a clean path", 0, 0), ("5 % lost, RTT of 60 ms", 5, 30)):
        source, log = play(options, stream, options.rate * 1e6, loss, delay)
        counted = source[0][0] + options.settle, source[-1][0] - 2
        late, missing = delays(source, log, counted)
        of = lambda log: [(when, data) for when, data in log if counted[0] + 1 <= when <= counted[1]]
        source, log = of(source), of(log)
        peaks = lambda log: "".join(f"{peak(log, window):8.1f}" for window in (0.001, 0.01, 0.04))
        print(f"{label + ': source':26}{peaks(source)}{jitter(source):10.0f}")
        cells = "".join(f"{late[min(len(late) * share // 100, len(late) - 1)]:{width}.0f}" for share, width in ((50, 8), (99, 7), (100, 7)))
        print(f"{'  output':26}{peaks(log)}{jitter(log):10.0f}{cells}{missing:10}", flush=True)
    return 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except (MediaError, subprocess.TimeoutExpired) as error:
        print(f"even: {error}", file=sys.stderr)
        sys.exit(1)
