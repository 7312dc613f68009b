"""Attacks of a peer that has the passphrase."""

import contextlib
import os
import time

from outcome import Outcome, number
from programs import LISTENER, AttackError, free_port, grown, sections_on_time
from sources import Source, open_stream
from strangers import honest_calls, in_time

OPTIMISTIC_ACK = 0x08
REFUSED = 0x0B
CONNECTIONS = 256
"""Of `send --all`."""
NEIGHBOUR = "127.0.0.9"
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


def moving(programs):
    """Each move used to begin another slow start, so that no reaction to a loss lasted: 842 packets came, and 506 without
    moves."""
    seconds, came, moves = 12, {}, 0
    for is_moving, more in ((False, ()), (True, ("--move-ms", 600))):
        port = free_port()
        sender, address = programs.live_sender(port, f"{LISTENER}&cc=reno&latency=1s", "--opaque", "--no-shed")
        emulator, through = programs.emulator(address, "--delay", "50ms")
        more = ("--script", "lossy", "--seconds", seconds, *more)
        with sender, emulator, Source(port, open_stream(), 1_000), programs.attack("peer", "--to", through, *more) as peer:
            found = peer.event("end")
        came[is_moving], moves = found["received"], found["moves"]
    yield Outcome(
        "a viewer that loses one packet in 20, and moves between its port and others (`cc=reno`)",
        "",
        f"gets {number(came[True])} packets in {seconds} s with {moves} other ports, and {number(came[False])} without",
        moves >= 6 and came[False] > 200 and came[True] < 1.5 * came[False],
    )


def many_acknowledgements(programs):
    """Each range used to be looked up in all lost packets, one after the other, and the sender served nobody."""
    port = free_port()
    uri = f"{LISTENER}&cc=fixed&maxbw=60Mbps"
    sender, address = programs.live_sender(port, uri, "--all", "--opaque", "--no-shed")
    with sender:
        with programs.run("recv", f"comity://{address}", "/dev/null") as viewer:
            viewer.event("connected")
            more = ("--script", "many-acks", "--seconds", 8)
            with Source(port, open_stream(), 1_000), programs.attack("peer", "--to", address, *more) as peer:
                peer.event("connected")
                before = sender.usage()
                found = peer.event("end")
                after = sender.usage()
            sender.stop()
            on_time, every = sections_on_time(viewer.end()[1])
    packets, cpu_s = found["packets"], after.cpu_s - before.cpu_s
    yield Outcome(
        "a viewer that loses every second packet, and sends packets with 5 Ack frames of 100 ranges each",
        number(packets / found["seconds"]),
        f"{number(on_time)} of {number(every)} sections on time at another viewer, with 10 Mb/s for each; "
        f"{cpu_s / found['seconds']:.0%} of a processor for both",
        found["code"] is None and packets > 2_000 and every > 4_000 and on_time == every and cpu_s < 0.8 * found["seconds"],
        None,
        (before.memory_mb, after.memory_mb),
    )


def challenges(programs):
    """Each used to be answered with 1,200 bytes: 29 bytes back for one."""
    listener, address = programs.listener()
    with listener, programs.attack("peer", "--to", address, "--script", "challenges", "--hold", 1) as peer:
        before, after = effects(listener, peer)
        found = peer.event("end")
        calls = honest_calls(programs, address, 4, 100)
    back = found["received_bytes"] / found["sent_bytes"]
    yield Outcome(
        "packets with a challenge to the path",
        number(found["packets"] / (found["seconds"] - 1)),
        f"{back:.1f} bytes back for one; {in_time(calls)} of 4 other callers are in",
        found["code"] is None and 0.5 < back <= 3 and in_time(calls) == 4,
        (after.cpu_s - before.cpu_s) * 1e6 / found["packets"],
    )


def false_clock(programs):
    """Its section was due half an hour later."""
    media, limit = programs.folder / "clock", 3
    receiver, address = programs.receiver(uri=f"{LISTENER}&maxlatency={limit}s", output=media)
    with receiver, programs.attack("peer", "--to", address, "--script", "false-clock", "--hold", 10) as peer:
        connected, _ = peer.timed_event("connected")
        took = grown(media, 0, 10) - connected
    yield Outcome(
        "a section that is due in 1.5 s, by a clock that is set back by half an hour before it is complete",
        "once",
        f"it is written {took:.1f} s after its first byte, with a `maxlatency` of {limit} s",
        1 < took < limit + 1,
    )


def requested_latency(programs):
    """The sender used to wait for such viewers as long as they stayed, and their sections for an hour."""
    viewers, limit = 8, 3
    sender = programs.run("send", programs.clip, f"{LISTENER}&maxlatency={limit}s", "--all")
    address = sender.address()
    with sender, programs.run("recv", f"comity://{address}", "/dev/null") as viewer, contextlib.ExitStack() as stack:
        viewer.event("connected")
        before = sender.usage()
        more = ("--script", "silent", "--latency", 3_600, "--hold", 60)
        peers = [stack.enter_context(programs.attack("peer", "--to", address, *more)) for _ in range(viewers)]
        for peer in peers:
            peer.event("connected")
        time.sleep(4)
        after = sender.usage()
        on_time, every = sections_on_time(viewer.end()[1])
        ended = time.monotonic()
        took = float("inf")
        with contextlib.suppress(AttackError):
            sender.end(20)
            took = time.monotonic() - ended
    yield Outcome(
        f"{viewers} viewers that ask for a latency of an hour, confirm nothing, and stay",
        "once",
        f"{on_time} of {every} sections on time at another viewer; the sender ends {took:.1f} s after it, with a `maxlatency` of {limit} s",
        # They end `linger` after the last deadline, and a file is read a second ahead.
        on_time == every > 900 and took < limit + 3,
        None,
        (before.memory_mb, after.memory_mb),
    )


@contextlib.contextmanager
def crowd(programs, address, host, hold):
    """Takes all connections of a listener, from one host."""
    more = ("--count", CONNECTIONS, "--interval-ms", 4, "--from", host, "--hold", hold)
    with programs.attack("call", "--to", address, *more) as crowd:
        if crowd.event("called")["open"] != CONNECTIONS:
            raise AttackError(f"not all {CONNECTIONS} connections are open")
        yield crowd


def full_listener(programs):
    """The others used to be open and to get nothing, as long as the crowd stayed."""
    callers, port = 7, free_port()
    listener, address = programs.live_sender(port, LISTENER, "--all", "--opaque")
    with listener, crowd(programs, address, NEIGHBOUR, 12) as many:
        with programs.run("recv", f"comity://{address}", "/dev/null") as viewer:
            viewer.event("connected")
            calls = honest_calls(programs, address, callers, 300)
            with Source(port, open_stream(), 20):
                time.sleep(3)
            # The last ones are on their way.
            time.sleep(0.5)
            on_time, every = sections_on_time(viewer.stop()[1])
        codes = many.event("held")["codes"]
    yield Outcome(
        f"all {CONNECTIONS} connections of a listener taken by one address",
        "once",
        f"{in_time(calls)} of {callers} callers from another one are in within 3 s, and a viewer gets {on_time} of {every} sections on time; "
        f"{codes.count(REFUSED)} connections of the first closed with {REFUSED:#04x}",
        in_time(calls) == callers and on_time == every > 40 and codes == [REFUSED] * (callers + 1),
    )


def byte_rate(program):
    """The bytes that a program sends in a second, over two of them."""
    first = program.fresh("statistics")
    program.event("statistics")
    last = program.event("statistics")
    count = [event["output"]["totals"]["byteSent"] for event in (first, last)]
    return (count[1] - count[0]) / (last["elapsed_s"] - first["elapsed_s"])


def confirms_at_a_full_listener(programs):
    """Each used to bring a challenge of 1,200 bytes to each of 64 connections of its host."""
    rate, callers = 1_000, 4
    listener, address = programs.listener()
    with listener, crowd(programs, address, "127.0.0.1", 20):
        idle = byte_rate(listener)
        more = ("--repeat", "confirm", "--rate", rate, "--after", 1, "--lasts", 5, "--seconds", 9)
        with programs.attack("relay", "--to", address, *more) as relay:
            with programs.attack("call", "--to", relay.address(), "--count", 1, "--interval-ms", 0):
                relay.event("repeating")
                busy = byte_rate(listener)
                found = relay.event("repeated")
        calls = honest_calls(programs, address, callers, 100, "--from", NEIGHBOUR)
    repeated = found["packets"] / found["seconds"]
    back = (busy - idle) / repeated
    yield Outcome(
        f"a recorded Confirm packet again, from a host that has all {CONNECTIONS} connections",
        number(repeated),
        f"{number(back)} bytes to its connections for each; {in_time(calls)} of {callers} callers from another address are in",
        0 < back < 1_200 and in_time(calls) == callers,
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


def failed_output(programs):
    """The reason used to name the file and the error of the system."""
    receiver, address = programs.receiver(output="/dev/full")
    with receiver, programs.attack("peer", "--to", address, "--script", "section", "--hold", 5) as peer:
        found = peer.event("end")
        _, last = receiver.end()
    told, own = found["reason"] or "", last["message"]
    yield Outcome(
        "a section for an output whose disk is full",
        "once",
        f"closed with code {found['code']:#06x}; its reason is \"{told}\"" if found["code"] else "goes on",
        found["code"] is not None and "/dev" not in told and "space" not in told.lower() and "/dev/full" in own,
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
    moving,
    many_acknowledgements,
    challenges,
    false_clock,
    requested_latency,
    full_listener,
    confirms_at_a_full_listener,
    filled,
    far_deadline,
    repeated_tables,
    false_totals,
    fragments,
    extremes,
    random_packets,
    failed_output,
    escapes,
)
