"""
NAME     A sequence that a loop takes apart and puts together
PLANTED  each x[:, i] is a pass over all of x in the backward pass, each out[:, i] = part one over all of out
EXPECT   needless-work part-by-part
FIX      whole
WINDOWS  1@12
"""

import torch
from torch import nn
from training import StepClock, arguments

ROWS, LENGTH, WIDTH = 32, 128, 64


def main() -> None:
    args = arguments(lambda parser: parser.add_argument("--whole", action="store_true"))
    clock = StepClock()
    first, cell = nn.Linear(WIDTH, WIDTH), nn.Linear(WIDTH, WIDTH)
    optimizer = torch.optim.SGD([*first.parameters(), *cell.parameters()], lr=0.01)
    for _ in range(args.steps):
        x = first(torch.randn(ROWS, LENGTH, WIDTH))
        if args.whole:
            out = torch.stack([cell(part) for part in x.unbind(1)], 1)
        else:
            out = torch.zeros(ROWS, LENGTH, WIDTH)
            for i in range(LENGTH):
                out[:, i] = cell(x[:, i])
        optimizer.zero_grad()
        out.pow(2).mean().backward()
        optimizer.step()
        clock.step_done()
    clock.write(args.truth)


if __name__ == "__main__":
    main()
