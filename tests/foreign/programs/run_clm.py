"""In the manner of transformers' run_clm.py: a causal language model from its configuration, trained and evaluated by
the Trainer, with two batches an update."""

import torch
from transformers import GPT2Config, GPT2LMHeadModel, Trainer, TrainerCallback, TrainingArguments, default_data_collator

BLOCK, ROWS = 24, 322


class Blocks(torch.utils.data.Dataset):
    def __init__(self, rows):
        self.rows = torch.randint(0, 100, (rows, BLOCK))

    def __len__(self):
        return len(self.rows)

    def __getitem__(self, i):
        return {
            "input_ids": self.rows[i],
            "attention_mask": torch.ones(BLOCK, dtype=torch.long),
            "labels": self.rows[i],
        }


class Seen(TrainerCallback):
    steps = 0

    def on_step_end(self, args, state, control, **kwargs):
        Seen.steps += 1


def main():
    torch.manual_seed(0)
    config = GPT2Config(vocab_size=100, n_positions=32, n_embd=16, n_layer=1, n_head=2)
    arguments = TrainingArguments(
        "out",
        num_train_epochs=2,
        per_device_train_batch_size=8,
        per_device_eval_batch_size=8,
        gradient_accumulation_steps=2,
        eval_strategy="epoch",
        save_strategy="no",
        logging_strategy="no",
        report_to=[],
        use_cpu=True,
        disable_tqdm=True,
    )
    trainer = Trainer(
        model=GPT2LMHeadModel(config),
        args=arguments,
        train_dataset=Blocks(ROWS),
        eval_dataset=Blocks(40),
        data_collator=default_data_collator,
        callbacks=[Seen],
    )
    trainer.train()
    print("steps", Seen.steps, "samples", 2 * ROWS)


if __name__ == "__main__":
    main()
