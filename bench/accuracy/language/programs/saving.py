"""A language model, trained with the Trainer.

Cause: save_steps=5, weights and the optimizer's states, for fear of losing anything.
Fix: save_steps=1000.
"""

import tempfile

import torch
from common import WORDS, ClockCallback, options
from datasets import Dataset
from transformers import GPT2Config, GPT2LMHeadModel, Trainer, TrainingArguments

opts = options()
torch.manual_seed(0)
model = GPT2LMHeadModel(GPT2Config(vocab_size=4 * WORDS, n_positions=64, n_embd=192, n_layer=3, n_head=4))
rows = torch.randint(4 * WORDS, (4096, 64)).tolist()
with tempfile.TemporaryDirectory() as folder:
    arguments = TrainingArguments(
        folder,
        per_device_train_batch_size=4,
        num_train_epochs=1000,
        save_steps=1000 if opts.fixed else 5,
        save_total_limit=1,
        report_to="none",
        disable_tqdm=True,
        include_num_input_tokens_seen="all",
    )
    data = Dataset.from_dict({"input_ids": rows, "labels": rows}).with_format("torch")
    trainer = Trainer(model, arguments, train_dataset=data, callbacks=[ClockCallback(opts.seconds)])
    trainer.train()
