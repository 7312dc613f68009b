"""Attacks of those who can send to an input: its media take memory, or hold up the end."""

import pathlib
import random
import socket
import sys
import threading
import time

from outcome import Outcome, number
from programs import LISTENER, free_port, socket_drops

sys.path.append(str(pathlib.Path(__file__).resolve().parent.parent))
from crc import crc32  # noqa: E402

DATAGRAM = 7
"""Packets of a transport stream in a datagram."""
STREAMS = 30
MAP, FIRST = 0x1000, 0x100
MAPS, OF_MAP = 15, 200
"""The second: as many streams as one map can name."""
BEGIN = b"\0\0\1\xbd\0\0\x80\0\0".ljust(184, b"\1")
"""Of a unit without a length, in a PES packet of private data. It ends where the next one begins."""


def packet(pid, begins, counter, payload):
    """A packet of a transport stream.

    >>> len(packet(0, True, 0, bytes(184)))
    188
    """
    return bytes([0x47, begins << 6 | pid >> 8, pid & 0xFF, 0x10 | counter % 16]) + payload


def section(pid, table, number, body):
    """The packets of a table.

    >>> [len(packet) for packet in section(0, 0, 1, bytes(400))]
    [188, 188, 188]
    """
    head = bytes([table]) + (0xB000 | len(body) + 9).to_bytes(2, "big") + number.to_bytes(2, "big") + b"\xc1\0\0" + body
    whole = b"\0" + head + crc32(head).to_bytes(4, "big")
    for at in range(0, len(whole), 184):
        yield packet(pid, at == 0, at // 184, whole[at : at + 184].ljust(184, b"\xff"))


def tables(programs):
    """The packets of the tables of programs: the PID of each map, and the PIDs of its streams of private data."""
    yield from section(0, 0x00, 1, b"".join((at << 16 | 0xE000 | pid).to_bytes(4, "big") for at, (pid, _) in enumerate(programs, 1)))
    for number, (pid, pids) in enumerate(programs, 1):
        streams = b"".join(b"\x06" + (0xE000 | stream).to_bytes(2, "big") + b"\xf0\0" for stream in pids)
        yield from section(pid, 0x02, number, b"\xff\xff\xf0\0" + streams)


def open_stream():
    """Packets of units on many PIDs that never end, and the tables before them."""
    pids = range(FIRST, FIRST + STREAMS)
    yield from tables([(MAP, pids)])
    for pid in pids:
        yield packet(pid, True, 0, BEGIN)
    counter = 0
    while True:
        counter += 1
        for pid in pids:
            yield packet(pid, False, counter, b"\1" * 184)


def many_streams():
    """A unit of a packet on each of thousands of PIDs in turn, and the tables before them."""
    maps = range(FIRST, FIRST + MAPS)
    pids = range(maps.stop, maps.stop + MAPS * OF_MAP)
    yield from tables([(pid, pids[at * OF_MAP : (at + 1) * OF_MAP]) for at, pid in enumerate(maps)])
    counter = 0
    while True:
        for pid in pids:
            yield packet(pid, True, counter, BEGIN)
        counter += 1


def garbage():
    noise = random.Random(1)
    while True:
        yield noise.randbytes(188)


class Source(threading.Thread):
    """Sends packets to a port, at a pace that the program can take, until it is stopped."""

    def __init__(self, port, packets, rate):
        super().__init__(daemon=True)
        self.port, self.packets, self.rate = port, packets, rate
        self.sent, self.is_over = 0, threading.Event()
        self.start()

    def run(self):
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as line:
            began = time.monotonic()
            while not self.is_over.is_set():
                if self.sent > (time.monotonic() - began) * self.rate:
                    time.sleep(0.001)
                    continue
                # Nobody listens any more when the program has ended.
                try:
                    line.sendto(b"".join(next(self.packets) for _ in range(DATAGRAM)), ("127.0.0.1", self.port))
                except OSError:
                    time.sleep(0.001)
                self.sent += 1

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.is_over.set()
        self.join()


def open_units(programs):
    port, seconds = free_port(), 12
    with programs.run("send", f"udp://127.0.0.1:{port}", LISTENER, "--all") as sender:
        sender.event("listening")
        before = sender.usage()
        with Source(port, open_stream(), 15_000) as source:
            time.sleep(seconds)
        after = sender.usage()
    mb = source.sent * DATAGRAM * 188 / 1e6
    yield Outcome(
        f"units of a transport stream that never end, on {STREAMS} PIDs of a `udp://` input",
        number(source.sent / seconds),
        f"{number(mb)} MB of them sent, and the memory stays",
        mb > 200 and after.memory_mb < before.memory_mb + 128,
        (after.cpu_s - before.cpu_s) * 1e6 / source.sent,
        (before.memory_mb, after.memory_mb),
    )


def many_lanes(programs):
    """The next unit always comes before the last one is passed on. 64 KiB used to stay for each PID then: 139
    MB of 85 that were read in this time."""
    port, seconds = free_port(), 15
    with programs.run("send", f"udp://127.0.0.1:{port}", LISTENER, "--all") as sender:
        sender.event("listening")
        address, before = f"127.0.0.1:{port}", sender.usage()
        with Source(port, many_streams(), 7_500) as source:
            time.sleep(seconds)
        after, read = sender.usage(), source.sent - socket_drops(address)
    mb = read * DATAGRAM * 188 / 1e6
    yield Outcome(
        f"units of one packet on {number(MAPS * OF_MAP)} PIDs in turn of a `udp://` input",
        number(source.sent / seconds),
        f"{number(mb)} MB of them read, and the memory stays",
        mb > 60 and after.memory_mb < before.memory_mb + 64,
        (after.cpu_s - before.cpu_s) * 1e6 / read,
        (before.memory_mb, after.memory_mb),
    )


def garbage_at_the_end(programs):
    took = {}
    for scheme in ("udp", "rtp"):
        port = free_port()
        with programs.run("send", f"{scheme}://127.0.0.1:{port}", LISTENER, "--all") as sender:
            sender.event("listening")
            with Source(port, garbage(), 2_000):
                time.sleep(2)
                took[scheme], _ = sender.stop()
    named = ", ".join(f"{seconds:.1f} s with `{scheme}://`" for scheme, seconds in took.items())
    yield Outcome(
        "random bytes at an input that is stopped",
        "2,000",
        f"it ends after SIGTERM in time: {named}",
        max(took.values()) < 2.5,
    )


ATTACKS = (open_units, many_lanes, garbage_at_the_end)
