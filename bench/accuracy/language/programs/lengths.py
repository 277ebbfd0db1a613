"""A classifier of texts, fine-tuned with the Trainer, each batch padded to its longest text.

Cause: a batch of texts of any lengths is as wide as the one that is by chance the longest.
Fix: train_sampling_strategy="group_by_length".
"""

import tempfile

from common import ClockCallback, options, texts, tokenizer
from datasets import Dataset
from transformers import (
    DataCollatorWithPadding,
    DistilBertConfig,
    DistilBertForSequenceClassification,
    Trainer,
    TrainingArguments,
)

opts = options()
words = tokenizer()
size = {"dim": 192, "n_layers": 2, "n_heads": 6, "hidden_dim": 768}
model = DistilBertForSequenceClassification(DistilBertConfig(vocab_size=len(words), num_labels=8, **size))
raw = Dataset.from_dict({"text": (said := texts()), "label": [len(text) % 8 for text in said]})
data = raw.map(lambda rows: words(rows["text"], truncation=True), batched=True, remove_columns=["text"])
arguments = TrainingArguments(
    tempfile.mkdtemp(),
    per_device_train_batch_size=16,
    num_train_epochs=1000,
    save_strategy="no",
    report_to="none",
    disable_tqdm=True,
    include_num_input_tokens_seen="non_padding",
    train_sampling_strategy="group_by_length" if opts.fixed else "random",
)
trainer = Trainer(
    model,
    arguments,
    train_dataset=data,
    data_collator=DataCollatorWithPadding(words),
    callbacks=[ClockCallback(opts.seconds)],
)
trainer.train()
