"""Which goals Comity reaches, row by row."""

from dataclasses import dataclass

WORST_ON_TIME, MEAN_ON_TIME = 0.995, 0.999
TCP_BELOW, TCP_ABOVE, BEHIND_SRT = 0.95, 0.85, 0.02
CARRIED, WIRE_IN_TIME = 0.9, 0.85
BESIDE_BBR, DEEP_BDP = 0.95, 1.49
"""1.5 bandwidth-delay products, rounded to whole packets."""
ROUNDING = 1e-9


@dataclass(frozen=True)
class Goal:
    """One goal of one row: `value` must not be below `bound`, or not above it."""

    chosen: str
    point: str
    what: str
    value: float
    bound: float
    is_ceiling: bool = False
    is_percent: bool = False

    @property
    def holds(self):
        """
        >>> Goal("s", "p", "w", 0.9, 0.9).holds, Goal("s", "p", "w", 0.89, 0.9).holds, Goal("s", "p", "w", 1.01, 1.0, True).holds
        (True, False, False)
        """
        return self.value <= self.bound + ROUNDING if self.is_ceiling else self.value >= self.bound - ROUNDING

    def __str__(self):
        """
        >>> print(Goal("s", "p", "on time, worst run", 0.9885, 0.995, is_percent=True))
        on time, worst run: 98.85 %, at least 99.50 %
        >>> print(Goal("s", "p", "wire bytes over their bound", 1.042, 1.0, True))
        wire bytes over their bound: 1.042, at most 1.000
        """
        write = lambda number: f"{number * 100:.2f} %" if self.is_percent else f"{number:.3f}"
        return f"{self.what}: {write(self.value)}, at {'most' if self.is_ceiling else 'least'} {write(self.bound)}"


def goals_of(comity, peers):
    """The goals of a row, from the outcome of Comity and those of the others, by name.

    >>> from outcome import outcome_of
    >>> from points import points_of
    >>> run = lambda on_time, tcp: {"receiver": {"on_time": on_time}, "rivals_mbps": tcp * 4, "seconds": 60,
    ...     "media": {"sent_wire_bytes": 105, "sent_packets": 9, "dropped_data_packets": 0}, "sender": {"bytes_given": 100}}
    >>> point = points_of("published")["1-cubic-below"]
    >>> comity, srt = outcome_of(run(0.9985, 1.2), point, "Comity"), outcome_of(run(0.999, 1.25), point)
    >>> for goal in goals_of(comity, {"SRT": srt}): print("holds" if goal.holds else "fails", goal)
    holds on time, worst run: 99.85 %, at least 99.50 %
    fails on time, mean: 99.85 %, at least 99.90 %
    holds TCP over its equal share: 1.200, at least 0.950
    holds wire bytes over their bound: 0.991, at most 1.000
    fails on time, mean, beside SRT's: 99.85 %, at least 99.90 %
    fails TCP over its equal share, beside SRT's: 1.200, at least 1.230
    """
    rules = {"below": below, "above": above, "bbr": beside_bbr, "loss": random_loss, "changes": after_changes}
    load = comity.point.load
    # Tight deadlines are held against what is possible, which the table shows.
    return [] if comity.chosen == "tight" else list(rules[load](comity, peers))


def goal(comity, what, value, bound, **kind):
    return Goal(comity.chosen, comity.point.name, what, value, bound, **kind)


def below(comity, peers):
    on_time, tcp = comity.mean(comity.on_time), comity.mean(comity.tcp)
    yield goal(comity, "on time, worst run", min(comity.each(comity.on_time)), WORST_ON_TIME, is_percent=True)
    yield goal(comity, "on time, mean", on_time, MEAN_ON_TIME, is_percent=True)
    yield goal(comity, "TCP over its equal share", tcp, TCP_BELOW)
    yield goal(comity, "wire bytes over their bound", comity.mean(comity.wire_bound), 1.0, is_ceiling=True)
    if srt := peers.get("SRT"):
        yield goal(comity, "on time, mean, beside SRT's", on_time, srt.mean(srt.on_time), is_percent=True)
        yield goal(comity, "TCP over its equal share, beside SRT's", tcp, srt.mean(srt.tcp) - BEHIND_SRT)


def above(comity, peers):
    yield goal(comity, "TCP over its equal share", comity.mean(comity.tcp), TCP_ABOVE)
    yield goal(comity, "share carried", comity.mean(comity.carried), CARRIED)
    yield goal(comity, "wire bytes in time", comity.mean(comity.wire_in_time), WIRE_IN_TIME)
    if comity.point.frames == "key":
        yield goal(comity, "key frames on time, worst run", min(comity.each(comity.keys_on_time)), 1.0, is_percent=True)


def beside_bbr(comity, peers):
    """Not behind any peer; and 95 %, where a deep buffer leaves the source its rate, whoever sends.

    >>> from outcome import outcome_of
    >>> from points import points_of
    >>> run = lambda left: {"receiver": {"on_time": 0.5}, "rivals_mbps": 20 - left}
    >>> rows = lambda name, left: goals_of(outcome_of(run(3), points_of("bbr")[name], "Comity"), {"TCP": outcome_of(run(left), points_of("bbr")[name])})
    >>> [len(rows(*of)) for of in (("buffer-40-packets", 8), ("buffer-1.5", 8), ("buffer-1.5", 7))]
    [1, 2, 1]
    """
    on_time = comity.mean(comity.on_time)
    for name, peer in peers.items():
        yield goal(comity, f"on time, mean, beside {name}'s", on_time, peer.mean(peer.on_time), is_percent=True)
    leaves_rate = any(row.mean(row.left_mbps) >= comity.point.mbps for row in (comity, *peers.values()))
    if comity.point.buffer_bdp >= DEEP_BDP and leaves_rate:
        yield goal(comity, "on time, mean", on_time, BESIDE_BBR, is_percent=True)


def random_loss(comity, peers):
    yield goal(comity, "on time, mean", comity.mean(comity.on_time), MEAN_ON_TIME, is_percent=True)


def after_changes(comity, peers):
    """Recovery within a second, and nothing after its deadline.

    >>> from outcome import outcome_of
    >>> from points import points_of
    >>> run = {"receiver": {"on_time_by_second": [1.0] * 25 + [0.5] + [1.0] * 34}, "sender": {"statistics": {"connection": {"sent": {"byteSentLate": 0}}}}}
    >>> for goal in goals_of(outcome_of(run, points_of("changes")["outage-alone"], "Comity"), {}): print("holds" if goal.holds else "fails", goal)
    fails seconds with a late frame, from one second after a change on: 1.000, at most 0.000
    holds bytes sent after their deadline: 0.000, at most 0.000
    """
    late = max(comity.each(comity.recovery_s))
    yield goal(comity, "seconds with a late frame, from one second after a change on", late, 0, is_ceiling=True)
    yield goal(comity, "bytes sent after their deadline", max(comity.each(comity.sent_late)), 0, is_ceiling=True)


def all_goals(found):
    """The goals of all rows that have an outcome of Comity."""
    rows = {}
    for outcome in found:
        rows.setdefault((outcome.chosen, outcome.point.name), {})[outcome.transport] = outcome
    return [goal for row in rows.values() if (comity := row.pop("Comity", None)) for goal in goals_of(comity, row)]


def summary(goals):
    """How many goals hold, and which do not, in Markdown.

    >>> print(summary([Goal("a", "p", "x", 1, 0), Goal("a", "q", "y", 0, 1), Goal("a", "q", "z", 0.5, 1)]))
    **1 of 3 goals hold.** The others:
    <BLANKLINE>
    - `a`, `q`: y: 0.000, at least 1.000; z: 0.500, at least 1.000
    >>> print(summary([Goal("a", "p", "x", 1, 0)]))
    **1 of 1 goals hold.**
    """
    if not goals:
        return "These rows have no goals."
    failing = {}
    for missed in goals:
        if not missed.holds:
            failing.setdefault((missed.chosen, missed.point), []).append(str(missed))
    count = f"**{sum(goal.holds for goal in goals)} of {len(goals)} goals hold.**"
    if not failing:
        return count
    lines = [f"- `{chosen}`, `{point}`: {'; '.join(said)}" for (chosen, point), said in failing.items()]
    return "\n".join([f"{count} The others:", "", *lines])
