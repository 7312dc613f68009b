"""The colours of pictures."""

import re

from comity.plot import style
from comity.reproduction import table
from comity.reproduction.pictures import Drawing


def bars(*names):
    """The colours of bars with these names, and how many are hatched."""
    drawing = Drawing("test")
    series = {name: table("queue", [25], [1.0]) for name in names}
    drawing.bars("", series, over="queue", x="", y="")
    svg = drawing.svg()
    colours = re.findall(r"light-dark\((#\w+), #\w+\)", svg)
    hatches, used = (re.findall(of, svg) for of in (r'<pattern id="(\w+)"', r"url\(#(\w+)\)"))
    return set(colours), len(set(hatches) & set(used))


def test_groups_of_a_protocol_have_its_colour_and_are_told_apart_by_hatches():
    reno, libra = style("reno").light, style("libra").light
    assert bars("Reno", "Libra") == ({reno, libra}, 0)
    assert bars("Reno, near", "Libra, near", "Reno, far", "Libra, far") == ({reno, libra}, 2)


def test_what_is_no_protocol_has_another_colour():
    colours, hatched = bars("Libra", "long", "short")
    assert len(colours) == 3 and not hatched
