"""Tables 7 to 9: goodput with a one-way delay of 50 ms."""

from comity.reproduction import Scenario, claim

from ._shared import (
    CUMULATIVE,
    FORWARD,
    QUEUE_10,
    REVERSE,
    Protocols,
    draw_tables,
    goodput_kBps,
    of_tables,
    printed,
)

#: Table 7, kB/s, losses in the forward direction.
FORWARD_PAPER = printed(
    FORWARD,
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


@claim(
    "real-table7-9-goodput-50ms",
    says=(
        "with 50 ms Real loses to Reno without losses, and has 2 to 10 times its goodput with them"
    ),
    source="tables 7 to 9",
    scenario={
        "forward": Scenario("table07_goodput_50ms.toml"),
        "reverse": Scenario("table08_reverse_50ms.toml"),
        "handoff": Scenario("table09_handoff_50ms.toml"),
    },
)
def tables_7_to_9(runs, check):
    forward, reverse, handoff = of_tables(runs, goodput_kBps)
    handoff_causes = {
        50: "Real has its window back at once, where Reno takes a second to reach 48 segments. Of "
        "the 5.5 s between interruptions Real can gain no more than that second",
        10: QUEUE_10,
    }
    for queue, cause in handoff_causes.items():
        reading = f"queue of {queue} packets"
        gain = forward.gain.at(queue=queue)
        losses = None if queue == 50 else QUEUE_10
        check(
            "Real over Reno without losses",
            gain.at(drop=[0]),
            below=1,
            paper=FORWARD_PAPER.gain,
            reading=reading,
        )
        for drop, bound in ((0.05, 1.5), (0.2, 2.5)):
            check(
                f"Real over Reno at {drop}",
                gain.at(drop=[drop]),
                at_least=bound,
                paper=FORWARD_PAPER.gain,
                reading=reading,
                fails=losses,
            )
        check(
            "Real over Reno with handoffs",
            handoff.gain.at(queue=queue),
            at_least=1.8,
            paper=HANDOFF_PAPER.gain,
            reading=reading,
            fails=cause,
        )
        check.show(
            "Real over Reno, reverse",
            reverse.gain.at(queue=queue),
            paper=REVERSE_PAPER.gain,
            reading=reading,
        )
    interrupted = (
        "an interruption costs half a second, a timeout and about a second of round trips out of "
        "5.5 s. The paper's Reno and Tahoe get a fifth of what their link carries"
    )
    forward.show(check, "kB/s, forward", FORWARD_PAPER)
    reverse.show(
        check,
        "kB/s, reverse",
        REVERSE_PAPER,
        (
            "with a queue of 50 packets Real is above the paper's from 0.36 on, as Reno is. "
            f"With 10 {QUEUE_10}",
            f"{CUMULATIVE}. The paper's Reno loses half of its goodput at 0.19",
            f"{CUMULATIVE}. No data is lost with a queue of 50 packets, so Tahoe is Reno there",
        ),
    )
    handoff.show(
        check,
        "kB/s, handoffs",
        HANDOFF_PAPER,
        (
            "an interruption costs half a second and a timeout out of 5.5 s, and the window is "
            f"back at once. With a queue of 10 packets {QUEUE_10}",
            interrupted,
            interrupted,
        ),
    )


@tables_7_to_9.picture
def picture(runs, draw):
    papers = FORWARD_PAPER, REVERSE_PAPER, HANDOFF_PAPER
    draw_tables(runs, draw, goodput_kBps, "goodput, kB/s", *papers)
