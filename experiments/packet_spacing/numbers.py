"""Sections 3.2.2 and 3.2.3: 1 to 16 agents behave alike, alone and beside as many TCP flows.

Up to the spacing at which the agents leave the link free, their loss falls from each spacing of the
sweep to the next. TCP's throughput rises from no spacing to that one, and from there to the largest.
"""

from comity.reproduction import claim

from ._shared import loss, received

#: The first spacing of the sweep at which so many agents offer less than the link carries.
ROOM = {2: "50us", 4: "200us", 8: "500us", 16: "1100us"}
SPACINGS = ["0us", "50us", "100us", "200us", "500us", "1000us", "1100us"]
#: Of agents alone, whatever a sender does.
ARITHMETIC = {
    "cannot_fail": "arithmetic of a full link: agents offer a constant rate, the link carries 155 "
    "Mb/s, and the rest is lost"
}
#: What is known of the loss there, by the numbers of agents and TCP flows.
KNOWN = {
    (16, 16): {
        "fails": (
            "TCP flows with a window of 800 packets take the capacity that the agents leave, and "
            "the queue of ten packets drops packets of both"
        )
    },
    (8, 8): {"chance": "the interval includes the bound"},
}


@claim(
    "psp-numbers",
    says="2, 4 and 8 agents behave as 16 do, alone and beside as many TCP flows",
    source="sections 3.2.2 and 3.2.3",
    scenario="numbers.toml",
    quick={"seeds": 3, "set": {"scenario.duration": "10s"}},
    ours=True,
)
def numbers(runs, check):
    lost, rate, tcp_rate = (
        runs.measure(number) for number in (loss, received("psa"), received("tcp"))
    )
    for agents, room in ROOM.items():
        for tcp in (0, agents):
            who = {"agents": agents, "tcp": tcp}
            beside = f"{agents} agents" + (f" and {tcp} TCP flows" if tcp else "")
            alone = {} if tcp else ARITHMETIC
            up_to_room = SPACINGS[: SPACINGS.index(room) + 1]
            check(
                f"loss of {beside} up to {room}",
                lost.at(spacing=up_to_room, **who),
                falls_over="spacing",
                **alone,
            )
            check(
                f"received by one of {beside} without spacing, Mb/s",
                rate.at(spacing="0us", **who),
                within=(0.1, 155 / agents),
                **alone,
            )
            check(
                f"loss of {beside} at {room}",
                lost.at(spacing=room, **who),
                at_most=0.01,
                **KNOWN.get((agents, tcp), {}),
            )
        check(
            f"received by one of {agents} TCP flows, Mb/s",
            tcp_rate.at(
                agents=agents, tcp=agents, spacing=list(dict.fromkeys(["0us", room, "1100us"]))
            ),
            rises_over="spacing",
        )
    check.show("loss of one agent and one TCP flow", lost.at(agents=1))


@numbers.picture
def picture(runs, draw):
    spacing = {"over": "spacing", "unit": "us", "x": "spacing, us"}
    lost = runs.measure(loss)
    for title, beside in (("alone", 0), ("beside as many TCP flows", 1)):
        series = {
            f"{agents} agents": lost.at(agents=agents, tcp=agents * beside) for agents in ROOM
        }
        draw.lines(title, series, **spacing, y="loss")
