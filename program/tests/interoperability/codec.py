#!/usr/bin/env python3
"""The wire format of docs/protocol/core.md, written from that page alone.

    codec.py [payload | datagram | parameters] [--encode]

Reads one value a line in hexadecimal digits and prints one line for each: canonical JSON, or
`error`, for a payload with the code of the Close frame: `error 2` or `error 3`. With --encode it
reads canonical JSON and prints the digits of the shortest form.

Canonical JSON has sorted keys, no spaces and whole numbers. Bytes and text are strings of
hexadecimal digits in lower case, and what is absent is null. Names and values are those of the
tables in core.md, with `_` for spaces and hyphens, except

- payload: {"departure": u32, "frames": [..]}, each frame with its name under "frame": padding,
  ping, ack, floor, drop, credit, tag_wave, tag_round, tag_numbered, feedback_wave,
  feedback_loss_events, feedback_count, receiver_report, path_challenge, path_response, close,
  end, blocked, section;
- padding: "count", the length of the whole run; path frames: "data"; loss event rate: its bits;
- ack: "ranges", [lowest, highest] of each from the highest down, for "largest", "range count" and
  the ranges; "ecn", [ect0, ect1, ce]; "proof", 0 to 7;
- section: "floor" and "needs" are numbers of sections, "deadline" is in microseconds after the
  source time; "repeated" is true or false; there is no "length";
- datagram: "packet" is initial, retry, answer, data, version_negotiation, confirm, accept or
  reset; no lengths, no padding. An Initial packet of another version has "version" and "source"
  only. A Data packet is read as without protection: "phase", 0 or 1, and no first byte;
- parameters: all of the table, with their defaults.
"""

import json
import sys

VERSION, MIN_INITIAL, MAX_HANDSHAKE = 2, 1200, 928
MAX_VARINT, MAX_TIME_US, MAX_STREAM = 2**62 - 1, 2**53 - 1, 65_535
MAX_SECTION, MAX_SECTION_ID = 67_108_864, 2**48 - 2
ENCODING, UNKNOWN = 0x02, 0x03


class Fault(Exception):
    """What breaks a rule of the documents; the second argument is the code of the Close frame that it gets."""


def expect(holds, message, code=ENCODING):
    if not holds:
        raise Fault(message, code)


def ranged(value, low, high):
    expect(low <= value <= high, f"found {value}, expected {low} to {high}")
    return value


class Reader:
    """Reads fields from the front of bytes."""

    def __init__(self, data):
        self.data = data

    def take(self, count):
        expect(count <= len(self.data), f"{len(self.data)} bytes left, expected {count}")
        taken, self.data = self.data[:count], self.data[count:]
        return taken

    def uint(self, size):
        return int.from_bytes(self.take(size), "big")

    def varint(self, high=MAX_VARINT, low=0):
        first = self.uint(1)
        rest = (1 << (first >> 6)) - 1
        return ranged((first & 0x3F) << 8 * rest | self.uint(rest), low, high)


def varint(value):
    power = next(power for power in range(4) if value < 1 << (8 << power) - 2)
    return (value | power << (8 << power) - 2).to_bytes(1 << power, "big")


# A kind of field is a pair of functions: from a reader to a value, and from a value to bytes.
def u(size, low=0, high=2**64):
    return lambda reader: ranged(reader.uint(size), low, high), lambda value: value.to_bytes(size, "big")


def v(high=MAX_VARINT, low=0):
    return lambda reader: reader.varint(high, low), varint


def zigzag(high):
    def read(reader):
        value = reader.varint(2 * high)
        return value // 2 if value % 2 == 0 else -(value + 1) // 2

    return read, lambda value: varint(2 * value if value >= 0 else -2 * value - 1)


def octets(length=0, low=0, high=MAX_VARINT, size=None, text=False):
    """Bytes: `size` of them, or as many as a length of `length` bytes says, or all that are left."""

    def read(reader):
        data = reader.take(ranged(size or (reader.uint(length) if length else len(reader.data)), low, high))
        expect(not text or data.decode(errors="ignore").encode() == data, "text that is not UTF-8")
        return data.hex()

    return read, lambda digits: (len(digits) // 2).to_bytes(4, "big")[4 - length :] + bytes.fromhex(digits)


def read_fields(reader, fields):
    return {name: read(reader) for name, (read, _) in fields.items()}


def write_fields(value, fields):
    return b"".join(write(value[name]) for name, (_, write) in fields.items())


ANY, STREAM, ID, PAST, TIME = v(), v(MAX_STREAM), v(MAX_SECTION_ID), v(MAX_SECTION_ID + 1), v(MAX_TIME_US)
COUNTS = ["complete", "on_time", "late", "with_gaps", "bytes", "packets", "duplicates"]
# Types of frames, of Tag and Feedback with their kinds.
FRAMES = {
    0x01: ("ping", {}),
    0x08: ("floor", {"stream": STREAM, "floor": PAST}),
    0x09: ("drop", {"stream": STREAM, "section": ID, "reason": u(1, 0, 4)}),
    0x0A: ("credit", {"bytes": ANY, "sections": v(65_536, 1)}),
    0x0B01: ("tag_wave", {"wave": u(2), "segments": u(2, 1), "position": u(2, 1)}),
    0x0B02: ("tag_round", {"round": u(4), "round_trip_time": TIME}),
    0x0B03: ("tag_numbered", {"number": u(4), "round_trip_time": TIME}),
    0x0C01: ("feedback_wave", {"level": u(2, 1)}),
    # The bits of numbers from 0 to 1 have their order; those of -0 and of no number are above.
    0x0C02: ("feedback_loss_events", {"loss_event_rate": u(8, 0, 0x3FF0 << 48), "receive_rate": ANY}),
    0x0C03: ("feedback_count", {"round": u(4), "packets": u(4)}),
    0x0D: ("receiver_report", dict.fromkeys(COUNTS, ANY) | {
        "one_way_delay_latest": zigzag(MAX_TIME_US), "one_way_delay_least": zigzag(MAX_TIME_US),
        "jitter": TIME, "buffered": ANY, "clock_drift": zigzag(10**9)}),
    0x0E: ("path_challenge", {"data": octets(size=8)}),
    0x0F: ("path_response", {"data": octets(size=8)}),
    0x10: ("close", {"code": ANY, "reason": octets(1, text=True)}),
    0x11: ("end", {"stream": STREAM, "sections": PAST}),
    0x12: ("blocked", {}),
}
TYPES = {name: (code, fields) for code, (name, fields) in FRAMES.items()}
SECTION = {"stream": STREAM, "section": ID, "floor": ANY, "offset": ANY, "total": v(MAX_SECTION, 1)}
SECTION |= {"source_time": TIME, "deadline": ANY}
WEIGHT = {"importance": u(1), "needs": ANY}


def read_ack(reader, kind):
    high, delay, arrival, count = reader.varint(), reader.varint(MAX_TIME_US), reader.uint(4), reader.varint(127)
    ranges = []
    for at in range(count + 1):
        high = low - 2 - reader.varint() if at else high
        low = high - reader.varint(high)
        ranges.append([low, high])
    ecn, proof = [reader.varint() for _ in range(3)] if kind & 1 else None, kind >> 1 & 7 if kind >= 0x30 else None
    return {"frame": "ack", "delay": delay, "arrival": arrival, "ranges": ranges, "ecn": ecn, "proof": proof}


def write_ack(ack):
    (low, high), *rest = ack["ranges"]
    kind = (0x02 if ack["proof"] is None else 0x30 | ack["proof"] << 1) | (ack["ecn"] is not None)
    numbers = [len(rest), high - low]
    for lowest, highest in rest:
        numbers += [low - highest - 2, highest - lowest]
        low = lowest
    out = bytes([kind]) + varint(high) + varint(ack["delay"]) + ack["arrival"].to_bytes(4, "big")
    return out + b"".join(map(varint, numbers + (ack["ecn"] or [])))


def read_section(reader, kind):
    frame = {"frame": "section", "repeated": bool(kind & 2), "importance": 0, "needs": 0}
    frame |= read_fields(reader, SECTION) | (read_fields(reader, WEIGHT) if kind & 4 else {})
    data = reader.take(reader.varint() if kind & 1 else len(reader.data))
    number, deadline, needs, unit = frame["section"], frame["deadline"], frame["needs"], 1000 if kind & 8 else 1
    ranged(max(frame["floor"], needs), 0, number)
    ranged(deadline, 0, (MAX_TIME_US - 1) // unit + 1)
    ranged(len(data), 1, frame["total"] - frame["offset"])
    frame |= {"deadline": (deadline - 1) * unit if deadline else None, "needs": number - needs if needs else None}
    return frame | {"floor": number - frame["floor"], "data": data.hex()}


def write_section(frame, is_last):
    number, deadline, needs = frame["section"], frame["deadline"], frame["needs"]
    unit = 1 if deadline is None or deadline % 1000 else 1000
    raw = frame | {"floor": number - frame["floor"], "deadline": 0 if deadline is None else 1 + deadline // unit}
    raw |= {"needs": 0 if needs is None else number - needs}
    weighs, data = any(raw[name] for name in WEIGHT), bytes.fromhex(frame["data"])
    out = bytes([0x20 | (not is_last) | frame["repeated"] << 1 | weighs << 2 | (unit == 1000) << 3])
    out += write_fields(raw, SECTION) + (write_fields(raw, WEIGHT) if weighs else b"")
    return out + (b"" if is_last else varint(len(data))) + data


def read_frame(reader):
    kind = reader.uint(1)
    if kind == 0x00:
        rest = reader.data.lstrip(b"\0")
        return {"frame": "padding", "count": 1 + len(reader.take(len(reader.data) - len(rest)))}
    if kind in (0x02, 0x03) or kind >> 4 == 0x3:
        return read_ack(reader, kind)
    if kind >> 4 == 0x2:
        return read_section(reader, kind)
    is_family = kind in (0x0B, 0x0C)
    kind = kind << 8 | reader.uint(1) if is_family else kind
    expect(kind in FRAMES, f"frame of unknown type {kind:#x}", ENCODING if is_family else UNKNOWN)
    name, fields = FRAMES[kind]
    frame = {"frame": name, **read_fields(reader, fields)}
    expect(name != "tag_wave" or frame["position"] <= frame["segments"], "a position above the segments")
    return frame


def write_frame(frame, is_last=False):
    if frame["frame"] == "padding":
        return bytes(frame["count"])
    if frame["frame"] == "ack":
        return write_ack(frame)
    if frame["frame"] == "section":
        return write_section(frame, is_last)
    code, fields = TYPES[frame["frame"]]
    return code.to_bytes(1 + (code > 0xFF), "big") + write_fields(frame, fields)


def read_payload(data):
    reader = Reader(data)
    payload = {"departure": reader.uint(4), "frames": []}
    while reader.data or not payload["frames"]:
        payload["frames"].append(read_frame(reader))
    return payload


def write_payload(payload, ends_open=True):
    """The bytes of a payload; with `ends_open`, a section at its end has no length."""
    *rest, last = payload["frames"]
    frames = [*map(write_frame, rest), write_frame(last, ends_open)]
    return payload["departure"].to_bytes(4, "big") + b"".join(frames)


def read_versions(reader):
    return [reader.uint(4) for _ in range(ranged(len(reader.data) // 4, 1, 16))]


def write_versions(versions):
    return b"".join(version.to_bytes(4, "big") for version in versions)


THIS, TO, TICKET, MESSAGE = u(4, VERSION, VERSION), u(8), octets(1), octets(0, 1, MAX_HANDSHAKE)
PACKETS = {
    0x10: ("initial", {"version": u(4), "source": u(8)}),
    0x20: ("retry", {"version": THIS, "destination": TO, "cookie": octets(1, 1)}),
    0x30: ("answer", {"version": THIS, "destination": TO, "ticket": TICKET, "message": MESSAGE}),
    0x40: ("data", {"destination": TO, "number": u(4), "payload": octets(0, 1)}),
    0x50: ("version_negotiation", {"destination": TO, "versions": (read_versions, write_versions)}),
    0x60: ("confirm", {"ticket": TICKET, "message": octets(0, 0, MAX_HANDSHAKE)}),
    0x70: ("accept", {"destination": TO, "message": MESSAGE}),
    0x80: ("reset", {"source": u(8), "token": octets(size=16)}),
}
FIRST = {name: (first, fields) for first, (name, fields) in PACKETS.items()}
# The fields of an Initial packet of this version, behind those of each version.
INITIAL = {"pattern": u(1, 0, 3), "cookie": octets(1), "message": octets(2, 0, MAX_HANDSHAKE)}


def read_datagram(data):
    reader = Reader(data)
    first = reader.uint(1)
    phase = {"phase": first & 1} if first in (0x40, 0x41) else {}
    name, fields = PACKETS.get(0x40 if phase else first, (None, {}))
    expect(name and (name != "initial" or len(data) >= MIN_INITIAL), f"{len(data)} bytes that begin with {first:#x}")
    packet = {"packet": name, **phase, **read_fields(reader, fields)}
    if name == "initial":
        if packet["version"] != VERSION:
            return packet
        packet |= read_fields(reader, INITIAL)
        reader.data = reader.data.lstrip(b"\0")
    expect(not reader.data, "bytes behind the packet")
    return packet


def write_datagram(packet):
    first, fields = FIRST[packet["packet"]]
    out = bytes([first + packet.get("phase", 0)]) + write_fields(packet, fields)
    return out if first != 0x10 else (out + write_fields(packet, INITIAL)).ljust(MIN_INITIAL, b"\0")


def name(most):
    return octets(0, 1, most, text=True)


# The transport parameters in the order of their identifiers, from 1 on: name, default, field.
PARAMETERS = [
    ("latency", 120_000, TIME), ("reliability", 0, v(2)), ("deliver", 0, v(1)),
    ("largest_datagram", 1452, v(65_507, 1200)), ("idle_timeout", 5000, v(MAX_TIME_US // 1000)),
    ("initial_credit", 8_388_608, ANY), ("open_sections", 1024, v(65_536, 1)),
    ("largest_ack_delay", 10_000, v(16_777_216)), ("stream_name", None, name(512)), ("meter", None, name(64)),
    ("ecn", 0, v(1)), ("controller", None, name(64)), ("meter_parameters", None, name(256)), ("features", 0, ANY),
    ("proofs", 0, v(1)),
]


def read_parameters(data):
    reader, last, count = Reader(data[: ranged(len(data), 0, 875)]), -1, 0
    found = {name: default for name, default, _ in PARAMETERS}
    while reader.data:
        identifier, value, count = reader.varint(MAX_VARINT, last + 1), Reader(reader.take(reader.varint())), count + 1
        last = identifier
        if 1 <= identifier <= len(PARAMETERS):
            name, _, (read, _) = PARAMETERS[identifier - 1]
            found[name] = read(value)
            expect(not value.data, f"{name} does not fill its value")
    ranged(count, 0, 64)
    return found


def write_parameters(parameters):
    out = b""
    for identifier, (name, default, (_, write)) in enumerate(PARAMETERS, 1):
        if parameters.get(name, default) != default:
            value = write(parameters[name])
            out += varint(identifier) + varint(len(value)) + value
    return out


FORMATS = {"payload": (read_payload, write_payload), "datagram": (read_datagram, write_datagram)}
FORMATS |= {"parameters": (read_parameters, write_parameters)}


def main(arguments):
    chosen = next((name for name in FORMATS if name in arguments), "payload")
    read, write = FORMATS[chosen]
    for line in sys.stdin:
        try:
            if "--encode" in arguments:
                said = write(json.loads(line)).hex()
            else:
                said = json.dumps(read(bytes.fromhex(line)), sort_keys=True, separators=(",", ":"))
        except Fault as wrong:
            said = f"error {wrong.args[1]}" if chosen == "payload" else "error"
        print(said, flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
