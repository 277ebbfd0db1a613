"""
NAME     Reinforcement learning in rounds: a policy acts without gradients, then learns from what it saw
PLANTED  nothing: between two rounds of steps the policy plays, in evaluation mode
EXPECT   host-other rollout
"""

import math

import torch
from torch import nn
from torch.distributions import Categorical
from training import StepClock, arguments

PIECES = 300  # of a move


class Cart:
    """A cart that balances a pole, integrated in small pieces."""

    def reset(self) -> list[float]:
        self.place, self.speed, self.angle, self.turning = 0.0, 0.0, 0.05, 0.0
        return [self.place, self.speed, self.angle, self.turning]

    def step(self, action: int) -> tuple[list[float], float]:
        push = 0.02 if action else -0.02
        for _ in range(PIECES):
            self.speed, self.turning = self.speed + push / PIECES, self.turning + math.sin(self.angle) / 20 / PIECES
            self.place, self.angle = self.place + self.speed / PIECES, self.angle + self.turning / PIECES
        return [self.place, self.speed, self.angle, self.turning], math.cos(self.angle)


def main() -> None:
    args = arguments()
    clock = StepClock()
    policy = nn.Sequential(nn.Linear(4, 256), nn.Tanh(), nn.Linear(256, 256), nn.Tanh(), nn.Linear(256, 2))
    optimizer = torch.optim.Adam(policy.parameters(), lr=0.001)
    cart = Cart()
    state = cart.reset()
    for _ in range(2 * args.steps):
        policy.eval()
        states, actions, rewards = [], [], []
        for _ in range(64):
            observation = torch.tensor([state])
            with torch.no_grad():
                action = Categorical(logits=policy(observation)).sample()
            state, reward = cart.step(int(action))
            states.append(observation)
            actions.append(action)
            rewards.append(reward)
        policy.train()
        for part in torch.randperm(64).split(16):
            chances = Categorical(logits=policy(torch.cat(states)[part])).log_prob(torch.cat(actions)[part])
            loss = -(chances * torch.tensor(rewards)[part]).mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            clock.step_done()
    clock.write(args.truth)


if __name__ == "__main__":
    main()
