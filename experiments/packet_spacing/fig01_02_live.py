"""Figures 1 and 2: datagrams at different spacings over a wide-area path."""

from comity.reproduction import claim, table

from ._shared import loss, received

#: Section 1.1 and 2, by the spacing.
SPACING = ["0us", "100us", "200us"]
RECEIVED = table("spacing", SPACING, [62, 62, 50])
LOST = table("spacing", SPACING, [0.90, 0.35, 0.10])


def lost(run):
    """The share of packets that were dropped."""
    return loss(run, "sender")


@claim(
    "psp-fig1-2-live",
    says="with a spacing of 50 us, more packets arrive than without, and the loss falls at once",
    source="sections 1.1 and 2, figures 1 and 2",
    scenario="fig01_02_live.toml",
    ours=True,
)
def live(runs, check):
    rate, dropped = runs.measure(received("sender")), runs.measure(lost)
    check(
        "loss",
        dropped,
        never_rises_over="spacing",
        cannot_fail=(
            "one sender with a constant rate loses the excess over the rate of the link, and a "
            "longer spacing is a lower rate"
        ),
    )
    check(
        "received with 50 us over without spacing",
        rate.at(spacing="50us") / rate.at(spacing="0us"),
        above=1,
        fails=(
            "a full link carries its rate, however many packets are dropped before it. More "
            "packets would arrive only if dropped packets cost something, too, such as the work "
            "of a host or a router. The paper does not say where packets were dropped"
        ),
    )
    check.show("received, Mb/s", rate, paper=RECEIVED)
    check.show("loss", dropped, paper=LOST)


@live.picture
def picture(runs, draw):
    spacing = {"over": "spacing", "unit": "us", "x": "spacing, us"}
    draw.lines(
        "figure 1", {"sender": (runs.measure(received("sender")), RECEIVED)}, **spacing, y="Mb/s"
    )
    draw.lines("figure 2", {"sender": (runs.measure(lost), LOST)}, **spacing, y="loss")
