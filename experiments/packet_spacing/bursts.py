"""Section 1.1: bursts overflow a router at less than half of its load, and spacing avoids it."""

from comity.reproduction import claim

from ._shared import loss


def load(run):
    """What the clients send from their starts to the end, 30 s, as a share of the link."""
    flows = run.flows("psa")
    return (flows.sent_wire_bytes * 8 / (30 - flows.started_ns / 1e9)).sum() / 155e6


@claim(
    "psp-bursts",
    says=(
        "clients that send bursts lose packets below half of the link's rate; with spacing, they "
        "do not"
    ),
    source="section 1.1",
    scenario="bursts.toml",
    quick={"seeds": 3},
    ours=True,
)
def bursts(runs, check):
    lost, offered = runs.measure(loss), runs.measure(load)
    check(
        "load, as a share of the link",
        offered,
        below=0.5,
        cannot_fail="the set-up offers 45 % of the link",
    )
    check("loss of bursts without spacing", lost.at(rate="100Mbps"), above=0.05)
    check("loss of bursts with 1000 us between packets", lost.at(rate="10.3Mbps"), at_most=0.001)
    check.show("loss by the rate of a burst", lost)


@bursts.picture
def picture(runs, draw):
    draw.lines(
        "bursts at 45 % of the link",
        {"clients": runs.measure(loss)},
        over="rate",
        unit="Mbps",
        x="rate of a burst, Mb/s",
        y="loss",
    )
