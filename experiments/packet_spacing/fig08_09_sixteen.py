"""Figures 8 and 9, and the abstract: 16 agents without feedback, by their spacing.

Figures 8 to 13 plot one agent and do not say which one: the mean over the agents, the median agent
and the best agent are readings. The paper's agents are exactly periodic (jitter 0), but its text
does not exclude random intervals.
"""

from comity.reproduction import claim

from ._shared import loss

SCENARIO = {
    "scenario": "fig08_09_sixteen.toml",
    "quick": {"seeds": 3, "set": {"scenario.duration": "12s"}},
}

FULL_LINK = (
    "up to a spacing of 1065 us the link is full, so the mean over the agents does not depend on "
    "the spacing: 155 Mb/s shared by 16"
)
#: Of the mean over the agents, whatever a sender does.
ARITHMETIC = (
    "arithmetic of a full link: 16 agents at 100 Mb/s offer 1600 Mb/s, and at 1000 us 164 Mb/s. "
    "The link carries 155 Mb/s in both cases, and the rest is lost"
)
A_PACKET = (
    "up to 1065 us the agents receive the same number of packets except for one or two, which "
    "decide where they receive most"
)
LOCKED = (
    "periodic agents lock their phases: if the packets of an agent arrive at a full queue of ten "
    "packets, they continue to do so"
)
LUCKY = (
    "the best agent receives most with the shortest spacing, because the other agents lose more "
    "packets"
)

DEPARTURES = {"exactly periodic": 0, "random intervals": 1}
#: What one agent receives, of the throughputs of all.
AGENTS = {"mean of the agents": "mean", "median agent": "median", "best agent": "max"}
#: What is known of a reading: of the throughput without spacing, of the place of the peak, and of
#: the rise to 1000 us.
KNOWN = {
    "exactly periodic, mean of the agents": (
        {"cannot_fail": ARITHMETIC},
        {"chance": A_PACKET},
        {"fails": FULL_LINK},
    ),
    "exactly periodic, median agent": (
        {"fails": LOCKED},
        {"fails": "the median agent receives most at 800 us"},
        {},
    ),
    "exactly periodic, best agent": ({"fails": LOCKED}, {"fails": LUCKY}, {"fails": LUCKY}),
    "random intervals, mean of the agents": (
        {"cannot_fail": ARITHMETIC},
        {"chance": A_PACKET},
        {"fails": FULL_LINK},
    ),
    "random intervals, median agent": (
        {"chance": "runs of 12 s and of 60 s are on different sides of the bound"},
        {"chance": A_PACKET},
        {},
    ),
    "random intervals, best agent": ({"fails": LUCKY}, {"fails": LUCKY}, {"fails": LUCKY}),
}


def received(agents):
    """What an agent receives, in Mb/s."""
    return lambda run: getattr(run.flows("psa").throughput_bps, agents)() / 1e6


@claim(
    "psp-fig8-9-sixteen",
    says=(
        "without spacing, 16 senders lose 90 % of their packets; most packets arrive with a "
        "spacing of 1000 us"
    ),
    source="section 3.2.2, figures 8 and 9",
    **SCENARIO,
)
def figures_8_and_9(runs, check):
    lost = runs.measure(loss)
    check(
        "loss without spacing",
        lost.at(spacing="0us"),
        at_least=0.85,
        at_most=0.93,
        paper=0.90,
        cannot_fail=ARITHMETIC,
    )
    for departures, jitter in DEPARTURES.items():
        for agents, function in AGENTS.items():
            reading = f"{departures}, {agents}"
            unspaced_known, peak_known, rise_known = KNOWN[reading]
            rate = runs.measure(received(function)).at(jitter=jitter)
            unspaced = rate.at(spacing="0us")
            check(
                "received without spacing, Mb/s",
                unspaced,
                within=(0.1, 9.7),
                paper=10,
                reading=reading,
                **unspaced_known,
            )
            check(
                "spacing at which most is received, us",
                rate.argmax("spacing") * 1e6,
                at_least=900,
                at_most=1100,
                paper=1000,
                reading=reading,
                **peak_known,
            )
            check(
                "received at 1000 us over that at 0",
                rate.at(spacing="1000us") / unspaced,
                above=1.01,
                reading=reading,
                **rise_known,
            )
    check.show("received, mean of the agents, Mb/s", runs.measure(received("mean")))
    check.show("received, median agent, Mb/s", runs.measure(received("median")))
    check.show("loss", lost)


@claim(
    "psp-abstract-loss",
    says="spacing can halve the loss, and more, without adversely affecting what is delivered",
    source="abstract",
    **SCENARIO,
)
def abstract(runs, check):
    lost, rate = runs.measure(loss), runs.measure(received("mean"))
    check(
        "loss at 1000 us over loss without spacing",
        lost.at(spacing="1000us") / lost.at(spacing="0us"),
        at_most=0.5,
        cannot_fail=ARITHMETIC,
    )
    check(
        "what is received likewise",
        rate.at(spacing="1000us") / rate.at(spacing="0us"),
        at_least=0.97,
        cannot_fail=ARITHMETIC,
    )


@figures_8_and_9.picture
def picture(runs, draw):
    spacing = {"over": "spacing", "unit": "us", "x": "spacing, us"}
    for departures, jitter in DEPARTURES.items():
        series = {
            name: runs.measure(received(function)).at(jitter=jitter)
            for name, function in AGENTS.items()
        }
        draw.lines(f"figure 8: {departures}", series, **spacing, y="received by an agent, Mb/s")
    draw.lines("figure 9", {"agents": runs.measure(loss).at(jitter=0)}, **spacing, y="loss")


@abstract.picture
def draw_abstract(runs, draw):
    spacing = {"over": "spacing", "unit": "us", "x": "spacing, us"}
    draw.lines("loss", {"agents": runs.measure(loss).at(jitter=0)}, **spacing, y="loss")
    draw.lines(
        "delivered",
        {"agents": runs.measure(received("mean")).at(jitter=0)},
        **spacing,
        y="throughput of an agent, Mb/s",
    )
