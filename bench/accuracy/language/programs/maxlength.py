"""A classifier of texts, fine-tuned with the Trainer.

Cause: the dataset is tokenised with padding="max_length": every batch is as wide as the longest text allowed.
Fix: no padding there, and DataCollatorWithPadding, which pads to the longest text of the batch.
Promise: pad each batch to its own longest
"""

import tempfile

from common import ClockCallback, options, texts, tokenizer
from datasets import Dataset
from transformers import (
    BertConfig,
    BertForSequenceClassification,
    DataCollatorWithPadding,
    Trainer,
    TrainingArguments,
    default_data_collator,
)

opts = options()
words = tokenizer()
size = {"hidden_size": 128, "num_hidden_layers": 3, "num_attention_heads": 4, "intermediate_size": 512}
model = BertForSequenceClassification(BertConfig(vocab_size=len(words), num_labels=8, **size))
raw = Dataset.from_dict({"text": (said := texts()), "label": [len(text) % 8 for text in said]})
padding = {} if opts.fixed else {"padding": "max_length"}
data = raw.map(lambda rows: words(rows["text"], truncation=True, **padding), batched=True, remove_columns=["text"])
arguments = TrainingArguments(
    tempfile.mkdtemp(),
    per_device_train_batch_size=16,
    num_train_epochs=1000,
    save_strategy="no",
    report_to="none",
    disable_tqdm=True,
    include_num_input_tokens_seen="non_padding",
)
trainer = Trainer(
    model,
    arguments,
    train_dataset=data,
    data_collator=DataCollatorWithPadding(words) if opts.fixed else default_data_collator,
    callbacks=[ClockCallback(opts.seconds)],
)
trainer.train()
