"""Trains a small language model on texts of very different lengths, in batches that are put together in one of four
ways: all of one width, each as wide as its longest text, or that of texts of like length, or rows that are packed with
several texts. Prints useful tokens a second by its own clock, and writes those of each step to CLOCK_STEPS.

    program.py --model NAME [--batches fixed|longest|grouped|packed] [--seconds 12]
"""

from __future__ import annotations

import argparse
import os
import random
import time
from collections.abc import Callable, Iterator

import torch
from torch import nn
from torch.nn import functional
from torch.utils.data import DataLoader, Dataset, Sampler

WORDS, TEXTS, WIDTH, SIZE, CLASSES = 4000, 4000, 256, 16, 8
ROWS = 4  # that are packed: some 16 texts
WARM_S = 3.0
Batch = dict[str, torch.Tensor]


class Texts(Dataset):
    def __init__(self) -> None:
        draw = random.Random(5)
        generator = torch.Generator().manual_seed(5)
        lengths = [min(WIDTH, max(4, int(draw.lognormvariate(3.9, 0.7)))) for _ in range(TEXTS)]
        self.ids = [torch.randint(1, WORDS, (length,), generator=generator) for length in lengths]

    def __len__(self) -> int:
        return TEXTS

    def __getitem__(self, index: int) -> tuple[torch.Tensor, int]:
        return self.ids[index], index % CLASSES


def to_width(width: int | None) -> Callable[[list[tuple[torch.Tensor, int]]], Batch]:
    def collate(samples: list[tuple[torch.Tensor, int]]) -> Batch:
        wide = width or max(len(ids) for ids, _ in samples)
        ids = torch.stack([functional.pad(ids, (0, wide - len(ids))) for ids, _ in samples])
        return {"input_ids": ids, "attention_mask": (ids > 0).long(), "labels": torch.tensor([y for _, y in samples])}

    return collate


class LikeLengths(Sampler):
    """Shuffled, but sorted within every fifty batches, as Transformers does it; these again in any order, so that some
    seconds show as many long ones as short ones."""

    def __init__(self, texts: Texts) -> None:
        self.lengths = [len(ids) for ids in texts.ids]

    def __len__(self) -> int:
        return TEXTS

    def __iter__(self) -> Iterator[int]:
        order = torch.randperm(TEXTS).tolist()
        size = SIZE * min(50, TEXTS // (SIZE * 4))
        for begin in range(0, TEXTS, size):
            part = sorted(order[begin : begin + size], key=lambda index: -self.lengths[index])
            batches = [part[first : first + SIZE] for first in range(0, len(part), SIZE)]
            for batch in torch.randperm(len(batches)).tolist():
                yield from batches[batch]


def packed_rows(texts: Texts) -> list[list[torch.Tensor]]:
    """Each text in the first of the last rows that has room for it."""
    rows: list[list[torch.Tensor]] = []
    for ids in texts.ids:
        room = (row for row in rows[-50:] if sum(map(len, row)) + len(ids) <= WIDTH)
        row = next(room, None)
        if row is None:
            rows.append(row := [])
        row.append(ids)
    return rows


def pack(rows: list[list[torch.Tensor]]) -> Batch:
    """Positions begin again with each text, and with the padding at the end of a row."""
    ids, positions = torch.zeros(len(rows), WIDTH, dtype=torch.long), torch.zeros(len(rows), WIDTH, dtype=torch.long)
    for number, row in enumerate(rows):
        said = torch.cat(row)
        ids[number, : len(said)] = said
        places = [torch.arange(len(text)) for text in row]
        positions[number] = torch.cat([*places, torch.arange(WIDTH - len(said))])
    return {"input_ids": ids, "attention_mask": (ids > 0).long(), "position_ids": positions}


def loader(batches: str) -> DataLoader:
    texts = Texts()
    if batches == "packed":
        return DataLoader(packed_rows(texts), ROWS, collate_fn=pack, shuffle=True)
    order = {"sampler": LikeLengths(texts)} if batches == "grouped" else {"shuffle": True}
    return DataLoader(texts, SIZE, collate_fn=to_width(WIDTH if batches == "fixed" else None), **order)


class Encoder(nn.Module):
    def __init__(self, width: int = 128) -> None:
        super().__init__()
        self.words = nn.Embedding(WORDS, width)
        layer = nn.TransformerEncoderLayer(width, 4, 4 * width, batch_first=True)
        self.layers, self.out = nn.TransformerEncoder(layer, 3), nn.Linear(width, CLASSES)

    def forward(self, input_ids: torch.Tensor, attention_mask: torch.Tensor) -> torch.Tensor:
        hidden = self.layers(self.words(input_ids), src_key_padding_mask=attention_mask == 0)
        return self.out((hidden * attention_mask[..., None]).sum(1) / attention_mask.sum(1, keepdim=True))


class Recurrent(nn.Module):
    def __init__(self, kind: type[nn.Module], width: int = 128) -> None:
        super().__init__()
        self.words, self.layers = nn.Embedding(WORDS, width), kind(width, width, 2, batch_first=True)
        self.out = nn.Linear(width, CLASSES)

    def forward(self, input_ids: torch.Tensor, attention_mask: torch.Tensor) -> torch.Tensor:
        hidden, _ = self.layers(self.words(input_ids))
        return self.out(hidden[torch.arange(len(input_ids)), attention_mask.sum(1) - 1])


class Convolutional(nn.Module):
    """Words in windows of three, four and five, the strongest of each."""

    def __init__(self, width: int = 128) -> None:
        super().__init__()
        self.words = nn.Embedding(WORDS, width, padding_idx=0)
        self.windows = nn.ModuleList(nn.Conv1d(width, 2 * width, size, padding="same") for size in (3, 4, 5))
        self.out = nn.Linear(3 * 2 * width, CLASSES)

    def forward(self, input_ids: torch.Tensor, attention_mask: torch.Tensor) -> torch.Tensor:
        words = self.words(input_ids).transpose(1, 2)
        return self.out(torch.cat([window(words).relu().amax(2) for window in self.windows], 1))


class Dilated(nn.Module):
    """Convolutions that see twice as far in every layer."""

    def __init__(self, width: int = 96) -> None:
        super().__init__()
        self.words = nn.Embedding(WORDS, width, padding_idx=0)
        layers = [
            nn.Sequential(nn.Conv1d(width, width, 5, padding=2 * far, dilation=far), nn.GELU()) for far in (1, 2, 4, 8)
        ]
        self.layers, self.out = nn.Sequential(*layers), nn.Linear(width, CLASSES)

    def forward(self, input_ids: torch.Tensor, attention_mask: torch.Tensor) -> torch.Tensor:
        return self.out(self.layers(self.words(input_ids).transpose(1, 2)).mean(2))


class CausalSelfAttention(nn.Module):
    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads, self.three, self.out = heads, nn.Linear(width, 3 * width), nn.Linear(width, width)

    def forward(self, x: torch.Tensor, mask: torch.Tensor | None) -> torch.Tensor:
        q, k, v = (part.unflatten(-1, (self.heads, -1)).transpose(1, 2) for part in self.three(x).chunk(3, -1))
        y = functional.scaled_dot_product_attention(q, k, v, attn_mask=mask, is_causal=mask is None)
        return self.out(y.transpose(1, 2).flatten(2))


class Block(nn.Module):
    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.before, self.attention = nn.LayerNorm(width), CausalSelfAttention(width, heads)
        self.inner = nn.Sequential(
            nn.LayerNorm(width), nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width)
        )

    def forward(self, x: torch.Tensor, mask: torch.Tensor | None) -> torch.Tensor:
        x = x + self.attention(self.before(x), mask)
        return x + self.inner(x)


def within_texts(positions: torch.Tensor) -> torch.Tensor:
    """What a place of a packed row may look at: those before it in the same text."""
    text = (positions == 0).cumsum(1)
    return (text[:, None, :, None] == text[:, None, None, :]).tril()


class Small(nn.Module):
    """A language model as people write it by hand: the loss of each next word."""

    def __init__(self, width: int = 192) -> None:
        super().__init__()
        self.words, self.places = nn.Embedding(WORDS, width), nn.Embedding(WIDTH, width)
        self.blocks, self.out = nn.ModuleList(Block(width, 6) for _ in range(2)), nn.Linear(width, WORDS)

    def forward(self, ids: torch.Tensor, positions: torch.Tensor | None = None) -> torch.Tensor:
        mask = None if positions is None else within_texts(positions)
        x = self.words(ids) + self.places(torch.arange(ids.shape[1]) if positions is None else positions)
        for block in self.blocks:
            x = block(x, mask)
        words = self.out(x)
        return functional.cross_entropy(words[:, :-1].flatten(0, 1), ids[:, 1:].flatten(), ignore_index=0)


def classifier(model: nn.Module) -> Callable[[Batch], torch.Tensor]:
    return lambda batch: functional.cross_entropy(model(batch["input_ids"], batch["attention_mask"]), batch["labels"])


def bert() -> tuple[nn.Module, Callable[[Batch], torch.Tensor]]:
    from transformers import BertConfig, BertForSequenceClassification

    size = {"hidden_size": 128, "num_hidden_layers": 3, "num_attention_heads": 4, "intermediate_size": 512}
    model = BertForSequenceClassification(BertConfig(vocab_size=WORDS, num_labels=CLASSES, **size))
    return model, lambda batch: model(**batch).loss


def distil() -> tuple[nn.Module, Callable[[Batch], torch.Tensor]]:
    from transformers import DistilBertConfig, DistilBertForSequenceClassification

    size = {"dim": 192, "n_layers": 2, "n_heads": 6, "hidden_dim": 768}
    model = DistilBertForSequenceClassification(DistilBertConfig(vocab_size=WORDS, num_labels=CLASSES, **size))
    return model, lambda batch: model(**batch).loss


def electra() -> tuple[nn.Module, Callable[[Batch], torch.Tensor]]:
    from transformers import ElectraConfig, ElectraForSequenceClassification

    size = {"embedding_size": 64, "hidden_size": 128, "num_hidden_layers": 2, "num_attention_heads": 2}
    config = ElectraConfig(vocab_size=WORDS, num_labels=CLASSES, intermediate_size=512, **size)
    model = ElectraForSequenceClassification(config)
    return model, lambda batch: model(**batch).loss


def next_words(model: nn.Module) -> Callable[[Batch], torch.Tensor]:
    """Transformers find the texts of a packed row by their positions, where no mask is given."""

    def loss(batch: Batch) -> torch.Tensor:
        ids, mask = batch["input_ids"], batch["attention_mask"]
        where = {name: batch[name] for name in ("position_ids",) if name in batch} or {"attention_mask": mask}
        return model(input_ids=ids, **where, labels=ids.masked_fill(mask == 0, -100), use_cache=False).loss

    return loss


def causal() -> tuple[nn.Module, Callable[[Batch], torch.Tensor]]:
    from transformers import GPT2Config, GPT2LMHeadModel

    model = GPT2LMHeadModel(GPT2Config(vocab_size=WORDS, n_positions=WIDTH, n_embd=128, n_layer=3, n_head=4))
    return model, next_words(model)


def llama() -> tuple[nn.Module, Callable[[Batch], torch.Tensor]]:
    from transformers import LlamaConfig, LlamaForCausalLM

    size = {"hidden_size": 160, "intermediate_size": 448, "num_hidden_layers": 3, "num_attention_heads": 5}
    model = LlamaForCausalLM(LlamaConfig(vocab_size=WORDS, max_position_embeddings=WIDTH, **size))
    return model, next_words(model)


def classifying(make: Callable[[], nn.Module]) -> Callable[[], tuple[nn.Module, Callable[[Batch], torch.Tensor]]]:
    def made() -> tuple[nn.Module, Callable[[Batch], torch.Tensor]]:
        model = make()
        return model, classifier(model)

    return made


def small() -> tuple[nn.Module, Callable[[Batch], torch.Tensor]]:
    model = Small()
    return model, lambda batch: model(batch["input_ids"], batch.get("position_ids"))


MODELS = {
    "encoder": classifying(Encoder),
    "bert": bert,
    "causal": causal,
    "lstm": classifying(lambda: Recurrent(nn.LSTM)),
    "gru": classifying(lambda: Recurrent(nn.GRU)),
    "conv": classifying(Convolutional),
    "tcn": classifying(Dilated),
    "distil": distil,
    "electra": electra,
    "nano": small,
    "llama": llama,
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--model", choices=sorted(MODELS), required=True)
    parser.add_argument("--batches", choices=("fixed", "longest", "grouped", "packed"), default="fixed")
    parser.add_argument("--seconds", type=float, default=12)
    args = parser.parse_args()
    torch.manual_seed(1)
    model, loss = MODELS[args.model]()
    model.train()
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-4)
    lines = open(os.environ["CLOCK_STEPS"], "a", 1) if "CLOCK_STEPS" in os.environ else None
    begin, tokens, mark = time.perf_counter(), 0, None
    while True:
        for batch in loader(args.batches):
            optimizer.zero_grad()
            loss(batch).backward()
            optimizer.step()
            now, useful = time.perf_counter(), int(batch["attention_mask"].sum())
            if lines:
                lines.write(f"{now} {useful}\n")
            if mark is not None:
                tokens += useful
            elif now - begin >= WARM_S:
                mark = now
            if mark is not None and now - begin >= args.seconds and tokens:
                print(f"RATE {tokens / (now - mark):.1f}", flush=True)
                return


if __name__ == "__main__":
    main()
