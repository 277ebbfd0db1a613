"""
NAME     Every step writes its gradients to a log
PLANTED  one line of the loop turns thousands of numbers into text, each step
EXPECT   host-other logging
TRUTH    logging
LINE     json.dumps
"""

import json

import torch
from torch import nn
from training import SIZE, Network, StepClock, Trainer, arguments


def write_gradients(model: nn.Module, log) -> None:
    gradients = {name: values.grad for name, values in model.named_parameters() if values.numel() < 20000}
    log.write(json.dumps({name: values.tolist() for name, values in gradients.items()}) + "\n")


def main() -> None:
    args = arguments(lambda parser: parser.add_argument("--every", type=int, default=1, help="steps between two logs"))
    clock = StepClock()
    model = Network(width=32)
    trainer = Trainer(model, clock)
    images, labels = torch.randn(16, 3, SIZE, SIZE), torch.arange(16) % 10
    with open(args.scratch / "gradients.jsonl", "w") as log:
        for step in range(2 * args.steps):
            trainer.step(images, labels)
            if step % args.every == 0:
                with clock.timed("logging"):
                    write_gradients(model, log)
    clock.write(args.truth)


if __name__ == "__main__":
    main()
