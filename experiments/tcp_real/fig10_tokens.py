"""Figure 10 and section 4.4: the tokens that a source consumes in a round trip."""

from comity.reproduction import claim

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
    tokens, variation = by_protocol(runs.measure(mean_kB)), by_protocol(runs.measure(variation_of))
    same = "Tahoe and Reno do equally well on a path of six segments, where Reno has more timeouts"
    for queue in (50, 10):
        real, reno, tahoe = (value.at(queue=queue) for value in tokens)
        reading = f"queue of {queue} packets"
        fails = None if queue == 50 else QUEUE_10
        check(
            "Real above Reno, kB", real, above=reno, paper=PAPER.real, reading=reading, fails=fails
        )
        check(
            "Reno above Tahoe, kB",
            reno,
            above=tahoe,
            paper=PAPER.reno,
            reading=reading,
            fails=same if queue == 50 else None,
        )
        check(
            "Real over Reno",
            real / reno,
            at_least=1.5,
            paper=PAPER.gain,
            reading=reading,
            fails=fails,
        )
        real, reno, tahoe = (value.at(queue=queue) for value in variation)
        check(
            "standard deviation over mean, Real below Reno",
            real,
            below=reno,
            reading=reading,
            fails=fails,
        )
        check(
            "standard deviation over mean, Real below Tahoe",
            real,
            below=tahoe,
            reading=reading,
            fails=fails,
        )
    check.show("Tahoe, kB", tokens.tahoe, paper=PAPER.tahoe)


@figure_10.picture
def picture(runs, draw):
    series = by_protocol(runs.measure(mean_kB)).beside(PAPER)
    draw.bars("mean", series, over="queue", x="queue, packets", y="tokens in a round trip, kB")
    series = dict(zip(NAMES, by_protocol(runs.measure(variation_of))))
    draw.bars(
        "steadiness", series, over="queue", x="queue, packets", y="standard deviation over mean"
    )
