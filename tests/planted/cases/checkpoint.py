"""
NAME     A checkpoint every fourth step
PLANTED  torch.save of the model and the optimizer's state, while the training stands still
EXPECT   host-other checkpoint
TRUTH    checkpoint
"""

import torch
from torch import nn
from training import SIZE, StepClock, Trainer, arguments


def main() -> None:
    args = arguments()
    clock = StepClock()
    model = nn.Sequential(nn.Flatten(), nn.Linear(3 * SIZE * SIZE, 384), nn.ReLU(), nn.Linear(384, 10))
    trainer = Trainer(model, clock)
    images, labels = torch.randn(64, 3, SIZE, SIZE), torch.arange(64) % 10
    for step in range(args.steps):
        if step % 4 == 3:
            with clock.timed("checkpoint"):
                state = {"model": model.state_dict(), "optimizer": trainer.optimizer.state_dict()}
                torch.save(state, args.scratch / "checkpoint.pt")
        trainer.step(images, labels)
    clock.write(args.truth)


if __name__ == "__main__":
    main()
