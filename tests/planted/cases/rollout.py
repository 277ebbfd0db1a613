"""
NAME     Reinforcement learning, where the episodes take most of the time
PLANTED  nothing: between two steps a policy plays, which is what such a program does
EXPECT   host-other rollout
TRUTH    all but training
LINE     self.speed
"""

import math

import torch
from torch import nn
from torch.distributions import Categorical
from training import StepClock, arguments

PIECES = 5000  # of a move: the environment is much slower than anything else in the loop


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
    policy = nn.Sequential(nn.Linear(4, 128), nn.ReLU(), nn.Linear(128, 2), nn.Softmax(dim=-1))
    optimizer = torch.optim.Adam(policy.parameters(), lr=0.01)
    cart = Cart()
    for _ in range(2 * args.steps):
        state, chances, rewards = cart.reset(), [], []
        for _ in range(30):
            observation = torch.tensor([state])
            with clock.timed("training"):
                odds = policy(observation)
            choice = Categorical(odds)
            action = choice.sample()
            chances.append(choice.log_prob(action))
            state, reward = cart.step(int(action))
            rewards.append(reward)
        loss = -(torch.cat(chances) * torch.tensor(rewards)).sum()
        optimizer.zero_grad()
        with clock.timed("training"):
            loss.backward()
            optimizer.step()
        clock.step_done()
    clock.write(args.truth)


if __name__ == "__main__":
    main()
