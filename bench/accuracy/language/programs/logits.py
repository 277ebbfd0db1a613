"""A language model, trained with the Trainer, which evaluates it now and then.

Cause: compute_metrics needs the best word of each position alone, but the logits of all words are kept.
Fix: preprocess_logits_for_metrics takes the best word at once.
"""

import tempfile

import numpy as np
import torch
from common import WORDS, ClockCallback, options
from datasets import Dataset
from transformers import GPT2Config, GPT2LMHeadModel, Trainer, TrainingArguments

opts = options()
torch.manual_seed(0)
model = GPT2LMHeadModel(GPT2Config(vocab_size=WORDS, n_positions=64, n_embd=96, n_layer=2, n_head=4))


def dataset(count):
    rows = torch.randint(WORDS, (count, 64)).tolist()
    return Dataset.from_dict({"input_ids": rows, "labels": rows}).with_format("torch")


def compute_metrics(said):
    best = said.predictions if opts.fixed else said.predictions.argmax(-1)
    return {"accuracy": float(np.mean(best[:, :-1] == said.label_ids[:, 1:]))}


arguments = TrainingArguments(
    tempfile.mkdtemp(),
    per_device_train_batch_size=8,
    per_device_eval_batch_size=8,
    num_train_epochs=1000,
    eval_strategy="steps",
    eval_steps=20,
    save_strategy="no",
    report_to="none",
    disable_tqdm=True,
    include_num_input_tokens_seen="all",
)
trainer = Trainer(
    model,
    arguments,
    train_dataset=dataset(4096),
    eval_dataset=dataset(128),
    compute_metrics=compute_metrics,
    preprocess_logits_for_metrics=(lambda logits, labels: logits.argmax(-1)) if opts.fixed else None,
    callbacks=[ClockCallback(opts.seconds)],
)
trainer.train()
