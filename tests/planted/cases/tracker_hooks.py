"""
NAME     Histograms of all gradients, as a tracker's hooks make them
PLANTED  in every tenth step, hooks inside the backward pass sort each gradient's values into bins
EXPECT   unstable-steps periodic
LINE     .histc(
TRUTH    histograms
"""

import torch
from training import SIZE, Network, StepClock, Trainer, arguments


class Watcher:
    def __init__(self, model: torch.nn.Module, clock: StepClock) -> None:
        self.clock = clock
        self.on = False
        self.record: dict[str, list[float]] = {}
        for name, parameter in model.named_parameters():
            parameter.register_hook(lambda gradient, name=name: self.look(name, gradient))

    def look(self, name: str, gradient: torch.Tensor) -> None:
        if not self.on:
            return
        with self.clock.timed("histograms"):
            for bins in range(64, 72):
                self.record[name] = gradient.reshape(-1).repeat(16).histc(bins).tolist()


def main() -> None:
    args = arguments()
    clock = StepClock()
    model = Network()
    watcher = Watcher(model, clock)
    trainer = Trainer(model, clock)
    images, labels = torch.randn(320, 3, SIZE, SIZE), torch.randint(10, (320,))
    for step in range(3 * args.steps):
        begin = step * 16 % 320
        watcher.on = step % 10 == 9
        trainer.step(images[begin : begin + 16], labels[begin : begin + 16])
    clock.write(args.truth)


if __name__ == "__main__":
    main()
