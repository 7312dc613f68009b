"""Restarts, the metrics page, a path that changes packets, and keys that are none."""

import contextlib
import http.client
import os
import pathlib
import signal
import socket
import sys
import time

from outcome import Outcome, number
from programs import LISTENER, PASSPHRASE, ROOT, free_port

sys.path.append(str(ROOT / "crates/comity/tests/peer"))
import peer  # noqa: E402

AT_MOST = 1.0
"""Seconds until media flow again."""
SLOW_CLIENTS = 100


def grown(path, size, patience=20):
    """When a file has grown beyond a size."""
    until = time.monotonic() + patience
    while time.monotonic() < until:
        with contextlib.suppress(FileNotFoundError):
            if os.path.getsize(path) > size:
                return time.monotonic()
        time.sleep(0.005)
    return float("inf")


def size_of(path):
    with contextlib.suppress(FileNotFoundError):
        return os.path.getsize(path)
    return 0


def restarted_sender(programs):
    media = programs.folder / "sender.ts"
    receiver, address = programs.receiver(output=media)
    with receiver:
        with programs.sender(address) as first:
            grown(media, 50_000)
            first.child.kill()
        began = time.monotonic()
        with programs.sender(address) as second:
            connected, _ = second.timed_event("connected")
            # What the first one had sent is written by now.
            flows = grown(media, size_of(media))
            second.stop()
    yield Outcome(
        "the sender killed and started again",
        "once",
        f"connected after {connected - began:.2f} s, media after {flows - began:.2f} s",
        flows - began <= AT_MOST,
    )


def restarted_receiver(programs):
    port = free_port()
    uri = f"comity://127.0.0.1:{port}?mode=listener"
    receiver, address = programs.receiver(uri=uri)
    with programs.sender(address) as sender:
        with receiver:
            receiver.event("connected")
            time.sleep(1)
            receiver.child.kill()
        media = programs.folder / "receiver.ts"
        began = time.monotonic()
        receiver, _ = programs.receiver(uri=uri, output=media)
        listening = time.monotonic()
        with receiver:
            connected, _ = receiver.timed_event("connected")
            flows = grown(media, 0)
            sender.stop()
    yield Outcome(
        "the receiver killed and started again",
        "once",
        f"it listens after {listening - began:.2f} s and is called after {connected - began:.2f} s; media after {flows - began:.2f} s",
        flows - began <= AT_MOST,
    )


def on_time(receiver, sender):
    """Sections on time, and how many were submitted in all."""
    sender.end()
    totals = receiver.end()[1]["input"]["totals"]
    return totals["sectionsOnTime"], sender.last["output"]["totals"]["sectionsSubmitted"], totals["connections"]


def forged_resets(programs):
    receiver, address = programs.receiver()
    more = ("--repeat", "forged-reset", "--rate", 10_000, "--lasts", 6, "--seconds", 25)
    with receiver, programs.attack("relay", "--to", address, *more) as relay:
        with programs.sender(relay.address()) as sender:
            relay.event("repeating")
            before = sender.usage()
            found = relay.event("repeated")
            after = sender.usage()
            arrived, submitted, connections = on_time(receiver, sender)
    yield Outcome(
        "Reset packets with made-up tokens, from the path",
        number(found["packets"] / found["seconds"]),
        f"{arrived} of {submitted} sections on time, {connections} connection",
        arrived == submitted and connections == 1,
        (after.cpu_s - before.cpu_s) * 1e6 / found["packets"],
        (before.memory_mb, after.memory_mb),
    )


def old_resets(programs):
    port = free_port()
    uri = f"comity://127.0.0.1:{port}?mode=listener"
    receiver, address = programs.receiver(uri=uri)
    more = ("--repeat", "old-reset", "--rate", 10_000, "--lasts", 3, "--seconds", 20)
    with programs.attack("relay", "--to", address, *more) as relay:
        with programs.sender(relay.address()) as sender:
            with receiver:
                receiver.event("connected")
                time.sleep(1)
                receiver.child.kill()
            receiver, _ = programs.receiver(uri=uri)
            with receiver:
                receiver.event("connected")
                found = relay.event("repeated")
                sender.end()
                totals = receiver.end()[1]["input"]["totals"]
            calls = sender.last["output"]["totals"]["connections"]
    yield Outcome(
        "a genuine Reset packet of the connection before, again",
        number(found["packets"] / found["seconds"]),
        f"{totals['connections']} connection to the listener after its restart, {calls} in all; {totals['sectionsGap']} gaps after it",
        totals["connections"] == 1 and calls == 2,
    )


def mangled_path(programs):
    receiver, address = programs.receiver()
    with receiver, programs.attack("relay", "--to", address, "--mangle", 0.24, "--forge", "--seconds", 16) as relay:
        uri = f"comity://{relay.address()}?latency=400ms&cc=fixed&maxbw=5Mbps"
        with programs.run("send", programs.clip, uri, "--no-shed") as sender:
            arrived, submitted, connections = on_time(receiver, sender)
        found = relay.event("end")
    yield Outcome(
        "24 % of packets mangled both ways; forged Retry, Answer, refusal, versions and Reset before the genuine ones",
        "",
        f"{arrived} of {submitted} sections on time, {connections} connection; {number(found['mangled'])} of {number(found['forwarded'])} packets mangled",
        arrived == submitted and connections == 1,
    )


class Neutral(peer.PassphraseExchange):
    """Shows the neutral element as its share."""

    def __init__(self, *arguments):
        super().__init__(*arguments)
        self.public = bytes(32)


def refused_exchange(address, exchange_of, key):
    """Whether a listener refuses the message 1 of such an exchange."""
    host, port = address.rsplit(":", 1)
    caller = int.from_bytes(os.urandom(8), "big")
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as line:
        line.connect((host, int(port)))
        line.settimeout(2)

        def initial(cookie, message):
            head = b"\x10" + peer.u(peer.VERSION, 4) + peer.u(caller, 8) + peer.u(exchange_of.pattern, 1)
            body = peer.u(len(cookie), 1) + cookie + peer.u(len(message), 2) + message
            line.send((head + body).ljust(1_200, b"\0"))
            return line.recv(65_536)

        cookie = initial(b"", b"")[14:]
        exchange = exchange_of(key, peer.channel(exchange_of.pattern, caller), cookie, os.urandom(32))
        answer = initial(cookie, exchange.call(bytes([peer.CHACHA20, 1]) + peer.u(peer.VERSION, 4)))
    return answer[:1] == b"\x30" and answer[13] == 0


def keys_of_low_order(programs):
    receiver, address = programs.receiver()
    with receiver:
        is_refused = refused_exchange(address, Neutral, bytes(range(32)))
    yield Outcome(
        "the neutral element as a share of CPace",
        "once",
        "refused" if is_refused else "taken",
        is_refused,
    )


def slow_clients(programs):
    port = free_port()
    receiver, _ = programs.receiver("--metrics-bind", f"127.0.0.1:{port}")
    with receiver, contextlib.ExitStack() as slow:
        before, took = receiver.usage(), []
        for _ in range(SLOW_CLIENTS):
            client = slow.enter_context(socket.create_connection(("127.0.0.1", port), timeout=5))
            client.send(b"GET /metrics HTTP/1.1\r\nX: ")
            began = time.monotonic()
            scraper = http.client.HTTPConnection("127.0.0.1", port, timeout=5)
            scraper.request("GET", "/metrics")
            answer = scraper.getresponse()
            if answer.status == 200 and b"comity_" in answer.read():
                took.append(time.monotonic() - began)
            scraper.close()
        files = len(list(pathlib.Path(f"/proc/{receiver.child.pid}/fd").iterdir()))
        after = receiver.usage()
    yield Outcome(
        f"{SLOW_CLIENTS} clients of the metrics page that never finish their request",
        "",
        f"{len(took)} of {SLOW_CLIENTS} scrapes answered meanwhile, the slowest in {max(took) * 1e3:.0f} ms; {files} open files",
        len(took) == SLOW_CLIENTS and max(took) < 1 and files < 64,
        (after.cpu_s - before.cpu_s) * 1e6 / SLOW_CLIENTS,
        (before.memory_mb, after.memory_mb),
    )


ATTACKS = (restarted_sender, restarted_receiver, forged_resets, old_resets, mangled_path, keys_of_low_order, slow_clients)
