"""The points of the comparison: networks, rivals and sources, in named sets."""

import math
from dataclasses import dataclass

PACKET_BITS = 12_000
"""A full packet of IP, 1,500 bytes."""
CHANGES = {"rate": "8 to 2 to 8 Mb/s", "outage": "nothing arrives for 3 s", "route": "20 to 80 to 20 ms"}
"""What may happen to a path. All of it ends in the middle of a second, so that whichever part of a second the
handshake takes, the second after the next one lies wholly behind it."""
CHANGE_S, CHANGE_BACK_S, OUTAGE_S = 20.5, 40.5, 3
BELOW, ABOVE = 0.75, 1.5
"""The rate of a source over an equal share."""
PUBLISHED_ABOVE = 4.0
"""The published comparison has 4 Mb/s above the share, whatever the number of rivals."""


@dataclass(frozen=True)
class Point:
    """One network, its rivals, and one source. Rates count the headers of IP."""

    name: str
    mbps: float
    link_mbps: float = 8.0
    delay_ms: float = 20.0
    queue: object = 60
    """Packets of a drop-tail queue, that in transmission included; or "codel"."""
    rivals: int = 0
    controller: str = "cubic"
    latency_ms: int = 400
    frames: str = "equal"
    fps: int = 25
    key_ratio: int = 7
    loss: float = 0.0
    needs_bound: bool = False
    """Whether the largest possible share of frames on time is computed, which needs a capture."""
    change: str = ""
    """What happens to the path while the source runs: a name of CHANGES."""

    @property
    def share_mbps(self):
        """
        >>> points_of("published")["2-reno-below"].share_mbps
        2.6666666666666665
        """
        return self.link_mbps / (self.rivals + 1)

    @property
    def load(self):
        """What the point is judged as.

        >>> [points_of(chosen)[name].load for chosen, name in (("published", "1-cubic-above"), ("bbr", "buffer-2"), ("loss", "2-percent"))]
        ['above', 'bbr', 'loss']
        """
        if self.change:
            return "changes"
        if not self.rivals:
            return "loss"
        if self.controller == "bbr":
            return "bbr"
        return "below" if self.mbps < self.share_mbps else "above"

    @property
    def bdp_packets(self):
        """The bandwidth-delay product in full packets.

        >>> round(points_of("bbr")["buffer-2"].bdp_packets, 1)
        33.3
        """
        return self.link_mbps * 1e6 * 2 * self.delay_ms / 1e3 / PACKET_BITS

    @property
    def buffer_bdp(self):
        """The queue over the bandwidth-delay product; `None` where a queue has no fixed length.

        >>> round(points_of("bbr")["buffer-40-packets"].buffer_bdp, 2), points_of("networks")["codel-2-cubic-below"].buffer_bdp
        (1.2, None)
        """
        return None if self.queue == "codel" else self.queue / self.bdp_packets

    @property
    def settled_s(self):
        """The seconds of the source at whose beginning the path had changed for at least one second, one for each change.

        >>> [points_of("changes")[name].settled_s for name in ("rate-alone", "outage-alone", "route-alone")]
        [(42,), (25,), (22, 42)]
        """
        ends = {"rate": (CHANGE_BACK_S,), "outage": (CHANGE_S + OUTAGE_S,), "route": (CHANGE_S, CHANGE_BACK_S)}[self.change]
        return tuple(math.ceil(end + 1) for end in ends)

    @property
    def is_fast(self):
        """Whether no other lab should run beside it."""
        return self.link_mbps > 20


def packets(link_mbps, delay_ms, multiple):
    """A queue of so many bandwidth-delay products, in packets.

    >>> packets(8, 20, 0.5), packets(20, 10, 1.5)
    (13, 50)
    """
    return max(2, math.floor(multiple * link_mbps * 1e6 * 2 * delay_ms / 1e3 / PACKET_BITS + 0.5))


def below_and_above(name, rivals, controller, above=None, **network):
    """Two points of one network: a source below an equal share, and one above it.

    >>> [(point.name, point.mbps) for point in below_and_above("fast", 1, "reno", link_mbps=20)]
    [('fast-1-reno-below', 7.5), ('fast-1-reno-above', 15.0)]
    """
    share = network.get("link_mbps", Point.link_mbps) / (rivals + 1)
    named = f"{name}-{rivals}-{controller}".lstrip("-")
    rates = (("below", BELOW * share), ("above", above or ABOVE * share))
    return [Point(f"{named}-{load}", mbps, rivals=rivals, controller=controller, **network) for load, mbps in rates]


def published():
    return [point for controller in ("cubic", "reno") for rivals in (1, 2, 4)
            for point in below_and_above("", rivals, controller, PUBLISHED_ABOVE)]


# Drop-tail queues are two bandwidth-delay products where the name says nothing else.
NETWORKS = {
    "2-mbps": {"link_mbps": 2.0, "queue": packets(2, 20, 2)},
    "20-mbps": {"link_mbps": 20.0, "queue": packets(20, 20, 2)},
    "50-mbps": {"link_mbps": 50.0, "queue": packets(50, 20, 2)},
    "rtt-10-ms": {"delay_ms": 5.0, "queue": packets(8, 5, 2)},
    "rtt-100-ms": {"delay_ms": 50.0, "queue": packets(8, 50, 2), "latency_ms": 500},
    "rtt-120-ms": {"delay_ms": 60.0, "queue": packets(8, 60, 1), "latency_ms": 500},
    "buffer-0.5": {"queue": packets(8, 20, 0.5)},
    "buffer-1.5": {"queue": packets(8, 20, 1.5)},
    "buffer-4": {"queue": packets(8, 20, 4)},
    "codel": {"queue": "codel"},
}
# Beside what else than two CUBIC flows a network is tried.
OTHER_RIVALS = {"rtt-120-ms": [(1, "cubic")], "buffer-0.5": [(2, "reno")], "codel": [(2, "reno")]}


def networks():
    return [point for name, network in NETWORKS.items()
            for rivals, controller in ((2, "cubic"), *OTHER_RIVALS.get(name, ()))
            for point in below_and_above(name, rivals, controller, **network)]


def bbr():
    link_mbps, delay_ms = 20.0, 10.0
    queues = {"buffer-40-packets": 40}
    queues |= {f"buffer-{multiple}": packets(link_mbps, delay_ms, multiple) for multiple in (1.5, 2, 4)}
    return [Point(name, BELOW * link_mbps / 2, link_mbps, delay_ms, queue, 1, "bbr") for name, queue in queues.items()]


def tight():
    of = [point for point in published() if point.load == "below"]
    return [Point(f"{point.name}-{latency_ms}-ms", point.mbps, rivals=point.rivals, controller=point.controller,
                  latency_ms=latency_ms, needs_bound=True) for latency_ms in (200, 120) for point in of]


def loss():
    # Five and six round trips. The queue holds the largest bursts: nothing but chance loses a packet.
    paths = [(2, 20.0, 200), (5, 20.0, 200), (10, 25.0, 300), (20, 25.0, 300)]
    return [Point(f"{percent}-percent", 4.0, 20.0, delay_ms, queue=1000, latency_ms=latency_ms, loss=percent / 100)
            for percent, delay_ms, latency_ms in paths]


def keys():
    kinds = [(rivals, controller, 25, 7) for controller in ("cubic", "reno") for rivals in (1, 2, 4)]
    kinds += [(2, "cubic", fps, ratio) for fps, ratio in ((25, 5), (25, 9), (60, 5), (60, 9))]
    return [Point(f"{rivals}-{controller}-{fps}-fps-keys-{ratio}", PUBLISHED_ABOVE, rivals=rivals, controller=controller,
                  frames="key", fps=fps, key_ratio=ratio) for rivals, controller, fps, ratio in kinds]


def changes():
    return [Point(f"{change}-{'alone' if not rivals else f'{rivals}-cubic'}", 4.0 if not rivals else BELOW * 4.0, rivals=rivals, change=change)
            for change in CHANGES for rivals in (0, 1)]


SETS = {"published": published, "networks": networks, "bbr": bbr, "tight": tight, "loss": loss, "keys": keys, "changes": changes}


def points_of(chosen):
    """The points of a set by name.

    >>> {name: len(points_of(name)) for name in SETS}
    {'published': 12, 'networks': 26, 'bbr': 4, 'tight': 12, 'loss': 4, 'keys': 10, 'changes': 6}
    >>> points_of("networks")["2-mbps-2-cubic-above"].mbps, points_of("published")["4-cubic-above"].mbps
    (1.0, 4.0)
    >>> [(name, point.mbps) for name, point in points_of("changes").items()][:2]
    [('rate-alone', 4.0), ('rate-1-cubic', 3.0)]
    >>> all(point.load in name for name, point in points_of("networks").items())
    True
    """
    points = SETS[chosen]()
    return {point.name: point for point in points}
