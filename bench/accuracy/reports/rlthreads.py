"""Reinforcement learning with environments in processes is slower than it should be on a CPU.

Source: "Comparing stable-baselines3 vs stable-baselines", https://github.com/DLR-RM/stable-baselines3/issues/90
  ("setting OMP_NUM_THREADS=1 in some cases drastically increases the speed"; also facebookresearch/habitat-lab #594)
Cause: torch's pool of threads for tiny networks, beside environments that want the same cores.
Fix: torch.set_num_threads(1).
"""

import multiprocessing

import numpy as np
import torch
from clock import Clock, options

ENVIRONMENTS, HORIZON = 4, 32


def environment(pipe, seed):
    noise = np.random.default_rng(seed)
    state = noise.standard_normal(64)
    weights = noise.standard_normal((64, 64)) / 9
    while True:
        action = pipe.recv()
        if action is None:
            return
        for _ in range(40):  # physics
            state = np.tanh(weights @ state + 0.01 * action)
        pipe.send((state.astype(np.float32), float(state[0])))


def main():
    opts = options()
    torch.manual_seed(0)
    if opts.fixed:
        torch.set_num_threads(1)
    pipes = []
    for seed in range(ENVIRONMENTS):
        here, there = multiprocessing.Pipe()
        multiprocessing.Process(target=environment, args=(there, seed), daemon=True).start()
        pipes.append(here)
    policy = torch.nn.Sequential(
        torch.nn.Linear(64, 256), torch.nn.Tanh(), torch.nn.Linear(256, 256), torch.nn.Tanh(), torch.nn.Linear(256, 5)
    )
    optimizer = torch.optim.Adam(policy.parameters(), lr=3e-4)
    states = torch.zeros(ENVIRONMENTS, 64)
    clock = Clock(opts.seconds)
    over = False
    while not over:
        kept, actions, rewards = [], [], []
        for _ in range(HORIZON):
            with torch.no_grad():
                out = policy(states)
                chosen = torch.distributions.Categorical(logits=out[:, :4]).sample()
            for pipe, action in zip(pipes, chosen.tolist()):
                pipe.send(action)
            answers = [pipe.recv() for pipe in pipes]
            kept.append(states)
            actions.append(chosen)
            rewards.append(torch.tensor([reward for _, reward in answers]))
            states = torch.from_numpy(np.stack([state for state, _ in answers]))
        kept, actions, rewards = torch.cat(kept), torch.cat(actions), torch.cat(rewards)
        for _ in range(4):
            for part in torch.randperm(len(kept)).split(64):
                out = policy(kept[part])
                gain = rewards[part] - out[:, 4]
                logarithm = torch.log_softmax(out[:, :4], 1).gather(1, actions[part][:, None])[:, 0]
                loss = (gain.square() - logarithm * gain.detach()).mean()
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
                over = clock.done(len(part), loss) or over
    for pipe in pipes:
        pipe.send(None)
    clock.rate()


if __name__ == "__main__":
    main()
