"""Controllers in Python: Reno as an oracle, events, determinism, exceptions and steps."""

import math
import random
import threading

import comity
import pytest
from comity import events
from reno import RATE, RFC5681, Reno, scenario

# Idle phases that end a window, and small windows that end in timeouts.
BURSTS = {"workload": {"kind": "on_off", "rate": "3Mbps", "mean_on": "700ms", "mean_off": "1s"}}


def rows(results, name):
    """The rows of a table without what names the controller, and without the memory of its object."""
    names = {"kind", "scenario_hash", "memory_bytes"}
    return [
        {key: value for key, value in row.items() if key not in names}
        for row in getattr(results, name).arrow().to_pylist()
    ]


@pytest.mark.parametrize(
    ("transport", "flow"),
    [
        ("tcp", {}),
        ("tcp", BURSTS),
        ("tcp", {"recovery": "newreno"}),
        ("tcp", {"recovery": "tahoe"}),
        ("sections", {"workload": {"kind": "greedy"}}),
        ("sections", BURSTS),
    ],
)
def test_reno_in_python_is_reno(transport, flow):
    built_in = comity.run(scenario("reno", transport, parameters=RFC5681, **flow))
    mine = comity.run(scenario("mine", transport, **flow), controllers={"mine": Reno})
    for name in ("runs", "groups", "flows", "links", "flow_series", "link_series"):
        assert rows(mine, name) == rows(built_in, name), name
    assert sum(row["dropped_packets"] for row in rows(mine, "flows")) > 100
    if flow is BURSTS and transport == "tcp":
        assert sum(row["timeouts"] for row in rows(mine, "flows")) > 0
    # Another decrease shows.
    other = comity.run(
        scenario("mine", transport, parameters={"decrease": 0.6}, **flow), controllers={"mine": Reno}
    )
    theirs, ours = rows(built_in, "runs"), rows(other, "runs")
    assert all(a["fingerprint"] != b["fingerprint"] for a, b in zip(theirs, ours))


class Gambler(comity.Controller):
    """Draws its window from its own stream, and paces."""

    def __init__(self, setup):
        self.random = random.Random(setup.seed)
        self.wakeup_s = 0.1

    def on_wakeup(self, now_s):
        assert self.wakeup_s is None
        self.window_bytes = self.random.uniform(2_000, 60_000)
        self.pacing = comity.Pacing.rate(self.random.uniform(0.5, 3) * 1e6)
        self.wakeup_s = now_s + self.random.uniform(0.01, 0.5)


def test_the_same_seed_gives_the_same_bytes_whatever_the_threads():
    one, two, again = (
        comity.run(scenario("g"), controllers={"g": Gambler}, threads=threads, packets=True)
        for threads in (1, 2, None)
    )
    for a, b, c in zip(one, two, again):
        assert a.arrow().equals(b.arrow()) and a.arrow().equals(c.arrow()), a.name
    fingerprints = one.runs.arrow()["fingerprint"].to_pylist()
    assert len(set(fingerprints)) == 3, "each seed has its own stream"


class Recorder(comity.Controller):
    """Has a method for every event, and notes them."""

    needs_rate_samples = True
    seen = []

    def __init__(self, setup):
        self.setup = setup
        self.wakeup_s = 1.0
        # Too much for the queue.
        self.window_bytes = 60 * setup.mss_bytes


NAMES = [
    "sent",
    "ack",
    "in_order_ack",
    "packet_acked",
    "packet_lost",
    "loss",
    "recovered",
    "deflated",
    "timeout",
    "spurious_loss",
    "wakeup",
    "idle",
    "app_limited",
]
for name in NAMES:
    setattr(
        Recorder,
        f"on_{name}",
        lambda self, *arguments, name=name: self.seen.append((name, self.setup, *arguments)),
    )


def noted(transport, **flow):
    Recorder.seen.clear()
    comity.run(scenario("r", transport, **flow), seeds=1, controllers={"r": Recorder})
    return {name: [it for it in Recorder.seen if it[0] == name] for name in NAMES}


def test_the_events_say_what_happened():
    tcp, sections = noted("tcp"), noted("sections", workload={"kind": "greedy"})
    for seen in (tcp, sections):
        for name in ("sent", "ack", "packet_lost", "loss"):
            assert len(seen[name]) > 20, name
        # 20 s in which two flows of Python share the link with CUBIC.
        acked = sum(ack.acked_bytes for _, _, ack in seen["ack"]) * 8 / 20
        assert 0.5 * RATE < acked <= RATE
        rtts = [ack.rtt_s for _, _, ack in seen["ack"] if ack.rtt_s is not None]
        # 44 ms of delays, and a queue of 20 packets of 1,500 bytes.
        assert 0.044 < min(rtts) < 0.08 and 0.08 < max(rtts) < 0.3
        samples = [ack.sample for _, _, ack in seen["ack"] if ack.sample is not None]
        assert len(samples) > 0.5 * len(seen["ack"])
        assert all(0 < sample.total_delivered_bytes <= RATE * 20 / 8 for sample in samples)
        lost = sum(packet.size_bytes for _, _, packet in seen["packet_lost"])
        assert lost >= sum(loss.lost_bytes for _, _, loss in seen["loss"]) > 0
        assert [now for _, _, now in seen["wakeup"]] == pytest.approx([1.0, 1.0], abs=1.0)
        setup = seen["ack"][0][1]
        assert isinstance(setup, comity.Setup) and setup.mss_bytes > 1_000
        kinds = {"sent": events.Sent, "ack": events.Ack, "loss": events.Loss}
        assert all(isinstance(seen[name][0][2], kind) for name, kind in kinds.items())
    assert tcp["recovered"] and not tcp["packet_acked"]
    assert sections["packet_acked"] and sections["in_order_ack"]
    arrivals = [packet.arrived_s for _, _, packet in sections["packet_acked"]]
    # An acknowledgement of several packets says when the last of them arrived.
    assert 20 < arrivals.count(None) < len(arrivals) - 20


class Late(comity.Controller):
    def on_ack(self, ack):
        if ack.now_s > 5:
            raise LookupError("lost my way")


def test_an_exception_fails_its_run_with_its_traceback():
    mixed = scenario("late")
    mixed["sweep"] = [{"parameter": "flow.tested.controller", "values": ["reno", "late"]}]
    with pytest.raises(comity.RunError, match="3 of 6 runs failed") as caught:
        comity.run(mixed, controllers={"late": Late}, threads=2)
    error = caught.value
    assert [failure.run for failure in error.failures] == [3, 4, 5]
    for failure in error.failures:
        assert isinstance(failure.exception, LookupError)
        assert 'raise LookupError("lost my way")' in failure.reason and "on_ack" in failure.reason
    assert len(error.results) == 3
    assert len(comity.run(scenario("reno"))) == 3, "the process goes on"


def made(**body):
    """A class with these attributes."""
    return type("Made", (comity.Controller,), body)


def assign(**values):
    def on_ack(self, ack):
        for name, value in values.items():
            setattr(self, name, value)

    return made(on_ack=on_ack)


def past(self, now_s):
    self.wakeup_s = now_s


@pytest.mark.parametrize(
    ("controller", "message"),
    [
        (made(on_acks=lambda self, ack: None), "`on_acks`.* did you mean `on_ack`"),
        (made(__init__=lambda self: None), "positional argument"),
        (lambda setup: 7, "expected a comity.Controller"),
        (assign(window_bytes=-1), "window_bytes is -1; expected a number of bytes from 0"),
        (assign(window_bytes=math.nan), "window_bytes is NaN; expected"),
        (assign(window_bytes="much"), "must be real number"),
        (assign(ssthresh_bytes=-2), "ssthresh_bytes is -2; expected"),
        (assign(pacing=5e6), "Pacing"),
        (assign(phase="fast"), 'phase is "fast"; expected one of "slow_start", "congestion'),
        (assign(timeout_repair="none"), 'expected one of "go_back_n", "first_segment"'),
        (assign(wakeup_s=-1.0), "wakeup_s is -1; expected a number of seconds from 0"),
        (assign(capacity_bps=0), "capacity_bps is 0; expected a rate from 1 bit/s"),
        (made(on_ack=lambda self, ack: comity.Pacing.rate(0)), "rate_bps is 0; expected"),
        (made(wakeup_s=1, on_ack=lambda self, ack: ack.acked), "no attribute 'acked'"),
        (made(__init__=lambda self, setup: past(self, 1), on_wakeup=past), "expected a later time"),
    ],
)
def test_a_wrong_controller_is_an_error_with_its_reason(controller, message):
    with pytest.raises(comity.RunError, match=message):
        comity.run(scenario("wrong"), seeds=1, controllers={"wrong": controller})


def test_parameters_are_arguments_and_can_be_swept():
    seen = []

    class Parametric(comity.Controller):
        def __init__(self, setup, gain, smooth=False, mode="a"):
            seen.append((gain, smooth, mode))

    swept = scenario("p", parameters={"gain": 2, "smooth": True, "mode": "b"})
    swept["sweep"] = [{"parameter": "flow.tested.parameters.gain", "values": [0.5, 1.5]}]
    comity.run(swept, seeds=1, controllers={"p": Parametric})
    assert sorted(set(seen)) == [(0.5, True, "b"), (1.5, True, "b")]
    with pytest.raises(comity.RunError, match="unexpected keyword argument 'gian'"):
        comity.run(
            scenario("p", parameters={"gian": 2}), seeds=1, controllers={"p": Parametric}
        )
    with pytest.raises(comity.RunError, match="unexpected keyword argument 'gain'"):
        comity.run(scenario("p", parameters={"gain": 2}), seeds=1, controllers={"p": made()})


def test_wrong_names_are_scenario_errors():
    with pytest.raises(comity.ScenarioError, match="`reno` is a controller of Comity"):
        comity.run(scenario("reno"), controllers={"reno": Reno})
    with pytest.raises(comity.ScenarioError, match='did you mean `mine`|"mine"'):
        comity.run(scenario("mien"), controllers={"mine": Reno})
    with pytest.raises(comity.ScenarioError, match="expected a name and a comity.Controller class"):
        comity.run(scenario("mine"), controllers={"mine": 7})
    with pytest.raises(comity.ScenarioError, match="mine"):
        comity.run(scenario("mine"))


def test_pauses_change_nothing():
    whole = comity.run(scenario("mine"), seeds=2, controllers={"mine": Reno})
    simulation = comity.Simulation(scenario("mine"), seed=2, controllers={"mine": Reno})
    for step in range(333):
        simulation.run_until(0.0777 * step)
    results = simulation.finish()
    for name in ("groups", "flows", "links", "link_series"):
        assert rows(results, name) == rows(whole, name), name
    fingerprints = [it.runs.arrow()["fingerprint"].to_pylist() for it in (results, whole)]
    assert fingerprints[0] == fingerprints[1]
    with pytest.raises(comity.RunError, match="is finished; expected a new"):
        simulation.run_until(1)


def test_a_pause_lies_between_the_events_before_and_those_behind():
    times = []
    agents = []

    class Steered(comity.Controller):
        def __init__(self, setup):
            self.wakeup_s = 0.5
            agents.append(self)

        def on_ack(self, ack):
            times.append(ack.now_s)

        def on_wakeup(self, now_s):
            times.append(now_s)
            self.wakeup_s = now_s + 0.5
            self.window_bytes = self.chosen

    one = scenario("s", count=1, start={"at": "0s"})
    simulation = comity.Simulation(one, seed=1, controllers={"s": Steered})
    before = 0.0
    for step in range(1, 20):
        end = 0.5 * step
        simulation.run_until(end)
        assert all(before <= time < end for time in times)
        assert step == 1 or before in times
        agents[0].chosen = 3_000 * step
        times.clear()
        before = end
    assert agents[0].window_bytes == 3_000 * 18


def test_a_simulation_raises_the_exception_itself():
    simulation = comity.Simulation(scenario("late"), seed=1, controllers={"late": Late})
    simulation.run_until(4)
    with pytest.raises(LookupError, match="lost my way"):
        simulation.run_until(10)
    with pytest.raises(comity.ScenarioError, match="3 runs; expected one seed"):
        comity.Simulation(scenario("reno"))
    with pytest.raises(comity.ScenarioError, match="time_s is -1"):
        comity.Simulation(scenario("reno"), seed=1).run_until(-1)
    with pytest.raises(TypeError, match="expected a comity.Controller"):
        comity.Simulation(scenario("x"), seed=1, controllers={"x": lambda setup: 7})


def test_other_threads_run_while_a_controller_does():
    ticks = []
    stop = threading.Event()

    def tick():
        while not stop.wait(0.01):
            ticks.append(1)

    thread = threading.Thread(target=tick)
    thread.start()
    comity.run(scenario("mine"), controllers={"mine": Reno}, set={"scenario.duration": "600s"})
    stop.set()
    thread.join()
    assert len(ticks) > 5
