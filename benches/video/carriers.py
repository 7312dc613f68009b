"""The transports, each as two programs that take and give datagrams of a transport stream."""

import contextlib
import os
import socket
import subprocess
import time
from dataclasses import dataclass

CONNECT_S = 2.0
"""The time for connections, before the clip begins: the same for each transport."""
PACKET = 188


@dataclass(frozen=True)
class Ports:
    """Ports of loopback."""

    feed: int
    bottleneck: int
    receiver: int
    output: int


def free_ports():
    """Ports that were free a moment ago. RIST wants even ones."""
    found = []
    while len(found) < 4:
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
            probe.bind(("127.0.0.1", 0))
            port = probe.getsockname()[1]
        if port % 2 == 0 and port not in found:
            found.append(port)
    return Ports(*found)


def comity(case, ports, program, secret):
    uri = f"latency={case.latency_ms}ms&passphrase={secret}"
    return (
        [program, "recv", f"comity://127.0.0.1:{ports.receiver}?mode=listener&{uri}", f"udp://127.0.0.1:{ports.output}"],
        [program, "send", f"udp://127.0.0.1:{ports.feed}", f"comity://127.0.0.1:{ports.bottleneck}?{uri}"],
    )


def srt(case, ports, _, secret):
    # SRT delivers its latency after a packet would have arrived on an idle path.
    latency_ms = case.latency_ms - case.round_trip_ms // 2
    options = f"latency={latency_ms}&passphrase={secret}&tlpktdrop=1"
    program = ["srt-live-transmit", "-q", "-a:no"]
    return (
        [*program, f"srt://127.0.0.1:{ports.receiver}?mode=listener&{options}", f"udp://127.0.0.1:{ports.output}"],
        [*program, f"udp://127.0.0.1:{ports.feed}", f"srt://127.0.0.1:{ports.bottleneck}?mode=caller&{options}"],
    )


def rist(case, ports, _, secret):
    buffer = ["-b", str(case.latency_ms - case.round_trip_ms // 2), "-s", secret, "-e", "128", "-S", "0"]
    return (
        ["ristreceiver", "-i", f"rist://@127.0.0.1:{ports.receiver}", "-o", f"udp://127.0.0.1:{ports.output}", *buffer],
        ["ristsender", "-i", f"udp://@127.0.0.1:{ports.feed}", "-o", f"rist://127.0.0.1:{ports.bottleneck}", *buffer],
    )


CARRIERS = {"Comity": (comity, None), "SRT": (srt, "srt-live-transmit"), "RIST": (rist, "ristsender")}
"""For each transport its commands, and the program that it needs beside Comity."""


class Running:
    """Programs that end with this value."""

    def __init__(self, folder):
        self.folder, self.children = folder, []

    def start(self, name, command):
        log = (self.folder / f"{name}.log").open("wb")
        with log:
            self.children.append((name, subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log)))

    def ended(self):
        """What ended by itself, and what it said."""
        return [
            f"{name} ended with {child.returncode}: {(self.folder / f'{name}.log').read_text(errors='replace')[-300:]}"
            for name, child in self.children if child.poll() is not None
        ]

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for _, child in self.children:
            child.kill()
            child.wait()


def start(running, transport, case, program):
    """Starts the receiver, the path and the sender, and waits for the connection. The ports, and when the path began."""
    ports = free_ports()
    commands, _ = CARRIERS[transport]
    receiver, sender = commands(case, ports, program, "a" + os.urandom(8).hex())
    running.start("receiver", receiver)
    time.sleep(0.3)
    began = time.monotonic()
    running.start("path", [
        program, "emulate", "--listen", f"127.0.0.1:{ports.bottleneck}", "--to", f"127.0.0.1:{ports.receiver}", *case.path(CONNECT_S),
    ])
    time.sleep(0.3)
    running.start("sender", sender)
    time.sleep(max(0, began + CONNECT_S - time.monotonic()))
    return ports


def clocked(data):
    """The datagrams of a transport stream, each with its time in seconds: even between two clock references of a PID.

    >>> packet = lambda base: bytes([0x47, 1, 0, 0x20, 7, 0x10]) + (base << 15).to_bytes(6, "big") + bytes(176)
    >>> [at for at, _ in clocked(packet(0) + bytes([0x47, 1, 0, 0x10]) * 47 * 13 + packet(90_000))]
    [0.0, 0.5, 1.0]
    """
    references, pid = [], None
    for at in range(0, len(data) - PACKET + 1, PACKET):
        packet = data[at:at + PACKET]
        named = (packet[1] & 0x1F) << 8 | packet[2]
        if packet[3] & 0x20 and packet[4] >= 7 and packet[5] & 0x10 and pid in (None, named):
            pid = named
            references.append((at, (int.from_bytes(packet[6:11], "big") >> 7) / 90_000))
    first = references[0][1]
    found, place = [], 0
    for at in range(0, len(data), 7 * PACKET):
        while place + 2 < len(references) and references[place + 1][0] <= at:
            place += 1
        (begin, begin_s), (end, end_s) = references[place], references[place + 1]
        found.append((begin_s - first + (at - begin) / (end - begin) * (end_s - begin_s), data[at:at + 7 * PACKET]))
    return found


def feed(datagrams, port, clock=time.monotonic):
    """Sends each datagram at its time. When each was sent, by this clock."""
    sent = []
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as out:
        out.connect(("127.0.0.1", port))
        start = clock()
        for at, datagram in datagrams:
            while (left := start + at - clock()) > 0:
                time.sleep(left)
            # One that nobody receives is lost, as on any network.
            with contextlib.suppress(ConnectionRefusedError):
                out.send(datagram)
            sent.append(clock())
    return sent


def catch(port, arrivals, is_over):
    """Keeps what arrives, with its time, until it is over."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as socket_in:
        socket_in.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 8 << 20)
        socket_in.bind(("127.0.0.1", port))
        socket_in.settimeout(0.2)
        while not is_over.is_set():
            try:
                datagram = socket_in.recv(65_536)
            except socket.timeout:
                continue
            arrivals.append((time.monotonic(), datagram))

