"""Congestion control as a Gymnasium environment, `comity/CongestionControl-v0`.

>>> import gymnasium, comity.gym
>>> env = gymnasium.make("comity/CongestionControl-v0")
>>> observation, info = env.reset(seed=1)
>>> observation, reward, terminated, truncated, info = env.step(env.action_space.sample())

Needs the extra `gym`. `docs/guide/python-controller.md` has a small training example.
"""

from __future__ import annotations

import typing
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import gymnasium
import numpy

from ._comity import Controller
from ._run import Simulation

if typing.TYPE_CHECKING:
    from ._comity import Setup
    from ._results import Results
    from .events import Ack, PacketLost

ID = "comity/CongestionControl-v0"
"""The name under which Gymnasium finds the environment once this module is imported."""

AGENT = "agent"
"""The name of the agent's controller in scenarios."""

WARMUP_ROUND_TRIPS = 3
"""How many round trips pass before the first step: the handshake, and the first window."""


@dataclass(frozen=True)
class Network:
    """The network of one episode."""

    scenario: Mapping[str, typing.Any]
    """The scenario, with one flow whose `controller` is `"agent"`. Its duration is replaced by that
    of the episode."""
    rate_bps: float
    """The rate of its bottleneck, which is the unit of throughput in the reward."""
    rtt_s: float
    """The round-trip time without queues: the length of a step."""


def dumbbell(random: numpy.random.Generator) -> Network:
    """A greedy TCP flow of the agent on a bottleneck that is drawn at random.

    | | |
    | --- | --- |
    | rate | 1 to 10 Mb/s, log-uniform |
    | round-trip time | 20 to 100 ms |
    | queue | 0.5 to 3 times rate and round-trip time, 10 packets or more |
    | random loss | none in every second network, up to 1 % in the others |
    | other traffic | on/off datagrams that take up to half of the rate while on |
    """
    rate = 1e6 * 10 ** random.uniform(0, 1)
    rtt = random.uniform(0.02, 0.1)
    queue = max(10, round(random.uniform(0.5, 3) * rate * rtt / 12_000))
    loss = random.uniform(0, 0.01) * random.integers(2)
    other = random.uniform(0.01, 0.5) * rate
    scenario = {
        "scenario": {"name": "congestion-control", "duration": "1s"},
        "topology": {
            "kind": "dumbbell",
            "bottleneck": {
                "rate": f"{rate:.0f}bps",
                "delay": f"{rtt * 1e6 / 2 - 2_000:.0f}us",
                "queue": queue,
                "losses": [{"model": "bernoulli", "probability": float(loss)}] if loss else [],
            },
            "access": {"rate": "100Mbps", "delay": "1ms"},
        },
        "flow": [
            {"group": "agent", "controller": AGENT},
            {
                "group": "other",
                "transport": "datagram",
                "workload": {
                    "kind": "on_off",
                    "rate": f"{other:.0f}bps",
                    "mean_on": "2s",
                    "mean_off": "2s",
                },
            },
        ],
    }
    return Network(scenario, rate, rtt)


class _Sender(Controller):
    """Counts what the agent observes, and sets the agent's window at the beginning of each step."""

    needs_rate_samples = True

    def __init__(self, setup: Setup, start_s: float, step_s: float) -> None:
        self.min_window_bytes = 2 * setup.mss_bytes
        self.next_window_bytes = self.window_bytes
        self.step_s = step_s
        self.wakeup_s = start_s
        self.phase = "steady"
        self.acked_bytes = self.lost_bytes = self.rtts = 0
        self.rtt_sum_s = 0.0

    def on_ack(self, ack: Ack) -> None:
        self.acked_bytes += ack.acked_bytes
        if ack.rtt_s is not None:
            self.rtt_sum_s += ack.rtt_s
            self.rtts += 1

    def on_packet_lost(self, packet: PacketLost) -> None:
        self.lost_bytes += packet.size_bytes

    def on_wakeup(self, now_s: float) -> None:
        self.window_bytes = self.next_window_bytes
        self.wakeup_s = now_s + self.step_s


class CongestionControl(gymnasium.Env[numpy.ndarray, numpy.ndarray]):
    """An agent sets the congestion window of one flow, once in each round trip.

    An episode is a run of the simulator that pauses between steps. Observations have only what a
    sender can measure; the reward also uses the network's properties. Each step lasts one
    round-trip time without queues.

    ```text
    action       a in [-1, 1]:  cwnd <- max(cwnd * 2^a, 2 segments), at the beginning of the step
    observation  [0] throughput / largest throughput of a step so far          0 to 1
                 [1] log2(RTT / smallest RTT so far)                           0 to 8
                 [2] (RTT - RTT of the step before) / smallest RTT so far     -4 to 4
                 [3] lost / (acknowledged + lost)                              0 to 1
                 [4] log2(cwnd / (largest throughput * smallest RTT))         -8 to 8
    reward       throughput / rate - delay_weight * queueing delay / round-trip time without queues
                 - loss_weight * lost / (acknowledged + lost)
    ```

    Throughput counts acknowledged payload; RTT is the mean over the step, and that of the step
    before if none was measured. Losses are those that the sender declared. `info` has the same
    quantities with their units. The episode is truncated after `steps` steps and never terminates.

    The seed of `reset` determines the network and the run: the same seed and actions give the same
    episode.

    Args:
        network: Draws the network of an episode.
        steps: The steps of an episode.
        delay_weight: The cost of a queueing delay of one round-trip time.
        loss_weight: The cost of losing everything.
    """

    metadata: typing.ClassVar[dict[str, typing.Any]] = {"render_modes": []}
    """Metadata for Gymnasium: there is nothing to render."""

    def __init__(
        self,
        network: Callable[[numpy.random.Generator], Network] = dumbbell,
        steps: int = 100,
        delay_weight: float = 0.5,
        loss_weight: float = 1.0,
    ) -> None:
        self._draw = network
        self._steps = steps
        self._weights = delay_weight, loss_weight
        self.action_space = gymnasium.spaces.Box(-1, 1, (1,), numpy.float32)
        """The binary logarithm of the factor of the window, from -1 to 1."""
        self.observation_space = gymnasium.spaces.Box(
            numpy.array([0, 0, -4, 0, -8], numpy.float32),
            numpy.array([1, 8, 4, 1, 8], numpy.float32),
        )
        """The five ratios of an observation."""

    def reset(
        self, *, seed: int | None = None, options: dict[str, typing.Any] | None = None
    ) -> tuple[numpy.ndarray, dict[str, typing.Any]]:
        super().reset(seed=seed, options=options)
        self.network = self._draw(self.np_random)
        self._time_s = WARMUP_ROUND_TRIPS * self.network.rtt_s
        senders: list[_Sender] = []

        def make(setup: Setup) -> _Sender:
            senders.append(_Sender(setup, self._time_s, self.network.rtt_s))
            return senders[-1]

        end = (WARMUP_ROUND_TRIPS + self._steps) * self.network.rtt_s
        self._simulation = Simulation(
            self.network.scenario,
            seed=int(self.np_random.integers(2**63)),
            set={"scenario.duration": f"{end * 1e6:.0f}us"},
            controllers={AGENT: make},
        )
        (self._sender,) = senders
        self._left = self._steps
        self._max_throughput_bps = 0.0
        self._min_rtt_s = self._rtt_s = self.network.rtt_s
        self._before = 0, 0, 0, 0.0
        self._simulation.run_until(self._time_s)
        observation, _, info = self._look(self._time_s)
        return observation, info

    def step(
        self, action: numpy.ndarray
    ) -> tuple[numpy.ndarray, float, bool, bool, dict[str, typing.Any]]:
        sender = self._sender
        window = sender.window_bytes * 2.0 ** float(numpy.clip(action[0], -1, 1))
        sender.next_window_bytes = max(window, sender.min_window_bytes)
        # The sender wakes up at the current pause, which is the beginning of the step.
        self._time_s = sender.wakeup_s + self.network.rtt_s
        self._simulation.run_until(self._time_s)
        observation, reward, info = self._look(self.network.rtt_s)
        self._left -= 1
        return observation, reward, False, self._left <= 0, info

    def results(self) -> Results:
        """Ends the episode, and returns its results; the window keeps its size until the end."""
        return self._simulation.finish()

    def _look(self, seconds: float) -> tuple[numpy.ndarray, float, dict[str, typing.Any]]:
        """The observation, the reward and the quantities of the last `seconds`."""
        sender, rtt_before = self._sender, self._rtt_s
        now = sender.acked_bytes, sender.lost_bytes, sender.rtts, sender.rtt_sum_s
        acked, lost, rtts, rtt_sum = (a - b for a, b in zip(now, self._before))
        self._before = now
        if rtts:
            self._rtt_s = rtt_sum / rtts
            self._min_rtt_s = min(self._min_rtt_s, self._rtt_s)
        throughput = 8 * acked / seconds
        self._max_throughput_bps = max(self._max_throughput_bps, throughput)
        loss = lost / max(acked + lost, 1)
        flight = max(self._max_throughput_bps / 8 * self._min_rtt_s, 1)
        observation = numpy.array(
            [
                throughput / max(self._max_throughput_bps, 1),
                numpy.log2(self._rtt_s / self._min_rtt_s),
                (self._rtt_s - rtt_before) / self._min_rtt_s,
                loss,
                numpy.log2(sender.window_bytes / flight),
            ],
            numpy.float32,
        )
        space = self.observation_space
        observation = numpy.clip(observation, space.low, space.high)
        delay = max(self._rtt_s / self.network.rtt_s - 1, 0)
        delay_weight, loss_weight = self._weights
        reward = throughput / self.network.rate_bps - delay_weight * delay - loss_weight * loss
        info = {
            "time_s": self._time_s,
            "throughput_bps": throughput,
            "rtt_s": self._rtt_s,
            "loss": loss,
            "cwnd_bytes": sender.window_bytes,
        }
        return observation, float(reward), info


gymnasium.register(ID, entry_point=CongestionControl)
