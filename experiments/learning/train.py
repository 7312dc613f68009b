#!/usr/bin/env python3
"""Trains a congestion controller with the cross-entropy method, in about a minute on two cores.

    pip install '.[gym]'
    python experiments/learning/train.py

The policy is linear: action = tanh(weights * observation + bias), six numbers. Each generation
draws policies from a normal distribution, runs each in the same networks, and fits the distribution
to the best ones. Then the mean, a random policy, and one that keeps its window meet in networks
that the training has not seen. The same arguments give the same numbers.

Source: Rubinstein, "The Cross-Entropy Method for Combinatorial and Continuous Optimization",
Methodology and Computing in Applied Probability 1, 1999.
"""

import argparse
import multiprocessing
import time

import gymnasium
import numpy

import comity.gym

POLICIES, BEST, NETWORKS = 24, 6, 6
HELD_OUT = range(1_000_000, 1_000_050)


class Linear:
    """A linear policy with a squashed output."""

    def __init__(self, weights):
        self.weights = numpy.asarray(weights)

    def reset(self, seed):
        pass

    def __call__(self, observation):
        return numpy.tanh([observation @ self.weights[:-1] + self.weights[-1]])


class Random:
    """Multiplies the window at random."""

    def reset(self, seed):
        self.random = numpy.random.default_rng(seed)

    def __call__(self, observation):
        return self.random.uniform(-1, 1, 1)


def mean_reward(policy, seeds):
    """The mean reward of a step over episodes with these seeds."""
    env = gymnasium.make(comity.gym.ID)
    rewards = []
    for seed in seeds:
        policy.reset(seed)
        observation, _ = env.reset(seed=seed)
        is_over = False
        while not is_over:
            observation, reward, _, is_over, _ = env.step(policy(observation))
            rewards.append(reward)
    return float(numpy.mean(rewards))


def train(pool, generations, seed):
    """The weights after so many generations."""
    random = numpy.random.default_rng(seed)
    size = gymnasium.make(comity.gym.ID).observation_space.shape[0] + 1
    mean, deviation = numpy.zeros(size), numpy.ones(size)
    for generation in range(generations):
        candidates = random.normal(mean, deviation, (POLICIES, size))
        # All candidates meet the same networks, and other ones in each generation.
        seeds = range(generation * NETWORKS, (generation + 1) * NETWORKS)
        work = [(Linear(weights), seeds) for weights in candidates]
        rewards = numpy.array(pool.starmap(mean_reward, work, chunksize=1))
        best = candidates[numpy.argsort(rewards)[-BEST:]]
        mean = best.mean(axis=0)
        # The noise shrinks to nothing, so that the distribution does not collapse early.
        deviation = best.std(axis=0) + 0.3 * (1 - (generation + 1) / generations)
        print(f"generation {generation + 1:2}: {rewards.mean():+.3f}, best {rewards.max():+.3f}")
    return mean


def main():
    parser = argparse.ArgumentParser(description="Trains a linear congestion controller.")
    parser.add_argument("--generations", type=int, default=12)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--processes", type=int, default=2)
    arguments = parser.parse_args()
    with multiprocessing.Pool(arguments.processes) as pool:
        began = time.perf_counter()
        weights = train(pool, arguments.generations, arguments.seed)
        print(f"trained in {time.perf_counter() - began:.0f} s: {numpy.round(weights, 3).tolist()}")
        constant = Linear(numpy.zeros(len(weights)))
        policies = {"learned": Linear(weights), "random": Random(), "constant": constant}
        print(f"mean reward of a step over {len(HELD_OUT)} networks of other seeds:")
        for name, policy in policies.items():
            work = [(policy, [seed]) for seed in HELD_OUT]
            rewards = pool.starmap(mean_reward, work, chunksize=5)
            error = numpy.std(rewards, ddof=1) / len(rewards) ** 0.5
            print(f"{name:9} {numpy.mean(rewards):+.3f}, standard error {error:.3f}")


if __name__ == "__main__":
    main()
