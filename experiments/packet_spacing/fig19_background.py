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


@claim(
    "psp-fig19-background-tcp",
    says=(
        "two adaptive senders beside 10 TCP connections have very similar rates and respond readily"
    ),
    source="section 3.3.2, figure 19",
    scenario="fig19_background.toml",
    quick={"seeds": 5, "set": {"scenario.duration": "60s"}},
)
def figure_19(runs, check):
    check(
        "smaller over larger rate",
        runs.measure(lambda run: smaller_over_larger(run.flows("first", "second").throughput_bps)),
        at_least=0.85,
        paper=1,
        fails=(
            "a step of 2 us is worth more to the faster of two, and doubling the spacing takes "
            "less from it. What a disturbance has set apart stays apart"
        ),
    )
    check(
        "rate in the second after TCP starts over that before, of the agent that falls less",
        runs.measure(fall),
        below=1,
    )


@figure_19.picture
def picture(runs, draw):
    window = {"over": "window", "x": "TCP's window, packets"}
    share = runs.measure(
        lambda run: smaller_over_larger(run.flows("first", "second").throughput_bps)
    )
    draw.bars(
        "smaller over larger rate", {"agents": (share, 1)}, **window, y="ratio", wanted=(0.85, 1)
    )
    draw.bars(
        "rate in the second after TCP starts",
        {"agents": runs.measure(fall)},
        **window,
        y="over that before",
    )
