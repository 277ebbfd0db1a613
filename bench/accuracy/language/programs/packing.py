"""A language model, fine-tuned with TRL's SFTTrainer on texts of very different lengths.

Cause: each text is a row of its own, padded to the longest of its batch.
Fix: packing=True: rows of one length, each of several texts.
Promise: where each token has a loss of its own
"""

import tempfile

from common import ClockCallback, options, texts, tokenizer
from datasets import Dataset
from transformers import GPT2Config, GPT2LMHeadModel
from trl import SFTConfig, SFTTrainer

opts = options()
words = tokenizer()
model = GPT2LMHeadModel(GPT2Config(vocab_size=len(words), n_positions=256, n_embd=128, n_layer=3, n_head=4))
config = SFTConfig(
    tempfile.mkdtemp(),
    max_length=256,
    packing=opts.fixed,
    packing_strategy="wrapped",
    per_device_train_batch_size=4 if opts.fixed else 16,
    num_train_epochs=1000,
    save_strategy="no",
    report_to="none",
    disable_tqdm=True,
    gradient_checkpointing=False,
    bf16=False,
    include_num_input_tokens_seen="non_padding",
)
trainer = SFTTrainer(
    model,
    config,
    train_dataset=Dataset.from_dict({"text": texts()}),
    processing_class=words,
    callbacks=[ClockCallback(opts.seconds)],
)
trainer.train()
