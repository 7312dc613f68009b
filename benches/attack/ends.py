"""Restarts, the metrics page, a path that changes packets, and keys that are none."""

import contextlib
import http.client
import os
import pathlib
import signal
import socket
import subprocess
import sys
import time

from outcome import Outcome, number
from programs import LISTENER, ROOT, AttackError, Skipped, free_port, grown, size_of
from sources import Source, open_stream

sys.path.append(str(ROOT / "product/comity/tests/peer"))
import peer  # noqa: E402

AT_MOST = 1.0
"""Seconds until media flow again."""
SLOW_CLIENTS = 600
"""More than the page keeps."""
MAX_CLIENTS = 512


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
        # They begin with the next key picture.
        connected - began <= AT_MOST and flows - connected <= AT_MOST,
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


def other_resets(programs):
    """Another listener with the same passphrase answers a Data packet of the connection."""
    receiver, address = programs.receiver()
    other, others = programs.receiver()
    more = ("--repeat", "other-reset", "--other", others, "--rate", 1_000, "--lasts", 4, "--seconds", 20)
    with receiver, other, programs.attack("relay", "--to", address, *more) as relay:
        with programs.sender(relay.address()) as sender:
            found = relay.event("repeated")
            arrived, submitted, connections = on_time(receiver, sender)
    yield Outcome(
        "the Reset packet by which another listener with the passphrase answers a packet of the connection",
        number(found["packets"] / found["seconds"]),
        f"{arrived} of {submitted} sections on time, {connections} connection",
        arrived == submitted and connections == 1,
    )


def diverted(programs):
    """Copies of a viewer's packets arrive first, from another address; what goes there is swallowed after a second."""
    sender = programs.run("send", programs.clip, LISTENER)
    with sender, programs.attack("relay", "--to", sender.address(), "--divert", "--seconds", 16) as relay:
        with programs.run("recv", f"comity://{relay.address()}", "/dev/null") as receiver:
            sender.end()
            totals = receiver.end()[1]["input"]["totals"]
        found = relay.event("end")
    arrived, submitted = totals["sectionsOnTime"], sender.last["output"]["totals"]["sectionsSubmitted"]
    came = found["handed_on"] + found["diverted"]
    yield Outcome(
        "copies of a viewer's packets from another address, before the packets",
        "",
        f"{arrived} of {submitted} sections on time, {totals['connections']} connection; packets to that address: {came}, and after a second {found['diverted']}",
        arrived == submitted and totals["connections"] == 1,
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
        len(took) == SLOW_CLIENTS and max(took) < 1 and files < MAX_CLIENTS + 64,
        (after.cpu_s - before.cpu_s) * 1e6 / SLOW_CLIENTS,
        (before.memory_mb, after.memory_mb),
    )


def scraped(port, **headers):
    """The status and the text of the metrics page."""
    scraper = http.client.HTTPConnection("127.0.0.1", port, timeout=5)
    with contextlib.closing(scraper):
        scraper.request("GET", "/metrics", headers=headers)
        answer = scraper.getresponse()
        return answer.status, answer.read()


def other_hosts(programs):
    """A page in a browser calls the metrics page under a name of its own."""
    port = free_port()
    receiver, _ = programs.receiver("--metrics-bind", f"127.0.0.1:{port}")
    with receiver:
        statuses = {host: scraped(port, Host=host) for host in ("rebound.example", f"127.0.0.1:{port}", "localhost")}
    refused = [host for host, (_, text) in statuses.items() if b"comity_" not in text]
    yield Outcome(
        "the metrics page under another name than its address",
        "once",
        f"answered with {statuses['rebound.example'][0]}; under its address and as localhost, it is served",
        refused == ["rebound.example"],
    )


def idle_clients(programs):
    """100 connections a second that say nothing, and a scraper that takes 250 ms for its request."""
    port, scrapes, answered = free_port(), 12, 0
    receiver, _ = programs.receiver("--metrics-bind", f"127.0.0.1:{port}")
    with receiver, contextlib.ExitStack() as idle:
        before = receiver.usage()
        for _ in range(scrapes):
            with socket.create_connection(("127.0.0.1", port), timeout=5) as scraper:
                scraper.send(b"GET /metrics HTTP/1.0\r\n")
                for _ in range(25):
                    idle.enter_context(socket.create_connection(("127.0.0.1", port), timeout=5))
                    time.sleep(0.01)
                with contextlib.suppress(OSError):
                    scraper.send(b"Host: 127.0.0.1\r\n\r\n")
                    answered += b"200 OK" in scraper.recv(4_096)
        after = receiver.usage()
    yield Outcome(
        "100 idle clients of the metrics page in a second",
        "100",
        f"{answered} of {scrapes} scrapes answered that take 250 ms",
        answered == scrapes,
        None,
        (before.memory_mb, after.memory_mb),
    )


def deaf_clients(programs):
    """Clients that request the page of many viewers and read nothing. Each used to hold a page of its own:
    76 MB."""
    viewers, clients = 200, 500
    port = free_port()
    source = free_port()
    listener, address = programs.live_sender(source, LISTENER, "--all", "--opaque", "--metrics-bind", f"127.0.0.1:{port}")
    calling = ("--count", viewers, "--interval-ms", 4, "--hold", 20)
    with listener, programs.attack("call", "--to", address, *calling) as call, contextlib.ExitStack() as deaf:
        call.event("called")
        with Source(source, open_stream(), 5):
            time.sleep(3)
        page = len(scraped(port)[1])
        before = listener.usage()
        for _ in range(clients):
            client = deaf.enter_context(socket.socket())
            client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4_096)
            # With the segments of loopback, the system itself would hold a megabyte for each.
            client.setsockopt(socket.IPPROTO_TCP, socket.TCP_MAXSEG, 536)
            client.settimeout(5)
            client.connect(("127.0.0.1", port))
            client.send(b"GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n")
        time.sleep(1)
        after = listener.usage()
        status, text = scraped(port)
    yield Outcome(
        f"{clients} clients that read nothing of a metrics page about {viewers} viewers",
        "once",
        f"a page has {page / 1e3:.0f} kB; another client gets it all the while" if status == 200 else f"another client gets {status}",
        status == 200 and len(text) > page / 2 and page > 100_000 and after.memory_mb < before.memory_mb + 20,
        None,
        (before.memory_mb, after.memory_mb),
    )


SCENARIO = """
[scenario]
name = "links"
duration = "1s"
seeds = [1]

[topology]
kind = "dumbbell"
bottleneck = { rate = "8Mbps", delay = "5ms", queue = 60 }

[[flow]]
group = "program"
transport = "command"
sender = "echo sent; sleep 1"
receiver = "sleep 1"

[[flow]]
group = "tcp"
"""
NOBODY = 65_534


def lab_links(programs):
    """Root used to empty the files behind such links."""
    checked = subprocess.run([programs.comity, "lab", "check"], capture_output=True, text=True, check=False)
    if checked.returncode:
        raise Skipped(f"comity lab cannot run: {' '.join(checked.stderr.split())}")
    folder = programs.folder / "lab"
    folder.mkdir()
    # Others may write to it, and it has no sticky bit, with which the system itself would refuse some links.
    folder.chmod(0o777)
    (folder / "flow.toml").write_text(SCENARIO)
    precious = folder / "precious"
    precious.mkdir()
    (precious / "file").write_text("precious")
    for link, to in (("link.pcapng", precious / "file"), ("logs", precious)):
        (folder / link).symlink_to(to)
        os.lchown(folder / link, NOBODY, NOBODY)
    before = {path.name: path.read_bytes() for path in precious.iterdir()}

    def run(*options):
        command = [programs.comity, "lab", "run", "flow.toml", *options]
        return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)

    refused = [run("--pcapng", "bottleneck=link.pcapng"), run("--logs", "logs")]
    kept = {path.name: path.read_bytes() for path in precious.iterdir()} == before
    honest = run("--pcapng", "bottleneck=own.pcapng", "--logs", "own")
    written = [size_of(folder / "own.pcapng"), sum(map(size_of, folder.glob("own/*")))]
    yield Outcome(
        "symbolic links of another user in the place of a capture and of the logs of `comity lab`, as root",
        "once",
        f"the files behind them are kept, and the runs end with {' and '.join(str(end.returncode) for end in refused)}; "
        f"without links, a capture of {number(written[0])} bytes is written",
        kept and all(end.returncode == 1 for end in refused) and honest.returncode in (0, 3) and all(written),
    )


def links(programs):
    """Somebody who can write to the folder has put a link where an output is to be."""
    kept = []
    for option in ("--gaps", "--qlog"):
        secret, link = programs.folder / f"secret{option}", programs.folder / f"link{option}"
        secret.write_text("precious")
        link.symlink_to(secret)
        with programs.run("recv", LISTENER, "/dev/null", option, link) as receiver:
            with contextlib.suppress(AttackError):
                receiver.event("listening", 5)
            receiver.signal(signal.SIGTERM)
            receiver.end()
        if secret.read_text() == "precious" and link.is_symlink():
            kept.append(option)
    yield Outcome(
        "a symbolic link in the place of the list of gaps, and of the trace",
        "once",
        f"the file behind it is kept ({' and '.join(kept)})",
        len(kept) == 2,
    )


ATTACKS = (
    restarted_sender,
    restarted_receiver,
    forged_resets,
    old_resets,
    other_resets,
    mangled_path,
    diverted,
    keys_of_low_order,
    slow_clients,
    idle_clients,
    deaf_clients,
    other_hosts,
    links,
    lab_links,
)
