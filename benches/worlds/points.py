"""The points of the scenarios: a file, and one value for each axis of its sweep."""

import fnmatch
import itertools
import json
import re
import tomllib
from dataclasses import dataclass

SLOW_MBPS = 20
UNITS = {"bps": 1e-6, "kbps": 1e-3, "Mbps": 1, "Gbps": 1e3}


def toml_value(value):
    """A value as TOML writes it in one line.

    >>> toml_value(["cubic", 7, 0.05, {"kind": "codel", "ecn": True}])
    '["cubic", 7, 0.05, { kind = "codel", ecn = true }]'
    """
    if isinstance(value, dict):
        return "{ " + ", ".join(f"{key} = {toml_value(of)}" for key, of in value.items()) + " }"
    if isinstance(value, list):
        return "[" + ", ".join(map(toml_value, value)) + "]"
    return json.dumps(value)


def label_of(value):
    """A value in few words: a table by its kind.

    >>> [label_of(value) for value in ({"kind": "codel", "limit": 9}, "20ms", 60)]
    ['codel', '20ms', '60']
    """
    return str(value["kind"]) if isinstance(value, dict) and "kind" in value else str(value)


def mbps(rate):
    """A rate of a scenario in Mb/s.

    >>> [mbps(rate) for rate in ("8Mbps", "500 kbps", "1.5Gbps")]
    [8.0, 0.5, 1500.0]
    """
    number, unit = re.fullmatch(r"([0-9.]+) *([a-zA-Z]+)", rate).groups()
    return float(number) * UNITS[unit]


def combinations(axes):
    """The values of the axes of each point, in the order of `comity sim run`: axes of one `zip` advance together.

    >>> axes = [{"name": "a", "values": [1, 2]}, {"name": "b", "values": [3, 4], "zip": "z"}, {"name": "c", "values": [5, 6], "zip": "z"}]
    >>> combinations(axes)
    [{'a': 1, 'b': 3, 'c': 5}, {'a': 1, 'b': 4, 'c': 6}, {'a': 2, 'b': 3, 'c': 5}, {'a': 2, 'b': 4, 'c': 6}]
    """
    together = {}
    for number, axis in enumerate(axes):
        together.setdefault(axis.get("zip", number), []).append(axis)
    steps = [[dict(zip((axis["name"] for axis in group), values)) for values in zip(*(axis["values"] for axis in group))]
             for group in together.values()]
    return [{name: value for step in steps for name, value in step.items()} for steps in itertools.product(*steps)]


@dataclass(frozen=True)
class Point:
    """One point of a scenario file."""

    file: object
    text: str
    name: str
    values: tuple
    table: object

    @property
    def label(self):
        shown = " ".join(f"{axis}={label_of(value)}" for axis, value in self.values)
        return f"{self.name} {shown}".strip()

    @property
    def settings(self):
        """What makes the sweep of the file this point."""
        return [f"sweep.{axis}.values={toml_value([value])}" for axis, value in self.values]

    @property
    def seeds(self):
        seeds = self.table["scenario"].get("seeds", [1])
        if isinstance(seeds, dict):
            first = seeds.get("first", 1)
            return list(range(first, first + seeds["count"]))
        return seeds

    @property
    def is_slow(self):
        """Whether other labs may run beside it."""
        rate = self.table["topology"]["bottleneck"]["rate"]
        for axis, value in self.values:
            sweep = next(sweep for sweep in self.table["sweep"] if sweep["name"] == axis)
            if sweep["parameter"] == "topology.bottleneck.rate":
                rate = value
        return mbps(rate) <= SLOW_MBPS

    @property
    def has_kernel_only(self):
        """Whether nothing of Comity's is measured in the lab, so that results outlive a build."""
        return all(flow.get("transport", "tcp") == "tcp" for flow in self.table["flow"])


def points_of(folder, only):
    """All points of the files of a folder whose label matches one of these patterns."""
    found = []
    for file in sorted(folder.glob("*.toml")):
        text = file.read_text()
        table = tomllib.loads(text)
        if "scenario" not in table:
            continue
        name = table["scenario"]["name"].removeprefix("worlds-")
        for values in combinations(table.get("sweep", [])):
            point = Point(file, text, name, tuple(values.items()), table)
            if not only or any(fnmatch.fnmatchcase(point.label, f"{pattern}*") for pattern in only):
                found.append(point)
    return found
