"""What a viewer saw: ffmpeg decodes what arrived in time, and each picture is compared with the clip's."""

import math
import subprocess
from dataclasses import asdict, dataclass

from carriers import PACKET
from cases import FRAMES_PER_S


PLAYER_MS = 50
"""A packet that comes this much later than the median one is too late for a player."""


@dataclass(frozen=True)
class Verdict:
    """What arrived of a clip."""

    pictures: int
    """Pictures of the clip."""
    right: int
    """Those that look, bit for bit, as in the clip."""
    shown: int
    """Those that ffmpeg shows, right or not."""
    longest_s: float
    """The longest time without a right picture."""
    delay_ms: dict
    """From the input of a packet to its output: the median and the 99th percentile."""
    complaint: str = ""
    """Why the run says nothing."""

    def as_json(self):
        return asdict(self)


def hashes(file):
    """The digest of each picture that ffmpeg shows."""
    command = ["ffmpeg", "-v", "quiet", "-i", str(file), "-map", "0:v:0", "-fps_mode", "passthrough", "-threads", "1", "-f", "framemd5", "-"]
    said = subprocess.run(command, capture_output=True, text=True, check=False).stdout
    return [line.rsplit(",", 1)[1].strip() for line in said.splitlines() if line and not line.startswith("#")]


def longest(right):
    """The longest run of pictures that are not right.

    >>> longest([True, False, False, True, False]), longest([])
    (2, 0)
    """
    most = run = 0
    for is_right in right:
        run = 0 if is_right else run + 1
        most = max(most, run)
    return most


def percentile(values, share):
    """Nearest-rank; `None` of nothing.

    >>> percentile([3, 1, 2, 4], 0.5), percentile([], 0.5)
    (2, None)
    """
    ordered = sorted(values)
    return ordered[max(0, math.ceil(len(ordered) * share) - 1)] if ordered else None


def packets(datagram):
    return [datagram[at:at + PACKET] for at in range(0, len(datagram), PACKET)]


def in_time(datagrams, sent, arrivals):
    """The packets that came in time, and the delays from input to output of those that are in the clip only once.

    >>> one, two, three = (bytes([number]) * PACKET for number in (1, 2, 3))
    >>> kept, delays = in_time([one + two, three], [10.0, 11.0], [(10.2, one), (10.3, two), (11.2, three + three)])
    >>> kept == one + three + three, [round(delay) for delay in delays]
    (True, [200, 300, 200])
    """
    when = {}
    for at, datagram in zip(sent, datagrams):
        for packet in packets(datagram):
            when[packet] = None if packet in when else at
    found = []
    for at, datagram in arrivals:
        for packet in packets(datagram):
            began = when.pop(packet, None)
            found.append((packet, None if began is None else (at - began) * 1e3))
    delays = [delay for _, delay in found if delay is not None]
    latest = (percentile(delays, 0.5) or 0) + PLAYER_MS
    return b"".join(packet for packet, delay in found if delay is None or delay <= latest), delays


def judge(expected, folder, datagrams, sent, arrivals):
    """Compares what arrived with the clip. `expected` has the digests of the clip's pictures."""
    kept, delays = in_time(datagrams, sent, arrivals)
    file = folder / "out.ts"
    file.write_bytes(kept)
    shown = hashes(file)
    seen = set(shown)
    right = [digest in seen for digest in expected]
    return Verdict(
        len(expected), sum(right), len(shown), longest(right) / FRAMES_PER_S,
        {"p50": percentile(delays, 0.5), "p99": percentile(delays, 0.99)},
    )
