"""The cases of RFC 8867 for wired networks, measured as RFC 8868 says."""

from comity.reproduction import Scenario
from comity.suites import Case, Column, Panel, Suite, metrics

#: The highest rate of a video, in bit/s.
MOST = 1.5e6
QUICK = {"seeds": 1}


def scenario(name, **changes):
    return Scenario(f"{name}.toml", quick=QUICK, **changes)


def common(*media, most, periods):
    """The metrics of section 4.1 for media flows, which could have `most` bit/s together."""
    return [
        Column("media, Mb/s", lambda run: metrics.delivered(run, *media) / 1e6),
        Column("of the possible, %", lambda run: 100 * metrics.delivered(run, *media) / most, 0),
        Column("delay, median, ms", lambda run: metrics.delay_ms(run, *media, which="median"), 0),
        Column("delay, p95, ms", lambda run: metrics.delay_ms(run, *media), 0),
        Column("delay, p99, ms", lambda run: metrics.delay_ms(run, *media, which="p99"), 0),
        Column("lost, %", lambda run: 100 * metrics.lost(run, *media)),
        Column("frames in time, %", lambda run: 100 * metrics.in_time(run, *media), 1),
        Column("variation", lambda run: metrics.variation(run, *media, periods=periods)),
        Column("swings", lambda run: metrics.swings(run, *media), 1),
        *(
            Column(
                f"stable after {start:g} s",
                lambda run, start=start, end=end: metrics.convergence(
                    run, *media, start_s=start, end_s=end
                ),
                1,
            )
            for start, end in periods
        ),
    ]


def link(name="bottleneck"):
    """The metrics of section 4.1 for a bottleneck."""
    return [
        Column("link used, %", lambda run: 100 * run.links(name).utilisation.mean(), 0),
        Column("queue, p95, ms", lambda run: 1000 * run.links(name).queueing_delay_p95_s.mean(), 0),
    ]


def shares(*media, start_s, end_s):
    """How equal rates are while nothing changes (RFC 8868, metric 7)."""
    return [
        Column(
            f"largest over least, {over_s} s",
            lambda run, over_s=over_s: metrics.fairness(
                run, *media, over_s=over_s, start_s=start_s, end_s=end_s
            ),
        )
        for over_s in (1, 5, 20)
    ]


def feedback(run):
    """The bytes of the way back over those of the way there, in percent."""
    return 100 * (
        run.links("bottleneck.reverse").carried_bytes.sum()
        / run.links("bottleneck").carried_bytes.sum()
    )


def periods(steps, end_s):
    """From each change to the next."""
    starts = [at for at, _ in steps]
    return list(zip(starts, [*starts[1:], end_s]))


def changing(steps):
    """A capacity in bit/s from one in Mb/s."""
    return [(at, mbps * 1e6) for at, mbps in steps]


SINGLE = changing([(0, 1.0), (40, 2.5), (60, 0.6), (80, 1.0)])
MULTIPLE = changing([(0, 4.0), (25, 2.0), (50, 3.5), (75, 1.0), (100, 2.0)])
FORWARD = changing([(0, 2.0), (20, 1.0), (40, 0.5), (60, 2.0)])
BACKWARD = changing([(0, 2.0), (35, 0.8), (70, 2.0)])
LINK = {"startup": "150kbps", "queue": "37500B"}

DIFFERS = """\
frames have 400 ms, and there are 30 a second at all rates; the queue holds 300 ms of the reference
capacity, or of 4 Mb/s beside datagrams; jitter keeps the order of all packets of a link, and
packets that it holds back arrive together; an audio packet has 50 B of sound and 40 B of headers;
the media are synthetic (RFC 8593) instead of the test video Foreman"""

single = Case(
    "5.1",
    "variable available capacity with a single flow",
    "the flow notices the capacity, comes close to it, and does not oscillate.",
    scenario("case51_single"),
    [
        *common(
            "media",
            most=metrics.possible(SINGLE, [(0, 99)], MOST, 100),
            periods=periods(SINGLE, 99),
        ),
        *link(),
        Column("feedback, %", feedback, 1),
    ],
    variants={
        "50 ms": {"delay": "50ms", **LINK},
        "100 ms": {"delay": "100ms", **LINK},
        "50 ms, beside datagrams": {"delay": "50ms", "startup": "150kbps", "queue": "150000B"},
        "50 ms, beginning with 1.5 Mb/s": {**LINK, "delay": "50ms", "startup": "1500kbps"},
    },
    differs=DIFFERS,
    picture=Panel({"media": "media"}, SINGLE, "50 ms"),
    scatter=("delay, p95, ms", "media, Mb/s"),
)

multiple = Case(
    "5.2",
    "variable available capacity with multiple flows",
    "both flows follow the capacity, at their maximum rate where it suffices.",
    scenario("case52_multiple"),
    [
        *common(
            "media",
            most=metrics.possible(MULTIPLE, [(0, 124)] * 2, MOST, 125),
            periods=periods(MULTIPLE, 124),
        ),
        *link(),
        *shares("media", start_s=30, end_s=50),
    ],
    variants={"link": {"queue": "75000B"}, "beside datagrams": {"queue": "150000B"}},
    picture=Panel({"first": "media+1", "second": "media+2"}, MULTIPLE, "link"),
    scatter=("delay, p95, ms", "media, Mb/s"),
)

back = Case(
    "5.3",
    "congested feedback link with bi-directional media flows",
    "a lack of feedback costs the forward flow little, compared with a backward path of 2 Mb/s.",
    scenario("case53_feedback"),
    [
        *common(
            "media+1",
            most=metrics.possible(FORWARD, [(0, 99)], MOST, 100),
            periods=periods(FORWARD, 99),
        ),
        Column("backward media, Mb/s", lambda run: metrics.delivered(run, "media+2") / 1e6),
        Column("backward delay, p95, ms", lambda run: metrics.delay_ms(run, "media+2"), 0),
        *link(),
    ],
    variants={
        "congested": {"backward": lambda value: isinstance(value, str), "queue": "37500B"},
        "reference: 2 Mb/s back": {"backward": "2Mbps"},
        "beside datagrams": {"queue": "150000B"},
    },
    picture=Panel({"forward": "media+1", "backward": "media+2"}, FORWARD, "congested"),
    scatter=("delay, p95, ms", "media, Mb/s"),
)

COMPETING = changing([(0, 3.5)])
STARTS = [(0, 119), (20, 119), (40, 119)]
competing = Case(
    "5.4",
    "competing media flows with the same congestion control algorithm",
    "the flows have equal rates, with little delay and loss.",
    scenario("case54_competing"),
    [
        *common(
            "media",
            most=metrics.possible(COMPETING, STARTS, MOST, 120),
            periods=[(0, 20), (20, 40), (40, 119)],
        ),
        *link(),
        *shares("media", start_s=59, end_s=119),
    ],
    picture=Panel({"first": "media+1", "second": "media+2", "third": "media+3"}, COMPETING, ""),
    scatter=("delay, p95, ms", "largest over least, 5 s"),
)

ROUND_TRIPS = changing([(0, 4.0)])
FIVE = {"10 ms": 1, "25 ms": 2, "50 ms": 3, "100 ms": 4, "150 ms": 5}
round_trips = Case(
    "5.5",
    "round trip time fairness",
    "the flows soon have equal rates whatever their round trips, with little delay and loss.",
    scenario("case55_round_trips"),
    [
        *common(
            "media",
            most=metrics.possible(
                ROUND_TRIPS, [(start, 299) for start in range(0, 50, 10)], MOST, 300
            ),
            periods=[(0, 10), (40, 299)],
        ),
        *link(),
        *shares("media", start_s=100, end_s=299),
        *(
            Column(
                f"{name}, Mb/s",
                lambda run, flow=f"media+{number}": (
                    metrics.delivered(run, flow, start_s=100, end_s=299) / 1e6
                ),
            )
            for name, number in FIVE.items()
        ),
    ],
    differs="""\
the frames of all flows have 400 ms; behind a full queue, this is too little for the flow with 150
ms""",
    picture=Panel({name: f"media+{number}" for name, number in FIVE.items()}, ROUND_TRIPS, ""),
    scatter=("delay, p95, ms", "largest over least, 20 s"),
)


def tcp(*media, start_s, end_s):
    """The metrics of TCP flows beside media (sections 5.6 and 5.7)."""

    def rate(run, *names):
        return metrics.delivered(run, *names, start_s=start_s, end_s=end_s)

    return [
        Column("media, Mb/s", lambda run: rate(run, *media) / 1e6),
        Column("TCP, Mb/s", lambda run: rate(run, "tcp") / 1e6),
        Column(
            "a media flow over TCP",
            lambda run: rate(run, *media) / len(run.flows(*media)) / rate(run, "tcp"),
        ),
        Column("TCP lost, %", lambda run: 100 * metrics.lost(run, "tcp")),
    ]


LONG = changing([(0, 2.0)])
RIVALS = ["reno", "cubic", "bbr", "bbr3"]
QUEUES = {"300 ms": "75000B", "1000 ms": "250000B"}
long_tcp = Case(
    "5.6",
    "media flow competing with a long TCP flow",
    "no congestion collapse; in the worst case the flow falls to its minimum rate of 150 kb/s.",
    scenario("case56_long_tcp"),
    [
        *tcp("media", start_s=25, end_s=119),
        *common("media", most=MOST * 114 / 120, periods=[(5, 119)])[2:],
    ],
    variants={
        f"{rival}, {queue}": {"tcp": rival, "queue": bytes}
        for rival in RIVALS
        for queue, bytes in QUEUES.items()
    },
    picture=Panel({"media": "media", "TCP": "tcp"}, LONG, "reno, 300 ms"),
    scatter=("delay, p95, ms", "media, Mb/s"),
)

short_tcp = Case(
    "5.7",
    "media flow competing with short TCP flows",
    "the flows keep at least their minimum rate of 150 kb/s, and recover.",
    scenario("case57_short_tcp"),
    [
        *common(
            "media", most=metrics.possible(LONG, [(5, 299)] * 2, MOST, 300), periods=[(5, 299)]
        ),
        Column(
            "least in 5 s, Mb/s",
            lambda run: metrics.rates(run, "media", over_s=5, start_s=10, end_s=299).min() / 1e6,
        ),
        *link(),
        *shares("media", start_s=25, end_s=299),
        Column("TCP, Mb/s", lambda run: run.flows("short").goodput_bps.sum() / 1e6),
        Column(
            "a download, median, s", lambda run: run.flows("short").completion_s.dropna().median()
        ),
        Column(
            "a download, p95, s",
            lambda run: run.flows("short").completion_s.dropna().quantile(0.95),
        ),
    ],
    variants={rival: {"tcp": rival} for rival in RIVALS},
    differs="""\
ten sources with idle times of 10 s are a Poisson process of one download a second, and downloads do
not wait for each other; sizes are those of RFC 8868, section 5.1""",
    picture=Panel({"first": "media+1", "second": "media+2"}, LONG, "reno"),
    scatter=("delay, p95, ms", "media, Mb/s"),
)

pause = Case(
    "5.8",
    "media pause and resume",
    "while one flow pauses the others reach their maximum rate; then all are equal again.",
    scenario("case58_pause"),
    [
        *common(
            "media",
            most=metrics.possible(COMPETING, [(0, 119), (0, 40), (60, 119), (0, 119)], MOST, 120),
            periods=[(0, 40), (40, 60), (60, 119)],
        ),
        *link(),
        *shares("media", start_s=79, end_s=119),
        Column(
            "others in the pause, Mb/s",
            lambda run: metrics.delivered(run, "media+1", "media+3", start_s=45, end_s=60) / 2e6,
        ),
        Column(
            "the pausing flow before, Mb/s",
            lambda run: metrics.delivered(run, "media+2", start_s=20, end_s=40) / 1e6,
        ),
        Column(
            "after, Mb/s",
            lambda run: metrics.delivered(run, "media+2", start_s=80, end_s=119) / 1e6,
        ),
    ],
    picture=Panel({"first": "media+1", "pauses": "media+2", "third": "media+3"}, COMPETING, ""),
    scatter=("delay, p95, ms", "media, Mb/s"),
)

bottlenecks = Case(
    "6.3",
    "multiple bottlenecks",
    "both bottlenecks are full, no flow starves, and each bottleneck is shared fairly.",
    scenario("case63_bottlenecks"),
    [
        Column("over both, Mb/s", lambda run: metrics.delivered(run, "media+1") / 1e6),
        Column("beside it on 2 Mb/s", lambda run: metrics.delivered(run, "media+2") / 1e6),
        Column("beside it on 1.5 Mb/s", lambda run: metrics.delivered(run, "media+3") / 1e6),
        *common("media", most=3.5e6, periods=[(0, 299)])[2:],
        Column("2 Mb/s used, %", lambda run: 100 * run.links("a-b").utilisation.mean(), 0),
        Column("1.5 Mb/s used, %", lambda run: 100 * run.links("c-d").utilisation.mean(), 0),
    ],
    picture=Panel(
        {"over both": "media+1", "on 2 Mb/s": "media+2", "on 1.5 Mb/s": "media+3"},
        changing([(0, 1.5)]),
        "",
    ),
    scatter=("delay, p95, ms", "over both, Mb/s"),
)


#: What marks instead of dropping; at 1 Mb/s a packet takes 12 ms, more than CoDel's usual target.
MARKS = {"kind": "codel", "ecn": True, "target": "15ms", "limit": 1000}


ecn = Case(
    "6.2",
    "explicit congestion notification usage",
    "the algorithms do not fail, and do better than without ECN.",
    {
        "5.1": Scenario(
            "case51_single.toml",
            quick=QUICK,
            only={
                "delay": ["50ms"],
                "startup": ["150kbps"],
                "capacity": [[{"at": f"{at}s", "rate": f"{rate:.0f}bps"} for at, rate in SINGLE]],
                "queue": [MARKS],
                "datagrams": [0],
            },
        ),
        "5.2": Scenario(
            "case52_multiple.toml",
            quick=QUICK,
            only={
                "capacity": [[{"at": f"{at}s", "rate": f"{rate:.0f}bps"} for at, rate in MULTIPLE]],
                "queue": [MARKS],
                "datagrams": [0],
            },
        ),
        "5.3": Scenario(
            "case53_feedback.toml",
            quick=QUICK,
            only={
                "backward": [[{"at": f"{at}s", "rate": f"{rate:.0f}bps"} for at, rate in BACKWARD]],
                "forward": [[{"at": f"{at}s", "rate": f"{rate:.0f}bps"} for at, rate in FORWARD]],
                "queue": [MARKS],
                "datagrams": [0],
            },
        ),
        **{
            section: Scenario(f"{name}.toml", quick=QUICK, set={"topology.bottleneck.queue": MARKS})
            for section, name in {
                "5.4": "case54_competing",
                "5.5": "case55_round_trips",
                "5.8": "case58_pause",
            }.items()
        },
        "5.6": Scenario(
            "case56_long_tcp.toml",
            quick=QUICK,
            set={"flow.tcp.ecn": True},
            only={"tcp": ["reno"], "queue": [MARKS]},
        ),
        "5.7": Scenario(
            "case57_short_tcp.toml",
            quick=QUICK,
            set={
                "topology.bottleneck.queue": MARKS,
                "flow.short+on.ecn": True,
                "flow.short+off.ecn": True,
            },
            only={"tcp": ["reno"]},
        ),
    },
    [
        Column("media, Mb/s", lambda run: metrics.delivered(run, "media") / 1e6),
        Column("delay, median, ms", lambda run: metrics.delay_ms(run, "media", which="median"), 0),
        Column("delay, p95, ms", lambda run: metrics.delay_ms(run, "media"), 0),
        Column("lost, %", lambda run: 100 * metrics.lost(run, "media")),
        Column(
            "marked, %",
            lambda run: (
                100
                * run.flows("media").marked_packets.sum()
                / run.flows("media").received_packets.sum()
            ),
        ),
        Column("frames in time, %", lambda run: 100 * metrics.in_time(run, "media"), 1),
    ],
    differs="""\
the bottleneck has CoDel with a target of 15 ms, because a packet takes 12 ms at 1 Mb/s; TCP has
ECN too""",
    scatter=("delay, p95, ms", "media, Mb/s"),
)

SUITE = Suite(
    "rfc8867",
    "RFC 8867: interactive media over wired networks",
    """\
The test cases of RFC 8867 for wired networks, with the metrics of RFC 8868, section 3, for every
controller that can carry video. The media are an encoder that follows its target bitrate (RFC
8593), and audio of constant rate. Section 6.1, media with priorities, is left out, because no
controller here has weights. Section 7 leaves wireless networks to RFC 8869.

*Of the possible*: the goodput over the rate that the capacity and the maximum rate of the media
allow. *Delay*: the one-way delay of the flow with the largest delay. *Frames in time*: frames that
are complete within 400 ms, after retransmissions. *Largest over least*: the ratio of the flows'
rates in intervals of this length; RFC 8868 requires at most 3. The first table names it *unequal*,
in intervals of 5 s (5.4) and of 20 s (5.5).

Only the tables of single cases, which `make report` makes, have these columns. *Variation*: the
standard deviation over the mean of the sending rate in intervals of one second, while nothing
changes. *Swings*: changes of the sending rate, in intervals of half a second, from 1.2 Mb/s to 300
kb/s or back. *Stable after*: seconds from a change until the goodput of all media stays within 20 %
of its later mean for 5 s; a dash if this does not happen in every run.""",
    [single, multiple, back, competing, round_trips, long_tcp, short_tcp, pause, ecn, bottlenecks],
    [
        ("5.1 rate, %", "5.1", "50 ms", "of the possible, %"),
        ("delay, ms", "5.1", "50 ms", "delay, p95, ms"),
        ("in time, %", "5.1", "50 ms", "frames in time, %"),
        ("5.2 rate, %", "5.2", "link", "of the possible, %"),
        ("delay, ms", "5.2", "link", "delay, p95, ms"),
        ("5.3 rate, %", "5.3", "congested", "of the possible, %"),
        ("5.4 unequal", "5.4", "", "largest over least, 5 s"),
        ("5.5 unequal", "5.5", "", "largest over least, 20 s"),
        ("5.6 over Reno", "5.6", "reno, 300 ms", "a media flow over TCP"),
        ("in the lab", "5.6", "reno, 300 ms, in the lab", "a media flow over TCP"),
        ("over BBRv3", "5.6", "bbr3, 300 ms", "a media flow over TCP"),
        ("5.7 least, Mb/s", "5.7", "reno", "least in 5 s, Mb/s"),
        ("5.8 after, Mb/s", "5.8", "", "after, Mb/s"),
        ("6.2 delay, ms", "6.2", "5.1", "delay, p95, ms"),
        ("6.3 over both, Mb/s", "6.3", "", "over both, Mb/s"),
    ],
    found="""\
No controller performs well in all cases. Comity's controller for media, `steady`, comes closest to
an equal share beside a download of Reno (0.90) or BBRv3 (0.80), at the price of a full queue. GCC
and SCReAMv2 keep the queue of 5.1 short, and get 0.13 and 0.02 of Reno's rate. RFC 8868 has few
bounds: the rates of flows with the same round trip differ by a factor of at most 3. RFC 8867
requires at least the minimum rate in 5.6 and 5.7.

- **A changing capacity (5.1, 5.2).** In 5.1, `steady` has 80 % of the possible rate, 95 % of the
  frames in time, and the largest delay: the fall to 0.6 Mb/s fills the queue. `vegas`, `iftp`,
  `gcc`, `scream` and `rap` have at most half of that delay, and 15, 18, 6, 3 and 2 points less of
  the possible rate. In 5.2, the largest delays are those of `bbr`, `steady` and `rap`. In every
  case, `psp` stays at the 150 kb/s with which all controllers begin.
- **Congested feedback (5.3)** costs a controller at most 9 % of its forward rate, and `steady`
  nothing.
- **Three flows (5.4)** of `steady` have equal shares and fill the queue: 87 % of their frames are
  in time. With `iftp`, 93 % are, and with `vegas` 83 %, with a queue of 18 ms. Flows of `libra`,
  `tfrc` and `iftp` have unequal shares.
- **Round trips (5.5)** decide the shares: only with `vegas`, `cubic`, `bbr3` and the idle `psp`,
  the rates differ by a factor of at most 3. With `steady`, the flow with 150 ms has 0.14 Mb/s, and
  the flow with 10 ms has 0.88 Mb/s.
- **One download (5.6).** `steady` has 0.90 of Reno's rate, 0.45 of CUBIC's, 0.42 of BBRv1's and
  0.80 of BBRv3's. `scream` has 0.02 of Reno's rate, and the others have 0.1 to 0.8. Behind a queue
  of 1000 ms, almost no frame of the media is in time, because their median delay is above 400 ms.
- **Short downloads (5.7).** No flow keeps the minimum of 150 kb/s in every interval of 5 s, as the
  RFC requires: the least rate is 0.04 Mb/s with `steady`, and 0.01 to 0.14 Mb/s with the others.
  `steady` has the highest mean rate, and 90 % of its frames in time. Downloads beside it take
  0.88 s (median) and 2.9 s (95th percentile). Beside `vegas` they take 0.53 and 0.75 s.
- **A pause (5.8).** The other flows use the free capacity, except with `vegas` and `psp`. With
  `steady`, the flow that paused regains its rate within 5 s.
- **ECN (6.2)** reduces the delay of most controllers. With `steady`, it is 139 instead of 317 ms in
  5.1. The three flows of 5.4 have 135 instead of 350 ms, and all frames in time. `bbr`, `bbr3` and
  `real` react too little to marks: a quarter to a third of their packets are marked, and the queue
  of `bbr3` is longer than without ECN.
- **Two bottlenecks (6.3).** With `steady`, the flow over both has 0.21 Mb/s, and its neighbours
  have 1.43 and 0.94 Mb/s. The most equal shares are those of `gcc`, with 0.67, 0.97 and 0.54 Mb/s.""",
)
