"""Figure 7: one agent without feedback, by its spacing."""

from comity.reproduction import claim

from ._shared import loss


@claim(
    "psp-fig7-single",
    says="one sender loses nothing at any spacing",
    source="section 3.2.1, figure 7",
    scenario="fig07_single.toml",
    quick={"set": {"scenario.duration": "20s"}},
)
def figure_7(runs, check):
    check(
        "loss",
        runs.measure(loss),
        equal=0,
        paper=0,
        cannot_fail="one sender of at most 100 Mb/s on a link of 155 Mb/s cannot lose a packet",
    )


@figure_7.picture
def picture(runs, draw):
    draw.lines(
        "one agent",
        {"agents": (runs.measure(loss), 0)},
        over="spacing",
        unit="us",
        x="spacing, us",
        y="loss",
    )
