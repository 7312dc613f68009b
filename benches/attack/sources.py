"""Attacks of those who can send to an input: its media take memory, or hold up the end."""

import pathlib
import random
import socket
import sys
import threading
import time

from outcome import Outcome, number
from programs import LISTENER, free_port

sys.path.append(str(pathlib.Path(__file__).resolve().parent.parent))
from crc import crc32  # noqa: E402

DATAGRAM = 7
"""Packets of a transport stream in a datagram."""
STREAMS = 30
MAP, FIRST = 0x1000, 0x100


def packet(pid, begins, counter, payload):
    """A packet of a transport stream.

    >>> len(packet(0, True, 0, bytes(184)))
    188
    """
    return bytes([0x47, begins << 6 | pid >> 8, pid & 0xFF, 0x10 | counter % 16]) + payload


def section(table, body):
    head = bytes([table, 0xB0, len(body) + 9, 0, 1, 0xC1, 0, 0]) + body
    return (b"\0" + head + crc32(head).to_bytes(4, "big")).ljust(184, b"\xff")


def open_stream():
    """Packets of units on many PIDs that never end, and the tables before them."""
    pids = range(FIRST, FIRST + STREAMS)
    streams = b"".join(bytes([0x06]) + (0xE000 | pid).to_bytes(2, "big") + b"\xf0\0" for pid in pids)
    yield packet(0, True, 0, section(0x00, (0x1E000 | MAP).to_bytes(4, "big")))
    yield packet(MAP, True, 0, section(0x02, b"\xff\xff\xf0\0" + streams))
    for pid in pids:
        yield packet(pid, True, 0, b"\0\0\1\xbd\0\0\x80\0\0".ljust(184, b"\1"))
    counter = 0
    while True:
        counter += 1
        for pid in pids:
            yield packet(pid, False, counter, b"\1" * 184)


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


ATTACKS = (open_units, garbage_at_the_end)
