"""Table 3: goodput of a transfer of 50 MB with handoffs, 15 ms one way."""

from comity.reproduction import Scenario, claim

from ._shared import QUICK, Known, Protocols, goodput_kBps, known

#: Table 3, kB/s.
PAPER = Protocols(real=549.67, reno=310.98, tahoe=308.75)
#: The reading that is shown; it is drawn for each way in which packets are lost.
BASE = {"direction": "each", "rate": "10Mbps", "acks": "bsd", "timers": "ns2-2000"}

#: What is known of the check.
HANDOFFS: Known = [
    (
        {},
        {
            "fails": "an interruption costs both a timeout, and Reno fills so short a path again "
            "within a few round trips of 33 ms"
        },
    )
]


@claim(
    "real-table3-handoff-15ms",
    says="Real has 549.67 KB/s with handoffs, Reno 310.98 and Tahoe 308.75",
    source="table 3",
    scenario=Scenario("table03_handoff_15ms.toml", quick=QUICK),
)
def table_3(runs, check):
    goodput = goodput_kBps(runs)
    for reading, axes in goodput.readings().items():
        check(
            "Real over Reno",
            goodput.at(**axes).gain,
            at_least=1.4,
            paper=PAPER.gain,
            reading=reading,
            **known(HANDOFFS, axes),
        )
    goodput.at(**BASE).show(check, "kB/s", PAPER)


@table_3.picture
def picture(runs, draw):
    of_directions = {axis: value for axis, value in BASE.items() if axis != "direction"}
    goodput = goodput_kBps(runs).at(**of_directions)
    goodput.draw_handoffs(draw, PAPER, "goodput, kB/s", "direction", "losses")
