"""Figure 6: Jain's index by the number of short flows that cross."""

from comity.reproduction import Scenario, claim, jain

QUICK = {"seeds": 3, "set": {"scenario.duration": "300s"}}
LIBRA = {
    "controller": ["libra"],
    "parameters": [{"capacity": "100Mbps", "memory": "unlimited"}],
}


@claim(
    "libra-fig6-cross-traffic",
    says="the index falls with every short flow that is added, and stays above that of TCP",
    source="section 5, figure 6",
    # The figure has Libra alone, and sends the reader to figure 5 for TCP, with all short flows.
    # New Reno beside fewer would be almost a third of the time that the full form takes; README.md
    # has them in the quick form.
    scenario={
        "libra": Scenario("fig06_cross_traffic.toml", only=LIBRA, quick=QUICK),
        "reno": Scenario(
            "fig06_cross_traffic.toml",
            only={"controller": ["reno"], "parameters": [{}], "short": [4]},
            quick=QUICK,
        ),
    },
)
def figure_6(runs, check):
    # Over all flows that are there: so the last bar of the figure is that of figure 5.
    index = runs["libra"].measure(lambda run: jain(run.flows().throughput_bps))
    new_reno = runs["reno"].measure(lambda run: jain(run.flows().throughput_bps)).mean()
    along = runs["libra"].measure(lambda run: jain(run.flows("all+along").throughput_bps))
    check("Libra's index by short flows", index, falls_over="short")
    check("Libra's index above New Reno's with 4", index.at(short=4), above=new_reno)
    check.show("New Reno's index with 4", new_reno)
    check.show("Libra's over medium and long flows alone", along)


@figure_6.picture
def picture(runs, draw):
    index = {
        name: runs[name.lower()].measure(lambda run: jain(run.flows().throughput_bps))
        for name in ("Libra", "Reno")
    }
    draw.bars("all flows", index, over="short", x="short flows that cross", y="Jain's index")
