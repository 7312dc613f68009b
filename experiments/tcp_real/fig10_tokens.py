"""Figure 10 and section 4.4: the tokens that a source consumes in a round trip."""

from comity.reproduction import Cause, claim

from ._shared import NAMES, QUEUE_10, Protocols, by_protocol

#: Section 4.4, kB per round trip.
PAPER = Protocols(real=11.12, reno=5.82, tahoe=3.65)


def mean_kB(run):
    """The mean of the tokens that are used in a round trip."""
    return run.flows("tcp").tokens_per_rtt_bytes.mean() / 1000


def variation_of(run):
    """Their standard deviation over their mean."""
    flows = run.flows("tcp")
    return (flows.tokens_per_rtt_stddev_bytes / flows.tokens_per_rtt_bytes).mean()


def kBps(run):
    """The tokens that are used in a second, of 200 s."""
    return run.flows("tcp").tokens_used_bytes.mean() / 200 / 1000


TAHOE = "Tahoe's slow start costs nothing on so short a path, where Reno has more timeouts"
NO_LIMIT = (
    "the link carries less than the bucket gives: Real's lead in a round trip is its own queue"
)
#: The network of each reading, and why it fails: to be 1.5 times Reno's, to be steadiest, and to
#: have more in a second.
READINGS = {
    "link of 1.9 Mb/s": ({"queue": 50, "rate": "1.9Mbps"}, None, None, NO_LIMIT),
    "link of 5 Mb/s": ({"queue": 50, "rate": "5Mbps"}, None, None, None),
    "link of 6 Mb/s": (
        {"queue": 50, "rate": "6Mbps"},
        Cause("no queue makes round trips longer here", "Real has 1.4 times as much"),
        None,
        None,
    ),
    "link of 10 Mb/s": (
        {"queue": 50, "rate": "10Mbps"},
        Cause("as on 6 Mb/s", "Real has 1.3 times as much"),
        None,
        None,
    ),
    "link of 1.9 Mb/s, queue of 10": (
        {"queue": 10, "rate": "1.9Mbps"},
        QUEUE_10,
        QUEUE_10,
        QUEUE_10,
    ),
}


@claim(
    "real-fig10-tokens",
    says=(
        "Real uses 11.12 KB of tokens in a round trip, Reno 5.82 and Tahoe 3.65, and Real most "
        "steadily"
    ),
    source="section 4.4, figure 10",
    scenario="fig10_tokens.toml",
)
def figure_10(runs, check):
    tokens, variation, rates = (
        by_protocol(runs.measure(measure)) for measure in (mean_kB, variation_of, kBps)
    )
    for reading, (network, least, steady, fast) in READINGS.items():
        real, reno, tahoe = tokens.at(**network)
        collapses = QUEUE_10 if network["queue"] == 10 else None
        check(
            "Real above Reno, kB",
            real,
            above=reno,
            paper=PAPER.real,
            reading=reading,
            fails=collapses,
        )
        check(
            "Reno above Tahoe, kB",
            reno,
            above=tahoe,
            paper=PAPER.reno,
            reading=reading,
            fails=None if collapses else TAHOE,
        )
        check(
            "Real over Reno",
            real / reno,
            at_least=1.5,
            paper=PAPER.gain,
            reading=reading,
            fails=least,
        )
        check.show("Tahoe, kB", tahoe, paper=PAPER.tahoe, reading=reading)
        real, reno, tahoe = variation.at(**network)
        for name, other in (("Reno", reno), ("Tahoe", tahoe)):
            check(
                f"standard deviation over mean, Real below {name}",
                real,
                below=other,
                reading=reading,
                fails=steady,
            )
        real, reno, _ = rates.at(**network)
        check("Real above Reno, kB/s", real, above=reno, reading=reading, fails=fast)


@figure_10.picture
def picture(runs, draw):
    tokens, variation = (
        by_protocol(runs.measure(measure)).at(queue=50) for measure in (mean_kB, variation_of)
    )
    rate = {"over": "rate", "x": "rate of the link"}
    draw.bars("mean", tokens.beside(PAPER), **rate, y="tokens in a round trip, kB")
    draw.bars("steadiness", dict(zip(NAMES, variation)), **rate, y="deviation over mean")
