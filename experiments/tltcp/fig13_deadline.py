"""Figure 13: 15 TLTCP and 15 TCP flows, deadlines of 0.5 to 62.5 s."""

from comity.reproduction import Cause, claim

from ._shared import FRIENDLY, WANTED, F, F_worst, S

NO_LOSS = (
    "with the window of Table 1 nothing is lost in the network that the paper describes, so "
    "nothing needs a retransmission, fast or otherwise"
)


def per_packet(column):
    """A count of TLTCP for each packet that it delivered."""

    def count(run):
        flows = run.flows("tltcp")
        return flows[column].sum() / flows.delivered_wire_bytes.sum() * 1500

    return count


@claim(
    "tltcp-fig13-deadline",
    says="fair for deadlines from 2.5 s; with 0.5 s it gets less than TCP",
    source="section 6.2.4, figure 13",
    scenario="fig13_deadline.toml",
)
def figure_13(runs, check):
    friendliness, separation = runs.measure(F), runs.measure(S)
    fast, timeouts = (
        runs.measure(per_packet("fast_retransmits")),
        runs.measure(per_packet("timeouts")),
    )
    from_2500_ms = {"deadline": lambda seconds: seconds >= 2.5}

    def mix(values, blind_spot=True, held=False, window=10, queue=400):
        network = {"window": window, "queue": queue}
        return values.at(tltcp=15, blind_spot=blind_spot, held=held, **network)

    table_1 = "window of 10 packets"
    check(
        "F from 2.5 s", mix(friendliness).at(**from_2500_ms), **FRIENDLY, paper=1, reading=table_1
    )
    check(
        "F at 0.5 s",
        mix(friendliness).at(deadline="500ms"),
        below=1,
        reading=table_1,
        chance=(
            f"both get the same: {NO_LOSS}. With 20 packets TLTCP gets more, since "
            "the acknowledgement behind a jump covers what was lost before it"
        ),
    )
    check(
        "fast retransmits per packet at 0.5 s, less than half of 2.5 s",
        mix(fast).at(deadline="500ms"),
        below=mix(fast).at(deadline="2500ms") / 2,
        reading=table_1,
        fails=Cause(NO_LOSS, "With 20 packets there are 0.88 times as many"),
    )
    check(
        "timeouts per packet at 0.5 s, above those at 2.5 s",
        mix(timeouts).at(deadline="500ms"),
        above=mix(timeouts).at(deadline="2500ms"),
        reading=table_1,
        chance=Cause(
            f"{NO_LOSS}. The few timeouts come from the first seconds, so chance decides",
            "With 20 packets there are as many at 0.5 s as at 2.5 s within their intervals, and "
            "half of those at 12.5 s",
        ),
    )
    by_chance = {"chance": "single seeds lie on either side of the bound"}
    covered = (
        "the acknowledgement behind a jump covers what was lost before it, so a flow sees neither "
        "duplicates nor a timeout, and gets more than TCP"
    )
    every_loss = {
        "fails": "a flow that sees every loss retransmits what is still of use, at any deadline"
    }
    kept = {
        "fails": "fast retransmits are rare with 0.5 and with 2.5 s: a jump comes before three "
        "duplicates in both"
    }
    # The network of each reading, and what is known of its checks, in their order.
    readings = {
        "window of 20 packets": (
            {"window": 20, "queue": 400, "blind_spot": True},
            {
                "fails": "with 20 packets the queue drops. The blind spot then gives TLTCP more "
                "than TCP, and less of it with longer deadlines"
            },
            {"fails": covered},
            {
                "fails": "the acknowledgement behind a jump covers what was lost before it, so "
                "fast retransmits fall with timeouts"
            },
            by_chance,
        ),
        "window of 20 packets, every loss seen": (
            {"window": 20, "queue": 400, "blind_spot": False},
            {},
            by_chance,
            every_loss,
            by_chance,
        ),
        "window of 20 packets, lost obsolete packets kept": (
            {"window": 20, "queue": 400, "held": True},
            by_chance,
            by_chance,
            kept,
            by_chance,
        ),
        "window of 10 packets, queue of 200": (
            {"window": 10, "queue": 200, "blind_spot": True},
            {
                "fails": Cause(
                    "half the queue drops, and the acknowledgement behind a jump covers what was "
                    "lost before it",
                    "TLTCP then gets 2.6 times as much as TCP with 2.5 s",
                )
            },
            {"fails": covered},
            {"fails": "TLTCP has next to no fast retransmits with 0.5 and with 2.5 s"},
            {"fails": "TLTCP has next to no timeouts: TCP has them"},
        ),
        "window of 10 packets, queue of 200, every loss seen": (
            {"window": 10, "queue": 200, "blind_spot": False},
            {},
            {},
            every_loss,
            by_chance,
        ),
        "window of 10 packets, queue of 200, lost obsolete packets kept": (
            {"window": 10, "queue": 200, "held": True},
            by_chance,
            {
                "fails": Cause(
                    "TLTCP still gets more than TCP",
                    "It gets 1.4 times as much, instead of 2.7 times",
                )
            },
            by_chance,
            {
                "fails": Cause(
                    "there are more timeouts than where lost packets are not kept, and still more "
                    "with 2.5 s, where more packets are lost",
                    "Six times as many with 0.5 s, and twice as many again with 2.5 s",
                )
            },
        ),
    }
    for reading, (network, fair, behind, fewer_fast, more_timeouts) in readings.items():
        ratio = mix(friendliness, **network)
        check(
            "F from 2.5 s",
            ratio.at(**from_2500_ms),
            **FRIENDLY,
            paper=1,
            reading=reading,
            **fair,
        )
        check("F at 0.5 s", ratio.at(deadline="500ms"), below=1, reading=reading, **behind)
        check(
            "fast retransmits per packet at 0.5 s, less than half of 2.5 s",
            mix(fast, **network).at(deadline="500ms"),
            below=mix(fast, **network).at(deadline="2500ms") / 2,
            reading=reading,
            **fewer_fast,
        )
        check(
            "timeouts per packet at 0.5 s, above those at 2.5 s",
            mix(timeouts, **network).at(deadline="500ms"),
            above=mix(timeouts, **network).at(deadline="2500ms"),
            reading=reading,
            **more_timeouts,
        )
        check.show("F", ratio, reading=reading)
        check.show("fast retransmits per packet", mix(fast, **network), reading=reading)
        check.show("timeouts per packet", mix(timeouts, **network), reading=reading)
    check.show("S of the mix", separation.at(tltcp=15, blind_spot=True, held=False))
    check.show("S of TCP alone", separation.at(tltcp=0))
    check.show("F_worst of TCP alone", runs.measure(F_worst).at(tltcp=0))


@figure_13.picture
def picture(runs, draw):
    ratio = runs.measure(F)
    for window, queue in ((10, 400), (20, 400), (10, 200)):
        network = {"window": window, "queue": queue}
        mixes = {
            "TLTCP": (ratio.at(tltcp=15, blind_spot=True, held=False, **network), 1),
            "TLTCP, lost packets kept": ratio.at(tltcp=15, held=True, **network),
            "TLTCP, every loss seen": ratio.at(tltcp=15, blind_spot=False, **network),
        }
        title = f"window of {window} packets, queue of {queue}"
        draw.lines(
            title, mixes, over="deadline", unit="s", x="deadline, s", y="F", wanted=WANTED, log=True
        )
