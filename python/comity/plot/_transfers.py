"""Completion times of flows that end."""

from __future__ import annotations

from collections.abc import Sequence

import numpy
from matplotlib.figure import Figure

from .._results import Results
from . import _data, _style


def completion(
    results: Results, *, run: int = 0, only: Sequence[str] = (), dark: bool = False
) -> Figure:
    """Draws the completion time of each flow over its size: a point for each flow that started in
    measured time and ended, and for each group the median (with markers) and the 95th percentile
    (dotted) of sizes between two powers of two. The legend counts the flows that did not end.
    """
    names = ["index", "started_ns", "sent_packets", "size_bytes", "completion_s"]
    of = _data.columns(results.flows, names, run)
    if "completion_s" not in of:
        raise _style.missing("flow that ended", 'set `workload = { kind = "file", ... }`')
    (warmup,) = _data.columns(results.runs, ["warmup_ns"], run)["warmup_ns"]
    has_started = (of["started_ns"] >= warmup) & (of["sent_packets"] > 0)
    is_counted = has_started & ~numpy.isnan(of["size_bytes"].astype(float))
    chosen = _data.flows(results, run, only)
    looks = _data.looks(chosen, dark)
    figure, (ax,) = _style.picture(_data.title(results, run, "flow completion time"), dark)
    for group, look in looks.items():
        members = [flow.number for flow in chosen if flow.group == group]
        rows = is_counted & numpy.isin(of["index"], members)
        took = of["completion_s"][rows].astype(float) * 1e3
        size = of["size_bytes"][rows].astype(float)
        has_ended = ~numpy.isnan(took)
        open_flows = int((~has_ended).sum())
        took, size = took[has_ended], size[has_ended]
        counted = f", {open_flows} did not end" if open_flows else ""
        if not len(took):
            if counted:
                # A point that is not drawn, for the legend.
                nowhere = [numpy.nan]
                _style.curve(ax, look, nowhere, nowhere, f"{look.label}{counted}")
            continue
        ax.plot(
            size / 1e3, took, ".", color=look.colour, markersize=2.5, alpha=0.35, rasterized=True
        )
        x, median, high = _by_size(size, took)
        _style.curve(ax, look, x / 1e3, median, f"{look.label}, median{counted}", markevery=1)
        ax.plot(
            x / 1e3, high, color=look.colour, linestyle=":", linewidth=1.2,
            label=f"{look.label}, 95th percentile",
        )  # fmt: skip
    _style.logarithmic(ax)
    _style.logarithmic(ax, axis="y")
    ax.set_xlabel("size of the flow (kB)")
    ax.set_ylabel("flow completion time (ms)")
    _style.legend(figure, dark)
    return figure


def _by_size(
    size: numpy.ndarray, took: numpy.ndarray
) -> tuple[numpy.ndarray, numpy.ndarray, numpy.ndarray]:
    """The mean size, and the median and the 95th percentile of the times, of sizes between two
    powers of two. Means of sizes are geometric.
    """
    powers = numpy.floor(numpy.log2(size))
    classes = [powers == power for power in numpy.unique(powers)]
    means = [float(numpy.exp2(numpy.log2(size[rows]).mean())) for rows in classes]
    median, high = ([numpy.quantile(took[rows], q) for rows in classes] for q in (0.5, 0.95))
    return numpy.array(means), numpy.array(median), numpy.array(high)
