"""Tables 10 to 12: the share of a player's reads that find their data, 50 ms one way."""

from comity.reproduction import Scenario, claim

from ._shared import (
    CUMULATIVE,
    EVERY_40_MS,
    FORWARD,
    QUEUE_10,
    QUEUE_10_ROW,
    REVERSE,
    Protocols,
    draw_tables,
    of_tables,
    printed,
    satisfied_reads,
)

#: Table 10, % of reads every 40 ms, losses in the forward direction.
FORWARD_PAPER = printed(
    FORWARD,
    real=[98.8, 88.3, 72.8, 63.8, 52.5, 17.5, 15.3],
    reno=[92.0, 88.0, 56.8, 38.3, 19.0, 5.3, 1.3],
    tahoe=[93.8, 83.0, 59.0, 48.0, 19.3, 8.5, 1.3],
)
#: Table 11, % of reads, losses in the reverse direction.
REVERSE_PAPER = printed(
    REVERSE,
    real=[98.8, 98.8, 92.2, 82.2, 53.6, 50.8, 31.6],
    reno=[93.6, 93.0, 92.0, 69.4, 37.2, 24.0, 9.4],
    tahoe=[93.6, 93.4, 87.2, 73.4, 58.4, 19.8, 12.2],
)
#: Table 12, % of reads, handoffs.
HANDOFF_PAPER = Protocols(real=64.71, reno=45.0, tahoe=43.29)


@claim(
    "real-table10-12-playback-50ms",
    says="more reads of a player find their data than with Reno, at 50 ms",
    source="tables 10 to 12",
    scenario={
        "forward": Scenario("table10_playback_50ms.toml", **EVERY_40_MS),
        "reverse": Scenario("table11_playback_reverse_50ms.toml", **EVERY_40_MS),
        "handoff": Scenario("table12_playback_handoff_50ms.toml", **EVERY_40_MS),
    },
)
def tables_10_to_12(runs, check):
    forward, reverse, handoff = of_tables(runs, satisfied_reads)
    handoff_causes = {
        50: "as in table 9: of 5.5 s Real can gain no more than a second",
        10: QUEUE_10,
    }
    for queue, cause in handoff_causes.items():
        reading = f"queue of {queue} packets"
        check(
            "points that Real has more, forward",
            forward.more.at(drop=[0.05, 0.1, 0.2], queue=queue),
            at_least=10,
            paper=FORWARD_PAPER.more,
            reading=reading,
            fails=None if queue == 50 else QUEUE_10,
        )
        check(
            "points that Real has more, handoffs",
            handoff.more.at(queue=queue),
            at_least=10,
            paper=HANDOFF_PAPER.more,
            reading=reading,
            fails=cause,
        )
        check.show(
            "points that Real has more, reverse",
            reverse.more.at(queue=queue),
            paper=REVERSE_PAPER.more,
            reading=reading,
        )
    interrupted = (
        "interruptions are 9.1 % of the time, and a timeout and about a second of round trips "
        "follow each. The paper's Reno and Tahoe lose more than half"
    )
    forward.show(check, "% of reads, forward", FORWARD_PAPER)
    reverse.show(
        check, "% of reads, reverse", REVERSE_PAPER, (QUEUE_10_ROW, CUMULATIVE, CUMULATIVE)
    )
    handoff.show(
        check,
        "% of reads, handoffs",
        HANDOFF_PAPER,
        (
            "the window is back at once after an interruption. With a queue of 10 packets "
            f"{QUEUE_10}",
            interrupted,
            interrupted,
        ),
    )


@tables_10_to_12.picture
def picture(runs, draw):
    papers = FORWARD_PAPER, REVERSE_PAPER, HANDOFF_PAPER
    draw_tables(runs, draw, satisfied_reads, "reads that find their data, %", *papers)
