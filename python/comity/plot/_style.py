"""The common style of all pictures."""

from __future__ import annotations

import io
import textwrap
import typing
from collections.abc import Sequence
from dataclasses import dataclass

from matplotlib import ticker
from matplotlib.figure import Figure

from ..errors import PlotError

if typing.TYPE_CHECKING:
    from matplotlib.axes import Axes


@dataclass(frozen=True)
class Style:
    """How a protocol is drawn."""

    name: str
    """The name in legends."""
    light: str
    """The colour on a light background."""
    dark: str
    """The colour on a dark background."""
    marker: str
    """The marker."""

    def colour(self, dark: bool) -> str:
        """The colour on this background."""
        return self.dark if dark else self.light


# The hues of Okabe and Ito, and of Tol's "muted" scheme, are made for colour-blind readers. Where
# sixteen hues come close to each other, markers differ.
_PROTOCOLS = {
    "reno": Style("TCP Reno", "#0072B2", "#3DA5E0", "o"),
    "cubic": Style("CUBIC", "#56B4E9", "#9AD4F5", "s"),
    "bbr": Style("BBR", "#009E73", "#2CC49A", "^"),
    "bbr3": Style("BBRv3", "#117733", "#7BC87B", "v"),
    "vegas": Style("Vegas", "#999933", "#CFCF6B", "P"),
    "libra": Style("TCP Libra", "#D55E00", "#FF8A3D", "D"),
    "real": Style("TCP-Real", "#CC79A7", "#E8A5C8", "X"),
    "iftp": Style("IFTP", "#E69F00", "#FFC54D", "h"),
    "psp": Style("packet spacing", "#882255", "#D0669C", "*"),
    "tltcp": Style("TLTCP", "#332288", "#9A8CFF", "p"),
    "rap": Style("RAP", "#44AA99", "#8FE0D2", "<"),
    "tfrc": Style("TFRC", "#661100", "#C98A6B", ">"),
    "gcc": Style("GCC", "#AA4499", "#D98BCB", "H"),
    "scream": Style("SCReAM", "#6699CC", "#A9C8E8", "."),
    "steady": Style("media controller", "#000000", "#FFFFFF", "d"),
    "datagram": Style("datagrams", "#777777", "#AAAAAA", "8"),
}
_OTHER = Style("other", "#555555", "#BBBBBB", "x")

#: Line styles of groups that have the same protocol.
DASHES = ["-", (0, (5, 1.5)), (0, (1.2, 1.2)), (0, (6, 1.5, 1.2, 1.5))]
#: The fillings of their markers, which distinguish them without a line.
FILLS: list[typing.Literal["full", "none", "left", "top"]] = ["full", "none", "left", "top"]
_HUES = [
    ("#DC267F", "#FF6FB0"), ("#5B7FE8", "#8FAEFF"), ("#8C6D31", "#D2B173"),
    ("#785EF0", "#B3A3FF"), ("#4D8B00", "#9CD14B"), ("#6B6B6B", "#B5B5B5"),
]  # fmt: skip
_MARKERS = "osDvXPh^*p<>"


def own(number: int) -> tuple[Style, int]:
    """The style of a group that needs one of its own, and the number of its line style.
    """
    light, dark = _HUES[number % len(_HUES)]
    style = Style("", light, dark, _MARKERS[number % len(_MARKERS)])
    return style, number // len(_HUES) % len(DASHES)


def protocol(kind: str) -> str:
    """The protocol of a flow, from the column `kind` of the table `flows`.

    >>> protocol("reno/newreno"), protocol("reno/sack/timeline"), protocol("steady/sections")
    ('reno', 'tltcp', 'steady')
    """
    parts = kind.split("/")
    return "tltcp" if "timeline" in parts else parts[0]


def style(name: str) -> Style:
    """How a protocol is drawn; unknown ones are grey."""
    return _PROTOCOLS.get(name, _OTHER)


def styles() -> dict[str, Style]:
    """All protocols with a style of their own."""
    return dict(_PROTOCOLS)


class Picture(Figure):
    """A figure that a notebook shows, without the global state of pyplot."""

    def _repr_png_(self) -> bytes:
        buffer = io.BytesIO()
        self.savefig(buffer, format="png", dpi=110)
        return buffer.getvalue()


@dataclass(frozen=True)
class Paper:
    """The colours of everything but the data."""

    back: str
    ink: str
    grid: str
    alarm: str
    """The colour of drops and retransmissions."""
    repeat: str


_LIGHT = Paper("#FFFFFF", "#222222", "#DDDDDD", "#C00020", "#E69F00")
_DARK = Paper("#14171C", "#E6E6E6", "#3A3F47", "#FF5C70", "#FFC54D")


def paper(dark: bool) -> Paper:
    """The colours for this background."""
    return _DARK if dark else _LIGHT


def picture(
    title: str, dark: bool, panels: int = 1, size: tuple[float, float] = (7.2, 4.0)
) -> tuple[Picture, list[Axes]]:
    """An empty picture with panels of one scale, at most four in a row."""
    colours = paper(dark)
    figure = Picture(figsize=size, layout="constrained", facecolor=colours.back)
    columns = min(panels, 4)
    rows = -(-panels // columns)
    axes = list(figure.subplots(rows, columns, squeeze=False, sharex=True, sharey=True).flat)
    for ax in axes[panels:]:
        ax.remove()
    for number, ax in enumerate(axes[:panels]):
        # A panel with none below it has the labels of its column.
        ax.tick_params(labelbottom=number + columns >= panels)
        ax.set_facecolor(colours.back)
        ax.tick_params(colors=colours.ink, labelcolor=colours.ink)
        ax.grid(color=colours.grid, linewidth=0.6)
        ax.set_axisbelow(True)
        for spine in ax.spines.values():
            spine.set_color(colours.grid)
        for side in ("top", "right"):
            ax.spines[side].set_visible(False)
        ax.xaxis.label.set_color(colours.ink)
        ax.yaxis.label.set_color(colours.ink)
        ax.title.set_color(colours.ink)
    figure.suptitle(wrapped(title, int(11 * size[0])), color=colours.ink, fontsize=11)
    return figure, axes[:panels]


def wrapped(text: str, width: int) -> str:
    """A text of the user in lines of at most this length. A `$` in it does not begin mathematics.

    >>> wrapped("a price of 5$", 8)
    'a price\\nof 5\\\\$'
    >>> wrapped("topology.bottleneck.queue", 24)
    'topology.bottleneck.\\nqueue'
    """
    # Names have dots and no blanks, and are broken after a dot.
    parts = [part.replace(".", ".\0 ") for part in text.split("\n")]
    lines = [line for part in parts for line in textwrap.wrap(part, width) or [""]]
    return "\n".join(lines).replace("\0 ", "").replace("\0", "").replace("$", r"\$")


def curve(
    ax: Axes, look: typing.Any, x: typing.Any, y: typing.Any, label: str, **options: typing.Any
) -> None:
    """A line in the look of a group, with a marker at every twelfth of it."""
    options.setdefault("markevery", max(1, len(x) // 12))
    ax.plot(
        x, y, color=look.colour, linestyle=look.dashes, marker=look.marker, markersize=5,
        fillstyle=look.fill, label=label, clip_on=False, **options,
    )  # fmt: skip


def categories(ax: Axes, names: Sequence[typing.Any]) -> None:
    """Names along the x axis, upright and in lines, or slanted where they are many or long."""
    width = ax.get_position().width * ax.get_figure().get_figwidth()
    longest = max(len(str(name)) for name in names)
    # A letter is 0.09 inches wide.
    room = int(width / len(names) / 0.09)
    lines = room if room >= min(longest, 10) else 24
    labels = [wrapped(str(name), lines) for name in names]
    ax.set_xticks(range(len(names)), labels)
    if lines > room:
        ax.tick_params(axis="x", labelrotation=35)
        for label in ax.get_xticklabels():
            label.set(ha="right", rotation_mode="anchor")
    ax.set_xlim(-0.6, len(names) - 0.4)
    ax.grid(False, axis="x")


def names_across(figure: Figure, axes: Sequence[Axes], name: str) -> None:
    """The name of the x axis below each column of panels."""
    columns = min(len(axes), 4)
    # A letter is 0.08 inches wide, and the legend may take a third.
    letters = int(figure.get_figwidth() / columns / 0.12)
    for ax in axes[-columns:]:
        ax.set_xlabel(wrapped(name, letters))


def logarithmic(
    ax: Axes, has_room: bool = True, axis: typing.Literal["x", "y"] = "x"
) -> None:
    """A logarithmic axis with ticks at 1, 2, 5, 10, ..., or at 1, 10, ... without room."""
    ax.set(**{f"{axis}scale": "log"})
    it = ax.xaxis if axis == "x" else ax.yaxis
    it.set_major_locator(ticker.LogLocator(subs=(1.0, 2.0, 5.0) if has_room else (1.0,)))
    it.set_major_formatter(ticker.FormatStrFormatter("%g"))
    it.set_minor_formatter(ticker.NullFormatter())


def legend(figure: Figure, dark: bool, *, loc: str | None = None, title: str | None = None) -> None:
    """The legend: inside at `loc` if it is small, otherwise beside the panels, or below them where
    its names are long. The picture grows with it.
    """
    entries: dict[str, typing.Any] = {}
    for ax in figure.axes:
        for handle, label in zip(*ax.get_legend_handles_labels()):
            entries.setdefault(wrapped(label, 60), handle)
    if not entries:
        return
    longest = max(len(line) for label in entries for line in label.split("\n"))
    lines = sum(label.count("\n") + 1 for label in entries)
    options: dict[str, typing.Any] = {"loc": loc}
    if loc is None or len(entries) > 3 or longest > 30:
        width, height = figure.get_size_inches()
        if longest > 28:
            columns = max(1, min(3, int(width / (0.7 + 0.085 * longest))))
            options = {"loc": "outside lower center", "ncols": columns}
            figure.set_figheight(height + 0.2 * -(-lines // columns))
        else:
            options = {"loc": "outside right center"}
            figure.set_figheight(max(height, 0.8 + 0.2 * lines))
    owner = figure if str(options["loc"]).startswith("outside") else figure.axes[0]
    drawn = owner.legend(
        # Long enough for the line styles that distinguish groups of one protocol.
        entries.values(), entries.keys(), frameon=False, fontsize=9, handlelength=4,
        labelcolor=paper(dark).ink, title=title and wrapped(title, 60), title_fontsize=9, **options,
    )  # fmt: skip
    drawn.get_title().set_color(paper(dark).ink)


#: The unit in which pictures show a unit of the tables, and the divisor.
_SHOWN = {
    "bit/s": ("Mb/s", 1e6),
    "B": ("kB", 1e3),
    "ns": ("s", 1e9),
    "s": ("ms", 1e-3),
    "packets": ("packets", 1.0),
}


def shown(unit: str) -> tuple[str, float]:
    """The unit in which values of a unit are shown, and the divisor."""
    return _SHOWN.get(unit, ("", 1.0))


def missing(what: str, remedy: str) -> PlotError:
    """The error of results that lack something."""
    return PlotError(f"these results have no {what}; {remedy}")
