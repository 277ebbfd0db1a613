"""
NAME     A large table of which each batch uses a few rows
PLANTED  its gradient is dense: all rows are zeroed and updated, for the few that were used
EXPECT   needless-work dense-gradient
FIX      sparse
WINDOWS  3@12
"""

import torch
from torch import nn
from torch.nn import functional
from training import StepClock, arguments

ROWS, WIDTH = 200_000, 64


def main() -> None:
    args = arguments(lambda parser: parser.add_argument("--sparse", action="store_true"))
    clock = StepClock()
    words, rest = nn.Embedding(ROWS, WIDTH, sparse=args.sparse), nn.Linear(WIDTH, 20)
    if args.sparse:
        optimizers = [torch.optim.SparseAdam(words.parameters()), torch.optim.Adam(rest.parameters())]
    else:
        optimizers = [torch.optim.Adam([*words.parameters(), *rest.parameters()])]
    for _ in range(args.steps):
        chosen = torch.randint(ROWS, (16, 24))
        for optimizer in optimizers:
            optimizer.zero_grad()
        functional.cross_entropy(rest(words(chosen)).flatten(0, 1), chosen.flatten() % 20).backward()
        for optimizer in optimizers:
            optimizer.step()
        clock.step_done()
    clock.write(args.truth)


if __name__ == "__main__":
    main()
