"""What the kept runs of one transport at one point say together."""

import statistics
from dataclasses import dataclass

OVERHEAD = 1.06
"""Wire bytes over payload that the headers and acknowledgements of a lossless run may take."""
WATCHED_S = 10
"""How long after a change of the path its consequences are looked for."""
REPAIR = 1.5
"""Wire bytes that each lost byte may take on top of that."""


@dataclass(frozen=True)
class Outcome:
    """The runs of a transport at a point: rates in Mb/s, sizes in bytes, shares from 0 to 1."""

    chosen: str
    point: object
    transport: str
    runs: tuple
    wanted: int

    def each(self, of):
        return [of(run) for run in self.runs]

    def mean(self, of):
        return statistics.mean(self.each(of))

    @property
    def is_comity(self):
        return self.transport == "Comity"

    def on_time(self, run):
        return run["receiver"]["on_time"]

    def keys_on_time(self, run):
        return run["receiver"]["keys_on_time"]

    def decodable(self, run):
        return run["receiver"]["decodable"]

    def delay_ms(self, run, percentile):
        """Infinite where no frame was ever complete."""
        delays = run["receiver"]["delay_ms"]
        return delays[percentile] if delays else float("inf")

    def wire(self, run):
        """Bytes that the source's host sent, headers of IP included, over bytes that the source gave."""
        return run["media"]["sent_wire_bytes"] / max(1, run["sender"]["bytes_given"])

    def lost(self, run):
        """The share of the packets of the source's host that the bottleneck dropped."""
        return run["media"]["dropped_data_packets"] / max(1, run["media"]["sent_packets"])

    def wire_bound(self, run):
        """Bytes on the wire over what the goal allows. Lost packets count with the mean size of packets.

        >>> run = {"media": {"sent_wire_bytes": 1150, "sent_packets": 10, "dropped_data_packets": 1}, "sender": {"bytes_given": 1000}}
        >>> round(outcome_of(run).wire_bound(run), 4)
        0.9331
        """
        allowed = OVERHEAD * run["sender"]["bytes_given"] + REPAIR * self.lost(run) * run["media"]["sent_wire_bytes"]
        return run["media"]["sent_wire_bytes"] / max(1, allowed)

    def wire_in_time(self, run):
        """Bytes of frames that were on time over bytes on the wire: headers and whatever is sent twice count against it."""
        return run["receiver"]["bytes_on_time"] / max(1, run["media"]["sent_wire_bytes"])

    def carried(self, run):
        """Bytes on time and decodable over the bytes that the source gave, or that an equal share carries if that is less.

        >>> from points import points_of
        >>> run = {"receiver": {"bytes_decodable": 4_500_000, "bytes": 5_000_000}, "seconds": 10}
        >>> outcome_of(run, points_of("published")["1-cubic-above"]).carried(run)
        0.9
        >>> outcome_of(run, points_of("published")["4-cubic-above"]).carried(run)
        2.25
        """
        share = self.point.share_mbps * 1e6 / 8 * run["seconds"]
        return run["receiver"]["bytes_decodable"] / min(run["receiver"]["bytes"], share)

    def tcp(self, run):
        """The rate of each competing flow while the source runs, over an equal share.

        >>> from points import points_of
        >>> outcome_of({}, points_of("published")["2-cubic-below"]).tcp({"rivals_mbps": 4.0})
        0.75
        """
        return run["rivals_mbps"] / self.point.rivals / self.point.share_mbps

    def left_mbps(self, run):
        """What the competing flows left over."""
        return self.point.link_mbps - run["rivals_mbps"]

    def left_in_time(self, run):
        """The part of what was left over that brought frames on time.

        >>> from points import points_of
        >>> run = {"rivals_mbps": 16.0, "receiver": {"bytes_on_time": 2_500_000}, "seconds": 10}
        >>> outcome_of(run, points_of("bbr")["buffer-2"]).left_in_time(run)
        0.5
        """
        given = run["receiver"]["bytes_on_time"] * 8 / 1e6 / run["seconds"]
        return given / max(1e-9, self.left_mbps(run))

    def recovery_s(self, run):
        """The most seconds that begin a second or more after a change of the path and have a frame that was not on time,
        within the ten that follow. None is recovery within a second.

        >>> from points import points_of
        >>> seconds = [1.0] * 25 + [0.9, 1.0, 0.5] + [1.0] * 32
        >>> outcome_of({}, points_of("changes")["outage-alone"]).recovery_s({"receiver": {"on_time_by_second": seconds}})
        2
        """
        seconds = run["receiver"]["on_time_by_second"]
        return max(sum(share < 1 for share in seconds[first:first + WATCHED_S]) for first in self.point.settled_s)

    def sent_late(self, run):
        """Bytes that Comity sent at or after their deadline."""
        return run["sender"]["statistics"]["connection"]["sent"]["byteSentLate"]

    def bound(self, run):
        return run["bound"]["share"]

    def cpu_s(self, run):
        return sum(sum(run[end]["processor"].values()) for end in ("sender", "receiver"))

    @property
    def doubts(self):
        """Why the row may be wrong.

        >>> runs = ({"trusted": True, "failed_attempts": ["a"]}, {"trusted": False, "failed_attempts": []})
        >>> Outcome("published", None, "SRT", runs, 3).doubts
        '2 of 3 runs; 1 not trusted; 1 failed and was repeated'
        """
        distrusted = sum(not run["trusted"] for run in self.runs)
        missing = self.wanted - len(self.runs)
        repeated = sum(len(run["failed_attempts"]) for run in self.runs)
        said = [f"{len(self.runs)} of {self.wanted} runs"] if missing else []
        said += [f"{distrusted} not trusted"] if distrusted else []
        said += [f"{repeated} failed and {'was' if repeated == 1 else 'were'} repeated"] if repeated else []
        return "; ".join(said)


def outcome_of(run, point=None, transport="SRT"):
    """One run by itself."""
    return Outcome("published", point, transport, (run,), 1)


def outcomes(keeper, chosen, transports, seeds):
    """The kept runs of these `[(set, point)]`, without transports that have none."""
    found = []
    for name, point in chosen:
        for transport in transports:
            runs = tuple(keeper.kept(name, point, transport, seeds))
            if runs:
                found.append(Outcome(name, point, transport, runs, len(seeds)))
    return found
