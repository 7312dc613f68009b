"""Table 1 and figure 2: goodput of a transfer of 5 MB with on/off losses in both directions, 15 ms
one way.
"""

from comity.reproduction import Cause, Scenario, claim, spearman

from ._shared import OPEN, QUICK, TRANSIENT, Known, Protocols, goodput_kBps, known, printed

#: Table 1, kB/s.
PAPER = printed(
    TRANSIENT,
    real=[237.65, 198.68, 165.51, 126.66, 101.96, 46.41, 25.64],
    reno=[227.36, 190.73, 155.11, 92.23, 71.34, 26.42, 16.77],
    tahoe=[214.35, 182.62, 135.51, 127.45, 61.88, 32.66, 15.97],
)

FILE = "table01_goodput_15ms.toml"
#: The reading that is drawn, and from which the further readings differ in one thing.
BASE = {"direction": "each", "window": 8, "acks": "false", "timers": "ns2-2000"}
#: The points of that reading.
ALONE = {
    "protocol": ["real", "reno", "reno"],
    "recovery": ["reno", "reno", "tahoe"],
    "window": [8, 8, 8],
    "parameters": [{"threshold_share": 1}, {}, {}],
    "direction": ["each"],
    "acks": [False],
    "timers": ["ns2-2000"],
}
#: The further readings: the repair of Real and Reno, and what else is different.
FURTHER = {
    "queue of 10 packets": ("reno", {"topology.link.wireless.queue": 10}, {}),
    "10 Mb/s, segments of 1,000 B": (
        "reno",
        {"topology.link.wireless.rate": "10Mbps", "flow.tcp.packet": "1040B"},
        {},
    ),
    "weights of the text": (
        "reno",
        {},
        {"parameters": [{"threshold_share": 1, "weights": "text"}, {}, {}]},
    ),
    "timers of RFC 6298": ("reno", {}, {"timers": ["rfc6298"]}),
    "repair of NewReno": ("newreno", {}, {"recovery": ["newreno", "newreno", "tahoe"]}),
    "repair of SACK": ("sack", {}, {"recovery": ["sack", "sack", "tahoe"]}),
}


LONG_WINDOW = Cause(
    "the path holds six segments, and after a timeout Real sends up to 48 segments again, "
    "although most of them have arrived",
    "At 0.20 it retransmits 2,100 to 2,400 segments for 3,592, and Reno 160 to 230 (timers of ns-2)",
)
AT_ONCE = Cause(
    "with one state for both directions half of the time is without errors, and with a state for "
    "each a quarter, so Reno has fewer timeouts",
    "At 0.20 it has 67 to 68 in a transfer, and 78 to 89 with a state for each (timers of ns-2)",
)
ALONE_FORWARD = Cause(
    "half of the time is without errors, and all ACKs arrive, so Reno has fewer timeouts than with "
    "losses both ways",
    "At 0.20 it has 65 to 68 in a transfer, and 78 to 89 with losses both ways apart (timers of "
    "ns-2)",
)
NOT_FULL = (
    "8 segments do not fill this path, and Real's level does not depend on a path that is not "
    "full (docs/results/kernel-real.md)"
)
#: What is known of each check.
ABOVE: Known = [
    ({"further": "10 Mb/s, segments of 1,000 B"}, {"fails": NOT_FULL}),
    ({"window": 48}, {"fails": LONG_WINDOW}),
]
MANY: Known = [
    ({"further": "10 Mb/s, segments of 1,000 B"}, {"fails": NOT_FULL}),
    (
        {"further": "weights of the text"},
        {"chance": "the interval includes the bound at 0.20"},
    ),
    ({"direction": "each", "window": 8}, {}),
    ({"direction": "each", "window": 48, "acks": "bsd", "timers": "bsd"}, {}),
    ({"window": 48}, {"fails": LONG_WINDOW}),
    ({"direction": "both"}, {"fails": AT_ONCE}),
    ({"direction": "forward"}, {"fails": ALONE_FORWARD}),
]
ORDER: Known = [
    ({"direction": "each", "window": 8}, {}),
    ({"direction": "both", "window": 8, "acks": "false"}, {}),
    *MANY,
]


@claim(
    "real-table1-goodput-15ms",
    says=(
        "Real has more goodput than Reno under on/off losses, and at least 1.3 times as much under "
        "many losses"
    ),
    source="table 1",
    scenario={
        "": Scenario(FILE, quick=QUICK),
        **{
            name: Scenario(FILE, set=keys, only={**ALONE, **axes}, quick={"seeds": 20})
            for name, (_, keys, axes) in FURTHER.items()
        },
    },
)
def table_1(runs, check):
    crossed = goodput_kBps(runs[""])
    for reading, axes in crossed.readings().items():
        judge(check, crossed.at(**axes), reading, axes)
    for reading, (repair, *_) in FURTHER.items():
        goodput = goodput_kBps(runs[reading], repair)
        name = f"both ways apart, 8 segments, {reading}"
        judge(check, goodput, name, {**BASE, "further": reading})
    crossed.at(**BASE).show(check, "kB/s", PAPER)


def judge(check, goodput: Protocols, reading: str, axes: dict[str, object]) -> None:
    """Judges the claim in one reading."""
    check(
        "Real over Reno",
        goodput.gain,
        above=1,
        paper=PAPER.gain,
        reading=reading,
        **known(ABOVE, axes),
    )
    check(
        "Real over Reno, many losses",
        goodput.gain.at(drop=lambda drop: drop >= 0.2),
        at_least=1.3,
        paper=PAPER.gain,
        reading=reading,
        **known(MANY, axes),
    )
    check(
        "rank correlation with the table's gain",
        spearman(goodput.gain, PAPER.gain),
        above=0.8,
        reading=reading,
        **known(ORDER, axes),
    )


@table_1.picture
def picture(runs, draw):
    crossed = goodput_kBps(runs[""])
    for direction, name in OPEN["direction"].items():
        goodput = crossed.at(**{**BASE, "direction": direction})
        goodput.draw_losses(draw, name, PAPER, "goodput, kB/s")
