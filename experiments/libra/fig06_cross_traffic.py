"""Figure 6: Jain's index by the number of short flows that cross."""

from comity.reproduction import Scenario, claim, jain
from comity.reproduction.values import meet

QUICK = {"seeds": 5, "set": {"scenario.duration": "300s"}}
LIBRA = {
    "controller": ["libra"],
    "parameters": [{"capacity": "100Mbps", "memory": "unlimited"}],
}


@claim(
    "libra-fig6-cross-traffic",
    says="the index falls with every short flow that is added, and stays above that of TCP",
    source="section 5, figure 6",
    # The figure has Libra alone, and sends the reader to figure 5 for TCP, with all short flows: so
    # New Reno's runs are those of figure 5. README.md has New Reno beside fewer.
    scenario={
        "libra": Scenario("fig06_cross_traffic.toml", only=LIBRA, quick=QUICK),
        "all short flows": Scenario("fig04_05_07_parking_lot.toml", quick=QUICK),
    },
)
def figure_6(runs, check):
    index, new_reno = of_all_flows(runs)
    along = runs["libra"].measure(lambda run: jain(run.flows("all+along").throughput_bps))
    falls = "index by short flows"
    check("Libra's index never rises", index, never_rises_over="short", part=falls)
    # The intervals of five seeds of 300 s meet.
    check("Libra's index falls", index, falls_over="short", form="full", part=falls)
    check("Libra's index above New Reno's with 4", index.at(short=4), above=new_reno)
    check.show("New Reno's index with 4", new_reno)
    check.show("Libra's over medium and long flows alone", along)


def of_all_flows(runs):
    """The index of Libra by short flows, and that of New Reno with four."""
    # Over all flows that are there: so the last bar of the figure is that of figure 5.
    index, five = (
        runs[name].measure(lambda run: jain(run.flows().throughput_bps))
        for name in ("libra", "all short flows")
    )
    return index, five.at(controller="reno", buffer=83)


@figure_6.picture
def picture(runs, draw):
    index, new_reno = of_all_flows(runs)
    draw.bars(
        "all flows",
        {"Libra": index, "New Reno": meet(new_reno, index.at(short=[4]))[0]},
        over="short",
        x="short flows that cross",
        y="Jain's index",
    )
