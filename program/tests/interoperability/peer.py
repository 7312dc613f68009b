"""A peer of Comity's programs, written from docs/protocol alone: both ends of the handshake, and a
connection that sends and receives sections. Whatever it gets against a rule raises a Fault.
"""

import random
import secrets
import socket
import struct
import time
from functools import reduce
from operator import xor

from codec import MAX_SECTION_ID, VERSION, Fault, expect, read_datagram, read_parameters, read_payload
from codec import write_datagram, write_parameters, write_payload
from handshake import AES, CHACHA, CRYPTO, Direction, confirmation, exchange, mac, unseal

# Longer than any stall of a busy machine.
PATIENCE_S = 120
PIECE, SEGMENT, MAX_RANGES, THRESHOLD, NEVER = 1100, 1200, 64, 3, 2**62
NOT_ACKNOWLEDGED = {"padding", "ack", "receiver_report", "close"}


class Link:
    """A socket that loses each ninth datagram that leaves and each eleventh that arrives, if it is to."""

    def __init__(self, to=None, loses=False):
        self.socket, self.to, self.loses = socket.socket(type=socket.SOCK_DGRAM), to, loses
        self.socket.bind(("127.0.0.1", 0))
        self.port, self.left, self.arrived = self.socket.getsockname()[1], 0, 0

    def send(self, data):
        self.left += 1
        if not self.loses or self.left % 9 != 2:
            self.socket.sendto(data, self.to)

    def receive(self, wait):
        self.socket.settimeout(max(wait, 1e-6))
        try:
            data, address = self.socket.recvfrom(65_535)
        except TimeoutError:
            return None
        self.to, self.arrived = self.to or address, self.arrived + 1
        return data if address == self.to and not (self.loses and self.arrived % 11 == 2) else None


def ask(link, packet, answer):
    """Sends a packet again and again, until `answer` makes something of what comes."""
    wait, ends = 0.25, time.monotonic() + PATIENCE_S
    while time.monotonic() < ends:
        link.send(write_datagram(packet))
        due, wait = time.monotonic() + wait, min(wait * 1.5, 0.5)
        while (left := due - time.monotonic()) > 0:
            data = link.receive(left)
            if data and (found := answer(read_datagram(data))):
                return found
    raise Fault("nobody answers", CRYPTO)


def call(link, pattern, secret, parameters, other=None, cipher=CHACHA):
    """Calls a listener, by PRS, a shared key, or a static key and the public one of the listener."""
    own = secrets.randbits(64)
    packet = {"packet": "initial", "version": VERSION, "source": own, "pattern": pattern, "cookie": "", "message": ""}
    packet["cookie"] = ask(link, packet, lambda found: found["packet"] == "retry" and found["cookie"])
    state = exchange(pattern, True, secret, own, bytes.fromhex(packet["cookie"]), other)
    packet["message"] = state.message(struct.pack(">BBI", cipher, 1, VERSION), True).hex()
    # Anybody may have made an Answer without a ticket, which is a refusal.
    answer = ask(link, packet, lambda found: found.get("ticket") and found)
    chosen = state.message(bytes.fromhex(answer["message"]), False)
    expect(chosen in (bytes([CHACHA]), bytes([cipher])), "a cipher that was not offered")
    digest, to_listener, to_caller = state.result()
    message = confirmation(digest, to_listener, "confirm").encrypt(bytes(12), write_parameters(parameters), digest)
    packet = {"packet": "confirm", "ticket": answer["ticket"], "message": message.hex()}
    sealed = bytes.fromhex(ask(link, packet, lambda found: found["packet"] == "accept" and found["message"]))
    said = unseal(confirmation(digest, to_caller, "accept"), sealed[:12], sealed[12:], digest)
    expect(said[0] == 0, f"status {said[0]}", CRYPTO)
    directions = Direction(chosen[0], digest, to_listener), Direction(chosen[0], digest, to_caller)
    other = int.from_bytes(said[1:9], "big")
    connection = Connection(link, own, other, directions, parameters, read_parameters(said[25:]))
    connection.send([{"frame": "ping"}])
    return connection


def answer_to(packet, pattern, secret, key, allowed, cipher, tickets):
    """What a listener says to an Initial packet."""
    caller = packet["source"]
    reply, cookie = {"version": VERSION, "destination": caller}, mac(key, struct.pack(">Q", caller))
    if packet["version"] != VERSION:
        return {"packet": "version_negotiation", "destination": caller, "versions": [VERSION]}
    if packet["cookie"] != cookie.hex():
        return reply | {"packet": "retry", "cookie": cookie.hex()}
    try:
        state = exchange(pattern, False, secret, caller, cookie)
        said = state.message(bytes.fromhex(packet["message"]), False)
        expect(packet["pattern"] == pattern and said[0] in (AES, CHACHA), "a pattern or a cipher")
        expect(VERSION in [version for version, in struct.iter_unpack(">I", said[2:])], "no version")
        expect(not allowed or state.others["s"] in allowed, "a caller that is not let in")
    except (Fault, ValueError, RuntimeError):
        return reply | {"packet": "answer", "ticket": "", "message": "01"}
    chosen = max(said[0], cipher)
    message, ticket = state.message(bytes([chosen]), True), secrets.token_hex(16)
    tickets[ticket] = caller, chosen, *state.result()
    return reply | {"packet": "answer", "ticket": ticket, "message": message.hex()}


def listen(link, pattern, secret, parameters, allowed=None, cipher=CHACHA):
    """Waits for a caller, and returns the connection, which is half open."""
    key, tickets, packet = secrets.token_bytes(32), {}, {"packet": None}
    while packet["packet"] != "confirm":
        data = link.receive(PATIENCE_S)
        packet = read_datagram(data) if data else {"packet": None}
        if packet["packet"] == "initial":
            link.send(write_datagram(answer_to(packet, pattern, secret, key, allowed, cipher, tickets)))
    caller, chosen, digest, to_listener, to_caller = tickets[packet["ticket"]]
    message = bytes.fromhex(packet["message"])
    theirs = read_parameters(unseal(confirmation(digest, to_listener, "confirm"), bytes(12), message, digest))
    own, nonce = secrets.randbits(64), secrets.token_bytes(12)
    said = struct.pack(">BQ", 0, own) + secrets.token_bytes(16) + write_parameters(parameters)
    message = nonce + confirmation(digest, to_caller, "accept").encrypt(nonce, said, digest)
    accept = write_datagram({"packet": "accept", "destination": caller, "message": message.hex()})
    link.send(accept)
    directions = Direction(chosen, digest, to_caller), Direction(chosen, digest, to_listener)
    return Connection(link, own, caller, directions, parameters, theirs, accept)


class Connection:
    """A connection; `accept` is what a listener repeats while it is half open."""

    def __init__(self, link, own, other, directions, ours, theirs, accept=None):
        self.link, self.own, self.other, self.accept, (self.seals, self.opens) = link, own, other, accept, directions
        self.ours, self.theirs = read_parameters(write_parameters(ours)), theirs
        expect(theirs["meter"] is None, "a meter that this peer lacks", 0x0B)
        self.proves, self.closed, self.update_at = self.ours["proofs"] and theirs["proofs"], None, None
        self.epoch, self.report = time.monotonic(), None
        # What leaves: packets by their numbers. One number is left out now and then.
        self.sent, self.number, self.skip, self.probed, self.expiries = {}, 0, random.randint(128, 383), 0, 0
        self.outgoing, self.waiting, self.frames, self.ends = {}, [], [], {}
        self.window, self.slow_start, self.episode = 10 * SEGMENT, True, -1
        self.credit, self.credit_at, self.is_blocked = theirs["initial_credit"], -1, False
        # What arrives: ranges of numbers as [lowest, highest, proof], and sections by (stream, number).
        self.ranges, self.departure, self.arrival, self.ack_due = [], 0, 0, False
        self.open, self.whole, self.gaps, self.floors, self.lengths = {}, {}, {}, {}, {}
        self.known, self.states_credit = self.ours["initial_credit"], False

    def now(self):
        return int((time.monotonic() - self.epoch) * 1e6)

    def send(self, frames):
        if self.number == self.skip:
            self.number, self.skip = self.number + 1, self.number + random.randint(128, 383)
        if self.update_at is not None and self.number >= self.update_at:
            self.seals.advance()
            self.update_at = None
        now, token, number = self.now(), secrets.randbits(3) if self.proves else 0, self.number
        departure = (now & ~7 | token if self.proves else now) & 0xFFFF_FFFF
        payload = write_payload({"departure": departure, "frames": frames})
        elicits = any(frame["frame"] not in NOT_ACKNOWLEDGED for frame in frames)
        self.sent[number] = {"frames": frames, "size": len(payload), "token": token, "flies": elicits, "acked": False}
        self.probed, self.number = now if elicits else self.probed, number + 1
        self.link.send(self.seals.seal(self.other, number, payload))

    def submit(self, stream, data, due=None):
        """Submits a section that is due after this many microseconds."""
        sections, offsets = self.outgoing.setdefault(stream, []), range(0, len(data), PIECE)
        self.waiting += [(stream, len(sections), offset, False) for offset in offsets]
        section = {"data": data, "source_time": self.now(), "deadline": due, "left": set(offsets)}
        sections.append(section | {"fate": None, "begun": False, "acked_in": NEVER})

    def end(self):
        for stream, sections in self.outgoing.items():
            self.ends[stream] = {"frame": "end", "stream": stream, "sections": len(sections)}
        self.frames += self.ends.values()

    def is_done(self):
        sections = (section for sections in self.outgoing.values() for section in sections)
        return not self.ends and not self.frames and all(section["fate"] for section in sections)

    def flying(self):
        return [number for number, packet in self.sent.items() if packet["flies"]]

    def in_flight(self):
        return sum(self.sent[number]["size"] for number in self.flying())

    def timeout(self):
        """The probe timeout, in microseconds."""
        return min(2_000_000, 50_000 << self.expiries) + self.theirs["largest_ack_delay"]

    def has_credit(self, total):
        """Whether a section of this length may begin."""
        begun = [section for sections in self.outgoing.values() for section in sections if section["begun"]]
        return total <= self.credit - sum(len(section["data"]) for section in begun if section["acked_in"] > self.credit_at)

    def piece(self):
        """The next piece of a section, if one may leave."""
        while self.waiting:
            stream, number, offset, repeated = self.waiting[0]
            sections, now = self.outgoing[stream], self.now()
            section, floor = sections[number], next((at for at, each in enumerate(sections) if not each["fate"]), 0)
            if section["deadline"] is not None and now >= section["source_time"] + section["deadline"] and not section["fate"]:
                section["fate"] = "expired"
                self.frames.append({"frame": "drop", "stream": stream, "section": number, "reason": 0})
            if not section["fate"] and offset in section["left"]:
                may_begin = number < floor + self.theirs["open_sections"] and self.has_credit(len(section["data"]))
                self.is_blocked = not section["begun"] and not may_begin
                if self.is_blocked:
                    break
                section["begun"] = True
                data = section["data"][offset : offset + PIECE].hex()
                piece = {"frame": "section", "stream": stream, "section": number, "floor": floor, "offset": offset}
                piece |= {"total": len(section["data"]), "source_time": section["source_time"], "needs": None, "importance": 0}
                self.waiting.pop(0)
                return piece | {"deadline": section["deadline"], "repeated": repeated, "data": data}
            self.waiting.pop(0)

    def flush(self):
        """Sends what is due; a connection that is half open sends nothing."""
        if self.accept and self.opens.largest < 0:
            return
        room = self.ours["initial_credit"] - sum(len(section["data"]) for section in self.open.values())
        expect(room >= 0, "more sections than the credit allows", 5)
        frames, self.frames = self.frames, []
        if self.ack_due:
            ranges, proof = [within[:2] for within in self.ranges], reduce(xor, (within[2] for within in self.ranges))
            ack = {"frame": "ack", "delay": self.now() - self.arrival, "arrival": self.arrival & 0xFFFF_FFFF}
            frames.insert(0, ack | {"ranges": ranges, "ecn": None, "proof": proof if self.proves else None})
            self.states_credit |= self.known < min(room, 3 / 4 * self.ours["initial_credit"])
        if self.states_credit:
            self.known = max(1, room)
            frames.append({"frame": "credit", "bytes": self.known, "sections": self.ours["open_sections"]})
        self.ack_due = self.states_credit = False
        if frames:
            self.send(frames)
        while (not self.flying() or self.in_flight() + SEGMENT <= self.window) and (piece := self.piece()):
            self.send([piece])
        if self.frames:
            self.flush()

    def again(self, number):
        """What a packet carried goes out again, as far as it is still of use."""
        for frame in self.sent[number]["frames"]:
            if frame["frame"] == "section":
                self.waiting.insert(0, (frame["stream"], frame["section"], frame["offset"], True))
            elif frame["frame"] == "drop" or frame["frame"] == "end" and self.ends.get(frame["stream"]):
                self.frames.append(frame)
            self.states_credit |= frame["frame"] == "credit"

    def probe(self):
        if (self.flying() or self.is_blocked) and self.now() - self.probed >= self.timeout():
            self.expiries += 1
            expect(self.expiries < 64, "64 probes without an answer", 0)
            for number in self.flying()[:1]:
                self.again(number)
            self.send([{"frame": "blocked" if self.is_blocked else "ping"}])

    def run(self, until=lambda: False):
        """Exchanges packets until `until` holds, or the other end closes."""
        ends = time.monotonic() + PATIENCE_S
        self.flush()
        while not until() and self.closed is None:
            expect(time.monotonic() < ends, "no end in sight", 0)
            data = self.link.receive((self.probed + self.timeout() - self.now()) / 1e6 if self.flying() else 0.1)
            try:
                while data:
                    self.handle(data)
                    data = self.link.receive(0)
            except Fault as wrong:
                self.close(wrong.args[1], wrong.args[0])
                raise
            self.probe()
            self.flush()

    def close(self, code, reason):
        """Closes the connection, and says so as often as the documents ask for."""
        for _ in range(6):
            self.send([*self.ends.values(), {"frame": "close", "code": code, "reason": reason.encode().hex()}])
            self.link.receive(self.timeout() / 2e6)

    def handle(self, data):
        if data[0] >> 4 != 4:
            found = read_datagram(data)["packet"]
            expect(found in ("retry", "answer", "accept", "confirm"), f"found a packet: {found}")
            return self.link.send(self.accept) if found == "confirm" else None
        expect(int.from_bytes(data[1:9], "big") == self.own, "a packet of another connection")
        expect(len(data) <= self.ours["largest_datagram"], "a packet that is too large")
        highest = self.opens.largest
        number, payload = self.opens.open(data)
        if number <= highest:
            # A packet that another one overtook within the host counts as lost here.
            return expect(not any(low <= number <= high for low, high, _ in self.ranges), "a number used twice")
        if self.opens.phase > self.seals.phase:
            self.seals.advance()
        found = read_payload(payload)
        expect(payload in (write_payload(found), write_payload(found, False)), "a longer form than the shortest")
        token, step = found["departure"] & 7, (found["departure"] & (~7 if self.proves else ~0)) - self.departure
        expect(highest < 0 or step % 2**32 < 2**31, "a departure before the last one")
        # The first departure is the time itself.
        self.departure, self.arrival = self.departure + step % 2**32, self.now()
        if self.ranges and number == self.ranges[0][1] + 1:
            self.ranges[0][1:] = number, self.ranges[0][2] ^ token
        else:
            self.ranges = [[number, number, token], *self.ranges][:MAX_RANGES]
        for frame in found["frames"]:
            kind = frame["frame"]
            self.ack_due |= kind not in NOT_ACKNOWLEDGED
            if kind not in ("padding", "ping"):
                expect(hasattr(self, "on_" + kind), f"a frame that nothing called for: {kind}")
                getattr(self, "on_" + kind)(frame, number)

    def on_ack(self, ack, number):
        expect((ack["proof"] is not None) == bool(self.proves), "a proof that is missing, or that is not due", 8)
        expect(ack["ecn"] is None, "marks on packets that have none")
        proof, largest = 0, ack["ranges"][0][1]
        for acked in (each for low, high in ack["ranges"] for each in range(low, high + 1)):
            expect(acked in self.sent, f"{acked} was never sent", 8)
            proof ^= self.sent[acked]["token"]
            if not self.sent[acked]["acked"]:
                self.settle(self.sent[acked], number)
        expect(ack["proof"] in (None, proof), "a wrong proof", 8)
        for lost in [flying for flying in self.flying() if flying <= largest - THRESHOLD]:
            self.sent[lost]["flies"] = False
            self.again(lost)
            if lost > self.episode:
                self.episode, self.slow_start, self.window = self.number, False, max(self.window / 2, 2 * SEGMENT)

    def settle(self, packet, number):
        """The packet is acknowledged for the first time, in the packet of this number."""
        self.window += packet["size"] * (1 if self.slow_start else SEGMENT / self.window)
        packet["acked"], packet["flies"], self.expiries = True, False, 0
        for frame in packet["frames"]:
            if frame["frame"] == "section":
                section = self.outgoing[frame["stream"]][frame["section"]]
                section["left"].discard(frame["offset"])
                section["acked_in"] = min(section["acked_in"], number)
                section["fate"] = section["fate"] if section["left"] else "acknowledged"
            elif frame["frame"] == "end":
                self.ends.pop(frame["stream"], None)

    def on_section(self, frame, number):
        stream, key, offset = frame["stream"], (frame["stream"], frame["section"]), frame["offset"]
        self.on_floor(frame, number)
        expect(frame["section"] < self.lengths.get(stream, MAX_SECTION_ID + 1), "a section behind the end", 7)
        expect(frame["section"] < self.ours["open_sections"] + self.floors[stream], "a section too far ahead", 6)
        if self.theirs["reliability"] != 2 and frame["deadline"] is not None:
            expect(self.departure < frame["source_time"] + frame["deadline"], "bytes that left after their deadline")
        self.known -= 0 if key in self.open else frame["total"]
        if key in self.whole or key in self.gaps:
            return
        head = {name: frame[name] for name in ("total", "source_time", "deadline", "importance", "needs")}
        empty = {"head": head, "data": bytearray(head["total"]), "has": bytearray(head["total"])}
        section = self.open.setdefault(key, empty)
        expect(section["head"] == head, "contradictory sections", 7)
        data = bytes.fromhex(frame["data"])
        section["data"][offset : offset + len(data)] = data
        section["has"][offset : offset + len(data)] = b"\1" * len(data)
        if 0 not in section["has"]:
            self.whole[key] = bytes(self.open.pop(key)["data"])

    def on_floor(self, frame, number):
        stream = frame["stream"]
        self.floors[stream] = max(frame["floor"], self.floors.get(stream, 0))
        for key in [key for key in self.open if key[0] == stream and key[1] < self.floors[stream]]:
            self.gaps[key] = "obsolete"
            del self.open[key]

    def on_drop(self, frame, number):
        key = frame["stream"], frame["section"]
        if key not in self.whole:
            self.gaps[key] = frame["reason"]
            self.open.pop(key, None)

    def on_end(self, frame, number):
        stream, length = frame["stream"], frame["sections"]
        expect(self.lengths.setdefault(stream, length) == length, "two ends of a stream", 7)
        known = [at for each, at in (*self.open, *self.whole, *self.gaps) if each == stream]
        expect(max(known, default=-1) < length, "an end below a section", 7)

    def on_credit(self, frame, number):
        self.credit, self.credit_at = frame["bytes"], number

    def on_blocked(self, frame, number):
        self.states_credit = True

    def on_receiver_report(self, frame, number):
        expect(frame["packets"] <= self.number and frame["duplicates"] == 0, "a report of what was not sent", 8)
        self.report = frame

    def on_path_challenge(self, frame, number):
        self.frames.append({"frame": "path_response", "data": frame["data"]})

    def on_close(self, frame, number):
        self.closed = frame["code"], bytes.fromhex(frame["reason"]).decode()
