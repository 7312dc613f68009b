"""Attacks of those who have no secret."""

import contextlib
import socket
import time

from outcome import Outcome, number
from programs import LISTENER, AttackError, free_port, socket_drops

IN_TIME = 3.0
"""Seconds within which an honest caller has to be in."""
HALF_A_ROUND_TRIP = "100ms"
CALLERS = 16


HOARDED_MS = 2_200
"""How long tickets are kept: the listener takes them for old then."""


class Flood:
    """A flood against a program, from its first packet to its last."""

    def __init__(self, program, address, strangers):
        self.program, self.address, self.strangers = program, address, strangers
        strangers.event("begins")
        self.before, self.drops_before = program.usage(), socket_drops(address)

    def end(self):
        found = self.strangers.event("end")
        self.after = self.program.usage()
        self.dropped = socket_drops(self.address) - self.drops_before
        self.sent, self.seconds = found["sent"], found["seconds"]
        self.rate = found["packets"] / self.seconds
        self.amplification = found["received_bytes"] / found["sent_bytes"]
        self.cpu_s = self.after.cpu_s - self.before.cpu_s
        return self

    @property
    def cpu_us(self):
        """For each packet that the program has read. The system drops what it has no time for."""
        return self.cpu_s * 1e6 / max(self.sent - self.dropped, 1)

    def row(self, attack, seen, holds, is_amplified=False):
        """A row that says what the flood took and got, too. Nothing makes memory grow by 8 MB or amplifies."""
        dropped = f", {self.dropped / self.sent:.0%} dropped at the socket" if self.dropped > self.sent / 1_000 else ""
        seen += f"; {self.cpu_s / self.seconds:.0%} of a processor{dropped}; {self.amplification:.3f} bytes back for one"
        memory = self.before.memory_mb, self.after.memory_mb
        holds = holds and self.amplification <= 1 and memory[1] < memory[0] + 8
        return Outcome(attack, number(self.rate), seen, holds, self.cpu_us, memory)


def flood(programs, address, kind, rate, seconds, *more):
    return programs.attack("flood", "--to", address, "--kind", kind, "--rate", rate, "--seconds", seconds, *more)


def recorded_initial(programs, address):
    """An Initial packet with message 1, as somebody on the path recorded it."""
    with programs.attack("relay", "--to", address, "--seconds", 2) as relay:
        with programs.attack("call", "--to", relay.address(), "--count", 1, "--interval-ms", 0) as call:
            call.end()
        return relay.event("recorded")["initial"]


def besieged(programs, kind, rate, seconds, count, interval_ms, *more):
    """Honest callers at a round trip of 200 ms while a flood lasts, and how long each needed: none if it failed."""
    listener, address = programs.listener()
    with listener:
        recorded = recorded_initial(programs, address)
        emulator, through = programs.emulator(address, "--delay", HALF_A_ROUND_TRIP)
        with emulator, flood(programs, address, kind, rate, seconds, "--recorded", recorded, *more) as strangers:
            measured = Flood(listener, address, strangers)
            with programs.attack("call", "--to", through, "--count", count, "--interval-ms", interval_ms) as call:
                call.event("begins")
                measured.end()
                return measured, calls_of(call)


def calls_of(program):
    """When each call began, and how long it took: none if it failed."""
    return [(call["at"], None if call["error"] else call["seconds"]) for call in program.rest("call")]


def honest_calls(programs, address, count, interval_ms, *more):
    """The same of so many callers, one after the other."""
    with programs.attack("call", "--to", address, "--count", count, "--interval-ms", interval_ms, *more) as call:
        return calls_of(call)


def commands_in(programs, address, count):
    """The same of the command as a caller, which gives up after 3 s."""
    calls, began = [], time.monotonic()
    for _ in range(count):
        called_at = time.monotonic()
        with programs.run("recv", f"comity://{address}", "/dev/null", "--reconnect", "no") as caller:
            took = None
            with contextlib.suppress(AttackError):
                took = caller.timed_event("connected")[0] - called_at
            calls.append((called_at - began, took))
    return calls


def in_time(calls, limit=IN_TIME):
    return sum(seconds is not None and seconds <= limit for _, seconds in calls)


def replays_from_one_network(programs):
    for rate in (1_500, 5_000, 20_000):
        measured, calls = besieged(programs, "replay", rate, 8, CALLERS, 300)
        took = [seconds for _, seconds in calls if seconds is not None]
        slowest = f", the slowest after {max(took):.1f} s" if took else ""
        yield measured.row(
            "message 1 replayed from a /24, with good cookies",
            f"{in_time(calls)} of {CALLERS} callers are in within 3 s at round trips of 200 ms{slowest}",
            in_time(calls) == CALLERS,
        )


def replays_from_many_networks(programs):
    for networks, hosts in ((256, 256), (65_280, 1)):
        seconds, interval = 12, 0.3
        more = ("--networks", networks, "--hosts", hosts)
        measured, calls = besieged(programs, "replay", 20_000, seconds, 60, int(interval * 1_000), *more)
        # A call that began within the last 3 s had a part of them in peace.
        during = [call for call in calls if call[0] + IN_TIME <= seconds]
        after = [call for call in calls if call[0] >= seconds]
        thirds = [in_time([call for call in during if third <= call[0] / 3 < third + 1]) for third in range(3)]
        all_of = [sum(third <= at / 3 < third + 1 for at, _ in during) for third in range(3)]
        share = ", ".join(f"{got} of {all_}" for got, all_ in zip(thirds, all_of))
        yield measured.row(
            f"the same from {number(networks * hosts)} addresses in {number(networks)} networks",
            f"in within 3 s of those who called in the seconds 0 to 3, 3 to 6 and 6 to 9: {share}; {in_time(after)} of {len(after)} when it is over",
            in_time(after) == len(after) and in_time(during) > 0,
        )


def initials_with_false_addresses(programs):
    more = ("--networks", 256, "--hosts", 256)
    measured, calls = besieged(programs, "initial", 20_000, 9, CALLERS, 300, *more)
    yield measured.row(
        "first packets from 65,536 false addresses",
        f"{in_time(calls)} of {CALLERS} callers are in within 3 s",
        in_time(calls) == CALLERS,
    )


def packets_that_prove_nothing(programs):
    kinds = (
        ("initial", 70_000, "Initial packets without a cookie"),
        ("bad-cookie", 70_000, "Initial packets with the cookie of another address"),
        ("garbage", 140_000, "random bytes"),
        ("data", 70_000, "Data packets of no connection"),
        ("confirm", 20_000, "Confirm packets with a good ticket and a wrong message 3"),
    )
    for kind, rate, attack in kinds:
        listener, address = programs.listener()
        with listener:
            recorded = recorded_initial(programs, address)
            with flood(programs, address, kind, rate, 3, "--recorded", recorded) as strangers:
                measured = Flood(listener, address, strangers).end()
            totals = listener.stop()[1]["output"]["totals"]
        yield measured.row(attack, "no connection", totals["connections"] == 1)


def old_packets(programs):
    """The packets of a handshake again, from where they came, while their cookie and ticket are good."""
    for what in ("initial", "confirm", "data"):
        listener, address = programs.listener()
        more = ("--repeat", what, "--rate", 20_000, "--after", 1, "--lasts", 3, "--seconds", 7)
        with listener, programs.attack("relay", "--to", address, *more) as relay:
            with programs.attack("call", "--to", relay.address(), "--count", 1, "--interval-ms", 3_000) as call:
                relay.event("repeating")
                before, drops = listener.usage(), socket_drops(address)
                found = relay.event("repeated")
                after, drops = listener.usage(), socket_drops(address) - drops
                call.end()
            totals = listener.stop()[1]["output"]["totals"]
        read = found["packets"] - drops
        yield Outcome(
            f"a recorded {what.capitalize()} packet again, from its own address",
            number(found["packets"] / found["seconds"]),
            f"{totals['connections']} connection, of the caller that was recorded",
            totals["connections"] == 1,
            (after.cpu_s - before.cpu_s) * 1e6 / read,
            (before.memory_mb, after.memory_mb),
        )


def flood_beside_a_stream(programs):
    receiver, address = programs.receiver()
    with receiver, programs.sender(address) as sender:
        receiver.event("connected")
        with flood(programs, address, "initial", 60_000, 8, "--networks", 256, "--hosts", 256) as strangers:
            measured = Flood(receiver, address, strangers).end()
        sender.end()
        totals = receiver.end()[1]["input"]["totals"]
    on_time, submitted = totals["sectionsOnTime"], sender.last["output"]["totals"]["sectionsSubmitted"]
    yield measured.row(
        "Initial packets at a listener that carries a stream",
        f"{on_time} of {submitted} sections on time",
        on_time == submitted,
    )


def guesses(programs):
    seconds = 10
    listener, address = programs.listener()
    with listener, programs.attack("guess", "--to", address, "--seconds", seconds) as strangers:
        found = strangers.event("end")
        _, last = listener.stop()
    # From all addresses of a network: 64 and 8 at first, and 64 and 4 in a second.
    allowed = 72 + 68 * seconds + 1
    counted = last["output"].get("refused", {}).get("unproven", 0)
    yield Outcome(
        "passphrases guessed from a /24",
        number(found["begun"] / found["seconds"]),
        f"{found['refused']} guesses tested in {seconds} s, all refused and counted ({counted} callers)",
        0 < found["refused"] <= allowed and counted > 0,
    )


def neighbours(programs):
    """Guesses from one address, and honest callers from another one of the same /24."""
    for rate in (10, 97):
        listener, address = programs.listener()
        more = ("--from", "127.0.0.9", "--hosts", 1, "--rate", rate, "--seconds", 9)
        with listener, programs.attack("guess", "--to", address, *more) as stranger:
            with programs.attack("call", "--to", address, "--count", CALLERS, "--interval-ms", 400) as call:
                found = stranger.event("end")
                calls = calls_of(call)
        yield Outcome(
            "passphrases guessed from one address, beside callers of the same /24",
            number(found["begun"] / found["seconds"]),
            f"{in_time(calls)} of {CALLERS} callers are in within 3 s; {found['refused']} guesses tested",
            in_time(calls) == CALLERS and 0 < found["refused"] < 30,
        )


def false_listener(programs):
    """A caller cannot tell wrong guesses from forged packets, so it tests some."""
    limit = 3
    most = 16 + 64 * limit
    with programs.attack("listen", "--seconds", limit + 2) as listener:
        uri = f"comity://{listener.address()}?conntimeo={limit}s"
        with programs.run("recv", uri, "/dev/null", "--reconnect", "no") as caller:
            code, _ = caller.end()
        found = listener.event("end")
    yield Outcome(
        "a listener without the passphrase, which answers a caller with as many shares as it can",
        number(found["answers"] / limit),
        f"{found['tested']} guesses tested in a call of {limit} s, of at most {most}; the caller ends with exit code {code}",
        16 < found["tested"] <= most and found["answers"] > 2 * most and code in (3, 4),
    )


def hoarded(programs):
    """Tickets of all addresses of a /24, used at once. The listener used to take them for fresh ones: it tested all 250
    wrong messages 3, and let callers of the network wait meanwhile."""
    rate, callers, limit = 500, 12, 1.0
    listener, address = programs.listener()
    more = ("--network", "127.0.0.0", "--hosts", 250, "--age-ms", HOARDED_MS)
    with listener:
        recorded = recorded_initial(programs, address)
        with flood(programs, address, "confirm", rate, 4, "--recorded", recorded, *more) as strangers:
            held = strangers.event("begins")["addresses"]
            with programs.attack("call", "--to", address, "--count", callers, "--interval-ms", 150) as call:
                strangers.event("end")
                calls = calls_of(call)
        refused = listener.stop()[1]["output"].get("refused", {}).get("unproven", 0)
    yield Outcome(
        f"{held} tickets of a /24 that were kept for {HOARDED_MS / 1_000} s, used with wrong messages 3",
        number(rate),
        f"{in_time(calls, limit)} of {callers} callers of the /24 are in within {limit:.0f} s; {refused} wrong messages 3 tested",
        in_time(calls, limit) == callers and held >= 200 and 0 < refused <= 8 + 4 * 5,
    )


def few_cookies(programs):
    """Retry packets with a few cookies in turn, each more often than that of the listener. They used to keep every caller
    out."""
    callers = 4
    for cookies, rate in ((4, 400), (8, 1_600)):
        listener, address = programs.listener()
        emulator, through = programs.emulator(address, "--delay", HALF_A_ROUND_TRIP)
        more = ("--cookies", cookies, "--rate", rate, "--seconds", 15)
        with listener, emulator, programs.attack("relay", "--to", through, *more) as relay:
            calls = commands_in(programs, relay.address(), callers)
            found = relay.event("end")
        yield Outcome(
            f"forged Retry packets with {cookies} cookies in turn",
            number(rate),
            f"{in_time(calls)} of {callers} callers are in within 3 s at round trips of 200 ms; {number(found['forged'])} packets forged",
            in_time(calls) == callers and found["forged"] > 40 * callers,
        )


def injected(programs):
    """Forged packets before and behind each genuine one of the handshake."""
    callers = 8
    listener, address = programs.listener()
    with listener, programs.attack("relay", "--to", address, "--inject", "--seconds", 10) as relay:
        with programs.attack("call", "--to", relay.address(), "--count", callers, "--interval-ms", 400) as call:
            calls = calls_of(call)
        found = relay.event("end")
    yield Outcome(
        "forged Retry, Answer, refusal, versions, Reset and Accept before each first packet and behind each answer",
        "",
        f"{in_time(calls)} of {callers} callers are in within 3 s; {number(found['forged'])} packets forged",
        in_time(calls) == callers and found["forged"] >= 10 * callers,
    )


def refused_after_a_proof(programs):
    """A caller of a listener that is busy, and proves it. Two forged refusals, 3 s apart, used to end such a call."""
    busy_for, limit = 5, 12
    sender, address = programs.live_sender(free_port(), LISTENER)
    with sender, programs.attack("relay", "--to", address, "--refuse", "--seconds", limit) as relay:
        with programs.run("recv", f"comity://{address}", "/dev/null") as first:
            first.event("connected")
            uri = f"comity://{relay.address()}?conntimeo={limit}s"
            with programs.run("recv", uri, "/dev/null", "--reconnect", "no") as caller:
                time.sleep(busy_for)
                began = time.monotonic()
                first.stop()
                took = float("inf")
                with contextlib.suppress(AttackError):
                    took = caller.timed_event("connected", limit)[0] - began
        found = relay.event("end")
    yield Outcome(
        f"forged refusals behind each answer of a listener that is busy for {busy_for} s, and proves it",
        "",
        f"the caller is in {took:.1f} s later; {found['forged']} packets forged",
        took < IN_TIME and found["forged"] >= 10,
    )


def refused_replays(programs):
    """The Confirm packet of a caller that is refused with the listener's name of 512 bytes, again. Each used to bring 2.4
    times its bytes."""
    rate, name = 5_000, "x" * 512
    sender, address = programs.live_sender(free_port(), f"{LISTENER}&streamid={name}", "--all")
    more = ("--repeat", "confirm", "--rate", rate, "--after", 1, "--lasts", 3, "--seconds", 6)
    with sender, programs.attack("relay", "--to", address, *more) as relay:
        with programs.run("recv", f"comity://{relay.address()}?streamid=other", "/dev/null") as caller:
            code, _ = caller.end()
        found = relay.event("end")
        calls = honest_calls(programs, address, 4, 100)
    back = found["received_bytes"] / found["sent_bytes"]
    yield Outcome(
        "a recorded Confirm packet again, whose caller requested another stream; that of the listener has a name of 512 bytes",
        number(rate),
        f"{back:.2f} bytes back for one; the caller was refused with exit code {code}, and {in_time(calls)} of 4 others are in",
        code == 4 and 0.1 < back <= 1 and in_time(calls) == 4,
    )


def newcomers(programs):
    """The emulator serves a bounded number of callers."""
    count, callers = 520, 4
    listener, address = programs.listener()
    emulator, through = programs.emulator(address)
    host, port = through.rsplit(":", 1)
    with listener, emulator, contextlib.ExitStack() as lines:
        for _ in range(count):
            line = lines.enter_context(socket.socket(socket.AF_INET, socket.SOCK_DGRAM))
            line.sendto(b"?", (host, int(port)))
        with programs.attack("call", "--to", through, "--count", callers, "--interval-ms", 500) as call:
            calls = calls_of(call)
    yield Outcome(
        f"{count} packets of one byte at the emulator, each from a port of its own",
        "once",
        f"{in_time(calls)} of {callers} callers are in within 3 s through it",
        in_time(calls) == callers,
    )


ATTACKS = (
    replays_from_one_network,
    replays_from_many_networks,
    initials_with_false_addresses,
    packets_that_prove_nothing,
    old_packets,
    flood_beside_a_stream,
    guesses,
    neighbours,
    false_listener,
    hoarded,
    few_cookies,
    injected,
    refused_after_a_proof,
    refused_replays,
    newcomers,
)
