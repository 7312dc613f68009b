"""Pictures of single packets and frames."""

from __future__ import annotations

import typing
from collections.abc import Sequence

import numpy
from matplotlib.figure import Figure

from .._results import Results
from ..errors import PlotError
from . import _data, _style


def sequence(
    results: Results,
    *,
    run: int = 0,
    only: Sequence[str] = (),
    dark: bool = False,
    start: float | None = None,
    end: float | None = None,
) -> Figure:
    """Draws the packets of a TCP flow as it sends them, by stream offset, with what the receiver
    has acknowledged, and marks retransmissions and drops.

    `only` names the flow; without it the first one with TCP segments is drawn. `start` and `end`
    are seconds.
    """
    table = _data.need(results, "packets", _data.PACKETS)
    names = ["flow", "link", "direction", "offered_ns", "arrival_ns", "fate", "sequence",
             "payload_bytes", "acknowledgement", "is_retransmission"]  # fmt: skip
    of = _data.columns(table, names, run)
    if "payload_bytes" not in of:
        raise PlotError("no flow of this run has TCP segments")
    segments = numpy.isfinite(of["payload_bytes"].astype(float))
    tcp = list(dict.fromkeys(of["flow"][segments]))
    _data.check(only, tcp, "TCP flow")
    name = only[0] if only else str(tcp[0])
    flow = _data.flows(results, run, [name])[0]
    colour = _style.style(flow.protocol).colour(dark)
    paper = _style.paper(dark)
    time = of["offered_ns"] / 1e9
    inside = numpy.ones(len(time), bool)
    if start is not None:
        inside &= time >= start
    if end is not None:
        inside &= time <= end
    mine = (of["flow"] == name) & inside
    data = mine & (of["direction"] == "forward") & (of["payload_bytes"].astype(float) > 0)
    if not data.any():
        raise PlotError(f"the flow `{name}` sends no data in this time")
    # The sender's own link is the one that all its packets enter first.
    sent = data & (of["link"] == of["link"][numpy.flatnonzero(data)[0]])
    again = of["is_retransmission"].astype(float) > 0
    dropped = data & ~numpy.isin(of["fate"], ["carried", "marked"])
    acks = mine & (of["direction"] == "reverse") & numpy.isfinite(of["arrival_ns"].astype(float))
    what = f"packets of {name} ({_style.style(flow.protocol).name})"
    figure, (ax,) = _style.picture(_data.title(results, run, what), dark, size=(8.0, 4.6))
    offset = of["sequence"] / 1e3
    size = 9 if sent.sum() < 3_000 else 2
    dots: dict[str, typing.Any] = {"linestyle": "none", "rasterized": True}
    first = sent & ~again
    ax.plot(
        time[first], offset[first], marker=".", markersize=size / 2, color=colour, **dots
    )
    # A dot of the legend's own: those of many packets are too small to see there.
    ax.plot([], [], marker=".", color=colour, label="sent", **dots)
    if acks.any():
        # The last link of the return path delivers ACKs to the sender.
        last = acks & (of["link"] == of["link"][numpy.flatnonzero(acks)[-1]])
        arrived = of["arrival_ns"][last].astype(float) / 1e9
        order = numpy.argsort(arrived)
        acknowledged = of["acknowledgement"][last].astype(float)[order] / 1e3
        ax.step(
            arrived[order], acknowledged, where="post", color=paper.ink, linewidth=0.8,
            alpha=0.7, label="acknowledged",
        )  # fmt: skip
    repeated = sent & again
    if repeated.any():
        ax.plot(
            time[repeated], offset[repeated], marker="o", markersize=5, markerfacecolor="none",
            color=paper.repeat, label="retransmitted", **dots,
        )  # fmt: skip
    if dropped.any():
        ax.plot(
            time[dropped], offset[dropped], marker="x", markersize=6, color=paper.alarm,
            label="dropped", **dots,
        )  # fmt: skip
    ax.set_xlabel("time (s)")
    ax.set_ylabel("stream offset (kB)")
    _style.legend(figure, dark, loc="upper left")
    return figure


def slack(
    results: Results, *, run: int = 0, only: Sequence[str] = (), dark: bool = False
) -> Figure:
    """Draws the time left until the deadline of each frame when it was complete, over its
    deadline; below zero a frame was late. A cross at the bottom is a frame that never arrived.

    Of each group the first flow is drawn; name flows in `only` to choose others.
    """
    sections = "give a flow `transport = \"sections\"` or a `timeline`"
    table = _data.need(results, "sections", sections if "packets" in results else _data.PACKETS)
    of = _data.columns(table, ["flow", "outcome", "deadline_ns", "slack_s"], run)
    if "slack_s" not in of:
        raise _style.missing("sections with deadlines", sections)
    with_sections = set(of["flow"])
    chosen = [flow for flow in _data.flows(results, run, only) if flow.name in with_sections]
    if not chosen:
        raise PlotError("none of these flows has sections with deadlines")
    looks = _data.looks(chosen, dark)
    paper = _style.paper(dark)
    figure, (ax,) = _style.picture(
        _data.title(results, run, "time left until the deadline of each frame"), dark
    )
    drawn: set[str] = set()
    for flow in chosen:
        if flow.group in drawn and flow.name not in only:
            continue
        drawn.add(flow.group)
        look = looks[flow.group]
        rows = of["flow"] == flow.name
        due = of["deadline_ns"][rows].astype(float) / 1e9
        left = of["slack_s"][rows].astype(float) * 1e3
        name = _data.name(flow, look)
        ax.plot(
            due, left, look.marker, color=look.colour, markersize=3, alpha=0.8,
            rasterized=True, label=name,
        )  # fmt: skip
        gaps = of["outcome"][rows] == "gap"
        if gaps.any():
            ax.plot(
                due[gaps], numpy.full(gaps.sum(), 0.02), "x", color=paper.alarm, markersize=4,
                transform=ax.get_xaxis_transform(), label=f"{name}: missing",
            )  # fmt: skip
    ax.axhline(0, color=paper.ink, linewidth=1.0)
    ax.set_xlabel("deadline of the frame (s)")
    ax.set_ylabel("time left (ms), late below 0")
    _style.legend(figure, dark)
    return figure
