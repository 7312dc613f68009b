"""Sections 3.2.2 and 3.2.3: 1 to 16 agents behave alike, alone and beside as many TCP flows."""

from comity.reproduction import claim

from ._shared import loss, received

#: The first spacing of the sweep at which so many agents offer less than the link carries.
ROOM = {2: "50us", 4: "200us", 8: "500us", 16: "1100us"}
#: What is known of the loss there, by the numbers of agents and TCP flows.
KNOWN = {
    (16, 16): {
        "fails": (
            "TCP flows with a window of 800 packets take what the agents leave, and the queue of ten "
            "packets drops of both"
        )
    },
    (8, 8): {"chance": "the interval includes the bound"},
}


@claim(
    "psp-numbers",
    says="2, 4 and 8 agents behave as 16 do, alone and beside as many TCP flows",
    source="sections 3.2.2 and 3.2.3",
    scenario="numbers.toml",
    quick={"seeds": 2, "set": {"scenario.duration": "10s"}},
)
def numbers(runs, check):
    lost, rate, tcp_rate = (
        runs.measure(number) for number in (loss, received("psa"), received("tcp"))
    )
    for agents, room in ROOM.items():
        for tcp in (0, agents):
            who = {"agents": agents, "tcp": tcp}
            beside = f"{agents} agents" + (f" and {tcp} TCP flows" if tcp else "")
            check(f"loss of {beside}", lost.at(**who), falls_over="spacing")
            check(
                f"received by one of {beside} without spacing, Mb/s",
                rate.at(spacing="0us", **who),
                within=(0.1, 155 / agents),
            )
            check(
                f"loss of {beside} at {room}",
                lost.at(spacing=room, **who),
                at_most=0.01,
                **KNOWN.get((agents, tcp), {}),
            )
        check(
            f"received by one of {agents} TCP flows, Mb/s",
            tcp_rate.at(agents=agents, tcp=agents),
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
