"""In the manner of pytorch/examples' actor_critic: an update after each episode, of many passes forward."""

import random

import torch
import torch.nn as nn
import torch.nn.functional as F
import torch.optim as optim
from torch.distributions import Categorical


class Corridor:
    """Walk right to be rewarded."""

    def reset(self):
        self.at, self.left = 0, 30
        return [0.0, 1.0]

    def step(self, action):
        self.at += 1 if action else -1
        self.left -= 1
        return [self.at / 30, self.left / 30], float(self.at > 0), self.left == 0


class Policy(nn.Module):
    def __init__(self):
        super().__init__()
        self.affine1 = nn.Linear(2, 32)
        self.action_head = nn.Linear(32, 2)
        self.value_head = nn.Linear(32, 1)
        self.saved_actions, self.rewards = [], []

    def forward(self, x):
        x = F.relu(self.affine1(x))
        return F.softmax(self.action_head(x), dim=-1), self.value_head(x)


def select_action(model, state):
    probs, state_value = model(torch.tensor(state))
    m = Categorical(probs)
    action = m.sample()
    model.saved_actions.append((m.log_prob(action), state_value))
    return action.item()


def finish_episode(model, optimizer):
    R, returns = 0.0, []
    for r in model.rewards[::-1]:
        R = r + 0.99 * R
        returns.insert(0, R)
    returns = torch.tensor(returns)
    returns = (returns - returns.mean()) / (returns.std() + 1e-6)
    policy_losses, value_losses = [], []
    for (log_prob, value), R in zip(model.saved_actions, returns):
        policy_losses.append(-log_prob * (R - value.item()))
        value_losses.append(F.smooth_l1_loss(value, torch.tensor([R])))
    optimizer.zero_grad()
    (torch.stack(policy_losses).sum() + torch.stack(value_losses).sum()).backward()
    optimizer.step()
    del model.rewards[:], model.saved_actions[:]


random.seed(0)
torch.manual_seed(0)
env, model = Corridor(), Policy()
optimizer = optim.Adam(model.parameters(), lr=3e-2)
episodes = 0
for _ in range(40):
    state, done = env.reset(), False
    while not done:
        state, reward, done = env.step(select_action(model, state))
        model.rewards.append(reward)
    finish_episode(model, optimizer)
    episodes += 1
print("steps", episodes)
