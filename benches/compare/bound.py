"""The largest share of frames that any sender could have on time, from the packets that arrived at a bottleneck.

A frame submitted at a time t waits behind the bytes in the queue. The queue serves in the order of arrival, so a sender
that waits is served later: sending at once is best. The last byte of the frame arrives at

    t + (bytes in the queue + bytes of the frame) / rate + delay of the path

or later, whatever the sender does. The frame can be on time only if that is within the latency. The bound uses the
queue of the run, with the source's own earlier packets. It ignores headers and the drops of a full queue, so it is an
upper bound that a sender need not reach.
"""

import struct
from collections import deque

SECTION, INTERFACE, PACKET = 0x0A0D0D0A, 1, 6
TIME_RESOLUTION = 9
NS = 1_000_000_000


def packets_of(data):
    """The packets of a capture in pcapng, as (time in ns since 1970, bytes), in the order of arrival.

    >>> block = lambda kind, body: struct.pack("<II", kind, len(body) + 12) + body + struct.pack("<I", len(body) + 12)
    >>> section = block(SECTION, struct.pack("<IHHq", 0x1A2B3C4D, 1, 0, -1))
    >>> interface = block(INTERFACE, struct.pack("<HHI", 101, 0, 0) + struct.pack("<HHB3xHH", 9, 1, 9, 0, 0))
    >>> packet = block(PACKET, struct.pack("<IIIII", 0, 1, 5, 4, 1500) + b"abcd")
    >>> list(packets_of(section + interface + packet)) == [((1 << 32) + 5, 1500)]
    True
    """
    order = "<" if data[8:12] == b"\x4d\x3c\x2b\x1a" else ">"
    at, unit_ns = 0, 1000
    while at + 12 <= len(data):
        kind, length = struct.unpack_from(f"{order}II", data, at)
        if kind == INTERFACE:
            unit_ns = time_unit_ns(data[at + 16:at + length - 4], order)
        elif kind == PACKET:
            high, low, _, size = struct.unpack_from(f"{order}IIII", data, at + 12)
            yield (high << 32 | low) * unit_ns, size
        at += length


def time_unit_ns(options, order):
    """The unit of time stamps from the options of an interface; a microsecond by default.

    >>> time_unit_ns(struct.pack("<HH4sHHB3x", 2, 3, b"eth", 9, 1, 9), "<"), time_unit_ns(b"", "<")
    (1, 1000)
    """
    at = 0
    while at + 4 <= len(options):
        code, length = struct.unpack_from(f"{order}HH", options, at)
        if code == TIME_RESOLUTION:
            return NS // 10 ** options[at + 4]
        at += 4 + (length + 3) // 4 * 4
    return 1000


def backlogs(packets, moments, rate_bps, limit):
    """The bytes that a drop-tail queue holds at each of these moments, and how many packets it dropped.

    `packets` and `moments` ascend. `limit` counts packets, that in transmission included. A packet that arrives at one
    of the moments counts behind it.

    >>> second = NS
    >>> backlogs([(0, 1000), (0, 1000), (0, 1000)], [0, 1, second // 2, second], 16_000, 2)
    ([0.0, 1999.999998, 1000.0, 0.0], 1)
    """
    departures, free_ns, dropped, found = deque(), 0.0, 0, []
    remaining = iter(moments)
    moment = next(remaining, None)
    byte_ns = 8 * NS / rate_bps
    for at, size in packets:
        while moment is not None and moment <= at:
            found.append(max(0.0, free_ns - moment) / byte_ns)
            moment = next(remaining, None)
        while departures and departures[0] <= at:
            departures.popleft()
        if len(departures) >= limit:
            dropped += 1
            continue
        free_ns = max(free_ns, at) + size * byte_ns
        departures.append(free_ns)
    while moment is not None:
        found.append(max(0.0, free_ns - moment) / byte_ns)
        moment = next(remaining, None)
    return found, dropped


def bound(held, frame_bytes, point):
    """The share of frames that can be on time, from the bytes in the queue when each frame is submitted.

    >>> from points import points_of
    >>> tight = points_of("tight")["1-cubic-below-120-ms"]
    >>> bound([0, 85_000, 85_001], 15_000, tight)
    0.6666666666666666
    """
    allowed = point.latency_ms - point.delay_ms
    needed = [(bytes_before + frame_bytes) * 8 / point.link_mbps / 1e3 for bytes_before in held]
    return sum(time_ms <= allowed for time_ms in needed) / len(needed)


def measure(capture, point, first_frame_ns, seconds):
    """The bound of a run that starts at this time, and the packets that the replayed queue dropped."""
    moments = [first_frame_ns + number * NS // point.fps for number in range(seconds * point.fps)]
    held, dropped = backlogs(packets_of(capture.read_bytes()), moments, point.link_mbps * 1e6, point.queue)
    return {"share": bound(held, point.mbps * 1e6 / 8 / point.fps, point), "replay_dropped_packets": dropped}
