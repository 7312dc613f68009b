"""Whether each unit that a sender read was written, or is in a list of gaps, or was held by a process that was killed."""

import bisect
import heapq
import json
from dataclasses import dataclass, field

VIDEO_STREAM = 1
# How far the times of two processes' lists and those of the feeder may be apart, in seconds.
SLACK = 0.5
# A sender evens its source out: a source time may be so much later than the unit was read.
EVENED = 1.0
# A sender that has just begun waits for its first connection, which may have to wait for the end of the one before.
FIRST, BEGINNING = 8.0, 16.0
# What a list says without a source time was given up so long after it was read, at the most: what a process that was
# suspended or a lost connection held.
LONGEST = 20.0
# Reasons that a sender may not know of: it has counted the section as arrived.
NOT_THE_SENDERS = ("overdue", "closed", "unwritten")


@dataclass
class Counts:
    """The units of a chain by what became of them."""

    read: int = 0
    written: int = 0
    repeated: int = 0
    broken: int = 0
    listed: int = 0
    named_twice: int = 0
    named_and_written: int = 0
    held_by_killed: int = 0
    unaccounted: list = field(default_factory=list)
    reasons: dict = field(default_factory=dict)


def entries(life):
    """The lines of a list of gaps; a process that was killed may have cut the last one."""
    found = []
    for line in life.gaps.read_text().splitlines() if life.gaps.exists() else []:
        try:
            found.append(json.loads(line))
        except ValueError:
            if not life.was_killed:
                raise
    return found


def sections(found):
    """The units that entries name, by number, with the reason.

    >>> gaps = [dict(stream=1, section=3, count=2, reason="shed"), dict(stream=0, section=1, count=1, reason="shed")]
    >>> list(sections(gaps))
    [(3, 'shed'), (4, 'shed')]
    """
    for gap in found:
        if gap["stream"] == VIDEO_STREAM:
            for number in range(gap["section"], gap["section"] + gap["count"]):
                yield number, gap["reason"]


def kept(read, receiver):
    """The counts of a chain with one connection from the beginning to the end: the last list has every number."""
    counts = Counts(read=read, broken=receiver.broken)
    written = set(receiver.units)
    counts.written, counts.repeated = len(written), len(receiver.units) - len(written)
    named = set()
    for number, reason in sections(entries(receiver)):
        counts.named_twice += number in named
        named.add(number)
        counts.reasons[reason] = counts.reasons.get(reason, 0) + 1
    counts.listed, counts.named_and_written = len(named - written), len(named & written)
    counts.unaccounted = sorted(set(range(read)) - written - named)
    return counts


def spans(life, gap, begun):
    """When the units of a relay's or a receiver's entry were read; none if the list of the sender before it has them.

    What never arrived has no source time. The sender has listed it, unless the last bytes came after the receiver had
    given it up. `begun` has the times at which senders began.

    >>> class Relay:
    ...     name, began = "relay", 100.0
    >>> spans(Relay, dict(reason="expired", source_time_s=5.0, time_s=6.0, count=1), [])
    [(103.5, 105.5)]
    >>> spans(Relay, dict(reason="expired", source_time_s=5.0, time_s=6.0, count=1), [95.0])
    [(96.5, 105.5)]
    >>> spans(Relay, dict(reason="expired", source_time_s=None, time_s=6.0, count=1), [])
    []
    """
    known, source = life.began + gap["time_s"], gap["source_time_s"]
    if life.name == "recv" and gap["reason"] not in NOT_THE_SENDERS:
        return []
    if source is not None:
        moment = life.began + source
        evened = FIRST if any(moment - BEGINNING < begin < moment for begin in begun) else EVENED
        return [(moment - evened - SLACK, moment + SLACK)]
    return [(known - LONGEST, known + SLACK)] * gap["count"] if gap["reason"] in NOT_THE_SENDERS else []


def match(points, intervals):
    """The points that are left when each interval takes one point that lies in it, as many as can be.

    >>> match([1, 2, 3, 9], [(0, 2), (0, 1), (2.5, 4), (5, 6)])
    [9]
    >>> match([1, 2], [(0, 3)])
    [2]
    """
    left, waiting, at = [], [], 0
    intervals = sorted(intervals)
    for point in sorted(points):
        while at < len(intervals) and intervals[at][0] <= point:
            heapq.heappush(waiting, intervals[at][1])
            at += 1
        while waiting and waiting[0] < point:
            heapq.heappop(waiting)
        if waiting:
            heapq.heappop(waiting)
        else:
            left.append(point)
    return left


def struck(times, lives, latency):
    """The counts of a chain whose processes are killed and whose connections are lost.

    A sender's list has the numbers of its units. Those of the others count the sections of a connection: they are
    matched by the time. What is left must have been within the latency of a process when that was killed.
    """
    counts = Counts(read=len(times))
    written = set()
    for life in lives:
        if life.name == "recv":
            written.update(life.units)
            counts.repeated += len(life.units)
            counts.broken += life.broken
    counts.written, counts.repeated = len(written), counts.repeated - len(written)
    named, intervals = set(), []
    begun = [life.began for life in lives if life.name == "send"]
    for life in lives:
        if life.name == "send":
            for number, reason in sections(entries(life)):
                counts.reasons[reason] = counts.reasons.get(reason, 0) + 1
                named.add(life.first + number)
        elif life.name in ("relay", "recv"):
            for gap in entries(life):
                if gap["stream"] == VIDEO_STREAM:
                    counts.reasons[gap["reason"]] = counts.reasons.get(gap["reason"], 0) + gap["count"]
                    intervals += spans(life, gap, begun)
    counts.named_and_written = len(named & written)
    missing = [number for number in range(len(times)) if number not in written and number not in named]
    killed = sorted(life.ended for life in lives if life.was_killed and life.name in ("send", "relay", "recv"))

    def was_held(moment):
        after = bisect.bisect_left(killed, moment - SLACK)
        return after < len(killed) and killed[after] <= moment + latency + EVENED + SLACK

    # What a process that was killed may have held needs no entry: the entries are for the others first.
    moments = [times[number] for number in missing]
    counts.held_by_killed = sum(map(was_held, match(moments, intervals)))
    left = match([moment for moment in moments if not was_held(moment)], intervals)
    counts.unaccounted = [bisect.bisect_left(times, moment) for moment in left]
    counts.listed = len(times) - len(written) - counts.held_by_killed - len(left)
    return counts
