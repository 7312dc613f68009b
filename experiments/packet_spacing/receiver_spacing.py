"""Section 3.2.4: whether packets that were spaced are still spaced when they arrive.

The paper's spacing is from the end of a packet to the start of the next one. It is shorter than
the time between arrivals by the 73.7 us that a packet takes on the last link.
"""

from comity.reproduction import claim

#: Section 3.2.4, us.
MEAN, STANDARD_DEVIATION = 1540.6, 64.75


def mean_us(run):
    """The mean time from arrival to arrival."""
    return run.flows("psa").arrival_spacing_mean_s.mean() * 1e6


def stddev_us(run):
    """The standard deviation of the time from arrival to arrival."""
    return run.flows("psa").arrival_spacing_stddev_s.mean() * 1e6


@claim(
    "psp-receiver-spacing",
    says=(
        "packets that leave every 1500 us arrive every 1540.6 us with a standard deviation of "
        "64.75 us"
    ),
    source="section 3.2.4",
    scenario="receiver_spacing.toml",
    quick={"seeds": 3, "set": {"scenario.duration": "30s"}},
)
def section_3_2_4(runs, check):
    arrivals, deviation = runs.measure(mean_us), runs.measure(stddev_us)
    gaps = (
        "the windows overflow the queue of ten packets, and each spaced packet that is lost "
        "leaves a gap of two periods at its receiver"
    )
    for window, cause in ((20, None), (800, gaps)):
        for spacing, less in (("from arrival to arrival", 0), ("from end to start", 73.7)):
            reading = f"{spacing}, window of {window}"
            check(
                "mean time, us",
                arrivals.at(window=window) - less,
                within=(0.05, MEAN),
                paper=MEAN,
                reading=reading,
                fails=None if less else cause,
            )
            check(
                "standard deviation, us",
                deviation.at(window=window),
                below=100,
                paper=STANDARD_DEVIATION,
                reading=reading,
                fails=cause,
            )


@section_3_2_4.picture
def picture(runs, draw):
    window = {"over": "window", "x": "TCP's window, packets"}
    draw.bars(
        "time from end to start",
        {"agents": (runs.measure(mean_us) - 73.7, MEAN)},
        **window,
        y="mean, us",
    )
    draw.bars(
        "its spread",
        {"agents": (runs.measure(stddev_us), STANDARD_DEVIATION)},
        **window,
        y="standard deviation, us",
    )
