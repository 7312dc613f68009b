"""Table 2: goodput of a transfer of 5 MB with on/off losses in the reverse direction, 15 ms one
way.
"""

from comity.reproduction import Scenario, claim

from ._shared import QUICK, REVERSE, Known, goodput_kBps, known, printed

#: Table 2, kB/s.
PAPER = printed(
    REVERSE,
    real=[233.87, 217.29, 187.09, 161.87, 114.30, 102.47, 69.62],
    reno=[233.91, 221.26, 186.00, 171.99, 113.49, 71.95, 24.57],
    tahoe=[226.08, 208.90, 172.62, 170.15, 99.62, 76.05, 43.50],
)
#: The reading that is drawn.
BASE = {"window": 16, "acks": "bsd", "timers": "ns2-2000"}

MANY_ACKS = (
    "acknowledgements are cumulative, and enough acknowledgements of a window reach Reno. With "
    "fewer of them, because of a smaller window or delayed ACKs, Real gains more"
)
#: What is known of each check: some losses, 0.555 and 0.75.
SOME: Known = [
    (
        {"window": 8, "acks": "bsd"},
        {
            "fails": (
                "a window has four delayed ACKs: Real has less than Reno if some are lost, and "
                "over a tenth more at 0.36"
            )
        },
    )
]
AT_555: Known = [
    ({"window": 8, "acks": "bsd"}, {}),
    (
        {"window": 8, "acks": "false", "timers": "ns2-2000"},
        {"chance": "the interval includes the bound"},
    ),
    (
        {"window": 16, "acks": "bsd", "timers": "ns2-2000"},
        {"chance": "the interval includes the bound"},
    ),
    ({}, {"fails": MANY_ACKS}),
]
AT_75: Known = [
    (
        {"window": 48, "acks": "bsd", "timers": "ns2-2000"},
        {"chance": "single transfers with long timeouts decide the result of each seed"},
    ),
    (
        {},
        {
            "fails": f"{MANY_ACKS}. If no data is lost, the paper's Tahoe is the same as Reno, but "
            "has 43.50 KBps, and Reno has 24.57: Real has 1.6 times Tahoe's goodput"
        },
    ),
]


@claim(
    "real-table2-reverse-15ms",
    says=(
        "Real has as much goodput as Reno under losses in the reverse direction, and more when "
        "half of the acknowledgements are lost"
    ),
    source="table 2",
    scenario=Scenario("table02_reverse_15ms.toml", quick=QUICK),
)
def table_2(runs, check):
    goodput = goodput_kBps(runs)
    for reading, axes in goodput.readings().items():
        gain = goodput.at(**axes).gain
        check(
            "Real over Reno, some losses",
            gain.at(drop=lambda drop: drop <= 0.36),
            within=(0.1, 1),
            paper=PAPER.gain,
            reading=reading,
            **known(SOME, axes),
        )
        for drop, bound, rules in ((0.555, 1.3, AT_555), (0.75, 2, AT_75)):
            check(
                f"Real over Reno at {drop}",
                gain.at(drop=[drop]),
                at_least=bound,
                paper=PAPER.gain,
                reading=reading,
                **known(rules, axes),
            )
    goodput.at(**BASE).show(check, "kB/s", PAPER)


@table_2.picture
def picture(runs, draw):
    goodput = goodput_kBps(runs)
    for window in (48, 16, 8):
        title = f"window of {window} segments"
        goodput.at(**{**BASE, "window": window}).draw_losses(draw, title, PAPER, "goodput, kB/s")
