"""Columns of tables as arrays, and the groups of flows."""

from __future__ import annotations

import typing
from collections.abc import Sequence

import numpy

from .._results import Results, Table
from ..errors import PlotError
from . import _style

Columns = dict[str, numpy.ndarray]


def columns(table: Table, names: Sequence[str], run: int | None = None) -> Columns:
    """Columns of a table, of one run or of all; one that the table lacks is left out."""
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
        # What does not exist is no number.
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
    """One flow, as pictures know it."""

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


def flows(results: Results, run: int, only: Sequence[str] = ()) -> list[Flow]:
    """The flows of a run, or those whose flow or group is named."""
    of = columns(results.flows, ["flow", "group", "kind", "index"], run)
    found = [
        Flow(str(name), str(group), _style.protocol(str(kind)), int(index))
        for name, group, kind, index in zip(of["flow"], of["group"], of["kind"], of["index"])
    ]
    known = {it.name for it in found} | {it.group for it in found}
    check(only, known, "flow or group")
    return [it for it in found if not only or it.name in only or it.group in only]


def check(only: Sequence[str], known: typing.Collection[str], what: str) -> None:
    """Refuses a name that nothing has."""
    for name in only:
        if name not in known:
            there = ", ".join(sorted(known)[:12])
            raise PlotError(f"there is no {what} `{name}`; expected one of {there}")


def looks(of: Sequence[Flow], dark: bool) -> dict[str, Look]:
    """How each group is drawn: its protocol's colour and marker, and a line style of its own."""
    groups: dict[str, str] = {}
    for flow in of:
        groups.setdefault(flow.group, flow.protocol)
    seen: dict[str, int] = {}
    looks = {}
    for group, protocol in groups.items():
        style = _style.style(protocol)
        number = seen[protocol] = seen.get(protocol, -1) + 1
        dashes = _style.DASHES[number % len(_style.DASHES)]
        same = protocol.lower() in group.lower() or style.name.lower() in group.lower()
        label = group if same else f"{group} ({style.name})"
        looks[group] = Look(label, style.colour(dark), style.marker, dashes)
    return looks


def name(flow: Flow, look: Look) -> str:
    """A flow in a legend: its name, and its protocol where the name does not tell."""
    return flow.name + look.label[len(flow.group) :]


def axes(table: Table) -> list[str]:
    """The columns of the sweep's axes."""
    return [name for name in table.columns if name.startswith("axis.")]


def title(results: Results, run: int | None, what: str) -> str:
    """The title of a picture: what it shows, the scenario, and the run if there are several."""
    if run is None or len(results) == 1:
        return f"{results.name}: {what}"
    names = axes(results.runs)
    of = columns(results.runs, ["seed", *names], run)
    point = [f"{name[5:].rsplit('.', 1)[-1]} {of[name][0]}" for name in names]
    where = ", ".join([*point, f"seed {of['seed'][0]}"])
    return f"{results.name}: {what}\n{where}"
