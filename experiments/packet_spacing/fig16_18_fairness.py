"""Figures 16 to 18: two adaptive agents, started together, and one 10 s after the other.

The paper's agents are exactly periodic (jitter 0). The ratio of their mean rates over several runs
shows little: runs in which one or the other agent has much more cancel each other, and with five
seeds the ratio is on either side of a bound. So the smaller rate over the larger rate of each run
is judged, too.
"""

from comity.reproduction import claim

from ._shared import received, smaller_over_larger


def whole_run(*groups):
    """The mean rates of flows over the whole run."""
    return lambda run: run.bins(*groups, column="delivered_bytes", end_s=100).mean(axis=1)


@claim(
    "psp-fig16-18-adaptive-fair",
    says="two adaptive senders share fairly, started together or 10 s apart",
    source="section 3.3.1, figures 16 to 18",
    scenario="fig16_18_fairness.toml",
    quick={"seeds": 5, "only": {"settle": [True]}},
)
def figures_16_to_18(runs, check):
    # Together over the whole run, and 10 s apart over its second half.
    first, second = (runs.measure(received(flow)) for flow in ("first", "second"))
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
    locked = (
        "they lock their phases: if the packets of one agent arrive at the full queue, they "
        "continue to do so. Nothing in the protocol makes the rates of two agents equal"
    )
    locked_later = (
        "the phases lock as if they began together, but at other values: evenly in some runs, and "
        "unevenly in others"
    )
    # The axes of each reading, the form in which ratios of means are judged, and why they and the
    # shares of each run, together and 10 s apart, fail.
    readings = {
        "exactly periodic": (
            {"jitter": 0.0, "settle": True},
            "full",
            "the phases lock, in most runs with the later one ahead",
            locked,
            locked_later,
        ),
        "random intervals": ({"jitter": 1.0, "settle": True}, None, None, None, None),
        "exactly periodic, the letter of figure 4": (
            {"jitter": 0.0, "settle": False},
            "full",
            None,
            locked,
            None,
        ),
        "random intervals, the letter of figure 4": (
            {"jitter": 1.0, "settle": False},
            "full",
            None,
            None,
            None,
        ),
    }
    for reading, (axes, form, later_ahead, *shares) in readings.items():
        of_runs = None if axes["settle"] else "full"
        check(
            "first over second, together",
            together.at(**axes),
            at_least=0.9,
            at_most=1.1,
            paper=1,
            form=form,
            reading=reading,
        )
        check(
            "first over second, 10 s later",
            apart.at(**axes),
            at_least=0.85,
            at_most=1.18,
            paper=1,
            form=form,
            reading=reading,
            fails=later_ahead,
        )
        check(
            "smaller over larger of each run, together",
            whole_share.at(later="0s", **axes),
            at_least=0.9,
            paper=1,
            form=of_runs,
            reading=reading,
            fails=shares[0],
        )
        check(
            "smaller over larger of each run, 10 s later",
            share.at(later="10s", **axes),
            at_least=0.85,
            paper=1,
            form=of_runs,
            reading=reading,
            fails=shares[1],
        )
    check.show("the first, second half, Mb/s", first.at(settle=True))
    check.show("the second, second half, Mb/s", second.at(settle=True))


@figures_16_to_18.picture
def picture(runs, draw):
    for later, title in (("0s", "figure 17: together"), ("10s", "figure 18: 10 s apart")):
        rates = {
            flow: (
                runs.measure(received(flow)).at(later=later, settle=True),
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
    shares = {
        "together": share.at(later="0s", settle=True),
        "10 s apart": share.at(later="10s", settle=True),
    }
    draw.bars(
        "smaller over larger of each run",
        shares,
        over="jitter",
        x="jitter",
        y="ratio",
        wanted=(0.85, 1),
    )
