"""Pictures of claims: our numbers with their intervals, and the paper's beside them."""

from __future__ import annotations

import io
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Union

import matplotlib
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from ..plot import Style, style
from ..plot._style import styles
from ..quantity import key, quantity
from .values import Values

__all__ = ["Drawing"]

#: Ours, and the paper's where it has numbers.
Series = Union[Values, tuple[Values, Union[Values, float, None]]]

#: Stands for the colour of the text around a picture, so that one picture is for light and dark
#: pages.
INK = "#010203"
#: The styles of the protocols that papers compare, by the names that figures give them.
STYLES = {
    "Libra": style("libra"),
    "Real": style("real"),
    "TLTCP": style("tltcp"),
    "IFTP": style("iftp"),
    "agents": style("psp"),
    "TCP": style("reno"),
    "Reno": style("reno"),
    "New Reno": style("reno"),
    "UDP": style("datagram"),
    "Tahoe": Style("TCP Tahoe", "#8C564B", "#C9A69C", "^"),
}
#: Those of other series.
OTHERS = [
    Style("", "#0072B2", "#3DA5E0", "o"),
    Style("", "#E69F00", "#FFC54D", "s"),
    Style("", "#009E73", "#2CC49A", "^"),
    Style("", "#CC79A7", "#E8A5C8", "D"),
]
#: The lines and the hatches of the groups of one protocol. The paper's lines are dashed.
GROUPS = [("-", None), (":", "///"), ("-.", "...")]
LOOK = {
    "font.size": 9,
    "svg.fonttype": "none",
    "font.family": "sans-serif",
    **{
        name: INK
        for name in (
            "text.color",
            "axes.edgecolor",
            "axes.labelcolor",
            "xtick.color",
            "ytick.color",
        )
    },
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.titlesize": 9,
    "axes.titleweight": "bold",
    "axes.titlelocation": "left",
    "legend.frameon": False,
}


class Drawing:
    """Collects the panels of a picture."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._panels: list[Callable[[Axes], None]] = []
        self._others: list[str] = []

    def __len__(self) -> int:
        return len(self._panels)

    def lines(
        self,
        title: str,
        series: Mapping[str, Series],
        *,
        over: str,
        x: str,
        y: str,
        unit: str | None = None,
        wanted: tuple[float, float] | None = None,
        log: bool = False,
    ) -> None:
        """Numbers over an axis of the sweep, in its `unit` where it has one. `wanted` is shaded."""

        def panel(axes: Axes) -> None:
            scale = quantity(f"1{unit}") if unit else 1.0
            for name, look, (shape, _), ours, paper in self._styled(series):
                line(axes, ours, name, look, scale, shape)
                if isinstance(paper, Values):
                    line(axes, paper, None, look, scale)
                elif paper is not None:
                    axes.axhline(paper, color=look.light, linestyle="--", linewidth=1)
            if log:
                axes.set_xscale(
                    "symlog", linthresh=min(axes.get_lines()[0].get_xdata()[1:2] or [1])
                )

        def line(axes, values, name, look, scale, ours=None):
            frame = values.frame()
            at = frame[over].map(key).to_numpy(dtype=float) / scale
            order = np.argsort(at)
            shape = {
                "color": look.light,
                "marker": look.marker,
                "markersize": 4.5,
                "linewidth": 1.4,
            }
            if ours:
                shape |= {"linestyle": ours}
            else:
                shape |= {"linestyle": "--", "markerfacecolor": "none", "linewidth": 1}
            axes.plot(at[order], frame["value"].to_numpy()[order], label=name, **shape)
            if ours:
                low, high = frame["low"].to_numpy()[order], frame["high"].to_numpy()[order]
                axes.fill_between(at[order], low, high, color=look.light, alpha=0.18, linewidth=0)

        self._add(title, panel, series, x, y, wanted)

    def bars(
        self,
        title: str,
        series: Mapping[str, Series],
        *,
        over: str,
        x: str,
        y: str,
        wanted: tuple[float, float] | None = None,
    ) -> None:
        """Numbers at the values of an axis, side by side. `wanted` is shaded."""

        def panel(axes: Axes) -> None:
            styled = list(self._styled(series))
            width = 0.8 / len(styled)
            labels = list(
                dict.fromkeys(str(value) for *_, ours, _ in styled for value in _axis(ours, over))
            )
            for at, (name, look, (_, hatch), ours, paper) in enumerate(styled):
                frame = ours.frame()
                places = (
                    np.array([labels.index(str(value)) for value in _axis(ours, over)])
                    + (at + 0.5) * width
                    - 0.4
                )
                errors = np.abs(frame[["low", "high"]].to_numpy().T - frame["value"].to_numpy())
                shape = {"color": look.light, "alpha": 0.75}
                if hatch:
                    shape |= {"hatch": hatch, "edgecolor": INK, "linewidth": 0}
                axes.bar(places, frame["value"], width * 0.92, label=name, **shape)
                axes.errorbar(
                    places, frame["value"], errors, fmt="none", ecolor=INK, elinewidth=1, capsize=2
                )
                if paper is not None:
                    theirs = [_paper_at(paper, over, value) for value in _axis(ours, over)]
                    axes.plot(
                        places,
                        theirs,
                        "D",
                        markerfacecolor="none",
                        markeredgecolor=INK,
                        markersize=5,
                    )
            axes.set_xticks(
                range(len(labels)), labels, rotation=30 if len("".join(labels)) > 24 else 0
            )

        self._add(title, panel, series, x, y, wanted)

    def over_time(
        self,
        title: str,
        curves: Mapping[str, tuple[np.ndarray, np.ndarray]],
        steps: tuple[np.ndarray, np.ndarray] | None = None,
        *,
        y: str,
    ) -> None:
        """Numbers of one run over its seconds, and `steps` that bound them."""

        def panel(axes: Axes) -> None:
            for number, (name, (times, numbers)) in enumerate(curves.items()):
                look = OTHERS[number % len(OTHERS)]
                shape = "-" if number < len(OTHERS) else "--"
                axes.plot(
                    times, numbers, color=look.light, linestyle=shape, linewidth=1.1, label=name
                )
            if steps:
                axes.step(
                    *steps, where="post", color=INK, linestyle=":", linewidth=1, label="capacity"
                )
            axes.set_title(title)
            axes.set_xlabel("s")
            axes.set_ylabel(y)
            axes.set_ylim(bottom=0)

        self._panels.append(panel)

    def scatter(
        self, title: str, marks: Mapping[str, tuple[float, float]], *, x: str, y: str
    ) -> None:
        """One number of each controller over another."""

        def panel(axes: Axes) -> None:
            for name, (across, up) in marks.items():
                look = style(name)
                axes.plot([across], [up], look.marker, color=look.light, markersize=6)
                axes.annotate(
                    name, (across, up), xytext=(4, 3), textcoords="offset points", fontsize=7
                )
            axes.set_title(title)
            axes.set_xlabel(x)
            axes.set_ylabel(y)
            axes.set_ylim(bottom=0)

        self._panels.append(panel)

    def _add(
        self,
        title: str,
        panel: Callable[[Axes], None],
        series: Mapping[str, Series],
        x: str,
        y: str,
        wanted: tuple[float, float] | None,
    ) -> None:
        def whole(axes: Axes) -> None:
            panel(axes)
            axes.set_title(title)
            axes.set_xlabel(x)
            axes.set_ylabel(y)
            _frame(axes, series, wanted)
            if wanted:
                axes.axhspan(*wanted, color=INK, alpha=0.08, linewidth=0, label="wanted")
            if any(paper is not None for *_, paper in self._styled(series)):
                shape = {"color": INK, "linestyle": "--", "marker": "D", "markerfacecolor": "none"}
                axes.plot([], [], label="paper", markersize=5, **shape)

        self._panels.append(whole)
        self._others += [
            name for name in series if not _protocol(name) and name not in self._others
        ]

    def _styled(
        self, series: Mapping[str, Series]
    ) -> Iterator[tuple[str, Style, tuple[str, str | None], Values, Any]]:
        """Each series with its style and those of its group, our numbers and the paper's. A name
        has one style in all panels, if there are enough of them.
        """
        fits = len(self._others) <= len(OTHERS)
        names = self._others if fits else [name for name in series if not _protocol(name)]
        seen: list[Style] = []
        for name, each in series.items():
            ours, paper = each if isinstance(each, tuple) else (each, None)
            look = _protocol(name) or OTHERS[names.index(name) % len(OTHERS)]
            yield name, look, GROUPS[seen.count(look) % len(GROUPS)], ours, paper
            seen.append(look)

    def svg(self) -> str:
        """The picture as an element of an HTML page, light or dark as the page is."""
        with matplotlib.rc_context({**LOOK, "svg.hashsalt": self._name}):
            columns = 2 if len(self._panels) == 4 else min(len(self._panels), 3)
            rows = -(-len(self._panels) // columns)
            size = (3.6 * columns if columns > 1 else 4.8, 2.8 * rows + 0.3)
            figure = Figure(figsize=size, layout="constrained")
            grid = list(figure.subplots(rows, columns, squeeze=False).flat)
            for axes, panel in zip(grid, self._panels):
                panel(axes)
            for axes in grid[len(self._panels) :]:
                axes.set_axis_off()
            legend = {
                label: handle
                for axes in grid
                for handle, label in zip(*axes.get_legend_handles_labels())
            }
            if len(legend) > 1:
                figure.legend(legend.values(), legend, loc="outside lower center", ncols=5)
            text = io.StringIO()
            figure.savefig(text, format="svg", transparent=True, metadata={"Date": None})
        svg = text.getvalue()
        for look in dict.fromkeys((*STYLES.values(), *OTHERS, *styles().values())):
            svg = svg.replace(look.light.lower(), f"light-dark({look.light}, {look.dark})")
        return svg[svg.index("<svg") :].replace(INK, "currentColor")


def _protocol(name: str) -> Style | None:
    """The style of a protocol, or of a group of one, as in "Reno, far"."""
    return STYLES.get(name.partition(",")[0])


def _frame(axes: Axes, series: Mapping[str, Series], wanted: tuple[float, float] | None) -> None:
    """Lets the axis of the numbers begin at zero, and have room for what is wanted."""
    ours = [each[0] if isinstance(each, tuple) else each for each in series.values()]
    least = min(float(np.nanmin(values.value)) for values in ours)
    low, high = axes.get_ylim()
    axes.set_ylim(
        0 if least >= 0 else low, max(high, wanted[1] * 1.05 if wanted else 0, 1.05 * least)
    )


def _axis(values: Values, over: str) -> list[Any]:
    """The values of an axis; one place without it."""
    return list(values.points[over]) if over in values.points else [""] * len(values)


def _paper_at(paper: Values | float, over: str, value: Any) -> float:
    if not isinstance(paper, Values):
        return paper
    found = paper.at(**{over: value}).value
    return float(found[0]) if len(found) else float("nan")
