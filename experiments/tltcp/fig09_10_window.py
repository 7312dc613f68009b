"""Figures 9 and 10: 30 flows with receiver windows of 5 to 80 packets."""

from comity.reproduction import Cause, claim

from ._shared import FRIENDLY, NOTHING_LOST, WANTED, F, F_best, F_worst, S


@claim(
    "tltcp-fig9-10-window",
    says="fair with windows of 5 and 10 packets, and fairer with 40 than with 20",
    source="section 6.2.2, figures 9 and 10",
    scenario="fig09_10_window.toml",
)
def figures_9_and_10(runs, check):
    friendliness, separation = runs.measure(F), runs.measure(S)
    mix = friendliness.at(tltcp=15, blind_spot=True)
    small, large = {"window": [5, 10]}, {"window": lambda packets: packets >= 40}
    check("F at 5 and 10", mix.at(**small), **FRIENDLY, paper=1, cannot_fail=NOTHING_LOST)
    check(
        "S at 5 and 10",
        separation.at(blind_spot=True, **small),
        below=1.3,
        paper=1,
        cannot_fail=NOTHING_LOST,
    )
    check("S of TCP alone at 20", separation.at(tltcp=0, window=20), above=1.5, paper=2)
    check(
        "distance of F from 1 at 40, less than at 20",
        abs(mix.at(window=40) - 1),
        below=abs(mix.at(window=20) - 1),
    )
    check("F with large windows", mix.at(**large), above=1)
    check("F at 80, over that at 40", mix.at(window=80) / mix.at(window=40), within=(0.1, 1))
    # The paper does not say which of the two ratios it calls close to 1.
    for name, measure, cause in (
        ("F_best", F_best, None),
        (
            "F_worst",
            F_worst,
            Cause("F_worst puts all flows of the faster class into one half", "S is 2.7"),
        ),
    ):
        alone = runs.measure(measure).at(tltcp=0, window=20)
        check(
            f"{name} of TCP alone at 20, close to 1",
            alone,
            at_most=1.2,
            paper=1,
            reading=name,
            fails=cause,
        )
    check.show("F with every loss seen", friendliness.at(tltcp=15, blind_spot=False))
    check.show("S of the mix", separation.at(tltcp=15, blind_spot=True))
    check.show("S of TCP alone", separation.at(tltcp=0))
    check.show("F_worst of TCP alone", runs.measure(F_worst).at(tltcp=0))


@figures_9_and_10.picture
def picture(runs, draw):
    ratio, separation = runs.measure(F), runs.measure(S)
    window = "receiver window, packets"
    mixes = {
        "TLTCP": (ratio.at(tltcp=15, blind_spot=True), 1),
        "TLTCP, every loss seen": ratio.at(tltcp=15, blind_spot=False),
    }
    draw.lines("figure 9: friendliness", mixes, over="window", x=window, y="F", wanted=WANTED)
    separations = {"TLTCP": separation.at(tltcp=15, blind_spot=True), "TCP": separation.at(tltcp=0)}
    draw.lines("figure 10: separation", separations, over="window", x=window, y="S")
