"""Pictures of how flows share, and of sweeps."""

from __future__ import annotations

import typing
from collections.abc import Iterable, Sequence

import numpy
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from .. import _comity
from .._results import AMONG_FLOWS, Results, Table, unfilled
from ..errors import PlotError
from . import _data, _style


def shares(
    results: Results, *, run: int | None = None, only: Sequence[str] = (), dark: bool = False
) -> Figure:
    """Draws the mean throughput of a flow of each group, with its 95 % confidence interval over
    the seeds: over the axis of the sweep if it has one, otherwise group by group. If it has two, a
    panel is drawn for each value of one of them.

    Points along an axis of numbers, such as `20` or `5ms`, are joined; those of categories, such as
    controllers, are not. Intervals are those of Student's t distribution, as in `comity sim run
    --json`, cut at zero. `run` is not used: every seed counts.
    """
    across, beside = _axes(results, results.groups)
    of = _data.columns(
        results.groups, ["group", "mean_throughput_bps", *_data.axes(results.groups)]
    )
    of["value"] = of["mean_throughput_bps"] / 1e6
    looks = _data.looks(_data.flows(results, None, only), dark)
    panels = [("", of)] if beside is None else list(_split(of, beside, results))
    content = [
        (name, [(look, _where(rows, "group", group)) for group, look in looks.items()])
        for name, rows in panels
    ]
    figure = _draw(_title(results, "throughput of a flow"), across, content, dark)
    return _label(figure, "throughput of a flow (Mb/s)", dark)


def fairness(
    results: Results, *, run: int | None = None, only: Sequence[str] = (), dark: bool = False
) -> Figure:
    """Draws Jain's fairness index of all flows and of the flows of each group that has several,
    with its 95 % confidence interval over the seeds: over the axis of the sweep if it has one. If
    it has two, the values of one are compared, in a panel for each group.

    The index is the column `jain` of the tables `runs` and `groups`. Points are joined and
    intervals are made as in `shares`, and cut at 1. `run` is not used: every seed counts.
    """
    across, beside = _axes(results, results.runs)
    names = ["flows", "jain", *_data.axes(results.runs)]
    looks = _data.looks(_data.flows(results, None, only), dark)
    of = _data.columns(results.groups, ["group", *names])
    sets = [(look, _where(of, "group", group)) for group, look in looks.items()]
    if len(looks) > 1 and not only:
        every = _data.Look("all flows", _style.paper(dark).ink, "x", "-")
        sets.append((every, _data.columns(results.runs, names)))
    for _, rows in sets:
        # The index of one flow is always 1.
        rows["value"] = numpy.where(rows["flows"] > 1, rows["jain"].astype(float), numpy.nan)
    sets = [(look, rows) for look, rows in sets if numpy.isfinite(rows["value"]).any()]
    if not sets:
        raise _style.missing("group with several flows", "fairness needs at least two")
    legend = None
    if beside is None:
        content = [("", sets)]
    else:
        legend = beside.name
        compared = _data.looks_of_values(beside, dark)
        content = [
            (
                look.label,
                [(compared[value], _where(rows, beside.column, value)) for value in beside.values],
            )
            for look, rows in sets
        ]
    title = _title(results, "Jain's fairness index")
    figure = _draw(title, across, content, dark, legend=legend, most=1.0)
    figure.axes[0].set_ylim(0, 1.05)
    return _label(figure, "Jain's index (1 is equal)", dark)


#: A line or a row of bars: its look, and the rows of a table with a column `value`.
_Series = tuple[_data.Look, _data.Columns]


def _axes(results: Results, table: Table) -> tuple[_data.Axis | None, _data.Axis | None]:
    """The axis along the x axis, and the other one: numbers are along x where they can be."""
    names = _data.axes(table)
    if len(names) > 2:
        raise PlotError(
            f"the sweep has {len(names)} axes; expected at most two: choose points of the others "
            "with comity.run(..., points=...) or --point"
        )
    of = _data.columns(table, names)
    axes = [_data.axis(name, of[name], _data.counted(results, name[5:])) for name in names]
    axes.sort(key=lambda axis: axis.numbers is None)
    across, beside, *_ = [*axes, None, None]
    return across, beside


def _where(of: _data.Columns, column: str, value: typing.Any) -> _data.Columns:
    """The rows with a value in a column."""
    rows = of[column] == value
    return {name: numbers[rows] for name, numbers in of.items()}


def _split(
    of: _data.Columns, axis: _data.Axis, results: Results
) -> Iterable[tuple[str, _data.Columns]]:
    """The rows of each value of an axis, and what it is called."""
    word = _data.short(axis.column, _data.axes(results.runs))
    return ((f"{word} {value}", _where(of, axis.column, value)) for value in axis.values)


def _title(results: Results, what: str) -> str:
    seeds = len(set(results.runs.arrow()["seed"].to_pylist()))
    over = f"mean and 95 % confidence interval of {seeds} seeds" if seeds > 1 else "one seed"
    return _data.title(results, None, f"{what}, {over}")


def _draw(
    title: str,
    across: _data.Axis | None,
    panels: Sequence[tuple[str, Sequence[_Series]]],
    dark: bool,
    *,
    legend: str | None = None,
    most: float = numpy.inf,
) -> Figure:
    """Panels of series along an axis, or of a bar for each of them."""
    columns, rows = min(len(panels), 4), -(-len(panels) // 4)
    size = (max(7.2, 2.6 * columns + 1.2), 4.0 if rows == 1 else 2.6 * rows + 1.0)
    figure, drawn = _style.picture(title, dark, len(panels), size)
    for ax, (name, series) in zip(drawn, panels):
        ax.set_title(_style.wrapped(name, int(9 * size[0] / columns)), fontsize=10)
        if across is None:
            _bars(ax, series, dark, most)
        else:
            for number, (look, rows) in enumerate(series):
                aside = (number - (len(series) - 1) / 2) * min(0.14, 0.8 / len(series))
                _points(ax, across, look, rows, aside, most)
            if across.numbers is None:
                _style.categories(ax, across.values)
            elif across.numbers[0] > 0 and across.numbers[-1] >= 100 * across.numbers[0]:
                _style.logarithmic(ax, has_room=len(panels) == 1)
    drawn[0].set_ylim(bottom=0)
    if across is not None:
        _style.names_across(figure, drawn, across.name)
        _style.legend(figure, dark, title=legend)
    return figure


def _bars(ax: Axes, series: Sequence[_Series], dark: bool, most: float) -> None:
    for number, (look, rows) in enumerate(series):
        mean, low, high = _interval(rows["value"], most)
        ax.bar(number, mean, 0.6, color=look.colour, alpha=0.85)
        ax.errorbar(
            number, mean, [[low], [high]], color=_style.paper(dark).ink, capsize=6, linewidth=1.4
        )
    _style.categories(ax, [look.label for look, _ in series])


def _points(
    ax: Axes, axis: _data.Axis, look: _data.Look, of: _data.Columns, aside: float, most: float
) -> None:
    """Means with intervals: joined if the axis has numbers, otherwise at separate positions."""
    values = [of["value"][of[axis.column] == value] for value in axis.values]
    means, low, high = zip(*(_interval(each, most) for each in values))
    if not numpy.isfinite(means).any():
        return
    categories = axis.numbers is None
    places = numpy.arange(len(values)) + aside if categories else axis.numbers
    drawn = ax.errorbar(
        places, means, (low, high), color=look.colour, linestyle="none" if categories else
        look.dashes, marker=look.marker, markersize=7, fillstyle=look.fill, capsize=4,
        linewidth=1.5, label=look.label,
    )  # fmt: skip
    for artist in drawn.get_children():
        artist.set_clip_on(False)


def _interval(values: numpy.ndarray, most: float) -> tuple[float, float, float]:
    """The mean, and how far its interval reaches below and above within 0 and `most`."""
    known = [float(value) for value in values if numpy.isfinite(value)]
    if not known:
        return (float("nan"),) * 3
    mean, half = _comity.mean_with_interval(known)
    if half is None:
        return mean, float("nan"), float("nan")
    return mean, min(half, mean), min(half, most - mean)


def _label(figure: Figure, text: str, dark: bool) -> Figure:
    figure.supylabel(text, fontsize=10, color=_style.paper(dark).ink)
    return figure


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
    sets: list[tuple[_data.Look, str | None]] = [
        (look, group)
        for group, look in looks.items()
        if sum(flow.group == group for flow in chosen) > 1
    ]
    if len(looks) > 1:
        sets.append((_data.Look("all flows", _style.paper(dark).ink, "x", "-"), None))
    if not sets:
        raise _style.missing("group with several flows", "fairness needs at least two")
    figure, (ax,) = _style.picture(_data.title(results, run, "Jain's fairness index"), dark)
    for look, group in sets:
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
        if scales:
            _style.curve(ax, look, scales, indices, look.label, markevery=1)
    _style.logarithmic(ax)
    ax.set_xlabel("time scale (s)")
    ax.set_ylabel("Jain's index (1 is equal)")
    ax.set_ylim(0, 1.05)
    _style.legend(figure, dark, loc="lower right")
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

    A cell is the mean over the seeds. It is empty where the value compares flows, such as `jain`,
    and the group has one. `run` is not used: every run counts.
    """
    table = results.groups
    names = _data.axes(table)
    if len(names) != 2:
        raise PlotError(f"the sweep has {len(names)} axes; expected two")
    if value not in table.columns:
        reason = unfilled("groups", value) or f"the table `groups` has no column `{value}`"
        raise PlotError(f"{reason}; expected a column of numbers")
    of = _data.columns(table, list(dict.fromkeys(["group", "flows", value, *names])))
    unit, divisor = _style.shown(table.units[value])
    looks = _data.looks(_data.flows(results, None, only), dark)
    across, up = (list(dict.fromkeys(of[name])) for name in names)
    numbers = of[value].astype(float) / divisor
    if value in AMONG_FLOWS:
        numbers[of["flows"] < 2] = numpy.nan
    grids = {}
    for group in looks:
        grid = numpy.full((len(up), len(across)), numpy.nan)
        for row, y in enumerate(up):
            for column, x in enumerate(across):
                cell = numbers[(of["group"] == group) & (of[names[0]] == x) & (of[names[1]] == y)]
                if numpy.isfinite(cell).any():
                    grid[row, column] = numpy.nanmean(cell)
        if numpy.isfinite(grid).any():
            grids[group] = grid
    if not grids:
        raise _style.missing(f"value of `{value}` in these groups", "it needs several flows")
    least = min(numpy.nanmin(grid) for grid in grids.values())
    most = max(numpy.nanmax(grid) for grid in grids.values())
    what = value.rsplit("_", 1)[0].replace("_", " ") if unit else value.replace("_", " ")
    columns, rows = min(len(grids), 4), -(-len(grids) // 4)
    width = max(3.0, 0.7 * len(across) + 1.6) * columns + 1.2
    height = max(2.4, 0.5 * len(up) + 1.0) * rows + 0.8
    size = (min(max(width, 5.5), 16.0), min(height, 16.0))
    title = _data.title(results, None, f"{what}, mean over the seeds")
    figure, panels = _style.picture(title, dark, len(grids), size)
    ink = _style.paper(dark).ink
    for ax, (group, grid) in zip(panels, grids.items()):
        # Cividis looks the same to colour-blind readers.
        image = ax.imshow(grid, cmap="cividis", vmin=least, vmax=most, origin="lower", aspect="auto")
        _style.categories(ax, across)
        ax.set_xlim(-0.5, len(across) - 0.5)
        ax.set_yticks(range(len(up)), [_style.wrapped(str(y), 24) for y in up])
        ax.grid(False)
        ax.set_title(_style.wrapped(looks[group].label, int(9 * size[0] / columns)), fontsize=10)
        if grid.size <= 100:
            for (row, column), number in numpy.ndenumerate(grid):
                if numpy.isfinite(number):
                    is_bright = number > (least + most) / 2
                    ax.text(
                        column, row, f"{number:.3g}", ha="center", va="center", fontsize=8,
                        color="black" if is_bright else "white",
                    )  # fmt: skip
    labels = [_data.axis(name, of[name], _data.counted(results, name[5:])) for name in names]
    _style.names_across(figure, panels, labels[0].name)
    figure.supylabel(labels[1].name, fontsize=10, color=ink)
    bar = figure.colorbar(image, ax=panels, shrink=0.9)
    bar.set_label(f"{what} ({unit})" if unit else what, color=ink)
    bar.ax.tick_params(colors=ink, labelcolor=ink)
    bar.outline.set_visible(False)
    return figure
