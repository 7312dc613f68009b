"""Figure 13: 15 TLTCP and 15 TCP flows, deadlines of 0.5 to 62.5 s."""

from comity.reproduction import Cause, Scenario, claim

from ._shared import FRIENDLY, NOTHING_LOST, WANTED, F, F_worst, S

NO_LOSS = (
    "with the window of Table 1 nothing is lost in the network that the paper describes, so "
    "nothing needs a retransmission, fast or otherwise"
)


#: BSD's delayed ACKs, which the paper does not mention.
DELAYED = {"segments": 2, "timeout": "200ms"}
DELAYED_ACKS = "delayed ACKs"
#: Readings of sections 5.4 and 5.2: the name, the key of the time-line, and its value.
NO_SAMPLE, ON_TICK = "no sample from obsolete data", "lifetime timer on TCP's ticks"
CODED = {NO_SAMPLE: ("samples_obsolete", False), ON_TICK: ("lifetime_on_tick", True)}
#: The mixes with a blind spot: lost obsolete packets leave the window with a jump, or stay in it.
BLIND = {"tltcp": [15, 15], "tcp": [15, 15], "blind_spot": [True, True], "held": [False, True]}


def per_packet(column):
    """A count of TLTCP for each packet that it delivered."""

    def count(run):
        flows = run.flows("tltcp")
        return flows[column].sum() / flows.delivered_wire_bytes.sum() * 1500

    return count


COVERED = (
    "the acknowledgement after a jump covers the losses before it, so a flow sees neither "
    "duplicates nor a timeout, and gets more than TCP"
)
BY_CHANCE = {"chance": "single seeds are on either side of the bound"}
FEW_FAST = {
    "fails": "with 2.5 s as with 0.5 s a jump comes before three duplicates, and fast retransmits are "
    "few"
}
BLIND_AT_2500_MS = {"fails": f"with 2.5 s as well {COVERED}"}
DELAYED_AND_KEPT = {
    "fails": "lost obsolete packets keep their places until a timeout, with 2.5 s as with 0.5 s, and "
    "delayed ACKs make those that follow too few for TLTCP's share"
}
MORE_LOSSES = {"fails": "TLTCP loses more with 2.5 s, where it sends more, and timeouts follow losses"}
#: By the reading, window, queue, and whether lost obsolete packets stay in the window: what is
#: known of the four parts, in their order.
ADDED = {
    (DELAYED_ACKS, 20, 400, False): (BLIND_AT_2500_MS, {"fails": COVERED}, {}, BY_CHANCE),
    (DELAYED_ACKS, 20, 400, True): (DELAYED_AND_KEPT, {}, {}, MORE_LOSSES),
    (DELAYED_ACKS, 10, 200, False): (BLIND_AT_2500_MS, {"fails": COVERED}, {}, MORE_LOSSES),
    (DELAYED_ACKS, 10, 200, True): (DELAYED_AND_KEPT, {}, {}, MORE_LOSSES),
    (DELAYED_ACKS, 10, 280, False): ({}, {"fails": COVERED}, {}, BY_CHANCE),
    (DELAYED_ACKS, 10, 280, True): (DELAYED_AND_KEPT, {}, BY_CHANCE, MORE_LOSSES),
    (NO_SAMPLE, 20, 400, False): (BY_CHANCE,) * 4,
    (NO_SAMPLE, 20, 400, True): (BY_CHANCE,) * 4,
    (NO_SAMPLE, 10, 200, False): (BLIND_AT_2500_MS, {"fails": COVERED}, FEW_FAST, {}),
    (NO_SAMPLE, 10, 200, True): (BLIND_AT_2500_MS, BY_CHANCE, BY_CHANCE, BY_CHANCE),
    (ON_TICK, 20, 400, False): (BY_CHANCE, {"fails": COVERED}, FEW_FAST, BY_CHANCE),
    (ON_TICK, 20, 400, True): (BY_CHANCE, BY_CHANCE, FEW_FAST, BY_CHANCE),
    (ON_TICK, 10, 200, False): (BLIND_AT_2500_MS, {"fails": COVERED}, BY_CHANCE, MORE_LOSSES),
    (ON_TICK, 10, 200, True): (BY_CHANCE, {"fails": COVERED}, BY_CHANCE, MORE_LOSSES),
}


def numbers(runs):
    """What the figure is judged by: F, and fast retransmits and timeouts for each packet."""
    of = F, per_packet("fast_retransmits"), per_packet("timeouts")
    return [runs.measure(number) for number in of]


def judge(check, measured, reading, network, known):
    """Judges the four parts of the figure in one reading: its network and what is known of them."""
    network = {"tltcp": 15, "blind_spot": True, "held": False, **network}
    ratio, fast, timeouts = (values.at(**network) for values in measured)
    fair, behind, fewer_fast, more_timeouts = known
    check(
        "F from 2.5 s",
        ratio.at(deadline=lambda seconds: seconds >= 2.5),
        **FRIENDLY,
        paper=1,
        reading=reading,
        **fair,
    )
    check("F at 0.5 s", ratio.at(deadline="500ms"), below=1, reading=reading, **behind)
    check(
        "fast retransmits per packet at 0.5 s, less than half of 2.5 s",
        fast.at(deadline="500ms"),
        below=fast.at(deadline="2500ms") / 2,
        reading=reading,
        **fewer_fast,
    )
    check(
        "timeouts per packet at 0.5 s, above those at 2.5 s",
        timeouts.at(deadline="500ms"),
        above=timeouts.at(deadline="2500ms"),
        reading=reading,
        **more_timeouts,
    )
    check.show("F", ratio, reading=reading)
    check.show("fast retransmits per packet", fast, reading=reading)
    check.show("timeouts per packet", timeouts, reading=reading)


@claim(
    "tltcp-fig13-deadline",
    says="fair for deadlines from 2.5 s; with 0.5 s it gets less than TCP",
    source="section 6.2.4, figure 13",
    scenario={
        "": Scenario("fig13_deadline.toml"),
        DELAYED_ACKS: Scenario(
            "fig13_deadline.toml",
            set={f"flow.{group}.delayed_ack": DELAYED for group in ("tltcp", "tcp")},
            only={**BLIND, "window": [20, 10, 10], "queue": [400, 200, 280]},
        ),
        **{
            name: Scenario(
                "fig13_deadline.toml",
                set={f"flow.tltcp.timeline.{key}": value},
                only={**BLIND, "window": [20, 10], "queue": [400, 200]},
            )
            for name, (key, value) in CODED.items()
        },
    },
)
def figure_13(studies, check):
    runs = studies[""]
    separation = runs.measure(S)
    measured = {name: numbers(study) for name, study in studies.items()}
    few = f"{NO_LOSS}. The few timeouts come from the first seconds, so chance decides"
    table_1 = (
        {"cannot_fail": NOTHING_LOST},
        {
            "chance": f"both get the same: {NO_LOSS}. With 20 packets TLTCP gets more, since the "
            "acknowledgement after a jump covers the losses before it"
        },
        {"fails": Cause(NO_LOSS, "With 20 packets there are 0.88 times as many")},
        {
            "chance": Cause(
                few,
                "With 20 packets there are as many at 0.5 s as at 2.5 s within their intervals, "
                "and half of those at 12.5 s",
            )
        },
    )
    judge(check, measured[""], "window of 10 packets", {"window": 10, "queue": 400}, table_1)
    every_loss = {
        "fails": (
            "a flow that detects every loss retransmits the data that can still be on time, with "
            "any deadline"
        )
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
                "fails": (
                    "with 20 packets the queue drops packets. Because of the blind spot, TLTCP "
                    "then gets more than TCP, and the difference is smaller with longer deadlines"
                )
            },
            {"fails": COVERED},
            {
                "fails": (
                    "the acknowledgement after a jump covers the losses before it, so fast "
                    "retransmits fall with timeouts"
                )
            },
            BY_CHANCE,
        ),
        "window of 20 packets, every loss seen": (
            {"window": 20, "queue": 400, "blind_spot": False},
            {},
            BY_CHANCE,
            every_loss,
            BY_CHANCE,
        ),
        "window of 20 packets, lost obsolete packets kept": (
            {"window": 20, "queue": 400, "held": True},
            BY_CHANCE,
            BY_CHANCE,
            kept,
            BY_CHANCE,
        ),
        "window of 10 packets, queue of 200": (
            {"window": 10, "queue": 200, "blind_spot": True},
            {
                "fails": Cause(
                    "the queue of half the size drops packets, and the acknowledgement after a "
                    "jump covers the losses before it",
                    "TLTCP then gets 2.6 times as much as TCP with 2.5 s",
                )
            },
            {"fails": COVERED},
            {"fails": "TLTCP has almost no fast retransmits with 0.5 s and with 2.5 s"},
            {"fails": "TLTCP has almost no timeouts, but TCP has"},
        ),
        "window of 10 packets, queue of 200, every loss seen": (
            {"window": 10, "queue": 200, "blind_spot": False},
            {},
            {},
            every_loss,
            BY_CHANCE,
        ),
        "window of 10 packets, queue of 200, lost obsolete packets kept": (
            {"window": 10, "queue": 200, "held": True},
            BY_CHANCE,
            {
                "fails": Cause(
                    "TLTCP still gets more than TCP",
                    "It gets 1.4 times as much, instead of 2.7 times",
                )
            },
            BY_CHANCE,
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
        judge(check, measured[""], reading, network, (fair, behind, fewer_fast, more_timeouts))
    for (name, window, queue, held), known in ADDED.items():
        reading = f"{name}, window of {window} packets, queue of {queue}"
        reading += ", lost obsolete packets kept" if held else ""
        network = {"window": window, "queue": queue, "held": held}
        judge(check, measured[name], reading, network, known)
    check.show("S of the mix", separation.at(tltcp=15, blind_spot=True, held=False))
    check.show("S of TCP alone", separation.at(tltcp=0))
    check.show("F_worst of TCP alone", runs.measure(F_worst).at(tltcp=0))


@figure_13.picture
def picture(studies, draw):
    runs = studies[""]
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
