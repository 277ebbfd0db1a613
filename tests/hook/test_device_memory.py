"""What the hook says of a training that ended because its device had no memory left. Nothing here needs a device: what
torch raises is raised by the script, in the words of PyTorch 2.9."""

from __future__ import annotations

import pytest
from channel_reader import Channel

TEXT = (
    "CUDA out of memory. Tried to allocate 1.50 GiB. GPU 0 has a total capacity of 24.00 GiB of which 512.00 MiB is "
    "free. Including non-PyTorch memory, this process has 23.50 GiB memory in use. Of the allocated memory 20.25 GiB "
    "is allocated by PyTorch, and 3.00 GiB is reserved by PyTorch but unallocated. If reserved but unallocated memory "
    "is large try setting PYTORCH_ALLOC_CONF=expandable_segments:True to avoid fragmentation."
)
TRAIN = f"""
import torch

model = torch.nn.Linear(8, 2)
optimizer = torch.optim.SGD(model.parameters(), 0.1)

def step(at):
    optimizer.zero_grad()
    model(torch.ones(4, 8)).sum().backward()
    optimizer.step()
    if at == LAST:
        raise ERROR({TEXT!r})

for at in range(5):
    WRAPPED
"""


def said(newest, last=3, error="torch.OutOfMemoryError", wrapped="step(at)"):
    script = TRAIN.replace("LAST", str(last)).replace("ERROR", error).replace("WRAPPED", wrapped)
    result, directory = newest.start([newest.python, newest.script(script)], None)
    texts = [m["text"] for m in Channel(directory).trainer.say("message") if m.get("source") == "device-memory"]
    return result.returncode, texts


@pytest.mark.long
@pytest.mark.parametrize("last", [0, 3])
def test_it_says_what_torch_said_and_whose_line_it_was(newest, last):
    status, texts = said(newest, last)
    assert status == 1
    (text,) = texts
    place, _, rest = text.partition(": ")
    assert place.endswith(".py:12") and rest == TEXT.partition(" If reserved")[0]


def test_an_error_that_came_of_it_is_told_too(newest):
    wrapped = "\n    ".join(
        ["try:", "    step(at)", "except RuntimeError as error:", "    raise ValueError from error"]
    )
    status, texts = said(newest, wrapped=wrapped)
    assert status == 1 and len(texts) == 1


@pytest.mark.long
def test_what_the_script_got_over_is_not_said(newest):
    wrapped = "\n    ".join(["try:", "    step(at)", "except RuntimeError:", "    pass"])
    assert said(newest, wrapped=wrapped) == (0, [])


@pytest.mark.long
def test_the_same_words_of_another_error_are_not_said(newest):
    assert said(newest, error="RuntimeError") == (1, [])
