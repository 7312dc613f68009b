"""Columns of tables as arrays, and the groups of flows."""

from __future__ import annotations

import sys
import typing
from collections.abc import Sequence

import numpy

from .. import _comity
from .._results import Results, Table
from ..errors import PlotError
from . import _style

Columns = dict[str, numpy.ndarray]


def columns(table: Table, names: Sequence[str], run: int | None = None) -> Columns:
    """Columns of a table, of one run or of all. Missing columns are left out."""
    arrow = table.arrow()
    present = [name for name in names if name in table.columns]
    if run is not None:
        import pyarrow.compute

        arrow = arrow.filter(pyarrow.compute.equal(arrow["run"], run))
        if len(arrow) == 0:
            raise PlotError(f"there is no run {run} in the table {table.name}")
    return {name: _array(arrow[name]) for name in present}


def _array(column: typing.Any) -> numpy.ndarray:
    import pyarrow

    if column.null_count and not pyarrow.types.is_large_string(column.type):
        # A missing value is not a number.
        return column.cast(pyarrow.float64()).to_numpy(zero_copy_only=False)
    return column.to_numpy()


def need(results: Results, table: str, remedy: str) -> Table:
    """A table of the results, or what to do for it."""
    if table not in results:
        raise _style.missing(f"table `{table}`", remedy)
    return typing.cast(Table, getattr(results, table))


BINS = "set `scenario.bins`, such as \"100ms\", before the run"
PACKETS = "use comity.run(..., packets=True), and Results.write to store them"


class Flow(typing.NamedTuple):
    """One flow, with the properties that pictures need."""

    name: str
    group: str
    protocol: str
    number: int


class Look(typing.NamedTuple):
    """How a group is drawn."""

    label: str
    colour: str
    marker: str
    dashes: typing.Any
    fill: typing.Any = "full"


def flows(results: Results, run: int | None, only: Sequence[str] = ()) -> list[Flow]:
    """The flows of a run or of all runs, or those whose flow or group is named. A flow with a swept
    controller appears once for each protocol.
    """
    of = columns(results.flows, ["flow", "group", "kind", "index"], run)
    found = dict.fromkeys(
        Flow(str(name), str(group), _style.protocol(str(kind)), int(index))
        for name, group, kind, index in zip(of["flow"], of["group"], of["kind"], of["index"])
    )
    known = {it.name for it in found} | {it.group for it in found}
    check(only, known, "flow or group")
    return [it for it in found if not only or it.name in only or it.group in only]


def check(only: Sequence[str], known: typing.Collection[str], what: str) -> None:
    """Refuses unknown names."""
    for name in only:
        if name not in known:
            there = ", ".join(sorted(known)[:12])
            raise PlotError(f"there is no {what} `{name}`; expected one of {there}")


def looks(of: Sequence[Flow], dark: bool) -> dict[str, Look]:
    """How each group is drawn: its protocol's colour and marker, with a line style and a filling of
    its own. Groups have colours of their own instead if the sweep gives one several protocols, or
    if a protocol has more groups than there are line styles.
    """
    groups: dict[str, dict[str, None]] = {}
    for flow in of:
        groups.setdefault(flow.group, {})[flow.protocol] = None
    single = [_style.style(next(iter(its))) for its in groups.values() if len(its) == 1]
    is_by_protocol = len(single) == len(groups) and all(
        single.count(style) <= len(_style.DASHES) for style in single
    )
    looks: dict[str, Look] = {}
    for number, (group, protocols) in enumerate(groups.items()):
        if is_by_protocol:
            style = _style.style(next(iter(protocols)))
            place = sum(look.marker == style.marker for look in looks.values())
        else:
            style, place = _style.own(number)
        looks[group] = Look(
            _label(group, list(protocols)), style.colour(dark), style.marker,
            _style.DASHES[place], _style.FILLS[place],
        )  # fmt: skip
    return looks


def looks_of_values(axis: Axis, dark: bool) -> dict[typing.Any, Look]:
    """How each value of an axis is drawn: as its protocol if all of them are protocols."""
    known = _style.styles()
    are_protocols = all(str(value) in known for value in axis.values)
    looks = {}
    for number, value in enumerate(axis.values):
        style = known[str(value)] if are_protocols else _style.own(number)[0]
        dashes = _style.DASHES[number % len(_style.DASHES)]
        looks[value] = Look(str(value), style.colour(dark), style.marker, dashes)
    return looks


def _label(group: str, protocols: Sequence[str]) -> str:
    """A group in a legend, with its protocol if it has one that its name does not show."""
    # Matplotlib leaves labels out that begin with `_`.
    group = f" {group}" if group.startswith("_") else group
    if len(protocols) > 1:
        return group
    (protocol,) = protocols
    known = _style.styles().get(protocol)
    name = known.name if known else protocol
    told = protocol.lower() in group.lower() or name.lower() in group.lower()
    return group if told else f"{group} ({name})"


def name(flow: Flow, look: Look) -> str:
    """A flow in a legend: its name, and its protocol if the name does not show it."""
    return look.label.replace(flow.group, flow.name, 1)


def axes(table: Table) -> list[str]:
    """The columns of the sweep's axes."""
    return [name for name in table.columns if name.startswith("axis.")]


class Axis(typing.NamedTuple):
    """An axis of the sweep, and the positions of its values in pictures."""

    column: str
    """Its column in the tables."""
    name: str
    """Its name, with the unit of `numbers`."""
    values: list[typing.Any]
    """Its values in the order of the table, or by size if they are numbers."""
    numbers: list[float] | None
    """The numbers that they are; `None` if they are categories."""


#: What plain numbers of a key count, by the last word of the key.
_COUNTED = {"queue": "packets", "rwnd": "packets", "count": "flows", "probability": "share"}


def counted(results: Results, name: str) -> str | None:
    """What the plain numbers of an axis count, by the key that it sweeps."""
    return _COUNTED.get(_swept(results).get(name, name).rsplit(".", 1)[-1])


def _swept(results: Results) -> dict[str, str]:
    """The keys of the axes of the sweep that have names of their own."""
    if sys.version_info < (3, 11):
        return {}
    import tomllib

    try:
        axes = tomllib.loads(results.text).get("sweep", [])
    except tomllib.TOMLDecodeError:
        return {}
    of = {axis.get("name"): axis.get("parameter") for axis in axes if isinstance(axis, dict)}
    return {name: key for name, key in of.items() if isinstance(key, str)}


def axis(name: str, column: numpy.ndarray, unit: str | None = None) -> Axis:
    """An axis from its column in a table. Quantities of one kind, such as `5ms`, are numbers; plain
    numbers count in `unit`.
    """
    values = list(dict.fromkeys(column.tolist()))
    if all(isinstance(it, (int, float)) and not isinstance(it, bool) for it in values):
        label = f"{name[5:]} ({unit})" if unit else name[5:]
        return Axis(name, label, sorted(values), sorted(map(float, values)))
    sizes = [_comity.quantity(it) if isinstance(it, str) else None for it in values]
    units = [str(it).lstrip("0123456789. ") for it in values]
    if None in sizes or len(set(map(_dimension, units))) > 1:
        return Axis(name, name[5:], values, None)
    ordered = sorted(zip(sizes, values, units))
    unit = ordered[-1][2]
    one = _comity.quantity(f"1{unit}")
    numbers = [size / one for size, *_ in ordered]
    values = [value for _, value, _ in ordered]
    return Axis(name, f"{name[5:]} ({unit})", values, numbers)


def _dimension(unit: str) -> str:
    if unit.endswith(("bps", "bit/s")):
        return "rate"
    return "size" if unit.endswith("B") else "time"


def title(results: Results, run: int | None, what: str) -> str:
    """The title of a picture: what it shows, the scenario, and the run if there are several."""
    if run is None or len(results) == 1:
        return f"{results.name}: {what}"
    names = axes(results.runs)
    of = columns(results.runs, ["seed", *names], run)
    point = [f"{short(name, names)} {of[name][0]}" for name in names]
    where = ", ".join([*point, f"seed {of['seed'][0]}"])
    return f"{results.name}: {what}\n{where}"


def short(name: str, names: Sequence[str]) -> str:
    """The last word of an axis, or its name if two end with the same word."""
    words = [it[5:].rsplit(".", 1)[-1] for it in names]
    word = name[5:].rsplit(".", 1)[-1]
    return word if words.count(word) == 1 else name[5:]
