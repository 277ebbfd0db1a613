"""What is said of the outputs that an evaluation keeps, and of what resembles them."""

from __future__ import annotations

import pytest
from hook_package import load

kept = load("torch.kept")
MB = 1 << 20


class Memory:
    """A weak reference, of a test's own making."""

    def __init__(self, alive: bool) -> None:
        self.alive = alive

    def expired(self) -> bool:
        return not self.alive


def outputs(alive: bool = False, largest: int = 10 * MB, more: int = 0):
    numbers = (3, 4, 5, 6, 7, 9)
    return [
        kept.Output(number, largest, largest + more, Memory(alive), False, [8, 100], "float32") for number in numbers
    ]


def used(host=lambda passes: 0, device=lambda passes: 0):
    return [kept.Used(passes, host(passes), device(passes)) for passes in (2, 3, 4, 5, 7, 9)]


def evaluation(seen, passes: int = 10):
    made = kept.Evaluation()
    made.passes, made.outputs, made.used = passes, seen, used()
    return made


def test_outputs_that_are_alive_passes_later_are_held():
    assert evaluation(outputs(alive=True)).alive() == kept.Held(10 * MB, 0, True)


def test_the_last_output_is_alive_anyway():
    seen = outputs()
    seen[-1].memory.alive = True
    assert evaluation(seen).alive() is None


def test_outputs_in_one_memory_are_one():
    """A buffer that a compiled model fills anew."""
    one = Memory(alive=True)
    assert evaluation([each._replace(memory=one) for each in outputs()]).alive() is None


def test_the_first_few_are_too_few():
    assert evaluation(outputs(alive=True)[:4], passes=6).alive() is None


def test_copies_are_told_by_memory_that_grows_as_they_do():
    seen = outputs()
    assert kept.grown(used(lambda passes: 300 * MB + 10 * MB * passes), seen) == (10 * MB, 0, False)
    assert kept.grown(used(lambda passes: 20 * MB * passes), seen) == (20 * MB, 0, False), "16 bits became 32"
    assert kept.grown(used(lambda _: 0, lambda passes: 10 * MB * passes), seen) == (10 * MB, 10 * MB, False)


def test_of_several_tensors_one_may_be_kept_or_all():
    seen = outputs(largest=10 * MB, more=10 * MB)
    assert kept.grown(used(lambda passes: 10 * MB * passes), seen)
    assert kept.grown(used(lambda passes: 20 * MB * passes), seen)


@pytest.mark.parametrize(
    "host",
    [
        lambda passes: 300 * MB,  # the best words alone
        lambda passes: MB * passes,  # a part of them
        lambda passes: 100 * MB * passes,  # a dataset that keeps what it has read
        lambda passes: 10 * MB * min(passes, 4),  # an allocator that has what it needs
        lambda passes: 60 * MB * (passes > 4),  # once, of something else
        lambda passes: -10 * MB * passes,
    ],
)
def test_memory_that_does_otherwise_tells_nothing(host):
    assert kept.grown(used(host), outputs()) is None


def test_without_outputs_or_with_few_readings_nothing_is_told():
    grows = used(lambda passes: 10 * MB * passes)
    assert kept.grown(grows, []) is None and kept.grown(grows[:4], outputs()) is None


# ---- Programs ----

PROGRAM = """
    import sys, torch
    from torch import nn

    model = nn.Linear(6, 300_000)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    x = torch.randn(8, 6)
    cached = []

    def outputs_of(passes=12):
        model.eval()
        with torch.no_grad():
            for _ in range(passes):
                yield model(x)
        model.train()

    def evaluate():
        {evaluate}

    for _ in range(3):
        for _ in range(3):
            optimizer.zero_grad()
            model(x).mean().backward()
            optimizer.step()
        evaluate()
"""
OF_PASS = 8 * 300_000 * 4
LOGITS = {"shape": [8, 300_000], "dtype": "float32", "by": "", "on_device": 0, "passes": 12}
# As Transformers' Trainer does it.
CONCATENATED = """
        held = None
        for logits in outputs_of():
            held = logits if held is None else torch.cat((held, logits))
"""


def said(runner, evaluate: str):
    channel, _ = runner.run(PROGRAM.replace("{evaluate}", evaluate))
    return channel.trainer.facts.get("kept_outputs")


@pytest.mark.long
@pytest.mark.parametrize(
    "evaluate",
    [
        "torch.cat(list(outputs_of()))",
        "[each.numpy() for each in outputs_of()]",
        "[each[:, 0] for each in outputs_of()]",
    ],
)
def test_logits_that_are_kept_as_they_are(either, evaluate):
    """Also where a view is all that is wanted of them."""
    assert said(either, evaluate) == {**LOGITS, "as_they_are": True, "bytes": 12 * OF_PASS, "evaluations": 2}


@pytest.mark.long
def test_logits_that_are_put_together_into_one(either):
    about = said(either, CONCATENATED)
    assert abs(about.pop("bytes") / (12 * OF_PASS) - 1) < 0.25
    assert about == {**LOGITS, "as_they_are": False, "evaluations": 2}


@pytest.mark.long
@pytest.mark.parametrize(
    "evaluate",
    [
        "[each.argmax(-1) for each in outputs_of()]",
        "[each.mean().item() for each in outputs_of()]",
        "[each[:, :10].clone() for each in outputs_of()]",
        "list(outputs_of(passes=5))",
        "cached or cached.extend(each.clone() for each in outputs_of())",  # once, and as large by chance
    ],
)
def test_of_what_takes_little_or_is_filled_once_nothing_is_said(newest, evaluate):
    assert said(newest, evaluate) is None


@pytest.mark.long
def test_a_classifier_of_ten_classes_may_keep_its_outputs(newest):
    channel, _ = newest.run(PROGRAM.replace("300_000", "10").replace("{evaluate}", "list(outputs_of(50))"))
    assert "kept_outputs" not in channel.trainer.facts


@pytest.mark.long
def test_what_was_kept_is_freed_as_without_us(either):
    _, output = either.run(
        PROGRAM.replace("{evaluate}", "pass")
        + """
    import weakref
    held = list(outputs_of())
    known = [weakref.ref(each) for each in held]
    del held
    print(sum(each() is not None for each in known))
    """
    )
    assert output == "0\n"


TRAINER = """
    import sys, numpy as np, torch
    from transformers import GPT2Config, GPT2LMHeadModel, Trainer, TrainingArguments

    model = GPT2LMHeadModel(GPT2Config(vocab_size=4000, n_positions=64, n_embd=16, n_layer=1, n_head=2))
    rows = [{"input_ids": torch.arange(64), "labels": torch.arange(64)} for _ in range(96)]
    arguments = TrainingArguments("out", per_device_train_batch_size=8, per_device_eval_batch_size=8, max_steps=9,
                                  eval_strategy="steps", eval_steps=3, report_to=[], save_strategy="no",
                                  disable_tqdm=True, use_cpu=True)
    best = (lambda logits, labels: logits.argmax(-1)) if "best" in sys.argv else None
    Trainer(model, arguments, train_dataset=rows, eval_dataset=rows, preprocess_logits_for_metrics=best,
            compute_metrics=lambda said: {"mean": float(np.mean(said.predictions))}).train()
"""


@pytest.mark.long
def test_transformers_trainer_keeps_the_logits_unless_it_is_told_what_a_metric_needs(newest):
    newest.needs("transformers")
    newest.needs("accelerate")
    channel, _ = newest.run(TRAINER)
    about = channel.trainer.facts["kept_outputs"]
    assert about["by"] == "transformers" and about["shape"] == [8, 64, 4000] and about["passes"] == 12
    assert abs(about["bytes"] / (12 * 8 * 64 * 4000 * 4) - 1) < 0.25
    channel, _ = newest.run(TRAINER, "best")
    assert "kept_outputs" not in channel.trainer.facts
