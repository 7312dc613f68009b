"""Figures 16 to 18: two adaptive agents, started together, and one 10 s after the other.

The paper's agents are exactly periodic (jitter 0). The ratio of their mean rates over several runs
says little: runs in which one or the other is far ahead cancel, and five seeds leave the ratio on
either side of a bound. So the smaller rate of each run over its larger one is judged besides.
"""

from comity.reproduction import claim

from ._shared import smaller_over_larger


def whole_run(*groups):
    """The mean rates of flows over the whole run."""
    return lambda run: run.bins(*groups, column="delivered_bytes", end_s=100).mean(axis=1)


@claim(
    "psp-fig16-18-adaptive-fair",
    says="two adaptive senders share fairly, started together or 10 s apart",
    source="section 3.3.1, figures 16 to 18",
    scenario="fig16_18_fairness.toml",
    quick={"seeds": 5},
)
def figures_16_to_18(runs, check):
    # Together over the whole run, and 10 s apart over its second half.
    first, second = (
        runs.measure(lambda run, flow=flow: run.flows(flow).throughput_bps.mean() / 1e6)
        for flow in ("first", "second")
    )
    whole_first, whole_second = (
        runs.measure(lambda run, flow=flow: whole_run(flow)(run).mean())
        for flow in ("first", "second")
    )
    share = runs.measure(
        lambda run: smaller_over_larger(run.flows("first", "second").throughput_bps)
    )
    whole_share = runs.measure(lambda run: smaller_over_larger(whole_run("first", "second")(run)))
    together = (whole_first / whole_second).at(later="0s")
    apart = (first / second).at(later="10s")
    causes = {
        "exactly periodic": (
            0.0,
            "full",
            "the phases lock, in most of the ten runs with the later one ahead",
            "they lock phases: the one whose packets meet the full queue keeps meeting it. "
            "Nothing in the protocol pulls two agents together",
            "the phases lock as when they begin together, at other places: in some runs evenly, "
            "in others not",
        ),
        "random intervals": (1.0, None, None, None, None),
    }
    for reading, (jitter, form, later_ahead, locked, locked_later) in causes.items():
        check(
            "first over second, together",
            together.at(jitter=jitter),
            at_least=0.9,
            at_most=1.1,
            paper=1,
            form=form,
            reading=reading,
        )
        check(
            "first over second, 10 s later",
            apart.at(jitter=jitter),
            at_least=0.85,
            at_most=1.18,
            paper=1,
            form=form,
            reading=reading,
            fails=later_ahead,
        )
        check(
            "smaller over larger of each run, together",
            whole_share.at(later="0s", jitter=jitter),
            at_least=0.9,
            paper=1,
            reading=reading,
            fails=locked,
        )
        check(
            "smaller over larger of each run, 10 s later",
            share.at(later="10s", jitter=jitter),
            at_least=0.85,
            paper=1,
            reading=reading,
            fails=locked_later,
        )
    check.show("the first, second half, Mb/s", first)
    check.show("the second, second half, Mb/s", second)


@figures_16_to_18.picture
def picture(runs, draw):
    for later, title in (("0s", "figure 17: together"), ("10s", "figure 18: 10 s apart")):
        rates = {
            flow: (
                runs.measure(lambda run, flow=flow: run.flows(flow).throughput_bps.mean() / 1e6).at(
                    later=later
                ),
                None,
            )
            for flow in ("first", "second")
        }
        draw.bars(
            title,
            rates,
            over="jitter",
            x="0: exactly periodic, 1: random intervals",
            y="throughput, second half, Mb/s",
        )
    share = runs.measure(
        lambda run: smaller_over_larger(run.flows("first", "second").throughput_bps)
    )
    shares = {"together": share.at(later="0s"), "10 s apart": share.at(later="10s")}
    draw.bars(
        "smaller over larger of each run",
        shares,
        over="jitter",
        x="jitter",
        y="ratio",
        wanted=(0.85, 1),
    )
