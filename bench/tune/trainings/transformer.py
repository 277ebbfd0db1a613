"""A small transformer over tokens that lie in memory: the computation sets the pace."""

import torch
import torch.nn.functional as F
from torch.utils.data import DataLoader, Dataset

LENGTH, WIDTH, WORDS = 64, 128, 512


class Text(Dataset):
    def __init__(self):
        self.tokens = torch.randint(WORDS, (100_000,))

    def __len__(self):
        return 1_000_000

    def __getitem__(self, index):
        begin = index % (len(self.tokens) - LENGTH - 1)
        piece = self.tokens[begin : begin + LENGTH + 1]
        return piece[:-1], piece[1:]


class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = torch.nn.Embedding(WORDS, WIDTH)
        layer = torch.nn.TransformerEncoderLayer(WIDTH, 4, 4 * WIDTH, dropout=0.0, batch_first=True)
        self.blocks = torch.nn.TransformerEncoder(layer, 2)
        self.head = torch.nn.Linear(WIDTH, WORDS)

    def forward(self, tokens):
        mask = torch.nn.Transformer.generate_square_subsequent_mask(LENGTH)
        return self.head(self.blocks(self.embed(tokens), mask=mask, is_causal=True))


def main():
    model = Model()
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-4)
    for tokens, following in DataLoader(Text(), batch_size=16, num_workers=1, shuffle=True):
        optimizer.zero_grad()
        F.cross_entropy(model(tokens).flatten(0, 1), following.flatten()).backward()
        optimizer.step()


if __name__ == "__main__":
    main()
