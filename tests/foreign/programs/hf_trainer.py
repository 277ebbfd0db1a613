"""A classifier fine-tuned by transformers' Trainer."""

import torch
from transformers import BertConfig, BertForSequenceClassification, Trainer, TrainingArguments

torch.manual_seed(0)
config = BertConfig(
    vocab_size=64,
    hidden_size=16,
    num_hidden_layers=1,
    num_attention_heads=2,
    intermediate_size=32,
    max_position_embeddings=32,
)


class Data(torch.utils.data.Dataset):
    def __len__(self):
        return 330

    def __getitem__(self, i):
        return {
            "input_ids": torch.randint(0, 64, (12,)),
            "attention_mask": torch.ones(12, dtype=torch.long),
            "labels": torch.tensor(i % 2),
        }


arguments = TrainingArguments(
    "out",
    num_train_epochs=2,
    per_device_train_batch_size=8,
    report_to=[],
    use_cpu=True,
    save_strategy="no",
    logging_strategy="no",
    disable_tqdm=True,
    dataloader_num_workers=1,
)
trainer = Trainer(BertForSequenceClassification(config), arguments, train_dataset=Data())
trainer.train()
print("steps", trainer.state.global_step, "samples", 2 * 330)
