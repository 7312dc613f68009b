"""Tables 4 to 6: the share of a player's reads that find their data, 15 ms one way."""

from comity.reproduction import Cause, Scenario, claim

from ._shared import (
    NAMES,
    QUICK,
    REVERSE,
    TRANSIENT,
    Known,
    Protocols,
    draw_tables,
    known,
    of_tables,
    playback,
    printed,
    satisfied_reads,
)

#: Table 4, % of reads every 40 ms, losses in both directions.
TRANSIENT_PAPER = printed(
    TRANSIENT,
    real=[100.0, 91.9, 79.0, 76.7, 51.0, 36.3, 23.4],
    reno=[99.6, 90.9, 75.7, 71.7, 43.1, 24.9, 13.7],
    tahoe=[99.7, 93.4, 80.6, 71.9, 43.6, 25.6, 13.9],
)
#: Table 5, % of reads, losses in the reverse direction.
REVERSE_PAPER = printed(
    REVERSE,
    real=[99.4, 97.6, 88.6, 78.6, 64.9, 51.3, 36.3],
    reno=[98.7, 97.6, 89.7, 76.1, 65.1, 34.3, 27.3],
    tahoe=[99.0, 97.7, 89.7, 79.9, 56.7, 34.9, 22.6],
)
#: Table 6, % of reads, handoffs.
HANDOFF_PAPER = Protocols(real=72.57, reno=57.29, tahoe=62.57)

#: The reading that is shown and drawn.
BASE = {"direction": "each", "window": 8, "acks": "bsd", "timers": "ns2-2000"}

WAITING = "if many packets are lost, both wait for timers most of the time"
LOSSES: Known = [
    ({"direction": "each", "acks": "bsd", "timers": "ns2-2000"}, {}),
    ({"direction": "each", "window": 48, "acks": "bsd"}, {}),
    (
        {"direction": "each", "window": 8, "acks": "false", "timers": "ns2-2000"},
        {"chance": "the interval includes the bound at 0.50"},
    ),
    (
        {"direction": "both", "window": 48, "acks": "bsd", "timers": "ns2-2000"},
        {"chance": "the interval includes the bound at 0.33 and 0.50"},
    ),
    ({"timers": "bsd"}, {"fails": WAITING}),
    (
        {"window": 48, "acks": "false"},
        {"fails": "the path holds six segments, and after a timeout Real sends up to 48 again"},
    ),
    (
        {},
        {
            "fails": "half of the time is without errors, and a quarter where each direction has a "
            "state of its own: Real has little more at 0.50"
        },
    ),
]
#: The same of table 5, where losses go in reverse alone.
IN_REVERSE: Known = [
    ({"window": 8, "acks": "bsd", "timers": "bsd"}, {"fails": WAITING}),
    ({"window": 8}, {}),
    ({"acks": "false", "timers": "bsd"}, {}),
    (
        {},
        {
            "fails": "acknowledgements are cumulative, and enough of those of 48 segments reach "
            "Reno at 0.555"
        },
    ),
]
#: The same of table 6.
HANDOFFS: Known = [
    (
        {},
        {
            "fails": Cause(
                "an interruption costs both a timeout, and Reno fills so short a path again "
                "within a few round trips of 33 ms",
                "Both ways apart, with 8 segments and delayed ACKs, it has 79 % of its reads, "
                "where the paper's has 57 %",
            )
        },
    )
]

TABLES = {
    "transient": "table04_playback_15ms.toml",
    "reverse": "table05_playback_reverse_15ms.toml",
    "handoff": "table06_playback_handoff_15ms.toml",
}


@claim(
    "real-table4-6-playback-15ms",
    says="more reads of a player find their data than with Reno",
    source="tables 4 to 6",
    scenario={name: Scenario(file, quick=QUICK) for name, file in TABLES.items()},
)
def tables_4_to_6(runs, check):
    transient, reverse, handoff = of_tables(runs, satisfied_reads)
    many = transient.at(drop=lambda drop: drop >= 0.1)
    for reading, axes in transient.readings().items():
        for table, here, paper, bound, rules in (
            ("table 4, from 0.10 on", many, TRANSIENT_PAPER.more, 5, LOSSES),
            ("table 5 at 0.555", reverse.at(drop=[0.555]), REVERSE_PAPER.more, 10, IN_REVERSE),
            ("table 6", handoff, HANDOFF_PAPER.more, 8, HANDOFFS),
        ):
            check(
                "points that Real has more",
                here.at(**axes).more,
                at_least=bound,
                paper=paper,
                part=table,
                reading=reading,
                **known(rules, axes),
            )
    for table, here, paper in (
        ("table 4", transient, TRANSIENT_PAPER),
        ("table 5", reverse, REVERSE_PAPER),
        ("table 6", handoff, HANDOFF_PAPER),
    ):
        here.at(**BASE).show(check, f"% of reads, {table}", paper)


@tables_4_to_6.picture
def picture(runs, draw):
    papers = TRANSIENT_PAPER, REVERSE_PAPER, HANDOFF_PAPER
    draw_tables(runs, draw, satisfied_reads, "reads that find their data, %", BASE, *papers)


#: What a viewer sees, by the columns of the player.
PAUSES = {
    "startup_delay_s": "start-up delay, s",
    "stalls": "pauses",
    "stalled_s": "pauses, s",
    "longest_stall_s": "longest pause, s",
}
#: What is known of each, by its column and the table.
PAUSES_KNOWN: dict[tuple[str, str], Known] = {
    ("stalls", "transient losses"): [({"window": 8}, {"fails": WAITING})],
    ("stalls", "losses in reverse"): [
        (
            {"window": 8},
            {"fails": "Real pauses more often than Reno, but its pauses together are shorter"},
        )
    ],
    ("stalled_s", "transient losses"): [
        ({"window": 8}, {"fails": WAITING}),
        ({"window": 48}, {"chance": "the interval includes the bound at 0.50"}),
    ],
    ("longest_stall_s", "transient losses"): [
        (
            {"window": 48},
            {"fails": "a timeout ends each period of losses, and Real waits as long as Reno"},
        )
    ],
    ("longest_stall_s", "handoffs"): [
        ({"window": 48}, {"chance": "the interval includes the bound"})
    ],
}


@claim(
    "real-playback-pauses",
    says="playback begins no later, and pauses less often and for less time, than with Reno",
    source="sections 3 and 4.2",
    scenario={
        name: Scenario(
            file,
            only={
                **({} if name == "reverse" else {"direction": ["each"]}),
                "acks": ["bsd"],
                "timers": ["ns2-2000"],
            },
            quick={"seeds": 20},
        )
        for name, file in TABLES.items()
    },
    ours=True,
)
def pauses(runs, check):
    for column, name in PAUSES.items():
        transient, reverse, handoff = of_tables(runs, playback(column))
        for reading, axes in transient.readings().items():
            for table, here in (
                ("transient losses", transient),
                ("losses in reverse", reverse),
                ("handoffs", handoff),
            ):
                check(
                    name,
                    here.at(**axes).real,
                    at_most=here.at(**axes).reno,
                    part=table,
                    reading=reading,
                    **known(PAUSES_KNOWN.get((column, table), ()), axes),
                )


@pauses.picture
def picture_of_pauses(runs, draw):
    for column, name in PAUSES.items():
        transient = playback(column)(runs["transient"]).at(**BASE)
        draw.lines(
            "transient losses",
            dict(zip(NAMES, transient)),
            over="drop",
            x="drop rate in the bad state",
            y=name,
        )
