"""Figure 19: two adaptive agents with 10 TCP connections in the background."""

from comity.reproduction import claim

from ._shared import smaller_over_larger


def fall(run):
    """The rate in the second after TCP starts over that before, of the agent that falls less."""
    after, before = (
        run.bins("first", "second", column="sent_packets", start_s=start, end_s=start + 1).mean(
            axis=1
        )
        for start in (20.1, 19)
    )
    return (after / before).max()


#: The axes of each reading. The quick form has the first one alone.
READINGS = {
    "random intervals": {"jitter": 1.0, "settle": True},
    "exactly periodic": {"jitter": 0.0, "settle": True},
    "random intervals, the letter of figure 4": {"jitter": 1.0, "settle": False},
    "exactly periodic, the letter of figure 4": {"jitter": 0.0, "settle": False},
}


@claim(
    "psp-fig19-background-tcp",
    says=(
        "two adaptive senders beside 10 TCP connections have very similar rates and respond readily"
    ),
    source="section 3.3.2, figure 19",
    scenario="fig19_background.toml",
    quick={
        "seeds": 5,
        "set": {"scenario.duration": "60s"},
        "only": {"jitter": [1.0], "settle": [True]},
    },
)
def figure_19(runs, check):
    share = runs.measure(
        lambda run: smaller_over_larger(run.flows("first", "second").throughput_bps)
    )
    fallen = runs.measure(fall)
    for reading, axes in READINGS.items():
        form = None if reading == "random intervals" else "full"
        check(
            "smaller over larger rate",
            share.at(**axes),
            at_least=0.85,
            paper=1,
            form=form,
            reading=reading,
            fails=(
                "a step of 2 us raises the rate of the faster agent more, and doubling the "
                "spacing lowers it less. After a disturbance, the rates stay different"
            ),
        )
        check(
            "rate in the second after TCP starts over that before, of the agent that falls less",
            fallen.at(**axes),
            below=1,
            form=form,
            reading=reading,
            chance=None if axes["settle"] else "the interval reaches 1: rates swing as much anyway",
        )


@figure_19.picture
def picture(runs, draw):
    window = {"over": "window", "x": "TCP's window, packets"}
    share = runs.measure(
        lambda run: smaller_over_larger(run.flows("first", "second").throughput_bps)
    )
    draw.bars(
        "smaller over larger rate",
        {"agents": (share.at(**READINGS["random intervals"]), 1)},
        **window,
        y="ratio",
        wanted=(0.85, 1),
    )
    draw.bars(
        "rate in the second after TCP starts",
        {"agents": runs.measure(fall).at(**READINGS["random intervals"])},
        **window,
        y="over that before",
    )
