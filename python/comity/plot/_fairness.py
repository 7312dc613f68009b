"""Pictures of how flows share, and of sweeps."""

from __future__ import annotations

import typing
from collections.abc import Sequence

import numpy
from matplotlib import ticker
from matplotlib.figure import Figure

from .. import _comity
from .._results import Results, unfilled
from ..errors import PlotError
from . import _data, _style


def shares(
    results: Results, *, run: int | None = None, only: Sequence[str] = (), dark: bool = False
) -> Figure:
    """Draws the mean throughput of a flow of each group, with its 95 % confidence interval over
    the seeds: over the axis of the sweep if it has one, otherwise group by group.

    Intervals are those of Student's t distribution, as in `comity sim run --json`. `run` is not
    used: every seed counts.
    """
    table = results.groups
    names = _data.axes(table)
    if len(names) > 1:
        raise PlotError(
            f"the sweep has {len(names)} axes; expected at most one, or the kind `heatmap`"
        )
    of = _data.columns(table, ["group", "mean_throughput_bps", *names])
    looks = _data.looks(_data.flows(results, 0, only), dark)
    values = of["mean_throughput_bps"] / 1e6
    seeds = len(set(results.runs.arrow()["seed"].to_pylist()))
    what = f"throughput, mean and 95 % confidence interval of {seeds} seeds"
    figure, (ax,) = _style.picture(_data.title(results, None, what), dark)
    if not names:
        for number, (group, look) in enumerate(looks.items()):
            mean, half = _interval(values[of["group"] == group])
            ax.bar(number, mean, 0.6, color=look.colour, alpha=0.85)
            ax.errorbar(
                number, mean, half, color=_style.paper(dark).ink, capsize=6, linewidth=1.4
            )
        ax.set_xticks(range(len(looks)), [look.label for look in looks.values()])
        ax.grid(False, axis="x")
    else:
        (axis,) = names
        points = of[axis]
        is_number = numpy.issubdtype(points.dtype, numpy.number)
        xs = numpy.unique(points) if is_number else list(dict.fromkeys(points))
        for number, (group, look) in enumerate(looks.items()):
            estimates = [
                _interval(values[(of["group"] == group) & (points == x)]) for x in xs
            ]
            means, halves = zip(*estimates)
            places = numpy.asarray(xs, float) if is_number else numpy.arange(len(xs), dtype=float)
            if not is_number:
                places = places + 0.06 * (number - (len(looks) - 1) / 2)
            ax.errorbar(
                places, means, halves, color=look.colour, linestyle=look.dashes,
                marker=look.marker, markersize=6, capsize=4, linewidth=1.5, label=look.label,
            )  # fmt: skip
        if not is_number:
            ax.set_xticks(range(len(xs)), [str(x) for x in xs])
        ax.set_xlabel(axis[5:])
        _style.legend(ax, dark)
    ax.set_ylabel("throughput of a flow (Mb/s)")
    ax.set_ylim(bottom=0)
    return figure


def _interval(values: numpy.ndarray) -> tuple[float, float]:
    mean, half = _comity.mean_with_interval([float(value) for value in values])
    return mean, float("nan") if half is None else half


def jain(
    results: Results, *, run: int = 0, only: Sequence[str] = (), dark: bool = False
) -> Figure:
    """Draws Jain's fairness index of the flows' goodputs over time scales.

    The run after the warm-up is cut into intervals of 1, 2, 5, 10, ... bins; the index is the mean
    over all intervals in which something was delivered:

        J = (sum of x_i)^2 / (n * sum of x_i^2)

    Source: Jain, Chiu and Hawe, DEC-TR-301 (1984).
    """
    table = _data.need(results, "flow_series", _data.BINS)
    of = _data.columns(table, ["index", "bin_start_ns", "delivered_bytes"], run)
    warmup = _data.columns(results.runs, ["warmup_ns"], run)["warmup_ns"][0]
    chosen = _data.flows(results, run, only)
    looks = _data.looks(chosen, dark)
    ink = _style.paper(dark).ink
    sets: list[tuple[str, str, str, typing.Any, str | None]] = [
        (look.label, look.colour, look.marker, look.dashes, group)
        for group, look in looks.items()
        if sum(flow.group == group for flow in chosen) > 1
    ]
    if len(looks) > 1:
        sets.append(("all flows", ink, "o", "-", None))
    if not sets:
        raise _style.missing("group with several flows", "fairness needs at least two")
    figure, (ax,) = _style.picture(_data.title(results, run, "Jain's fairness index"), dark)
    for label, colour, marker, dashes, group in sets:
        rows = [
            of["delivered_bytes"][(of["index"] == flow.number) & (of["bin_start_ns"] >= warmup)]
            for flow in chosen
            if group in (None, flow.group)
        ]
        delivered = numpy.array(rows, dtype=float)
        starts = of["bin_start_ns"][of["index"] == chosen[0].number]
        length = (starts[1] - starts[0]) / 1e9
        scales, indices = [], []
        for bins in _scales(delivered.shape[1]):
            count = delivered.shape[1] // bins
            sums = delivered[:, : count * bins].reshape(len(delivered), count, bins).sum(axis=2)
            sums = sums[:, sums.sum(axis=0) > 0]
            if sums.shape[1] == 0:
                continue
            index = sums.sum(axis=0) ** 2 / (len(sums) * (sums**2).sum(axis=0))
            scales.append(bins * length)
            indices.append(index.mean())
        ax.plot(
            scales, indices, color=colour, marker=marker, linestyle=dashes, markersize=6,
            linewidth=1.5, label=label,
        )  # fmt: skip
    ax.set_xscale("log")
    ax.xaxis.set_major_locator(ticker.LogLocator(subs=(1.0, 2.0, 5.0)))
    ax.xaxis.set_major_formatter(ticker.FormatStrFormatter("%g"))
    ax.xaxis.set_minor_formatter(ticker.NullFormatter())
    ax.set_xlabel("time scale (s)")
    ax.set_ylabel("Jain's index (1 is equal)")
    ax.set_ylim(0, 1.03)
    _style.legend(ax, dark, loc="lower right")
    return figure


def _scales(bins: int) -> list[int]:
    """1, 2, 5, 10, ... bins, as long as at least two intervals fit."""
    scales, decade = [], 1
    while decade <= bins:
        scales += [decade * step for step in (1, 2, 5) if decade * step * 2 <= bins]
        decade *= 10
    return scales or [1]


def heatmap(
    results: Results,
    *,
    value: str = "mean_throughput_bps",
    run: int | None = None,
    only: Sequence[str] = (),
    dark: bool = False,
) -> Figure:
    """Draws a column of the table `groups` over two axes of the sweep, a panel for each group.

    A cell is the mean over the seeds. `run` is not used: every run counts.
    """
    table = results.groups
    names = _data.axes(table)
    if len(names) != 2:
        raise PlotError(f"the sweep has {len(names)} axes; expected two")
    if value not in table.columns:
        reason = unfilled("groups", value) or f"the table `groups` has no column `{value}`"
        raise PlotError(f"{reason}; expected a column of numbers")
    of = _data.columns(table, ["group", value, *names])
    unit, divisor = _style.shown(table.units[value])
    looks = _data.looks(_data.flows(results, 0, only), dark)
    across, up = (list(dict.fromkeys(of[name])) for name in names)
    what = value.rsplit("_", 1)[0].replace("_", " ") if unit else value.replace("_", " ")
    width = max(3.0, 0.7 * len(across) + 1.6) * len(looks) + 1.2
    size = (min(width, 16.0), max(3.2, 0.5 * len(up) + 1.8))
    title = _data.title(results, None, f"{what}, mean over the seeds")
    figure, panels = _style.picture(title, dark, len(looks), size)
    grids = []
    for group in looks:
        grid = numpy.full((len(up), len(across)), numpy.nan)
        for row, y in enumerate(up):
            for column, x in enumerate(across):
                cell = (of["group"] == group) & (of[names[0]] == x) & (of[names[1]] == y)
                numbers = of[value][cell].astype(float)
                if numpy.isfinite(numbers).any():
                    grid[row, column] = numpy.nanmean(numbers) / divisor
        grids.append(grid)
    least, most = numpy.nanmin(grids), numpy.nanmax(grids)
    ink = _style.paper(dark).ink
    for ax, look, grid in zip(panels, looks.values(), grids):
        # Cividis looks the same to all readers, colour-blind or not.
        image = ax.imshow(grid, cmap="cividis", vmin=least, vmax=most, origin="lower", aspect="auto")
        ax.grid(False)
        ax.set_xticks(range(len(across)), [f"{x}" for x in across])
        ax.set_yticks(range(len(up)), [f"{y}" for y in up])
        ax.set_xlabel(names[0][5:])
        ax.set_title(look.label, fontsize=10)
        if grid.size <= 100:
            for (row, column), number in numpy.ndenumerate(grid):
                if numpy.isfinite(number):
                    is_bright = number > (least + most) / 2
                    ax.text(
                        column, row, f"{number:.3g}", ha="center", va="center", fontsize=8,
                        color="black" if is_bright else "white",
                    )  # fmt: skip
    panels[0].set_ylabel(names[1][5:])
    bar = figure.colorbar(image, ax=panels, shrink=0.9)
    bar.set_label(f"{what} ({unit})" if unit else what, color=ink)
    bar.ax.tick_params(colors=ink, labelcolor=ink)
    bar.outline.set_visible(False)
    return figure
