"""The results of a run, and the comparison of two worlds."""

import csv
import fnmatch
import math
import statistics
from dataclasses import dataclass

# The file that marks a run whose programs waited for the processor.
STARVED = "starved"
RATIO = 1.1
SHARE = 0.05
ON_TIME = 2.0
# Differences below these are no differences, whatever their ratio.
FLOOR = {"queueing delay ms": 0.5, "loss per mille": 0.1}


def rows(folder, table):
    """A result table as dictionaries by column name."""
    with open(folder / f"{table}.csv", newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def number(text):
    """
    >>> number("1.5"), number("")
    (1.5, None)
    """
    return float(text) if text else None


def shares(throughputs):
    """The mean rate of the flows of each group over that of all flows, from `{group: (flows, mean rate)}`.

    >>> shares({"a": (1, 4.0), "b": (3, 4 / 3)})
    {'a': 2.0, 'b': 0.6666666666666666}
    """
    flows = sum(count for count, _ in throughputs.values())
    total = sum(count * rate for count, rate in throughputs.values())
    return {group: rate * flows / total for group, (_, rate) in throughputs.items()} if total else {}


def loss(link):
    """Packets dropped or lost at a link per thousand offered, after the warm-up.

    >>> loss({"dropped_measured_packets": "5", "queueing_delay_count": "995"})
    5.0
    """
    dropped = float(link["dropped_measured_packets"])
    offered = dropped + float(link["queueing_delay_count"])
    return 1000 * dropped / offered if offered else 0.0


def on_time(flows):
    """The share of the sections of flows that were on time, in per cent; `None` without deadlines.

    >>> on_time([{"sections_on_time": "90", "sections_submitted": "120", "sections_open": "20"}])
    90.0
    """
    total = sum(float(flow["sections_submitted"] or 0) - float(flow["sections_open"] or 0) for flow in flows)
    return 100 * sum(float(flow["sections_on_time"] or 0) for flow in flows) / total if total else None


def quantities(folder, has_deadlines):
    """Every quantity of a run by its name."""
    found = {}
    groups = [row for row in rows(folder, "groups") if int(row["flows"])]
    rates = {row["group"]: (int(row["flows"]), float(row["mean_throughput_bps"]) / 1e6) for row in groups}
    for group, (_, rate) in rates.items():
        found[f"{group} Mb/s a flow"] = rate
    if len(rates) > 1:
        found |= {f"{group} share": share for group, share in shares(rates).items()}
    for row in groups:
        if int(row["flows"]) > 1:
            found[f"{row['group']} Jain"] = number(row["jain"])
    bottleneck = next(row for row in rows(folder, "links") if row["link"] == "bottleneck")
    found["queueing delay ms"] = 1000 * (number(bottleneck["queueing_delay_mean_s"]) or 0.0)
    found["loss per mille"] = loss(bottleneck)
    if has_deadlines:
        flows = rows(folder, "flows")
        for group in rates:
            of_group = [flow for flow in flows if flow["group"] == group and flow["sections_submitted"]]
            if of_group:
                found[f"{group} on time %"] = on_time(of_group)
    return found


def is_trusted(folder):
    """Whether the lab trusts its own run, and its programs had the processor. A simulated run has no doubts."""
    return not (folder / STARVED).exists() and all(row.get("trusted") != "false" for row in rows(folder, "runs"))


@dataclass(frozen=True)
class Sample:
    """A quantity over the seeds of a world."""

    values: tuple

    @property
    def median(self):
        return statistics.median(self.values)

    @property
    def spread(self):
        """Half the distance between the quartiles."""
        if len(self.values) < 2:
            return 0.0
        low, _, high = statistics.quantiles(self.values, n=4, method="inclusive")
        return (high - low) / 2


def significant(value, digits=4):
    """A number with so many significant digits, without an exponent.

    >>> [significant(value) for value in (0.0, 0.9967, 73.4661, 123456.0)], significant(0.0123, 2)
    (['0', '0.9967', '73.47', '123456'], '0.012')
    """
    if value == 0:
        return "0"
    places = digits - 1 - math.floor(math.log10(abs(value)))
    return f"{value:.{max(places, 0)}f}"


@dataclass(frozen=True)
class Comparison:
    """A quantity of a point in both worlds."""

    point: str
    quantity: str
    sim: object
    lab: object

    @property
    def is_difference(self):
        """Whether the worlds are compared by their difference: shares, indices and per cent."""
        return self.quantity.endswith(("share", "Jain", "%"))

    @property
    def ratio(self):
        return self.sim.median / self.lab.median if self.lab.median else math.inf

    @property
    def holds(self):
        """Whether the medians are as near as they should be; `None` where a world has none.

        >>> pair = lambda quantity, sim, lab: Comparison("p", quantity, Sample((sim,)), Sample((lab,))).holds
        >>> pair("tcp Mb/s a flow", 8.8, 8.0), pair("tcp Mb/s a flow", 8.81, 8.0), pair("tcp share", 1.0, 1.06)
        (True, False, False)
        >>> pair("loss per mille", 0.0, 0.09), pair("loss per mille", 0.0, 0.11), pair("video on time %", 97.0, 98.5)
        (True, False, True)
        """
        if self.sim is None or self.lab is None:
            return None
        apart = abs(self.sim.median - self.lab.median)
        if self.is_difference:
            return apart <= (ON_TIME if self.quantity.endswith("%") else SHARE)
        if apart <= FLOOR.get(self.quantity, 0.0):
            return True
        return self.lab.median > 0 and 1 / RATIO - 1e-9 <= self.ratio <= RATIO + 1e-9


def cause_of(comparison, causes):
    """The sentence of the first cause whose patterns fit.

    >>> causes = [{"points": ["udp-*", "tcp-*"], "quantity": "loss*", "cause": "whole segments"}]
    >>> cause_of(Comparison("tcp-number flows=1", "loss per mille", None, None), causes)
    'whole segments'
    >>> cause_of(Comparison("phase flows=1", "loss per mille", None, None), causes)
    """
    for cause in causes:
        if (any(fnmatch.fnmatchcase(comparison.point, point) for point in cause["points"])
                and fnmatch.fnmatchcase(comparison.quantity, cause.get("quantity", "*"))):
            return cause["cause"]
    return None


def compare(point, sim, lab):
    """All quantities of a point: `sim` and `lab` have a dictionary of quantities for each seed."""
    names = list(dict.fromkeys(name for world in (sim, lab) for run in world for name in run))
    sample = lambda runs, name: values if (values := tuple(run[name] for run in runs if run.get(name) is not None)) else None
    found = []
    for name in names:
        of = [sample(runs, name) for runs in (sim, lab)]
        found.append(Comparison(point, name, *(Sample(values) if values else None for values in of)))
    return found
