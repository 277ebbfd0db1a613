"""A classifier fine-tuned by transformers' Trainer, with its default of no loader workers; lines are split into words
as they are read."""

import random
import sys

import torch
from transformers import BertConfig, BertForSequenceClassification, Trainer, TrainingArguments

WORDS, LENGTH = 512, 64


class Lines(torch.utils.data.Dataset):
    def __init__(self):
        draw = random.Random(1)
        self.words = {f"word{number}": number for number in range(WORDS)}
        self.lines = [" ".join(f"word{draw.randrange(WORDS)}" for _ in range(4000)) for _ in range(640)]

    def __len__(self):
        return len(self.lines)

    def __getitem__(self, i):
        ids = [self.words[word.strip().lower()] for word in self.lines[i].split()][:LENGTH]
        return {"input_ids": torch.tensor(ids), "attention_mask": torch.ones(LENGTH, dtype=torch.long), "labels": i % 2}


def main():
    config = BertConfig(
        vocab_size=WORDS,
        hidden_size=32,
        num_hidden_layers=1,
        num_attention_heads=2,
        intermediate_size=64,
        max_position_embeddings=LENGTH,
    )
    arguments = TrainingArguments(
        "out",
        num_train_epochs=int(sys.argv[1]),
        per_device_train_batch_size=16,
        report_to=[],
        use_cpu=True,
        save_strategy="no",
        logging_strategy="no",
        disable_tqdm=True,
    )
    Trainer(BertForSequenceClassification(config), arguments, train_dataset=Lines()).train()


if __name__ == "__main__":
    main()
