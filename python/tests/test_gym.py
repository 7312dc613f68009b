"""The Gymnasium environment: its contract, its seeds, its equations, and the training example."""

import importlib.util
import warnings

import gymnasium
import numpy
import pytest
from conftest import ROOT
from gymnasium.utils.env_checker import check_env

import comity
import comity.gym


def make(**options):
    return gymnasium.make(comity.gym.ID, **options)


def episode(seed, policy, steps=40, **options):
    """Observations, rewards and infos of an episode."""
    env = make(steps=steps, **options)
    observation, info = env.reset(seed=seed)
    seen = [(observation, None, info)]
    is_over = False
    while not is_over:
        observation, reward, terminated, is_over, info = env.step(policy(observation))
        assert not terminated
        seen.append((observation, reward, info))
    assert len(seen) == steps + 1
    return seen, env.unwrapped


def keep(observation):
    return numpy.zeros(1, numpy.float32)


def double(observation):
    return numpy.ones(1, numpy.float32)


def halve(observation):
    return -numpy.ones(1, numpy.float32)


def quiet(random):
    """A network without anything random."""
    network = comity.gym.dumbbell(random)
    scenario = {**network.scenario, "flow": network.scenario["flow"][:1]}
    scenario["scenario"] = {**scenario["scenario"], "bins": "100ms"}
    bottleneck = {"rate": "6Mbps", "delay": "18ms", "queue": 40}
    scenario["topology"] = {**scenario["topology"], "bottleneck": bottleneck}
    return comity.gym.Network(scenario, 6e6, 0.04)


def test_the_checker_of_gymnasium_finds_nothing():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        check_env(make().unwrapped)


def test_a_seed_and_the_actions_make_the_episode():
    def at_random(seed):
        random = numpy.random.default_rng(seed)
        return lambda observation: random.uniform(-1, 1, 1)

    one, again, other, another = (
        episode(seed, at_random(actions))[0] for seed, actions in ((7, 1), (7, 1), (8, 1), (7, 2))
    )
    for a, b in zip(one, again):
        assert (a[0] == b[0]).all() and a[1] == b[1] and a[2] == b[2]
    assert any((a[0] != b[0]).any() for a, b in zip(one, other))
    assert any((a[0] != b[0]).any() for a, b in zip(one, another))
    # Without a seed the episodes go on from the last one.
    env = make()
    env.reset(seed=7)
    first = env.unwrapped.network
    env.reset()
    second = env.unwrapped.network
    env.reset(seed=7)
    assert env.unwrapped.network == first != second


def test_the_equations_hold_in_a_quiet_network():
    # 10 segments in 40 ms: less than the 6 Mb/s of the link, and no queue but their own.
    seen, env = episode(1, keep, network=quiet)
    window = seen[0][2]["cwnd_bytes"]
    payload = 10 * 1448
    assert window == payload
    for observation, reward, info in seen[5:]:
        assert info["rtt_s"] == pytest.approx(0.04, rel=0.15)
        assert info["loss"] == 0 and observation[3] == 0
        expected = info["throughput_bps"] / 6e6 - 0.5 * (info["rtt_s"] / 0.04 - 1)
        assert reward == pytest.approx(expected)
    # A step is shorter than a round trip with its own queue, so single steps see more or less.
    throughput = numpy.mean([info["throughput_bps"] for _, _, info in seen[5:]])
    rtt = numpy.mean([info["rtt_s"] for _, _, info in seen[5:]])
    assert throughput == pytest.approx(8 * window / rtt, rel=0.1)
    times = [info["time_s"] for _, _, info in seen]
    assert numpy.diff(times) == pytest.approx(0.04)


def test_actions_double_and_halve_the_window_and_the_reward_follows():
    seen, env = episode(1, double, steps=12, network=quiet)
    windows = [info["cwnd_bytes"] for _, _, info in seen]
    assert numpy.diff(numpy.log2(windows)) == pytest.approx(1)
    # The queue fills and overflows: delay and loss cost more than the throughput brings.
    assert max(info["rtt_s"] for _, _, info in seen) > 0.08
    assert max(info["loss"] for _, _, info in seen) > 0.3
    assert seen[-1][1] < 0
    seen, env = episode(1, halve, steps=12, network=quiet)
    assert seen[-1][2]["cwnd_bytes"] == 2 * 1448
    assert 0 < seen[-1][1] < 0.2


def test_the_episode_is_a_run_with_results():
    _, env = episode(1, keep, steps=50, network=quiet)
    results = env.results()
    assert isinstance(results, comity.Results)
    (flow,) = results.flows.arrow().to_pylist()
    assert flow["dropped_packets"] == 0
    assert len(results.flow_series) == 22
    assert results.runs.arrow()["duration_ns"].to_pylist() == [53 * 40_000_000]


def test_the_weights_of_the_reward_are_arguments():
    greedy, _ = episode(1, double, steps=12, network=quiet, delay_weight=0, loss_weight=0)
    for _, reward, info in greedy[1:]:
        assert reward == pytest.approx(info["throughput_bps"] / 6e6)


def test_the_training_example_learns():
    spec = importlib.util.spec_from_file_location(
        "train", ROOT / "experiments" / "learning" / "train.py"
    )
    train = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(train)
    class Here:
        def starmap(self, work, arguments, chunksize):
            return [work(*each) for each in arguments]

    # A fraction of what the example does by default.
    learned = train.Linear(train.train(Here(), generations=2, seed=1))
    seeds = train.HELD_OUT[:8]
    assert train.mean_reward(learned, seeds) > train.mean_reward(train.Random(), seeds) + 0.1
