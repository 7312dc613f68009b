"""Figures 11 and 12: 30 flows over bottleneck delays of 1 to 500 ms."""

from comity.reproduction import claim

from ._shared import FRIENDLY, NOTHING_LOST, WANTED, F, S


@claim(
    "tltcp-fig11-12-delay",
    says="fair at every delay of the bottleneck, with round-trip estimates close to those of TCP",
    source="section 6.2.3, figures 11 and 12",
    scenario="fig11_12_delay.toml",
)
def figures_11_and_12(runs, check):
    separation = runs.measure(S)
    srtt = runs.measure(
        lambda run: run.flows("tltcp").srtt_s.mean() / run.flows("tcp").srtt_s.mean()
    )
    check("F", runs.measure(F).at(tltcp=15), **FRIENDLY, paper=1, cannot_fail=NOTHING_LOST)
    check("round-trip estimate over that of TCP", srtt.at(tltcp=15), within=(0.05, 1), paper=1)
    check.show("S of the mix", separation.at(tltcp=15))
    check.show("S of TCP alone", separation.at(tltcp=0))


@figures_11_and_12.picture
def picture(runs, draw):
    delay = "delay of the bottleneck, ms"
    ratio, separation = {"TLTCP": (runs.measure(F).at(tltcp=15), 1)}, runs.measure(S)
    draw.lines(
        "figure 11: friendliness", ratio, over="delay", unit="ms", x=delay, y="F", wanted=WANTED
    )
    separations = {"TLTCP": (separation.at(tltcp=15), 1), "TCP": separation.at(tltcp=0)}
    draw.lines("figure 12: separation", separations, over="delay", unit="ms", x=delay, y="S")
