#!/usr/bin/env python3
"""Trains a congestion controller with an agent of Stable-Baselines3, PPO, in a few minutes.

    pip install '.[agents]'
    python experiments/learning/stable_baselines.py

The agent gets as many steps as the policies of train.py together, and meets the same networks
afterwards. All parameters of PPO are the library's defaults.

Source: Schulman and others, "Proximal Policy Optimization Algorithms", arXiv:1707.06347, 2017.
"""

import argparse
import time

import gymnasium
import numpy
import torch
from stable_baselines3 import PPO

import comity.gym
from train import HELD_OUT, mean_reward


class Agent:
    """The agent's action with the largest probability."""

    def __init__(self, model):
        self.model = model

    def reset(self, seed):
        pass

    def __call__(self, observation):
        return self.model.predict(observation, deterministic=True)[0]


def main():
    parser = argparse.ArgumentParser(description="Trains PPO to control congestion.")
    parser.add_argument("--steps", type=int, default=172_800)
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    # The network has 64 neurons in a layer: threads cost more than they save.
    torch.set_num_threads(1)
    model = PPO("MlpPolicy", gymnasium.make(comity.gym.ID), seed=arguments.seed, device="cpu")
    began = time.perf_counter()
    model.learn(arguments.steps)
    print(f"trained {model.num_timesteps:,} steps in {time.perf_counter() - began:.0f} s")
    rewards = [mean_reward(Agent(model), [seed]) for seed in HELD_OUT]
    error = numpy.std(rewards, ddof=1) / len(rewards) ** 0.5
    print(f"mean reward of a step over {len(rewards)} networks of other seeds: "
          f"{numpy.mean(rewards):+.3f}, standard error {error:.3f}")


if __name__ == "__main__":
    main()
