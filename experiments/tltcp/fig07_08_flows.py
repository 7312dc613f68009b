"""Figures 7 and 8: friendliness and separation of 2 to 50 flows, half of them TLTCP."""

from comity.reproduction import Cause, claim

from ._shared import FRIENDLY, NOTHING_LOST, WANTED, F, F_best, F_worst, S


@claim(
    "tltcp-fig7-8-flows",
    says="fair to TCP with up to 40 flows, but not with 50, where TCP is not fair to itself either",
    source="section 6.2.1, figures 7 and 8",
    scenario="fig07_08_flows.toml",
)
def figures_7_and_8(runs, check):
    friendliness, separation = runs.measure(F), runs.measure(S)
    ours = runs.measure(lambda run: run.flows("tltcp").retransmitted_packets.mean())
    others = runs.measure(lambda run: run.flows("tcp").retransmitted_packets.mean())
    mixes = friendliness.at(tltcp=lambda count: count > 0)
    up_to_40 = {"tltcp": lambda count: 0 < count <= 20}
    check(
        "F up to 40 flows", mixes.at(**up_to_40), **FRIENDLY, paper=1, cannot_fail=NOTHING_LOST
    )
    check("F at 50 flows above F at 40", mixes.at(tltcp=25), above=mixes.at(tltcp=20))
    check(
        "S of the mix at 50 flows, at least that of TCP alone",
        separation.at(tltcp=25),
        at_least=separation.at(tltcp=0, tcp=50),
    )
    check(
        "retransmissions of a TLTCP flow at 50 flows, below TCP's",
        ours.at(tltcp=25),
        below=others.at(tltcp=25),
    )
    check(
        "S up to 40 flows",
        separation.at(**up_to_40),
        at_most=1.3,
        paper=1,
        cannot_fail=NOTHING_LOST,
    )
    # The paper has the ratio of the mix above that of TCP alone, and does not say which ratio.
    best, worst = runs.measure(F_best), runs.measure(F_worst)
    check(
        "F_best of the mix at 50 flows, above that of TCP alone",
        best.at(tltcp=25),
        above=best.at(tltcp=0, tcp=50),
        reading="F_best",
        chance=Cause("the intervals of the two meet", "1.017 of the mix and 1.013 of TCP alone"),
    )
    check(
        "F_worst of the mix at 50 flows, above that of TCP alone",
        worst.at(tltcp=25),
        above=worst.at(tltcp=0, tcp=50),
        reading="F_worst",
        fails="TCP alone falls into two classes in each seed, one that loses and one that does not",
    )
    check.show("S of the mix", separation.at(tltcp=lambda count: count > 0))
    check.show("S of TCP alone", separation.at(tltcp=[0]))
    check.show("F_worst of TCP alone", worst.at(tltcp=[0]))


@figures_7_and_8.picture
def picture(runs, draw):
    mixes = {"tltcp": lambda count: count > 0}
    flows = "TLTCP flows, beside as many of TCP"
    ratio = runs.measure(F).at(**mixes)
    draw.lines(
        "figure 7: friendliness", {"TLTCP": (ratio, 1)}, over="tltcp", x=flows, y="F", wanted=WANTED
    )
    separation = runs.measure(S)
    draw.lines(
        "figure 8: separation of the mix",
        {"TLTCP": separation.at(**mixes)},
        over="tltcp",
        x=flows,
        y="S",
    )
    alone = {"TCP": separation.at(tltcp=[0])}
    draw.lines("figure 8: separation of TCP alone", alone, over="tcp", x="TCP flows", y="S")
