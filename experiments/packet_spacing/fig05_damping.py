"""Figure 5: the ad-hoc protocol against the damped one."""

from comity.reproduction import claim

from ._shared import received


def swing(run):
    """The standard deviation of the packets that an agent sends in a bin of 100 ms."""
    return run.bins("psa", column="sent_packets", start_s=5, end_s=100).std(axis=1).mean()


@claim(
    "psp-fig5-damping",
    says="damping makes the sending rate steadier and raises throughput by 10 %",
    source="section 2.2, figure 5",
    scenario="fig05_damping.toml",
    quick={"seeds": 3, "only": {"settle": [True], "jitter": [1.0]}},
)
def figure_5(runs, check):
    def damped_over_ad_hoc(number):
        values = runs.measure(number)
        return values.at(damped=True) / values.at(damped=False)

    throughput = damped_over_ad_hoc(lambda run: run.flows("psa").throughput_bps.mean())
    deviation = damped_over_ad_hoc(swing)
    # The axes of each reading, the form in which it is judged, and whether chance decides. By the
    # letter of figure 4 every report is judged, and senders are exactly periodic.
    readings = {
        "reports judged once, random intervals": (
            {"settle": True, "jitter": 1.0},
            None,
            "five seeds leave it at 0.92 +- 0.37",
        ),
        "reports judged once, exactly periodic": ({"settle": True, "jitter": 0.0}, "full", None),
        "every report judged, random intervals": ({"settle": False, "jitter": 1.0}, "full", None),
        "the letter of figure 4": ({"settle": False, "jitter": 0.0}, "full", None),
    }
    for reading, (chosen, form, by_chance) in readings.items():
        check(
            "throughput, damped over ad hoc",
            throughput.at(**chosen),
            at_least=1.05,
            paper=1.1,
            form=form,
            reading=reading,
        )
        check(
            "standard deviation of the sending rate, damped over ad hoc",
            deviation.at(**chosen),
            below=1,
            form="full",
            reading=reading,
            chance=by_chance,
        )


@figure_5.picture
def picture(runs, draw):
    rates = {
        name: runs.measure(received("psa")).at(damped=damped, jitter=1.0)
        for name, damped in (("ad hoc", False), ("damped", True))
    }
    swings = {
        name: runs.measure(swing).at(damped=damped, jitter=1.0)
        for name, damped in (("ad hoc", False), ("damped", True))
    }
    judged = {"over": "settle", "x": "True: each round is judged once, False: by each report"}
    draw.bars("throughput", rates, **judged, y="Mb/s")
    draw.bars("sending rate", swings, **judged, y="standard deviation, packets in 100 ms")
