"""Figure 10 and section 4.4: the tokens that a source consumes in a round trip."""

from comity.reproduction import Scenario, claim

from ._shared import NAMES, Known, Protocols, by_protocol, known

#: Section 4.4, kB per round trip.
PAPER = Protocols(real=11.12, reno=5.82, tahoe=3.65)


def mean_kB(run):
    """The mean of the tokens that are used in a round trip; 0 where none is measured."""
    return run.flows().tokens_per_rtt_bytes.fillna(0).mean() / 1000


def stddev_kB(run):
    """Their standard deviation."""
    return run.flows().tokens_per_rtt_stddev_bytes.fillna(0).mean() / 1000


def kBps(run):
    """The tokens that are used in a second, of 200 s."""
    return run.flows().tokens_used_bytes.mean() / 200 / 1000


#: The reading that is drawn, over the rate of the link.
BASE = {"direction": "each", "acks": "bsd", "timers": "ns2-2000"}

NO_LIMIT = {
    "fails": (
        "the link carries less than the token bucket allows: Real uses more in a round trip "
        "because its own queue makes the round trip longer"
    )
}
#: What is known of each check: that Reno is above Tahoe, that Real has 1.5 times as much as Reno,
#: that it is steadiest, and that it has more in a second.
RENO: Known = [
    (
        {"rate": "1.9Mbps", "acks": "bsd", "direction": "both"},
        {"chance": "the interval includes the bound"},
    ),
    ({"rate": "1.9Mbps", "acks": "bsd", "direction": "each"}, {}),
    (
        {},
        {"fails": "Tahoe's slow start costs nothing on so short a path, and Reno has more timeouts"},
    ),
]
GAIN: Known = [
    (
        {"direction": "forward", "acks": "false", "rate": rate},
        {"fails": "no queue makes round trips longer here"},
    )
    for rate in ("6Mbps", "10Mbps")
]
STEADY: Known = [
    (
        {"rate": "1.9Mbps", "acks": "bsd", "direction": "both"},
        {"chance": "the interval includes the bound"},
    ),
    ({"rate": "1.9Mbps", "acks": "bsd", "direction": "forward"}, NO_LIMIT),
]
IN_A_SECOND: Known = [
    ({"rate": "1.9Mbps", "acks": "false", "direction": "both"}, NO_LIMIT),
    ({"rate": "1.9Mbps", "direction": "forward"}, NO_LIMIT),
]


@claim(
    "real-fig10-tokens",
    says=(
        "Real uses 11.12 KB of tokens in a round trip, Reno 5.82 and Tahoe 3.65; the use of Real "
        "is the steadiest"
    ),
    source="section 4.4, figure 10",
    scenario=Scenario(
        "fig10_tokens.toml",
        only={"timers": ["ns2-2000"]},
        quick={"seeds": 20, "only": {"rate": ["1.9Mbps", "5Mbps"]}},
    ),
)
def figure_10(runs, check):
    tokens, stddev, rates = (
        by_protocol(runs.measure(measure)) for measure in (mean_kB, stddev_kB, kBps)
    )
    for reading, axes in tokens.readings().items():
        real, reno, tahoe = tokens.at(**axes)
        check("Real above Reno, kB", real, above=reno, paper=PAPER.real, reading=reading)
        check(
            "Reno above Tahoe, kB",
            reno,
            above=tahoe,
            paper=PAPER.reno,
            reading=reading,
            **known(RENO, axes),
        )
        check(
            "Real over Reno",
            real / reno,
            at_least=1.5,
            paper=PAPER.gain,
            reading=reading,
            **known(GAIN, axes),
        )
        check.show("Tahoe, kB", tahoe, paper=PAPER.tahoe, reading=reading)
        real, reno, tahoe = (
            deviation / mean for deviation, mean in zip(stddev.at(**axes), tokens.at(**axes))
        )
        for name, other in (("Reno", reno), ("Tahoe", tahoe)):
            check(
                f"standard deviation over mean, Real below {name}",
                real,
                below=other,
                reading=reading,
                **known(STEADY, axes),
            )
        real, reno, _ = rates.at(**axes)
        check(
            "Real above Reno, kB/s",
            real,
            above=reno,
            reading=reading,
            **known(IN_A_SECOND, axes),
        )


@figure_10.picture
def picture(runs, draw):
    tokens, stddev = (
        by_protocol(runs.measure(measure)).at(**BASE) for measure in (mean_kB, stddev_kB)
    )
    rate = {"over": "rate", "x": "rate of the link"}
    draw.bars("mean", tokens.beside(PAPER), **rate, y="tokens in a round trip, kB")
    variation = {name: s / mean for name, s, mean in zip(NAMES, stddev, tokens)}
    draw.bars("steadiness", variation, **rate, y="deviation over mean")
