"""
NAME     A table of which each batch uses most rows
PLANTED  nothing: gradients of single rows would cost more than one of the whole table
EXPECT   *
NEVER    sparse=True
WINDOWS  3@12
"""

import torch
from torch import nn
from torch.nn import functional
from training import StepClock, arguments

ROWS, WIDTH = 20_000, 64


def main() -> None:
    args = arguments()
    clock = StepClock()
    words, rest = nn.Embedding(ROWS, WIDTH), nn.Linear(WIDTH, 20)
    optimizer = torch.optim.Adam([*words.parameters(), *rest.parameters()])
    for _ in range(args.steps):
        chosen = torch.randint(ROWS, (64, 256))
        optimizer.zero_grad()
        functional.cross_entropy(rest(words(chosen)).flatten(0, 1), chosen.flatten() % 20).backward()
        optimizer.step()
        clock.step_done()
    clock.write(args.truth)


if __name__ == "__main__":
    main()
