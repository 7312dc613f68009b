"""Pictures over time, and the distribution of delays."""

from __future__ import annotations

from collections.abc import Sequence

import numpy
from matplotlib.figure import Figure

from .._results import Results
from . import _data, _style

#: How many single flows of a group are drawn.
_MOST = 12
#: How many steps of a line can be distinguished across a picture.
_STEPS = 120


def cwnd(
    results: Results, *, run: int = 0, only: Sequence[str] = (), dark: bool = False
) -> Figure:
    """Draws congestion window and slow-start threshold over time, at the end of each bin.

    Of each group the first flow is drawn; name flows in `only` to choose others.
    """
    table = _data.need(results, "flow_series", _data.BINS)
    of = _data.columns(table, ["index", "bin_start_ns", "cwnd_bytes", "ssthresh_bytes"], run)
    if "cwnd_bytes" not in of:
        raise _style.missing("congestion windows", "no flow of the scenario has one")
    chosen = _data.flows(results, run, only)
    looks = _data.looks(chosen, dark)
    figure, (ax,) = _style.picture(_data.title(results, run, "congestion window"), dark)
    drawn: set[str] = set()
    for flow in chosen:
        if flow.group in drawn and flow.name not in only:
            continue
        drawn.add(flow.group)
        rows = of["index"] == flow.number
        time = of["bin_start_ns"][rows] / 1e9 + _bin(of["bin_start_ns"][rows])
        window = of["cwnd_bytes"][rows].astype(float) / 1e3
        if not numpy.nanmax(window, initial=0.0) > 0:
            continue
        look = looks[flow.group]
        name = _data.name(flow, look)
        _style.curve(ax, look, time, window, f"cwnd of {name}")
        if "ssthresh_bytes" in of:
            threshold = of["ssthresh_bytes"][rows].astype(float) / 1e3
            if numpy.isfinite(threshold).any():
                ax.plot(
                    time, threshold, color=look.colour, linestyle=":", linewidth=1.2, alpha=0.8,
                    label=f"ssthresh of {name}",
                )  # fmt: skip
    ax.set_xlabel("time (s)")
    ax.set_ylabel("window (kB)")
    ax.set_ylim(bottom=0)
    # A threshold of the first slow start may be far above every window.
    highest = numpy.nanmax(of["cwnd_bytes"].astype(float)) / 1e3
    ax.set_ylim(top=min(ax.get_ylim()[1], 1.6 * highest))
    _style.legend(figure, dark)
    return figure


def throughput(
    results: Results, *, run: int = 0, only: Sequence[str] = (), dark: bool = False
) -> Figure:
    """Draws what each flow delivers in order over time: thin lines for flows, a bold one with
    markers for the mean of a group.

    Bins are joined by 2, 5, 10, ... where there are more than a picture can show; the label of the
    axis says over how long each rate is a mean.
    """
    table = _data.need(results, "flow_series", _data.BINS)
    of = _data.columns(table, ["index", "bin_start_ns", "delivered_bytes"], run)
    chosen = _data.flows(results, run, only)
    looks = _data.looks(chosen, dark)
    figure, (ax,) = _style.picture(_data.title(results, run, "goodput of each flow"), dark)
    starts = of["bin_start_ns"][of["index"] == chosen[0].number] / 1e9
    joined = _joined(len(starts))
    length = _bin(starts * 1e9) * joined
    start = starts[: len(starts) // joined * joined : joined]
    for group, look in looks.items():
        members = [flow for flow in chosen if flow.group == group]
        rates = []
        for flow in members:
            delivered = of["delivered_bytes"][of["index"] == flow.number]
            delivered = delivered[: len(start) * joined].reshape(-1, joined).sum(axis=1)
            rates.append(delivered * 8 / length / 1e6)
            if len(members) > 1 and len(rates) <= _MOST:
                ax.step(start, rates[-1], where="post", color=look.colour, linewidth=0.7, alpha=0.3)
        mean = numpy.mean(rates, axis=0)
        number = f", mean of {len(members)}" if len(members) > 1 else ""
        middle = start + length / 2
        _style.curve(ax, look, middle, mean, f"{look.label}{number}", linewidth=1.8, zorder=3)
    ax.set_xlabel("time (s)")
    ax.set_ylabel(f"goodput of a flow (Mb/s), means over {length:g} s")
    ax.set_ylim(bottom=0)
    _style.legend(figure, dark)
    return figure


def queue(
    results: Results, *, run: int = 0, only: Sequence[str] = (), dark: bool = False
) -> Figure:
    """Draws the longest queue of each link in each bin; a cross at the bottom is a bin with drops.
    Bins are joined as in `throughput`.

    Without `only`, at most four links are drawn: those with at least a quarter of the longest
    queue.
    """
    table = _data.need(results, "link_series", _data.BINS)
    of = _data.columns(
        table, ["link", "bin_start_ns", "max_queue_packets", "dropped_packets"], run
    )
    names = list(dict.fromkeys(of["link"]))
    _data.check(only, names, "link")
    longest = {name: of["max_queue_packets"][of["link"] == name].max() for name in names}
    enough = max(longest.values()) / 4
    busy = [it for it in sorted(names, key=lambda it: -longest[it]) if longest[it] >= enough]
    chosen = [name for name in names if name in (only or busy[:4])]
    figure, (ax,) = _style.picture(_data.title(results, run, "longest queue"), dark)
    colours = [_style.style(name).colour(dark) for name in ("reno", "libra", "bbr", "real")]
    for number, name in enumerate(chosen):
        rows = of["link"] == name
        start = of["bin_start_ns"][rows] / 1e9
        joined = _joined(len(start))
        length = _bin(of["bin_start_ns"][rows]) * joined
        # The last step may be shorter.
        firsts = numpy.arange(0, len(start), joined)
        start = start[firsts]
        highest = numpy.maximum.reduceat(of["max_queue_packets"][rows], firsts)
        lost = numpy.add.reduceat(of["dropped_packets"][rows], firsts) > 0
        colour = colours[number % len(colours)]
        dashes = _style.DASHES[number % len(_style.DASHES)]
        ax.step(
            start, highest, where="post", color=colour,
            linestyle=dashes, linewidth=1.4, label=str(name),
        )  # fmt: skip
        if lost.any():
            middle = start[lost] + length / 2
            ax.plot(
                middle, numpy.full(len(middle), 0.02), "x", color=colour, markersize=4,
                transform=ax.get_xaxis_transform(), label=f"{name}: drops",
            )  # fmt: skip
    ax.set_xlabel("time (s)")
    ax.set_ylabel(f"longest queue in {length:g} s (packets)")
    ax.set_ylim(bottom=0)
    _style.legend(figure, dark)
    return figure


def delay(
    results: Results, *, run: int = 0, only: Sequence[str] = (), dark: bool = False
) -> Figure:
    """Draws the distribution function of the one-way delay of data packets, for each group."""
    of = _data.columns(
        results.delay_histogram, ["index", "from_s", "to_s", "count"], run
    )
    chosen = _data.flows(results, run, only)
    looks = _data.looks(chosen, dark)
    figure, (ax,) = _style.picture(_data.title(results, run, "one-way delay"), dark)
    for group, look in looks.items():
        members = [flow.number for flow in chosen if flow.group == group]
        rows = numpy.isin(of["index"], members)
        if not rows.any():
            continue
        ends, where = numpy.unique(of["to_s"][rows], return_inverse=True)
        counts = numpy.bincount(where, of["count"][rows])
        shares = numpy.cumsum(counts) / counts.sum()
        first = of["from_s"][rows].min()
        x = numpy.concatenate([[first], ends]) * 1e3
        y = numpy.concatenate([[0.0], shares])
        # A marker at every tenth of the packets.
        marks = numpy.unique(numpy.searchsorted(y, numpy.arange(0.1, 1.0, 0.1)))
        _style.curve(ax, look, x, y, look.label, linewidth=1.6, markevery=marks.tolist())
    ax.set_xlabel("one-way delay (ms)")
    ax.set_ylabel("share of the data packets")
    ax.set_ylim(0, 1.02)
    _style.legend(figure, dark, loc="lower right")
    return figure


def _bin(starts: numpy.ndarray) -> float:
    """The length of the bins, in seconds."""
    return float(starts[1] - starts[0]) / 1e9 if len(starts) > 1 else 1.0


def _joined(bins: int) -> int:
    """How many bins one step of a line joins: 1, 2, 5, 10, ..."""
    scale = 1
    while True:
        for step in (1, 2, 5):
            if bins <= _STEPS * scale * step:
                return scale * step
        scale *= 10
