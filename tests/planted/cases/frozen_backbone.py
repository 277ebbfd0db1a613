"""
NAME     A head on a frozen backbone, whose gradients are computed all the same
PLANTED  the backbone is in evaluation mode and in no optimizer, but wants gradients
EXPECT   frozen-network unused-gradients
"""

import torch
from torch import nn
from torch.nn import functional
from training import SIZE, Network, StepClock, arguments


def main() -> None:
    args = arguments()
    clock = StepClock()
    backbone, head = Network(width=32).eval(), nn.Linear(10, 10)
    optimizer = torch.optim.Adam(head.parameters())
    images, labels = torch.randn(320, 3, SIZE, SIZE), torch.arange(320) % 10
    for step in range(2 * args.steps):
        begin = step * 16 % 320
        loss = functional.cross_entropy(head(backbone(images[begin : begin + 16])), labels[begin : begin + 16])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        clock.step_done()
    clock.write(args.truth)


if __name__ == "__main__":
    main()
