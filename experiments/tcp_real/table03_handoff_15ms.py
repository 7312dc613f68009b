"""Table 3: goodput of a transfer of 50 MB with handoffs, 15 ms one way."""

from comity.reproduction import claim

from ._shared import QUEUE_10, Protocols, goodput_kBps

#: Table 3, kB/s.
PAPER = Protocols(real=549.67, reno=310.98, tahoe=308.75)

CAUSES = {
    50: "an interruption costs both a timeout. The 13 segments that the path holds are in flight "
    "again after a few round trips of 33 ms",
    10: QUEUE_10,
}


@claim(
    "real-table3-handoff-15ms",
    says="Real has 549.67 KB/s with handoffs, Reno 310.98 and Tahoe 308.75",
    source="table 3",
    scenario="table03_handoff_15ms.toml",
)
def table_3(runs, check):
    goodput = goodput_kBps(runs)
    for queue, cause in CAUSES.items():
        check(
            "Real over Reno",
            goodput.gain.at(queue=queue),
            at_least=1.4,
            paper=PAPER.gain,
            reading=f"queue of {queue} packets",
            fails=cause,
        )
    goodput.show(check, "kB/s", PAPER)


@table_3.picture
def picture(runs, draw):
    goodput_kBps(runs).draw_handoffs(draw, PAPER, "goodput, kB/s")
