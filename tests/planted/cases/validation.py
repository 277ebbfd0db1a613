"""
NAME     The whole validation set after every tenth step
PLANTED  the model is evaluated inside the loop, far more often than is useful
EXPECT   host-other validation
TRUTH    validation
"""

import torch
from torch import nn
from training import SIZE, Network, StepClock, Trainer, arguments


def validate(model: nn.Module, images: torch.Tensor, labels: torch.Tensor) -> float:
    model.eval()
    right = 0
    with torch.no_grad():
        for begin in range(0, len(images), 32):
            answers = model(images[begin : begin + 32]).argmax(1)
            right += int((answers == labels[begin : begin + 32]).sum())
    model.train()
    return right / len(images)


def main() -> None:
    args = arguments(lambda parser: parser.add_argument("--every", type=int, default=10, help="steps of training"))
    clock = StepClock()
    model = Network(width=32)
    trainer = Trainer(model, clock)
    images, labels = torch.randn(320, 3, SIZE, SIZE), torch.arange(320) % 10
    for step in range(args.steps):
        if step % args.every == args.every - 1:
            with clock.timed("validation"):
                validate(model, images, labels)
        begin = step * 16 % 320
        trainer.step(images[begin : begin + 16], labels[begin : begin + 16])
    clock.write(args.truth)


if __name__ == "__main__":
    main()
