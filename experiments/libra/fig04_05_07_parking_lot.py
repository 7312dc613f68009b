"""Figures 4, 5 and 7: fairness and utilisation of eight flows on four links in series."""

from comity.reproduction import claim, jain

SCENARIO = {
    "scenario": "fig04_05_07_parking_lot.toml",
    "quick": {"seeds": 5, "set": {"scenario.duration": "300s"}},
}

FORWARD = [f"link-{number}" for number in range(1, 5)]


@claim(
    "libra-fig4-jain-long",
    says=(
        "Jain's index over medium and long flows is above that of New Reno and almost optimal, at "
        "both buffers"
    ),
    source="section 5, figure 4",
    **SCENARIO,
)
def figure_4(runs, check):
    index = runs.measure(lambda run: jain(run.flows("all+along").throughput_bps))
    libra, new_reno = index.at(controller="libra"), index.at(controller="reno")
    # In 300 s four flows of New Reno with 1.5 Mb/s each lose a few times, and who did early decides
    # a run.
    for buffer, form in ((83, None), (1500, "full")):
        ours, theirs = libra.at(buffer=buffer), new_reno.at(buffer=buffer)
        part = f"buffer of {buffer} packets"
        check(
            "Libra's index apart from New Reno's", ours, wholly_above=theirs, form=form, part=part
        )
        check("Libra's index above New Reno's", ours, above=theirs, part=part)
        check("Libra's index", ours, at_least=0.95, part=part)


@claim(
    "libra-fig5-jain-all",
    says="Jain's index over all flows is above that of New Reno, at both buffers",
    source="section 5, figure 5",
    **SCENARIO,
)
def figure_5(runs, check):
    index = runs.measure(lambda run: jain(run.flows().throughput_bps))
    for buffer in (83, 1500):
        check(
            "Libra's index apart from New Reno's",
            index.at(controller="libra", buffer=buffer),
            wholly_above=index.at(controller="reno", buffer=buffer),
            part=f"buffer of {buffer} packets",
        )


@claim(
    "libra-fig7-utilisation",
    says="links are used as well as by TCP, at both buffers",
    source="section 5, figure 7",
    **SCENARIO,
)
def figure_7(runs, check):
    used = runs.measure(lambda run: run.links(*FORWARD).utilisation.mean())
    libra, new_reno = used.at(controller="libra"), used.at(controller="reno")
    for buffer in (83, 1500):
        check(
            "utilisation with Libra over that with New Reno",
            (libra / new_reno).at(buffer=buffer),
            at_least=0.95,
            part=f"buffer of {buffer} packets",
        )
    check.show("utilisation with Libra", libra)


def both(values):
    """The values of either controller, by its name."""
    return {"Libra": values.at(controller="libra"), "New Reno": values.at(controller="reno")}


@figure_4.picture
def draw_4(runs, draw):
    index = runs.measure(lambda run: jain(run.flows("all+along").throughput_bps))
    draw.bars(
        "medium and long flows",
        both(index),
        over="buffer",
        x="buffer, packets",
        y="Jain's index",
        wanted=(0.95, 1),
    )


@figure_5.picture
def draw_5(runs, draw):
    index = runs.measure(lambda run: jain(run.flows().throughput_bps))
    draw.bars("all flows", both(index), over="buffer", x="buffer, packets", y="Jain's index")


@figure_7.picture
def draw_7(runs, draw):
    used = runs.measure(lambda run: run.links(*FORWARD).utilisation.mean())
    draw.bars("links", both(used), over="buffer", x="buffer, packets", y="utilisation")
