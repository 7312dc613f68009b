"""The style of all pictures."""

from __future__ import annotations

import io
import typing
from dataclasses import dataclass

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
# fourteen hues come close to each other, markers differ.
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
    "steady": Style("media controller", "#000000", "#FFFFFF", "d"),
    "datagram": Style("datagrams", "#777777", "#AAAAAA", "8"),
}
_OTHER = Style("other", "#555555", "#BBBBBB", ".")

#: Line styles of groups that have the same protocol.
DASHES = ["-", (0, (5, 1.5)), (0, (1.2, 1.2)), (0, (6, 1.5, 1.2, 1.5))]


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
    """Drops and retransmissions, which are no protocol's."""
    repeat: str


_LIGHT = Paper("#FFFFFF", "#222222", "#DDDDDD", "#C00020", "#E69F00")
_DARK = Paper("#14171C", "#E6E6E6", "#3A3F47", "#FF5C70", "#FFC54D")


def paper(dark: bool) -> Paper:
    """The colours for this background."""
    return _DARK if dark else _LIGHT


def picture(
    title: str, dark: bool, panels: int = 1, size: tuple[float, float] = (7.2, 4.0)
) -> tuple[Picture, list[Axes]]:
    """An empty picture with panels side by side."""
    colours = paper(dark)
    figure = Picture(figsize=size, layout="constrained", facecolor=colours.back)
    axes = list(figure.subplots(1, panels, squeeze=False)[0])
    for ax in axes:
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
    figure.suptitle(title, color=colours.ink, fontsize=11)
    return figure, axes


def curve(
    ax: Axes, look: typing.Any, x: typing.Any, y: typing.Any, label: str, **options: typing.Any
) -> None:
    """A line in the look of a group, with a marker at every twelfth of it."""
    options.setdefault("markevery", max(1, len(x) // 12))
    ax.plot(
        x, y, color=look.colour, linestyle=look.dashes, marker=look.marker, markersize=5,
        label=label, **options,
    )  # fmt: skip


def legend(ax: Axes, dark: bool, **options: typing.Any) -> None:
    """The legend: inside at `loc`, or beside the data where it would hide some."""
    handles, labels = ax.get_legend_handles_labels()
    if not handles:
        return
    colours = paper(dark)
    if len(labels) > 3 or "loc" not in options:
        options.update(loc="center left", bbox_to_anchor=(1.0, 0.5))
    # Long enough for the line styles that tell groups of one protocol apart.
    ax.legend(
        frameon=False, fontsize=9, handlelength=4, labelcolor=colours.ink, title_fontsize=9,
        **options,
    )  # fmt: skip


#: What a unit of the tables is shown in, and by how much it is divided.
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
