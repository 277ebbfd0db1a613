"""
NAME     Short texts in batches as wide as the longest of all
PLANTED  four fifths of the tokens are padding; each goes through every layer
EXPECT   padding
FIX      longest
"""

import random

import torch
from torch import nn
from torch.nn import functional
from training import StepClock, arguments

WORDS, WIDTH, SIZE, FEATURES = 2000, 256, 8, 64


class Texts(torch.utils.data.Dataset):
    def __init__(self, length: int) -> None:
        draw = random.Random(3)
        self.texts = [torch.randint(1, WORDS, (draw.randrange(30, 70),)) for _ in range(length)]

    def __len__(self) -> int:
        return len(self.texts)

    def __getitem__(self, index: int) -> torch.Tensor:
        return self.texts[index]


class Tagger(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.words = nn.Embedding(WORDS, FEATURES)
        self.layers = nn.Sequential(
            nn.Linear(FEATURES, 8 * FEATURES), nn.ReLU(), nn.Linear(8 * FEATURES, 8 * FEATURES), nn.ReLU()
        )
        self.out = nn.Linear(8 * FEATURES, 10)

    def forward(self, ids: torch.Tensor) -> torch.Tensor:
        return self.out(self.layers(self.words(ids)))


def main() -> None:
    args = arguments(lambda parser: parser.add_argument("--longest", action="store_true"))

    def collate(texts: list[torch.Tensor]) -> torch.Tensor:
        width = max(map(len, texts)) if args.longest else WIDTH
        return torch.stack([functional.pad(ids, (0, width - len(ids))) for ids in texts])

    clock, model = StepClock(), Tagger()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    for ids in torch.utils.data.DataLoader(Texts(SIZE * args.steps), SIZE, collate_fn=collate):
        optimizer.zero_grad()
        functional.cross_entropy(model(ids).flatten(0, 1), ids.flatten() % 10).backward()
        optimizer.step()
        clock.step_done()
    clock.write(args.truth)


if __name__ == "__main__":
    main()
