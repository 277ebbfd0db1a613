"""
NAME     A network in double precision that nobody wanted
PLANTED  NumPy's default is float64, and the model was made double() to fit
EXPECT   needless-work double-precision
FIX      single
WINDOWS  3@12
"""

import numpy as np
import torch
from torch import nn
from torch.nn import functional
from training import StepClock, arguments

FEATURES = 1024


def main() -> None:
    args = arguments(lambda parser: parser.add_argument("--single", action="store_true"))
    clock = StepClock()
    table = np.random.default_rng(0).standard_normal((4096, FEATURES))
    model = nn.Sequential(nn.Linear(FEATURES, FEATURES), nn.ReLU(), nn.Linear(FEATURES, 10)).double()
    if args.single:
        table, model = table.astype(np.float32), model.float()
    optimizer = torch.optim.Adam(model.parameters())
    rows = torch.from_numpy(table).split(128)
    for number in range(args.steps):
        inputs = rows[number % len(rows)]
        optimizer.zero_grad()
        functional.cross_entropy(model(inputs), torch.arange(len(inputs)) % 10).backward()
        optimizer.step()
        clock.step_done()
    clock.write(args.truth)


if __name__ == "__main__":
    main()
