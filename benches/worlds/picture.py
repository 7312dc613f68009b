"""A picture of the comparison: a dot for each ratio of the two worlds, by quantity and scenario."""

import math
from html import escape

from measure import RATIO

PANEL, GAP, LEFT, TOP, ROW = 220, 24, 130, 46, 22
WIDEST = 2.0
PANELS = (("rate", "Mb/s a flow"), ("queueing delay", "queueing delay ms"), ("loss", "loss per mille"))


def offset(ratio):
    """Where a ratio lies in a panel, from 0 at a half to 1 at the double; beyond that it stands at the edge.

    >>> [round(offset(ratio), 2) for ratio in (0.5, 1.0, 2.0, 9.0)]
    [0.0, 0.5, 1.0, 1.0]
    """
    bounded = min(max(ratio, 1 / WIDEST), WIDEST)
    return 0.5 + math.log(bounded) / math.log(WIDEST) / 2


def text(x, y, words, anchor="middle"):
    return f'<text x="{x:.0f}" y="{y:.0f}" text-anchor="{anchor}">{escape(words)}</text>'


def panel(number, title, scenarios, dots):
    """One quantity: the band in which the worlds agree, and a dot for each point."""
    x = LEFT + number * (PANEL + GAP)
    height = ROW * len(scenarios)
    low, high = (x + PANEL * offset(edge) for edge in (1 / RATIO, RATIO))
    drawn = [
        text(x + PANEL / 2, TOP - 26, f"{title}, sim / lab"),
        f'<rect x="{x}" y="{TOP}" width="{PANEL}" height="{height}" fill="none" stroke="#999"/>',
        f'<rect x="{low:.1f}" y="{TOP}" width="{high - low:.1f}" height="{height}" fill="#cde8d0"/>',
    ]
    drawn += [text(x + PANEL * offset(tick), TOP - 8, str(tick)) for tick in (0.5, 1, 2)]
    for scenario, ratio, holds in dots:
        y = TOP + ROW * (scenarios.index(scenario) + 0.5)
        colour = "#2a7d3f" if holds else "#c0392b"
        drawn.append(f'<circle cx="{x + PANEL * offset(ratio):.1f}" cy="{y:.1f}" r="4" fill="{colour}" fill-opacity="0.6"/>')
    return drawn


def picture(compared):
    """An SVG document. Quantities that a world lacks, or that are zero, have no dot."""
    both = [comparison for comparison, _ in compared
            if comparison.holds is not None and not comparison.is_difference and comparison.lab.median > 0 and comparison.sim.median > 0]
    scenarios = list(dict.fromkeys(comparison.point.split()[0] for comparison in both))
    width, height = LEFT + len(PANELS) * (PANEL + GAP), TOP + ROW * len(scenarios) + 10
    drawn = [text(LEFT - 8, TOP + ROW * (row + 0.5) + 4, name, "end") for row, name in enumerate(scenarios)]
    for number, (title, quantity) in enumerate(PANELS):
        dots = [(comparison.point.split()[0], comparison.ratio, comparison.holds) for comparison in both if comparison.quantity.endswith(quantity)]
        drawn += panel(number, title, scenarios, dots)
    head = f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" font-family="sans-serif" font-size="12">'
    return "\n".join([head, f'<rect width="{width}" height="{height}" fill="white"/>', *drawn, "</svg>"]) + "\n"
