"""
NAME     A small network in double precision
PLANTED  nothing: its operators take the time of being called, in whatever precision
EXPECT   *
NEVER    float32
WINDOWS  3@30
"""

import torch
from torch import nn
from training import StepClock, arguments


def main() -> None:
    args = arguments()
    clock = StepClock()
    model = nn.Sequential(nn.Linear(8, 16), nn.Tanh(), nn.Linear(16, 1)).double()
    optimizer = torch.optim.Adam(model.parameters())
    for _ in range(8 * args.steps):
        optimizer.zero_grad()
        model(torch.randn(16, 8, dtype=torch.float64)).pow(2).mean().backward()
        optimizer.step()
        clock.step_done()
    clock.write(args.truth)


if __name__ == "__main__":
    main()
