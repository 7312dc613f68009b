"""The abstract: TCP-Real is friendly to TCP, and does well on asymmetric paths."""

from comity.reproduction import claim

from ._shared import NAMES, goodput_kBps

STARVES = (
    "flows of Real keep their first levels, so a flow that began beside full windows stays at its "
    "lowest level"
)
#: Why Real is behind Reno: the opening ends at a low level.
OPENING = (
    "acknowledgements arrive so slowly that they stretch the waves of Real's opening, which ends "
    "at a low level. While nothing is lost, no rate changes. With many losses, Real has more"
)


@claim(
    "real-abstract-friendly",
    says="Real is friendly to TCP",
    source="abstract and section 1",
    scenario="friendly.toml",
)
def friendly(runs, check):
    reno = runs.measure(lambda run: run.flows("reno").throughput_bps.mean() / 1000)
    starved = runs.measure(
        lambda run: (
            run.flows("other").throughput_bps.min() < 0.1 * run.flows().throughput_bps.mean()
        )
    )
    for queue in (20, 60, 200):
        # Friendly is meant of any network: a queue is a part, and holds if both checks do.
        part = f"queue of {queue} packets"
        beside = reno.at(queue=queue)
        check(
            "Reno beside Real over Reno beside Reno",
            beside.at(protocol="real") / beside.at(protocol="reno"),
            at_least=0.85,
            part=part,
        )
        check(
            "runs in which a flow of Real has less than a tenth of the mean",
            starved.at(queue=queue, protocol="real"),
            equal=0,
            part=part,
            fails=STARVES if queue < 200 else None,
        )


@friendly.picture
def draw_friendly(runs, draw):
    for group, title in (("reno", "Reno, beside"), ("other", "beside Reno")):
        rate = runs.measure(lambda run, group=group: run.flows(group).throughput_bps.mean() / 1e6)
        series = {"Real": rate.at(protocol="real"), "Reno": rate.at(protocol="reno")}
        draw.bars(title, series, over="queue", x="queue, packets", y="throughput, Mb/s")


@claim(
    "real-abstract-asymmetric",
    says="Real does well on asymmetric paths, because the reverse path does not decide the window",
    source="abstract and section 1",
    scenario="asymmetric.toml",
)
def asymmetric(runs, check):
    goodput = goodput_kBps(runs)
    for forward, queue in (("1.9Mbps", 50), ("1.9Mbps", 5), ("5Mbps", 50), ("5Mbps", 5)):
        part = f"{forward} forward, reverse queue of {queue}"
        gain = goodput.gain.at(forward=forward, queue=queue)
        fails = None if (forward, queue) == ("1.9Mbps", 50) else OPENING
        check("Real over Reno", gain, at_least=1, part=part, fails=fails)
        check.show(f"Real over Reno, 0.555 lost, {part}", gain.at(drop=0.555))


@asymmetric.picture
def draw_asymmetric(runs, draw):
    goodput = goodput_kBps(runs).at(forward="5Mbps", queue=50)
    for rate in ("56kbps", "9600bps", "2400bps"):
        draw.lines(
            f"5 Mb/s forward, {rate} reverse",
            dict(zip(NAMES, goodput.at(reverse=rate))),
            over="drop",
            x="drop rate in the bad state",
            y="goodput, kB/s",
        )
