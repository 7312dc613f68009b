"""Tables 7 to 9: goodput with a one-way delay of 50 ms."""

from comity.reproduction import Cause, Scenario, claim

from ._shared import (
    QUICK,
    REVERSE,
    TRANSIENT,
    Known,
    Protocols,
    draw_tables,
    goodput_kBps,
    known,
    of_tables,
    printed,
)

#: Table 7, kB/s, losses in both directions.
TRANSIENT_PAPER = printed(
    TRANSIENT,
    real=[315.61, 335.91, 259.42, 225.87, 151.00, 34.47, 34.33],
    reno=[452.44, 361.68, 128.63, 75.66, 35.32, 12.18, 3.21],
    tahoe=[506.26, 317.67, 127.30, 88.98, 32.71, 16.16, 3.66],
)
#: Table 8, kB/s, losses in the reverse direction.
REVERSE_PAPER = printed(
    REVERSE,
    real=[309.10, 327.64, 354.25, 299.46, 179.97, 122.62, 80.47],
    reno=[528.20, 508.52, 470.30, 207.29, 69.69, 46.27, 20.94],
    tahoe=[528.20, 522.51, 381.91, 223.39, 119.74, 34.44, 20.90],
)
#: Table 9, kB/s, handoffs.
HANDOFF_PAPER = Protocols(real=251.16, reno=113.58, tahoe=103.05)
#: The reading that is shown and drawn.
BASE = {"direction": "each", "acks": "bsd", "timers": "ns2-2000"}
#: What is known of table 9.
HANDOFFS: Known = [
    ({"direction": "each", "acks": "bsd"}, {}),
    (
        {"direction": "each"},
        {"fails": "Reno's window grows with every ACK, and twice as fast as with delayed ACKs"},
    ),
    (
        {},
        {
            "fails": Cause(
                "there are half as many interruptions as where each direction has its own, and "
                "Reno loses more by each of them than Real does",
                "With delayed ACKs Reno has 53 to 57 timeouts in a transfer, and 153 with a state "
                "for each; Real has 30 to 34, and 61 (timers of ns-2)",
            )
        },
    ),
]


@claim(
    "real-table7-9-goodput-50ms",
    says=(
        "with 50 ms, Real has less goodput than Reno if no packet is lost, and 2 to 10 times its "
        "goodput with losses"
    ),
    source="tables 7 to 9",
    scenario={
        "transient": Scenario("table07_goodput_50ms.toml", quick=QUICK),
        "reverse": Scenario("table08_reverse_50ms.toml", quick=QUICK),
        "handoff": Scenario("table09_handoff_50ms.toml", quick=QUICK),
    },
)
def tables_7_to_9(runs, check):
    transient, reverse, handoff = of_tables(runs, goodput_kBps)
    for reading, axes in transient.readings().items():
        gain = transient.at(**axes).gain
        check(
            "Real over Reno",
            gain.at(drop=[0]),
            below=1,
            paper=TRANSIENT_PAPER.gain,
            part="table 7 without losses",
            reading=reading,
        )
        for drop, bound in ((0.05, 1.5), (0.2, 2.5)):
            check(
                "Real over Reno",
                gain.at(drop=[drop]),
                at_least=bound,
                paper=TRANSIENT_PAPER.gain,
                part=f"table 7 at {drop}",
                reading=reading,
            )
        check(
            "Real over Reno",
            handoff.at(**axes).gain,
            at_least=1.8,
            paper=HANDOFF_PAPER.gain,
            part="table 9",
            reading=reading,
            **known(HANDOFFS, axes),
        )
    # The ledger has no check of table 8.
    for reading, axes in reverse.readings().items():
        check.show(
            "Real over Reno, table 8",
            reverse.at(**axes).gain,
            paper=REVERSE_PAPER.gain,
            reading=reading,
        )
    for table, here, paper in (
        ("table 7", transient, TRANSIENT_PAPER),
        ("table 8", reverse, REVERSE_PAPER),
        ("table 9", handoff, HANDOFF_PAPER),
    ):
        here.at(**BASE).show(check, f"kB/s, {table}", paper)


@tables_7_to_9.picture
def picture(runs, draw):
    papers = TRANSIENT_PAPER, REVERSE_PAPER, HANDOFF_PAPER
    draw_tables(runs, draw, goodput_kBps, "goodput, kB/s", BASE, *papers)
