"""
NAME     A model that is its own teacher
PLANTED  nothing: in each step the model runs in evaluation mode, without gradients, for what it is then trained on
EXPECT   host-other passes-without-gradients
TRUTH    teacher
"""

import torch
from torch.nn import functional
from training import SIZE, Network, StepClock, Trainer, arguments


def main() -> None:
    args = arguments()
    clock = StepClock()
    model = Network(width=32)
    trainer = Trainer(model, clock)
    images = torch.randn(320, 3, SIZE, SIZE)
    for step in range(2 * args.steps):
        begin = step * 16 % 320
        batch = images[begin : begin + 16]
        with clock.timed("teacher"), torch.no_grad():
            model.eval()
            wanted = functional.softmax(model(batch), 1)
            model.train()
        trainer.step(batch, wanted)
    clock.write(args.truth)


if __name__ == "__main__":
    main()
