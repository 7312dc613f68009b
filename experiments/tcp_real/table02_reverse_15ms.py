"""Table 2: goodput of a transfer of 5 MB with on/off losses in the reverse direction, 15 ms one
way.
"""

from comity.reproduction import Cause, claim

from ._shared import CUMULATIVE, QUEUE_10, QUEUE_10_ROW, REVERSE, goodput_kBps, printed

#: Table 2, kB/s.
PAPER = printed(
    REVERSE,
    real=[233.87, 217.29, 187.09, 161.87, 114.30, 102.47, 69.62],
    reno=[233.91, 221.26, 186.00, 171.99, 113.49, 71.95, 24.57],
    tahoe=[226.08, 208.90, 172.62, 170.15, 99.62, 76.05, 43.50],
)

OPENING = Cause(
    "the opening decides it. The timeout is 6 s and doubles while the first acknowledgements are "
    "lost: Reno begins with one segment under way, and Real with two",
    "At 0.36 Real is 10.3 % ahead. The opening hits 10 of 20 transfers of Reno and 7 of Real. The "
    "other transfers have 226 kB/s with either",
)
ENOUGH = (
    "acknowledgements are cumulative: with a window of 48 segments enough of them reach Reno, "
    "even when 3 of 4 are lost"
)
#: For each queue: why some losses change the order, and why many do not.
CAUSES = {50: (OPENING, ENOUGH), 10: (QUEUE_10, QUEUE_10)}


@claim(
    "real-table2-reverse-15ms",
    says=(
        "Real has as much goodput as Reno under losses in the reverse direction, and more when "
        "half of the acknowledgements are lost"
    ),
    source="table 2",
    scenario="table02_reverse_15ms.toml",
)
def table_2(runs, check):
    goodput = goodput_kBps(runs)
    for queue, (some, many) in CAUSES.items():
        gain = goodput.gain.at(queue=queue)
        reading = f"queue of {queue} packets"
        check(
            "Real over Reno, some losses",
            gain.at(drop=lambda drop: drop <= 0.36),
            within=(0.1, 1),
            paper=PAPER.gain,
            reading=reading,
            fails=some,
        )
        for drop, bound in ((0.555, 1.3), (0.75, 2)):
            check(
                f"Real over Reno at {drop}",
                gain.at(drop=[drop]),
                at_least=bound,
                paper=PAPER.gain,
                reading=reading,
                fails=many,
            )
    timeouts = "A transfer has 3 to 5 timeouts, where the paper's loses half of its goodput at 0.36"
    few_timeouts = Cause(CUMULATIVE, timeouts)
    tahoe = Cause(
        f"{CUMULATIVE}. No data is lost with a queue of 50 packets, so Tahoe is Reno there",
        timeouts,
    )
    goodput.show(check, "kB/s", PAPER, (QUEUE_10_ROW, few_timeouts, tahoe))


@table_2.picture
def picture(runs, draw):
    goodput = goodput_kBps(runs)
    for queue in CAUSES:
        title = f"queue of {queue} packets"
        goodput.at(queue=queue).draw_losses(draw, title, PAPER, "goodput, kB/s")
