"""
NAME     A penalty in every eighth step
PLANTED  nothing: the penalty, which takes several steps' time, is a part of the training
EXPECT   healthy
"""

import torch
from torch.nn import functional
from training import SIZE, Network, StepClock, arguments


def main() -> None:
    args = arguments()
    clock = StepClock()
    model = Network()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    images, labels = torch.randn(320, 3, SIZE, SIZE), torch.randint(10, (320,))
    for step in range(3 * args.steps):
        begin = step * 16 % 320
        loss = functional.cross_entropy(model(images[begin : begin + 16]), labels[begin : begin + 16])
        if step % 8 == 7:
            for other in range(4):
                noisy = images[begin : begin + 16] + 0.1 * other
                loss = loss + 1e-3 * model(noisy).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        clock.step_done()
    clock.write(args.truth)


if __name__ == "__main__":
    main()
