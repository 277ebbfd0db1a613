"""Text: a classifier that is fine-tuned, and a recurrent language model."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from programs import WAYS, Training
from torch import nn
from torch.nn import functional
from torch.utils.data import DataLoader

from strangers.batches import forever


class BertFinetune(Training):
    """A sentence classifier of BERT's base size, after the course of Hugging Face."""

    @dataclass(frozen=True)
    class Options:
        batch: int = 32
        precision: str = "fp32"
        optimizer: str = "foreach"
        padded: bool = True  # sentences of all lengths, padded to the longest that is allowed; else all are so long
        read_loss: bool = True
        workers: int = 0
        pinned: bool = False

    def __init__(self, options: Options, device: str) -> None:
        from transformers import BertConfig, BertForSequenceClassification, get_scheduler

        super().__init__(options, device)
        real = device == "cuda"
        self.length, self.batch = (128, options.batch) if real else (16, 2)
        small = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 64}
        config = BertConfig(num_labels=2, **({} if real else small))
        self.model = BertForSequenceClassification(config).to(device).train()
        self.optimizer = torch.optim.AdamW(self.model.parameters(), lr=2e-5, **WAYS[options.optimizer])
        self.schedule = get_scheduler("linear", self.optimizer, num_warmup_steps=100, num_training_steps=1_000_000)
        self.total = 0.0
        generator = np.random.default_rng(0)
        lengths = generator.integers(8, self.length + 1, 20_000) if options.padded else [self.length] * 20_000
        sentences = [generator.integers(1000, 30_000, length) for length in lengths]
        examples = [(sentence, int(sentence[0]) % 2) for sentence in sentences]
        loader = DataLoader(
            examples,
            self.batch,
            shuffle=True,
            drop_last=True,
            collate_fn=self.collate,
            num_workers=options.workers,
            persistent_workers=options.workers > 0,
            pin_memory=options.pinned and real,
        )
        self.batches = forever(loader)

    def collate(self, examples: list[tuple[np.ndarray, int]]) -> dict[str, torch.Tensor]:
        """As a tokenizer's padding="max_length"."""
        tokens = np.zeros((len(examples), self.length), dtype=np.int64)
        for row, (sentence, _) in zip(tokens, examples):
            row[: len(sentence)] = sentence
        batch = {"input_ids": torch.from_numpy(tokens), "labels": torch.tensor([label for _, label in examples])}
        if self.options.padded:
            batch["attention_mask"] = (batch["input_ids"] != 0).long()
        return batch

    def step(self) -> None:
        batch = next(self.batches)
        batch = {name: part.to(self.device, non_blocking=self.options.pinned) for name, part in batch.items()}
        with self.autocast():
            self.loss = self.model(**batch).loss
        self.loss.backward()
        self.optimizer.step()
        self.schedule.step()
        self.optimizer.zero_grad()
        if self.options.read_loss:
            self.total += self.loss.item()


class LanguageLstm(nn.Module):
    def __init__(self, words: int, width: int) -> None:
        super().__init__()
        self.dropout, self.embedding = nn.Dropout(0.2), nn.Embedding(words, width)
        self.lstm, self.head = nn.LSTM(width, width, 2, dropout=0.2), nn.Linear(width, words)
        self.head.weight = self.embedding.weight

    def forward(self, tokens: torch.Tensor, state: Any) -> tuple[torch.Tensor, Any]:
        out, state = self.lstm(self.dropout(self.embedding(tokens)), state)
        return self.head(self.dropout(out)).flatten(0, 1), state


class LstmLanguage(Training):
    """torch's word language model: truncated backpropagation, and no optimizer but a line. The norms are for a log."""

    @dataclass(frozen=True)
    class Options:
        batch: int = 20
        precision: str = "fp32"
        optimizer: str = "lines"  # written out, or fused
        log_norms: bool = True  # of each parameter's gradient
        read_loss: bool = True

    def __init__(self, options: Options, device: str) -> None:
        super().__init__(options, device)
        words, width, self.span, batch = (33_278, 650, 35, options.batch) if device == "cuda" else (200, 16, 5, 2)
        self.model = LanguageLstm(words, width).to(device)
        self.optimizer = None
        if options.optimizer == "fused":
            self.optimizer = torch.optim.SGD(self.model.parameters(), lr=0.5, fused=True)
        self.text = torch.randint(0, words, (100 * self.span + 1, batch), device=device)
        self.state, self.at, self.total = None, 0, 0.0
        self.norms: dict[str, float] = {}

    def step(self) -> None:
        tokens = self.text[self.at : self.at + self.span]
        targets = self.text[self.at + 1 : self.at + 1 + self.span].flatten()
        self.at = (self.at + self.span) % (100 * self.span)
        if self.state is not None:
            self.state = tuple(part.detach() for part in self.state)
        self.model.zero_grad()
        with self.autocast():
            out, self.state = self.model(tokens, self.state)
            self.loss = functional.cross_entropy(out, targets)
        self.loss.backward()
        nn.utils.clip_grad_norm_(self.model.parameters(), 0.25)
        if self.options.log_norms:
            for name, parameter in self.model.named_parameters():
                self.norms[name] = parameter.grad.norm().item()
        if self.optimizer:
            self.optimizer.step()
        else:
            for parameter in self.model.parameters():
                parameter.data.add_(parameter.grad, alpha=-0.5)
        if self.options.read_loss:
            self.total += self.loss.item()
