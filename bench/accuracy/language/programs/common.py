"""What the programs share: made-up texts of very different lengths, a tokenizer for them, and the clock, also as a
callback of Transformers' Trainer."""

import os
import random
import sys
from pathlib import Path

import torch
from transformers import PreTrainedTokenizerFast, TrainerCallback

sys.path.append(str(Path(__file__).resolve().parents[2] / "reports"))
from clock import Clock, options  # noqa: E402

__all__ = ["WORDS", "Clock", "ClockCallback", "end_of_rank", "options", "texts", "tokenizer"]
os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
WORDS = 4000
SPECIAL = ["[PAD]", "[UNK]", "[EOS]"]


def texts(count=4000, longest=250, typical=50, seed=5):
    """Their lengths are by a log-normal distribution, as those of comments and questions are."""
    draw = random.Random(seed)
    lengths = (min(longest, max(4, int(typical * draw.lognormvariate(0, 0.7)))) for _ in range(count))
    return [" ".join(f"w{draw.randrange(WORDS)}" for _ in range(length)) for length in lengths]


def tokenizer(longest=256):
    from tokenizers import Tokenizer, models, pre_tokenizers

    words = SPECIAL + [f"w{number}" for number in range(WORDS)]
    made = Tokenizer(models.WordLevel({word: number for number, word in enumerate(words)}, unk_token="[UNK]"))
    made.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    names = {"pad_token": "[PAD]", "unk_token": "[UNK]", "eos_token": "[EOS]"}
    return PreTrainedTokenizerFast(tokenizer_object=made, model_max_length=longest, **names)


class ClockCallback(TrainerCallback):
    """Counts tokens as the Trainer does (include_num_input_tokens_seen: all of them, or no padding), or steps."""

    def __init__(self, seconds):
        self.clock, self.seen = Clock(seconds), 0

    def on_step_end(self, args, state, control, **_):
        tokens = state.num_input_tokens_seen - self.seen if args.include_num_input_tokens_seen != "no" else 1
        self.seen = state.num_input_tokens_seen
        control.should_training_stop = self.clock.done(tokens)

    def on_train_end(self, args, state, control, **_):
        self.clock.rate()


def end_of_rank(clock, rank):
    """torch 2.13's gloo threads sometimes abort a regular exit."""
    if rank == 0:
        clock.rate()
    torch.distributed.barrier()
    sys.stdout.flush()
    torch.distributed.destroy_process_group()
    os._exit(0)
