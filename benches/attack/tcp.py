"""Attacks of those who can send to Comity's own TCP, as root on a TUN device."""

import concurrent.futures
import contextlib
import os
import pathlib
import random
import socket
import struct
import time

from outcome import Outcome, number
from programs import PATIENCE, Skipped

DEVICE, KERNEL, HOST, PORT = "attack0", "198.18.77.1", "198.18.77.2", 8_000
"""Of the network for benchmarks (RFC 2544)."""
FILE = 2 << 20
HELD_MB = (256 + 256) * 1.048576
"""What all connections may hold, apart from the shares below."""
SHARE_MB = (16 + 16 + 64) * 1_024 / 1e6
"""The least for each connection: to send, to receive, and of the file."""


@contextlib.contextmanager
def served(programs):
    """`comity tcp serve` with a file."""
    if os.geteuid() != 0 or not pathlib.Path("/dev/net/tun").exists():
        raise Skipped("needs root and /dev/net/tun")
    file = programs.folder / "served"
    file.write_bytes(bytes(FILE))
    network = ("--address", HOST, "--kernel", f"{KERNEL}/24", "--tun", DEVICE)
    with programs.run("tcp", "serve", file, "--port", PORT, *network) as server:
        server.says(b"serving at")
        yield server


def fetched():
    """The seconds in which a client gets the whole file; none if it does not."""
    began, got = time.monotonic(), 0
    with contextlib.suppress(OSError), socket.create_connection((HOST, PORT), timeout=3) as client:
        while part := client.recv(1 << 16):
            got += len(part)
    return time.monotonic() - began if got == FILE else None


def checksum(data):
    """That of RFC 1071, for an even number of bytes.

    >>> checksum(bytes.fromhex("0001f203f4f5f6f7"))
    8717
    """
    total = sum(struct.unpack(f"!{len(data) // 2}H", data))
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    return total ^ 0xFFFF


def request(source, port, sequence):
    """A SYN from any address of the network.

    >>> len(request("198.18.77.9", 1, 1))
    40
    """
    ends = socket.inet_aton(source) + socket.inet_aton(HOST)
    tcp = struct.pack("!HHIIHHHH", port, PORT, sequence, 0, 5 << 12 | 0x02, 65_535, 0, 0)
    check = checksum(ends + struct.pack("!HH", socket.IPPROTO_TCP, len(tcp)) + tcp)
    tcp = tcp[:16] + struct.pack("!H", check) + tcp[18:]
    return struct.pack("!BBHHHBBH", 0x45, 0, 20 + len(tcp), 0, 0, 64, socket.IPPROTO_TCP, 0) + ends + tcp


def false_requests(programs):
    """140 of them used to shut it for half a minute."""
    rate, clients, interval = 3_000, 10, 0.5
    noise, sent = random.Random(1), 0
    with served(programs) as server, socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_RAW) as line:
        before, began = server.usage(), time.monotonic()
        with concurrent.futures.ThreadPoolExecutor(clients) as pool:
            fetching = []
            while not (len(fetching) == clients and all(client.done() for client in fetching)):
                seconds = time.monotonic() - began
                if len(fetching) < min(clients, int(seconds / interval)):
                    fetching.append(pool.submit(fetched))
                while sent < seconds * rate:
                    source = f"198.18.77.{noise.randrange(3, 255)}"
                    line.sendto(request(source, noise.randrange(1_024, 65_536), noise.getrandbits(32)), (HOST, 0))
                    sent += 1
                time.sleep(0.001)
        after = server.usage()
    got = [client.result() for client in fetching if client.result() is not None]
    yield Outcome(
        "SYNs from false addresses at `comity tcp serve`",
        number(sent / seconds),
        f"{len(got)} of {clients} clients get a file of 2 MiB, the slowest in {max(got, default=float('inf')) * 1e3:.0f} ms",
        len(got) == clients and sent > 1_000 * seconds,
        (after.cpu_s - before.cpu_s) * 1e6 / sent,
        (before.memory_mb, after.memory_mb),
    )


def deaf_peers(programs):
    """Peers that read nothing and send as much as they can. They used to take 1,065 MB."""
    peers, part = 600, bytes(1 << 16)
    with served(programs) as server, contextlib.ExitStack() as stack:
        before, sent = server.usage(), 0
        clients = []
        for _ in range(peers):
            client = stack.enter_context(socket.socket())
            client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4_096)
            client.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 1 << 16)
            client.settimeout(PATIENCE)
            client.connect((HOST, PORT))
            client.setblocking(False)
            clients.append(client)
        progress_at = time.monotonic()
        while time.monotonic() - progress_at < 2:
            for client in clients:
                with contextlib.suppress(OSError):
                    sent += client.send(part)
                    progress_at = time.monotonic()
            time.sleep(0.01)
        after, took = server.usage(), fetched()
    most = HELD_MB + peers * SHARE_MB
    yield Outcome(
        f"{peers} peers of `comity tcp serve` that read nothing, and send as much as they can",
        "once",
        f"they send {number(sent / 1e6)} MB; " + ("another client does not get the file" if took is None else f"another client gets a file of 2 MiB in {took * 1e3:.0f} ms"),
        took is not None and sent > peers * 65_536 and after.memory_mb < before.memory_mb + 1.1 * most,
        None,
        (before.memory_mb, after.memory_mb),
    )


ATTACKS = (false_requests, deaf_peers)
