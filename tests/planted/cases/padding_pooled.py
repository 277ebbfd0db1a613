"""
NAME     Short texts in wide batches, whose words are only summed
PLANTED  nothing: four fifths of the tokens are padding, but what is computed is computed once for a text
EXPECT   *
NEVER    longest
"""

import torch
from padding import FEATURES, SIZE, WIDTH, WORDS, Texts
from torch import nn
from torch.nn import functional
from training import StepClock, arguments


class Classifier(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.words = nn.Embedding(WORDS, FEATURES, padding_idx=0)
        self.layers = nn.Sequential(nn.Linear(FEATURES, 4096), nn.ReLU(), nn.Linear(4096, 4096), nn.ReLU())
        self.out = nn.Linear(4096, 10)

    def forward(self, ids: torch.Tensor) -> torch.Tensor:
        return self.out(self.layers(self.words(ids).sum(1)))


def collate(texts: list[torch.Tensor]) -> torch.Tensor:
    return torch.stack([functional.pad(ids, (0, WIDTH - len(ids))) for ids in texts])


def main() -> None:
    args = arguments()
    clock, model = StepClock(), Classifier()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    for ids in torch.utils.data.DataLoader(Texts(SIZE * args.steps), SIZE, collate_fn=collate):
        optimizer.zero_grad()
        functional.cross_entropy(model(ids), ids[:, 0] % 10).backward()
        optimizer.step()
        clock.step_done()
    clock.write(args.truth)


if __name__ == "__main__":
    main()
