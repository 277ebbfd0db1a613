"""
NAME     Sentences padded one number at a time
PLANTED  collate_fn copies every token in a Python loop
EXPECT   input-bound collate
TRUTH    wait
FIX      vectorised
"""

from __future__ import annotations

import random

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset
from training import StepClock, Trainer, arguments

WORDS, LONGEST = 2000, 600


class Sentences(Dataset):
    """Lines of text whose words are already numbers."""

    def __init__(self, length: int) -> None:
        self.length = length
        generator = random.Random(1)
        self.lines = [
            " ".join(str(generator.randrange(1, WORDS)) for _ in range(generator.randrange(300, LONGEST)))
            for _ in range(256)
        ]

    def __len__(self) -> int:
        return self.length

    def __getitem__(self, index: int) -> tuple[list[int], int]:
        return [int(word) for word in self.lines[index % 256].split()], index % 10


def pad_in_a_loop(samples: list) -> tuple[torch.Tensor, torch.Tensor]:
    inputs = torch.zeros(len(samples), LONGEST, dtype=torch.long)
    for row, (tokens, _) in enumerate(samples):
        for column, token in enumerate(tokens):
            inputs[row, column] = token
    return inputs, torch.tensor([label for _, label in samples])


def pad_by_rows(samples: list) -> tuple[torch.Tensor, torch.Tensor]:
    inputs = torch.zeros(len(samples), LONGEST, dtype=torch.long)
    for row, (tokens, _) in enumerate(samples):
        inputs[row, : len(tokens)] = torch.tensor(tokens)
    return inputs, torch.tensor([label for _, label in samples])


class Reader(nn.Sequential):
    def __init__(self) -> None:
        super().__init__(
            nn.Embedding(WORDS, 64, padding_idx=0),
            nn.Linear(64, 128),
            nn.ReLU(),
            nn.Linear(128, 16),
            nn.Flatten(),
            nn.Linear(16 * LONGEST, 10),
        )


def main() -> None:
    args = arguments(lambda parser: parser.add_argument("--vectorised", action="store_true"))
    clock = StepClock()
    trainer = Trainer(Reader(), clock)
    collate = pad_by_rows if args.vectorised else pad_in_a_loop
    loader = DataLoader(Sentences(16 * args.steps), batch_size=16, num_workers=1, collate_fn=collate)
    for inputs, labels in clock.waits(loader, epochs=args.epochs):
        trainer.step(inputs, labels)
    clock.write(args.truth)


if __name__ == "__main__":
    main()
