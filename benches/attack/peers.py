"""Attacks of a peer that has the passphrase."""

import contextlib
import os
import time

from outcome import Outcome, number

OPTIMISTIC_ACK = 0x08
KINDS = 12
"""Of extreme frames."""


SETTLED = 2
"""Seconds after a packet: what it causes goes on behind it."""


def effects(program, peer):
    """The usage of a program before a peer plays its script, and some time after."""
    peer.event("connected")
    before = program.usage()
    peer.event("sent")
    time.sleep(SETTLED)
    return before, program.usage()


def floors(programs):
    gaps = programs.folder / "floors.jsonl"
    receiver, address = programs.receiver("--gaps", gaps)
    with receiver, programs.attack("peer", "--to", address, "--script", "floors", "--hold", 30) as peer:
        before, after = effects(receiver, peer)
        took, _ = receiver.stop()
    size = os.path.getsize(gaps)
    yield Outcome(
        "one packet of 64 Floor frames, each 2^20 sections further",
        "once",
        f"{number(size)} bytes in the list of gaps; {(after.cpu_s - before.cpu_s) * 1e3:.1f} ms of a processor in {SETTLED} s; "
        f"ends {took:.1f} s after SIGTERM",
        0 < size < 20_000 and after.memory_mb < before.memory_mb + 4 and took < 2,
        None,
        (before.memory_mb, after.memory_mb),
    )


def floor_through_a_relay(programs):
    receiver, address = programs.receiver("--reconnect", "no")
    relay = programs.run("relay", "comity://127.0.0.1:0?mode=listener", f"comity://{address}")
    with receiver, relay:
        through = relay.address()
        with programs.attack("peer", "--to", through, "--script", "floor", "--hold", 30) as peer:
            before, after = effects(relay, peer)
            ended = receiver.child.poll()
            last = relay.stop()[1]
        connections = last["output"]["totals"]["connections"]
    yield Outcome(
        "a floor of 5,000 through a relay",
        "once",
        f"the next hop stays connected; {connections} connection to it",
        ended is None and connections == 1,
        None,
        (before.memory_mb, after.memory_mb),
    )


def acknowledgements(programs):
    for script, attack in (("early-ack", "packets acknowledged that were not sent"), ("all-acked", "all packets acknowledged, also those left out")):
        sender = programs.run("send", programs.clip, "comity://127.0.0.1:0?mode=listener", "--speed", 3)
        with sender, programs.attack("peer", "--to", sender.address(), "--script", script, "--hold", 20) as peer:
            found = peer.event("end")
        yield Outcome(
            attack,
            "",
            f"closed with code {found['code']:#04x} after {found['received']} packets",
            found["code"] == OPTIMISTIC_ACK,
        )
    sender = programs.run("send", programs.clip, "comity://127.0.0.1:0?mode=listener", "--speed", 3)
    with sender:
        with programs.attack("peer", "--to", sender.address(), "--script", "hidden-loss", "--hold", 20) as peer:
            found = peer.event("end")
        counted = sender.stop()[1]["output"]["totals"]["falseFeedback"]
    lies = found["frames"]
    yield Outcome(
        "a viewer that acknowledges what it lost, one packet in 20, with guesses",
        "",
        f"closed with code {found['code']:#04x} after {number(lies)} {'lie' if lies == 1 else 'lies'}, and counted",
        found["code"] == OPTIMISTIC_ACK and lies <= 10 and counted == 1,
    )


def false_feedback(programs):
    for controller, script, attack in (
        ("psp", "false-count", "a viewer that counts more packets than came (`cc=psp`)"),
        ("tfrc", "no-loss-events", "a viewer that loses one packet in 20 and reports no loss event (`cc=tfrc`)"),
    ):
        uri = f"comity://127.0.0.1:0?mode=listener&cc={controller}"
        sender = programs.run("send", programs.clip, uri, "--speed", 3)
        with sender:
            with programs.attack("peer", "--to", sender.address(), "--script", script, "--hold", 20) as peer:
                found = peer.event("end")
            counted = sender.stop()[1]["output"]["totals"]["falseFeedback"]
        code = "goes on" if found["code"] is None else f"closed with code {found['code']:#04x}"
        yield Outcome(
            attack,
            "",
            f"{code} behind {number(found['received'])} packets, after {found['frames']} of its reports; {counted} liar counted",
            found["code"] == OPTIMISTIC_ACK and counted == 1,
        )


def filled(programs):
    """Viewers that send to a listener that only sends."""
    viewers = 6
    listener, address = programs.listener()
    with listener, contextlib.ExitStack() as stack:
        before = listener.usage()
        peers = [
            stack.enter_context(programs.attack("peer", "--to", address, "--script", "fill", "--hold", 1))
            for _ in range(viewers)
        ]
        for peer in peers:
            peer.event("sent")
        after = listener.usage()
        ends = [peer.event("end") for peer in peers]
    packets = sum(end["packets"] for end in ends)
    yield Outcome(
        f"{viewers} viewers that send 16 MiB of sections each to a listener that only sends",
        number(packets / max(end["seconds"] for end in ends)),
        f"{number(packets)} packets sent, and nothing of them held",
        packets >= viewers * 10_000 and after.memory_mb < before.memory_mb + 16,
        (after.cpu_s - before.cpu_s) * 1e6 / packets,
        (before.memory_mb, after.memory_mb),
    )


def far_deadline(programs):
    receiver, address = programs.receiver()
    with receiver:
        with programs.attack("peer", "--to", address, "--script", "far-deadline", "--hold", 0.2) as peer:
            peer.event("end")
        with programs.attack("call", "--to", address, "--count", 1, "--interval-ms", 0) as call:
            seconds = [called["seconds"] for called in call.rest("call") if not called["error"]]
    receiver, address = programs.receiver()
    with receiver, programs.attack("peer", "--to", address, "--script", "far-deadline", "--hold", 0.2) as peer:
        peer.event("sent")
        took, _ = receiver.stop()
    next_caller = f"after {seconds[0]:.1f} s" if seconds else "not"
    yield Outcome(
        "a section that is due in an hour, and a Close",
        "once",
        f"the next caller is in {next_caller}; the receiver ends {took:.1f} s after SIGTERM",
        bool(seconds) and seconds[0] < 3 and took < 2.5,
    )


def repeated_tables(programs):
    media = programs.folder / "tables.ts"
    receiver, address = programs.receiver(output=media)
    with receiver:
        with programs.attack("peer", "--to", address, "--script", "tables", "--hold", 2) as peer:
            found = peer.event("end")
        receiver.stop()
    size = os.path.getsize(media)
    yield Outcome(
        "200 tables, and times that make them due with each of 2,000 units",
        "once",
        f"{number(found['packets'])} packets; {size / 1e6:.1f} MB are written",
        100_000 < size < 5_000_000,
    )


def false_totals(programs):
    listener, address = programs.listener()
    with listener:
        with programs.attack("peer", "--to", address, "--script", "extreme", "--first", 7, "--hold", 1) as peer:
            found = peer.event("end")
        totals = listener.stop()[1]["output"]["totals"]
    largest = max(value for value in totals.values() if isinstance(value, int))
    end = "goes on" if found["code"] is None else f"closed with code {found['code']:#04x}"
    yield Outcome(
        "a report whose counters are 2^62 − 1",
        "once",
        f"{end}; the largest total is {number(largest)}",
        largest < 1 << 40,
    )


def fragments(programs):
    receiver, address = programs.receiver()
    with receiver:
        with programs.attack("peer", "--to", address, "--script", "fragments", "--hold", 1) as peer:
            peer.event("connected")
            before = receiver.usage()
            peer.event("sent")
            found = peer.event("end")
        after = receiver.usage()
    yield Outcome(
        "sections of 16 MiB in fragments of one byte",
        number(found["packets"] / found["seconds"]),
        f"{number(found['frames'])} fragments sent in {number(found['packets'])} packets",
        after.peak_mb < 256,
        (after.cpu_s - before.cpu_s) * 1e6 / found["packets"],
        (before.memory_mb, after.peak_mb),
    )


def extremes(programs):
    worst, codes = 0.0, set()
    listener, address = programs.listener()
    with listener:
        first = listener.usage()
        for kind in range(KINDS):
            before = listener.usage()
            with programs.attack("peer", "--to", address, "--script", "extreme", "--first", kind, "--hold", 0.1) as peer:
                found = peer.event("end")
            after = listener.usage()
            worst = max(worst, (after.cpu_s - before.cpu_s) * 1e6 / max(found["packets"], 1))
            codes.add(found["code"])
        is_alive = listener.child.poll() is None
        memory = first.memory_mb, listener.usage().memory_mb
    named = ", ".join("goes on" if code is None else f"{code:#04x}" for code in sorted(codes, key=lambda code: code or 0))
    yield Outcome(
        f"{KINDS} kinds of extreme frames, 50 packets each",
        "",
        f"each goes on or is closed ({named}); the slowest kind is in the next column, with its handshake",
        is_alive and memory[1] < memory[0] + 32,
        worst,
        memory,
    )


def random_packets(programs):
    """A listener that serves many: one that serves a caller at a time waits for the end of the one before."""
    connections = 400
    listener, address = programs.listener()
    with listener:
        before = listener.usage()
        with programs.attack("peer", "--to", address, "--script", "random", "--connections", connections, "--hold", 0.02) as peer:
            ends = peer.rest("end")
        after, is_alive = listener.usage(), listener.child.poll() is None
        errors = listener.stop()[1]["output"]["totals"]["internalErrors"]
    packets = sum(end["packets"] for end in ends)
    closed = sum(end["code"] is not None for end in ends)
    yield Outcome(
        "random and mutated packets of an authenticated peer",
        "",
        f"{number(packets)} packets on {len(ends)} connections closed {closed} of them; {errors} internal errors",
        is_alive and errors == 0 and len(ends) == connections and after.memory_mb < before.memory_mb + 64,
        (after.cpu_s - before.cpu_s) * 1e6 / max(packets, 1),
        (before.memory_mb, after.memory_mb),
    )


def escapes(programs):
    receiver, address = programs.receiver()
    with receiver:
        with programs.attack("peer", "--to", address, "--script", "close", "--hold", 1) as peer:
            peer.event("end")
        receiver.stop()
        said = receiver.said.decode()
    controls = [c for c in said if c != "\n" and (ord(c) < 32 or 127 <= ord(c) < 160 or c == "\u202e")]
    line = next((line for line in said.splitlines() if "owned" in line), "")
    yield Outcome(
        "a Close whose reason has control characters and a forged line",
        "once",
        f"{len(controls)} control characters on the terminal, all in one line",
        not controls and "all is well" in line,
    )


ATTACKS = (
    floors,
    floor_through_a_relay,
    acknowledgements,
    false_feedback,
    filled,
    far_deadline,
    repeated_tables,
    false_totals,
    fragments,
    extremes,
    random_packets,
    escapes,
)
