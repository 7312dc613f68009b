"""The questions of RFC 9743 to every controller."""

from comity.reproduction import Scenario
from comity.suites import Case, Column, Panel, Suite, metrics

RIVALS = {"Reno": "reno", "CUBIC": "cubic", "BBRv1": "bbr", "BBRv3": "bbr3"}
BUFFERS = {"0.5 BDP": 34, "1 BDP": 67, "2 BDP": 134, "5 BDP": 335, "10 BDP": 670}


def scenario(name, duration="40s", **quick):
    """A scenario, whose quick form has one seed, this duration and these values of its axes."""
    return Scenario(
        f"{name}.toml",
        quick={"seeds": 1, "set": {"scenario.duration": duration}, "only": quick},
    )


def rate(group, start_s=20.0, end_s=float("inf")):
    """The goodput of a group's flow, in Mb/s, the mean of its flows."""
    return lambda run: (
        metrics.delivered(run, group, start_s=start_s, end_s=end_s) / len(run.flows(group)) / 1e6
    )


def used(name="bottleneck"):
    return Column("link used, %", lambda run: 100 * run.links(name).utilisation.mean(), 0)


def queue(name="bottleneck"):
    return Column(
        "queue, p95, ms", lambda run: 1000 * run.links(name).queueing_delay_p95_s.mean(), 0
    )


def lost(group="tested"):
    return Column(
        "lost, %" if group == "tested" else f"{group} lost, %",
        lambda run: 100 * metrics.lost(run, group),
    )


def goodput(run, group):
    return run.flows(group).goodput_bps.mean()


#: What a flow gets beside another.
BESIDE = [
    Column("flow, Mb/s", lambda run: goodput(run, "tested") / 1e6),
    Column("rival, Mb/s", lambda run: goodput(run, "rival") / 1e6),
    Column("flow over rival", lambda run: goodput(run, "tested") / goodput(run, "rival")),
    queue(),
    lost(),
    lost("rival"),
]

collapse = Case(
    "collapse",
    "protection against congestion collapse (5.1.1)",
    "with less than a packet in a round trip for each, flows back off and little is sent in vain.",
    scenario("collapse", "60s"),
    [
        used(),
        Column(
            "sent, over the capacity",
            lambda run: run.flows("tested").sent_wire_bytes.sum() * 8 / 60 / 1e6,
        ),
        lost(),
        Column(
            "flows below a tenth of a share",
            lambda run: (run.flows("tested").goodput_bps < 0.1 * 1e6 / 32).sum(),
            0,
        ),
    ],
    series=("tested",),
)

buffers = Case(
    "buffers",
    "bufferbloat, loss, and fairness among two flows (5.1.2 to 5.1.4)",
    "no needless queue, little loss, and equal shares, whatever the buffer.",
    scenario("buffers"),
    [
        used(),
        queue(),
        lost(),
        Column(
            "largest over least, 5 s",
            lambda run: metrics.fairness(run, "tested", over_s=5, start_s=20),
        ),
    ],
    variants={name: {"queue": packets} for name, packets in BUFFERS.items()},
    scatter=("queue, p95, ms", "link used, %"),
)

rivals = Case(
    "rivals",
    "beside Reno, CUBIC, BBRv1 and BBRv3 (5.2.1)",
    "no more harm to the rival than another flow of a standard algorithm does.",
    scenario("rivals", queue=[34, 67, 670]),
    BESIDE,
    variants={
        f"{rival}, {buffer}": {"rival": controller, "queue": packets}
        for rival, controller in RIVALS.items()
        for buffer, packets in BUFFERS.items()
    },
    scatter=("rival, Mb/s", "flow, Mb/s"),
)

short_flows = Case(
    "short-flows",
    "short flows beside long ones (5.1.5 and 5.2.3)",
    "short flows take hardly longer than beside a standard algorithm, and long ones keep going.",
    scenario("short_flows"),
    [
        Column(
            "a short flow, median, ms",
            lambda run: 1000 * run.flows("short").completion_s.median(),
            0,
        ),
        Column("p95, ms", lambda run: 1000 * run.flows("short").completion_s.quantile(0.95), 0),
        Column("long flows, Mb/s", lambda run: run.flows("tested").goodput_bps.sum() / 1e6),
        queue(),
        lost("short"),
    ],
    variants={"one long flow": {"long": 1}, "four long flows": {"long": 4}},
    scatter=("a short flow, median, ms", "long flows, Mb/s"),
)

real_time = Case(
    "real-time",
    "beside interactive video (5.2.2)",
    "video of at most 4 of 20 Mb/s keeps its rate and its deadline of 200 ms.",
    scenario("real_time"),
    [
        Column("flow, Mb/s", lambda run: goodput(run, "tested") / 1e6),
        Column("video, Mb/s", lambda run: goodput(run, "video") / 1e6),
        Column("frames in time, %", lambda run: 100 * metrics.in_time(run, "video"), 1),
        queue(),
    ],
    variants={"1 BDP": {"queue": 67}, "5 BDP": {"queue": 335}},
    scatter=("video, Mb/s", "frames in time, %"),
)

no_feedback = Case(
    "no-feedback",
    "loss of all feedback (5.2)",
    "without feedback from 30 to 40 s a flow backs off, and returns after it.",
    scenario("no_feedback", "70s"),
    [
        Column("before, packets/s", lambda run: _packets(run, 20, 30), 0),
        Column("35 to 40 s, packets/s", lambda run: _packets(run, 35, 40), 1),
        Column("45 to 70 s, Mb/s", rate("tested", 45)),
    ],
    picture=Panel({"flow": "tested"}, [(0, 20e6)], ""),
)


def _packets(run, start_s, end_s):
    """Full packets a second, by the bytes that were sent."""
    sent = metrics.rates(run, "tested", column="sent_wire_bytes", start_s=start_s, end_s=end_s)
    return sent.mean() / 8 / 1480


#: A part of the text of each queue by which its axis is known.
DISCIPLINES = {
    "FQ": 'target = "10s"',
    "FQ-CoDel": '{ ecn = false, kind = "fq_codel"',
    "FQ-CoDel, ECN": '{ ecn = true, kind = "fq_codel"',
    "CoDel": '{ ecn = false, kind = "codel"',
    "CoDel, ECN": '{ ecn = true, kind = "codel"',
    "PIE": '{ ecn = false, kind = "pie"',
    "PIE, ECN": '{ ecn = true, kind = "pie"',
    "RED, ECN": 'kind = "red"',
}


def holds(part):
    return lambda value: part in str(value)


queues = Case(
    "queues",
    "active queue management and ECN (7.1)",
    "fair queues give half each; marks are answered as drops are; the queue stays short.",
    scenario("queues", rival=["cubic"]),
    [
        *BESIDE,
        Column(
            "marked, %",
            lambda run: (
                100
                * run.flows("tested").marked_packets.fillna(0).sum()
                / run.flows("tested").received_packets.sum()
            ),
        ),
    ],
    variants={
        f"{name}, beside {rival}": {"queue": holds(part), "rival": RIVALS[rival]}
        for rival in ("CUBIC", "BBRv1", "BBRv3")
        for name, part in DISCIPLINES.items()
    },
    scatter=("queue, p95, ms", "flow over rival"),
)

satellite = Case(
    "satellite",
    "a path with high delay: 600 ms (7.5)",
    "the flow uses the path, also with rare losses, and shares it.",
    scenario("satellite", "100s", rivals=[0, 1], rival=["reno", "cubic"]),
    [
        Column("flow, Mb/s", lambda run: goodput(run, "tested") / 1e6),
        Column("rival, Mb/s", lambda run: goodput(run, "rival") / 1e6),
        used(),
        queue(),
        lost(),
    ],
    variants={
        f"{name}{losses}": {
            **choice,
            "losses": holds("0.001") if losses else (lambda v: "0.001" not in str(v)),
        }
        for name, choice in {
            "alone": {"rivals": 0},
            "beside CUBIC": {"rivals": 1, "rival": "cubic"},
            "beside BBRv1": {"rivals": 1, "rival": "bbr"},
            "beside BBRv3": {"rivals": 1, "rival": "bbr3"},
        }.items()
        for losses in ("", ", 0.1 % lost")
    },
    scatter=("queue, p95, ms", "flow, Mb/s"),
)


def after(start_s, end_s):
    """What follows a change: how long until the goodput is stable, and what is lost in 5 s."""
    return [
        Column(
            f"stable after {start_s} s",
            lambda run: metrics.convergence(run, "tested", start_s=start_s, end_s=end_s),
            1,
        ),
        Column(f"{start_s} to {end_s} s, Mb/s", rate("tested", start_s, end_s)),
    ]


changes = Case(
    "changes",
    "changes of delay and of route, and interruptions (7.3, 7.8 and 7.9)",
    "the flow goes on with the rate of the new path, and returns to the old one.",
    scenario("changes", "120s"),
    [
        Column("10 to 40 s, Mb/s", rate("tested", 10, 40)),
        *after(40, 80),
        *after(80, 120),
        queue(),
        lost(),
    ],
    variants={
        "delay: 20, 80, 20 ms": {"delay": holds("at"), "rate": "20Mbps"},
        "route: 20, 5, 20 Mb/s and 20, 80, 20 ms": {"rate": holds("at")},
        "no link for 2 s": {"losses": holds("outage")},
    },
    picture=Panel(
        {"flow": "tested"},
        [(0, 20e6), (40, 5e6), (80, 20e6)],
        "route: 20, 5, 20 Mb/s and 20, 80, 20 ms",
    ),
)

bottlenecks = Case(
    "bottlenecks",
    "several bottlenecks (5.2)",
    "a flow over three full links gets something, and does not starve those on one.",
    scenario("bottlenecks", rival=["cubic"]),
    BESIDE[:3] + [queue("link-2"), lost()],
    variants={f"beside {name}": {"rival": rival} for name, rival in RIVALS.items()},
    scatter=("rival, Mb/s", "flow, Mb/s"),
)

reverse = Case(
    "reverse",
    "congestion of the way back (5.2)",
    "the flow forward uses its link though its acknowledgements queue.",
    scenario("reverse"),
    [
        Column("flow, Mb/s", lambda run: goodput(run, "tested") / 1e6),
        used(),
        queue(),
        lost(),
        Column(
            "way back, queue, p95, ms",
            lambda run: 1000 * run.links("bottleneck.reverse").queueing_delay_p95_s.mean(),
            0,
        ),
    ],
    variants={
        "nothing back": {"back": 0},
        "4 CUBIC flows back, 1 BDP": {"back": 4, "queue": 67, "rival": "cubic"},
        "4 CUBIC flows back, 10 BDP": {"back": 4, "queue": 670},
        "4 BBRv3 flows back, 1 BDP": {"back": 4, "rival": "bbr3"},
    },
    scatter=("queue, p95, ms", "flow, Mb/s"),
)

impaired = Case(
    "impaired",
    "random losses and reordering (6.4 and 7.7)",
    "losses of a radio link and packets that overtake each other are no congestion.",
    scenario("impaired"),
    [Column("flow, Mb/s", lambda run: goodput(run, "tested") / 1e6), used(), queue(), lost()],
    variants={
        name: {"losses": losses, "jitter": jitter}
        for name, losses, jitter in [
            ("nothing", lambda v: "model" not in str(v), "0s"),
            ("0.1 % lost", holds("probability = 0.001"), "0s"),
            ("1 % lost", holds("probability = 0.01 "), "0s"),
            ("1 % lost in bursts of 5", holds("gilbert"), "0s"),
            ("reordered by up to 5 ms", lambda v: "model" not in str(v), holds('"5ms"')),
            ("by up to 40 ms", lambda v: "model" not in str(v), holds('"40ms"')),
        ]
    },
)

SUITE = Suite(
    "rfc9743",
    "RFC 9743: criteria for a new congestion control",
    """\
The criteria of RFC 9743 that a simulation can answer, for every controller as subject, and with
Reno, CUBIC, BBRv1 and BBRv3 as rivals. The path has 20 Mb/s, a round trip of 40 ms and a drop-tail
queue of one bandwidth-delay product (BDP, 67 packets). Each case names its differences from this
path. Values are measured from 20 s on. *Queue*: the 95th percentile of the queueing delay. *Largest
over least*: the ratio of the flows' goodput in intervals of 5 s, the median. *Stable*: seconds from
the change of the route until the goodput stays within 20 % of its later mean for 5 s.

Left out are tunnels (6.2), which the simulator does not have; circuit breakers (7.2); constrained
nodes (7.4); misbehaving nodes (7.6), which `docs/design/threat-model.md` covers; multipath (7.10),
which no transport here has; and data centres (7.11), for which no controller here is intended.""",
    [
        collapse,
        buffers,
        rivals,
        short_flows,
        real_time,
        no_feedback,
        queues,
        satellite,
        changes,
        bottlenecks,
        reverse,
        impaired,
    ],
    [
        ("collapse: lost, %", "collapse", "", "lost, %"),
        ("0.5 BDP: lost, %", "buffers", "0.5 BDP", "lost, %"),
        ("10 BDP: queue, ms", "buffers", "10 BDP", "queue, p95, ms"),
        ("over CUBIC", "rivals", "CUBIC, 1 BDP", "flow over rival"),
        ("over BBRv1", "rivals", "BBRv1, 1 BDP", "flow over rival"),
        ("over BBRv3", "rivals", "BBRv3, 1 BDP", "flow over rival"),
        ("short flow, ms", "short-flows", "one long flow", "a short flow, median, ms"),
        ("video in time, %", "real-time", "1 BDP", "frames in time, %"),
        ("FQ-CoDel: over CUBIC", "queues", "FQ-CoDel, beside CUBIC", "flow over rival"),
        ("CoDel, ECN: over CUBIC", "queues", "CoDel, ECN, beside CUBIC", "flow over rival"),
        ("600 ms: used, %", "satellite", "alone", "link used, %"),
        (
            "route: stable, s",
            "changes",
            "route: 20, 5, 20 Mb/s and 20, 80, 20 ms",
            "stable after 40 s",
        ),
        ("3 links: Mb/s", "bottlenecks", "beside CUBIC", "flow, Mb/s"),
        ("back full: Mb/s", "reverse", "4 CUBIC flows back, 10 BDP", "flow, Mb/s"),
        ("1 % lost: Mb/s", "impaired", "1 % lost", "flow, Mb/s"),
    ],
    found="""\
- **Beside Reno, CUBIC and BBR (5.2.1).** With a buffer of one BDP, `steady` has an equal share
  beside CUBIC (1.20) and BBRv3 (1.07), and 0.19 of BBRv1's rate; nearly all controllers have at
  most a quarter of BBRv1's rate. With ten BDP, `steady` takes 1.9 times CUBIC's rate, and 3.5 times
  Reno's. `bbr` takes 16 times CUBIC's rate with one BDP. `bbr3` has CUBIC's rate with one BDP and
  with ten, and takes 3.0 and 1.5 times Reno's. `vegas`, `libra` and `gcc` starve.
- **Buffers (5.1.2 to 5.1.4).** Two flows of `steady` fill every buffer. With ten BDP, they lose 7 %
  of their packets, and their shares are unequal (9.7). The queue of `bbr` and `bbr3` is then 60 ms,
  where a full one is 400 ms. `bbr` loses 5 % with half a BDP. From one BDP on, the queue of
  `scream` is 32 ms.
  `vegas` and `gcc` have no queue, and use 66 and 31 % of the link.
- **Collapse (5.1.1).** 32 flows through 1 Mb/s should send little more than the capacity. `tfrc`
  sends 1.3 times the capacity. `steady` sends 1.5 times including its start, and 1.2 times after
  it. TCP and BBR send 1.6 to 2.0 times the capacity, `real` 12 times, and `psp` 10 times.
- **Short flows (5.1.5, 5.2.3)** take 127 ms beside one flow of `steady`, and 129 ms beside one of
  CUBIC (medians). The 95th percentile is 1.6 s beside four flows of `steady`, and 0.8 s beside four
  of CUBIC. Beside `bbr`, half of all short flows take more than 0.7 s.
- **Video (5.2.2)** has all frames in time with one BDP, beside one flow of any controller except
  `bbr` (65 %), `psp` (97 %) and `bbr3` (99.8 %). With five BDP, at least 99 % of the frames are in
  time beside `vegas`, `real`, `libra`, `tfrc`, `bbr` and `bbr3`, and 70 % beside `steady`.
- **AQM and ECN (7.1).** With FQ and FQ-CoDel, nearly every controller has about half of the link.
  Behind the other queues, `steady` has 1.2 to 1.4 times CUBIC's rate, with and without ECN. `bbr3`
  and `psp` do not react to marks: with CoDel and ECN, they leave CUBIC 0.6 and 0.2 Mb/s of 20.
- **A satellite (7.5).** `steady` fills the path. If 0.1 % of the packets is lost, it uses 79 % of
  the path, and CUBIC uses 21 %. Alone, `real`, `iftp` and `rap` use at most 15 % of the path.
- **Changes (7.3, 7.8, 7.9).** Most controllers follow a new route within some seconds. `vegas`,
  `scream` and `real` mistake the delay of a longer path for a queue, and keep 0.4, 0.3 and 2.7 Mb/s
  of 20. After an interruption, `psp` does not regain its rate, and `libra` only slowly.
- **No feedback (5.2).** All controllers back off within 5 s, except `rap` and `psp`, which send 38
  and 24 packets a second, and `gcc`, which continues with 252. `steady` sends 5 packets a second.
- **Several bottlenecks (5.2).** Over three links, `steady` has 0.17 of the rate of CUBIC on one
  link, CUBIC has 0.14, and `bbr3` has 0.68.
- **Congestion in the reverse direction (5.2).** With four CUBIC flows and a buffer of one BDP,
  `steady` uses 92 % of its link, CUBIC 89 % and `bbr3` 97 %. With ten BDP, the case of the table,
  they use 73, 77 and 93 %. `vegas` and `real` mistake the queue of their acknowledgements for a
  queue of their data.
- **Losses and reordering (6.4, 7.7).** With 1 % of random losses, a greedy flow of `steady` has 3.8
  Mb/s of 20, and CUBIC has 3.1. `bbr`, `bbr3` and `real` slow down little: from 18.2, 18.3 and 12.0
  Mb/s without losses to 18.0, 15.7 and 11.8. Reordered packets do not slow down `steady`, `cubic`,
  `bbr` and `bbr3`.""",
)
