"""
NAME     Distillation: a teacher's answer to each batch
PLANTED  nothing: in each step a large network, which is not trained, runs without gradients
EXPECT   frozen-network passes
TRUTH    teacher
"""

import torch
from torch.nn import functional
from training import SIZE, Network, StepClock, Trainer, arguments


def main() -> None:
    args = arguments()
    clock = StepClock()
    teacher = Network(width=64).eval()
    trainer = Trainer(Network(width=16), clock)
    images = torch.randn(320, 3, SIZE, SIZE)
    for step in range(2 * args.steps):
        begin = step * 16 % 320
        with clock.timed("teacher"), torch.no_grad():
            wanted = functional.softmax(teacher(images[begin : begin + 16]), 1)
        trainer.step(images[begin : begin + 16], wanted)
    clock.write(args.truth)


if __name__ == "__main__":
    main()
