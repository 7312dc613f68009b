"""A picture of a set: a row for each point, a dot for each transport, and a line to its worst run."""

import math
from dataclasses import dataclass
from html import escape

from goals import MEAN_ON_TIME, TCP_ABOVE
from scenario import TRANSPORTS

LEFT, AXIS, BETWEEN, RIGHT = 200, 600, 40, 40
TOP, LANE, PAD, PANEL_HEAD, PANEL_GAP = 44, 10, 8, 46, 16
ROW = LANE * len(TRANSPORTS) + PAD
MAX_LATE, MIN_LATE = 0.5, 0.0001
"""The axis of late frames ends here. What is worse stands at its left end."""
ALL_ON_TIME = 0.1
"""The part of the axis at its right end where all frames are on time: a logarithm has no place for 0."""
MAX_SHARE = 1.5
"""The axis of what TCP kept ends here. What is more stands at its right end."""
HEADINGS = {"below": "Below an equal share", "above": "Above an equal share", "bbr": "Beside BBR", "loss": "Random loss", "tight": "Tight deadlines",
            "changes": "A path that changes"}
LOGARITHMIC = ("below", "loss", "changes")
# Told apart by shape as well as by colour (the palette of Okabe and Ito).
SHAPES = {"Comity": "circle", "SRT": "square", "TCP": "triangle", "QUIC": "diamond"}

STYLE = """<style>
text { font-family: system-ui, -apple-system, 'Segoe UI', Roboto, sans-serif; font-size: 13px; fill: #1d2430 }
.paper { fill: #ffffff } .faint { fill: #5c6675 } .head { font-weight: 600 }
.band { fill: #f1f4f7 } .grid { stroke: #cfd6de } .goal { stroke: #5c6675; stroke-dasharray: 4 3 }
.Comity { fill: #0072b2; stroke: #0072b2 } .SRT { fill: #d55e00; stroke: #d55e00 }
.TCP { fill: #6b7280; stroke: #6b7280 } .QUIC { fill: #009e73; stroke: #009e73 }
line { stroke-width: 1.5 }
@media (prefers-color-scheme: dark) {
text { fill: #e8ebf0 } .paper { fill: #14181f } .faint { fill: #a3adba }
.band { fill: #1c222b } .grid { stroke: #3a424e } .goal { stroke: #a3adba }
.Comity { fill: #5cb8f0; stroke: #5cb8f0 } .SRT { fill: #ff9a5c; stroke: #ff9a5c }
.TCP { fill: #9aa3b0; stroke: #9aa3b0 } .QUIC { fill: #4fd1a0; stroke: #4fd1a0 }
}
</style>"""


def by_logarithm(on_time):
    """Where a share of frames on time lies, from 0 to 1, by the logarithm of the late ones.

    >>> [round(by_logarithm(on_time), 2) for on_time in (0.2, 0.5, 0.95, 0.9999, 1.0)]
    [0.0, 0.0, 0.24, 0.9, 1.0]
    """
    late = 1 - on_time
    if late <= 0:
        return 1.0
    bounded = min(max(late, MIN_LATE), MAX_LATE)
    return (1 - ALL_ON_TIME) * math.log(MAX_LATE / bounded) / math.log(MAX_LATE / MIN_LATE)


@dataclass(frozen=True)
class Axis:
    """One quantity of a panel, and where it lies across the picture."""

    title: str
    of: str
    place: object
    """From a value to its place on the axis, from 0 to 1."""
    ticks: dict
    goal: float = None
    left: float = LEFT
    width: float = AXIS

    def at(self, value):
        """
        >>> late_axis().at(1.0), Axis("", "", lambda value: value, {}, left=10, width=100).at(0.25)
        (800.0, 35.0)
        """
        return self.left + self.width * self.place(value)


def late_axis():
    ticks = {share: f"{share * 100:g} %" for share in (0.5, 0.9, 0.99, 0.999, 0.9999, 1.0)}
    title = "frames on time; 99.9 % is as far from 99 % as 99 % is from 90 %"
    return Axis(title, "on_time", by_logarithm, ticks, MEAN_ON_TIME)


def axes_of(load):
    """The quantities of a panel: above the share, and beside BBR, what TCP kept belongs to it.

    >>> [[axis.of for axis in axes_of(load)] for load in ("below", "above", "tight")]
    [['on_time'], ['on_time', 'tcp'], ['on_time', 'bound']]
    >>> [round(axis.at(0.75)) for axis in axes_of("above")]
    [410, 660]
    """
    if load in LOGARITHMIC:
        return [late_axis()]
    width = (AXIS - BETWEEN) / 2
    shares = {share: f"{share:.0%}".replace("%", " %") for share in (0, 0.25, 0.5, 0.75, 1)}
    kept = {value: f"{value:g}" for value in (0, 0.5, 1, 1.5)}
    place = lambda value: min(value / MAX_SHARE, 1.0)
    goal = TCP_ABOVE if load == "above" else None
    right = {"left": LEFT + width + BETWEEN, "width": width}
    if load == "tight":
        beside = Axis("possible for any sender", "bound", lambda value: value, shares, **right)
    else:
        beside = Axis("kernel flows over their equal share", "tcp", place, kept, goal, **right)
    return [Axis("frames on time", "on_time", lambda value: value, shares, width=width), beside]


def text(x, y, words, anchor="middle", kind=""):
    return f'<text x="{x:.0f}" y="{y:.0f}" text-anchor="{anchor}" class="{kind}">{escape(words)}</text>'


def line(x1, y1, x2, y2, kind):
    return f'<line x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}" class="{kind}"/>'


def mark(transport, x, y):
    """The sign of a transport.

    >>> mark("SRT", 10, 10)
    '<rect x="6.0" y="6.0" width="8" height="8" class="SRT"/>'
    """
    shape = SHAPES[transport]
    if shape == "circle":
        return f'<circle cx="{x:.1f}" cy="{y:.1f}" r="4.5" class="{transport}"/>'
    if shape == "square":
        return f'<rect x="{x - 4:.1f}" y="{y - 4:.1f}" width="8" height="8" class="{transport}"/>'
    corners = {"triangle": ((0, -5), (5, 4), (-5, 4)), "diamond": ((0, -5), (5, 0), (0, 5), (-5, 0))}[shape]
    points = " ".join(f"{x + right:.1f},{y + down:.1f}" for right, down in corners)
    return f'<polygon points="{points}" class="{transport}"/>'


def legend():
    drawn, x = [text(LEFT - 14, TOP - 20, "video over", "end", "faint")], LEFT
    for transport in TRANSPORTS:
        drawn += [mark(transport, x + 5, TOP - 24), text(x + 16, TOP - 20, transport, "start")]
        x += 90
    return [*drawn, text(LEFT + AXIS, TOP - 20, "solid line: to the worst run; dashed: goal", "end", "faint")]


def dots(axis, rows, points, first):
    """The ticks of an axis, and what each transport has of its quantity."""
    bottom = first + ROW * len(points)
    drawn = [text(axis.left, first - 24, axis.title, "start")]
    for tick, label in axis.ticks.items():
        drawn += [line(axis.at(tick), first, axis.at(tick), bottom, "grid"), text(axis.at(tick), first - 6, label, "middle", "faint")]
    if axis.goal is not None:
        drawn.append(line(axis.at(axis.goal), first, axis.at(axis.goal), bottom, "goal"))
    for row in rows:
        of = getattr(row, axis.of)
        y = first + ROW * points.index(row.point.name) + PAD / 2 + LANE * (TRANSPORTS.index(row.transport) + 0.5)
        mean, worst = axis.at(row.mean(of)), axis.at(min(row.each(of)))
        drawn += [line(worst, y, mean, y, row.transport), mark(row.transport, mean, y)]
    return drawn


def panel(load, rows, top):
    """All points of one kind, the first at the top."""
    points = list(dict.fromkeys(row.point.name for row in rows))
    first = top + PANEL_HEAD
    drawn = [text(LEFT - 14, first - 24, HEADINGS[load], "end", "head")]
    drawn += [f'<rect x="0" y="{first + ROW * number}" width="{LEFT + AXIS + RIGHT}" height="{ROW}" class="band"/>'
              for number in range(0, len(points), 2)]
    drawn += [text(LEFT - 14, first + ROW * (number + 0.5) + 4, name.removesuffix(f"-{load}"), "end") for number, name in enumerate(points)]
    for axis in axes_of(load):
        drawn += dots(axis, rows, points, first)
    return drawn, first + ROW * len(points)


def picture(rows):
    """An SVG document of the rows of one set. Its paper and its ink follow the reader's colour scheme.

    >>> from outcome import outcome_of
    >>> from points import points_of
    >>> document = picture([outcome_of({"receiver": {"on_time": 0.5}}, points_of("published")["1-cubic-below"])])
    >>> document.count(">1-cubic<"), document.count("<rect"), "Above" in document
    (1, 4, False)
    """
    panels = {}
    for row in rows:
        panels.setdefault("tight" if row.chosen == "tight" else row.point.load, []).append(row)
    drawn, bottom = [], TOP - PANEL_GAP
    for load, of_panel in panels.items():
        more, bottom = panel(load, of_panel, bottom + PANEL_GAP)
        drawn += more
    width, height = LEFT + AXIS + RIGHT, bottom + 12
    head = f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" viewBox="0 0 {width} {height}" role="img">'
    paper = f'<rect width="{width}" height="{height}" rx="6" class="paper"/>'
    return "\n".join([head, "<title>Frames on time with each transport</title>", STYLE, paper, *legend(), *drawn, "</svg>"]) + "\n"
