"""While a training runs, its verdict is said once, as soon as it is sure; a healthy one hears nothing."""

import re

import pytest

pytestmark = pytest.mark.alone  # beside other tests the machine is too busy for a promise

PROGRAM = """
import sys, time, torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

torch.set_num_threads(1)

class Photos(Dataset):
    def __len__(self):
        return 100_000

    def __getitem__(self, index):
        if "storage" in sys.argv:
            time.sleep(0.004)
        return torch.randn(64), index % 4

model = nn.Sequential(nn.Linear(64, 512), nn.ReLU(), nn.Linear(512, 512), nn.ReLU(), nn.Linear(512, 4))
optimizer = torch.optim.SGD(model.parameters(), 0.1)
end = time.monotonic() + 9
batches = [torch.randn(256, 64)] * 1000 if "healthy" in sys.argv else DataLoader(Photos(), batch_size=8)
for batch in batches:
    if time.monotonic() > end:
        break
    images = batch if "healthy" in sys.argv else batch[0]
    for _ in range(8):
        optimizer.zero_grad()
        model(images).sum().backward()
    optimizer.step()
"""
LOOK_EACH_SECOND = {"FULLBORE_LOOK_S": "1"}
VERDICT = re.compile(r"^fullbore: .* would bring .*\(fullbore explain .*\)$", re.MULTILINE)


def test_what_the_training_waits_for_is_said_once(fullbore, torch_python):
    done = fullbore.run(torch_python, fullbore.script("train.py", PROGRAM), "storage", env=LOOK_EACH_SECOND)
    assert done.code == 0, done.stderr
    first = done.report["findings"][0]
    (line,) = VERDICT.findall(done.stderr)
    assert first["title"].split()[1] in line, (first["title"], line)
    assert done.run_file.name in line
    assert done.stderr.index(line) < done.stderr.index("why: fullbore help"), "before the report"


@pytest.mark.long
def test_a_healthy_training_hears_nothing(fullbore, torch_python):
    done = fullbore.run(torch_python, fullbore.script("train.py", PROGRAM), "healthy", env=LOOK_EACH_SECOND)
    assert done.code == 0, done.stderr
    assert not VERDICT.findall(done.stderr)


@pytest.mark.long
def test_quiet_is_quiet(fullbore, torch_python):
    script = fullbore.script("train.py", PROGRAM)
    done = fullbore.run(torch_python, script, "storage", flags=["--quiet"], env=LOOK_EACH_SECOND)
    assert done.stderr == ""


@pytest.mark.long
@pytest.mark.parametrize("flags", [[], ["--quiet"]])
def test_a_profile_ends_as_soon_as_the_verdict_is_sure(fullbore, torch_python, flags):
    endless = PROGRAM.replace("time.monotonic() + 9", "time.monotonic() + 1000")
    script = fullbore.script("train.py", endless)
    done = fullbore.run(torch_python, script, "storage", flags=["--for", "90s", *flags], env=LOOK_EACH_SECOND)
    assert done.code == 0, done.stderr
    assert any("with a verdict that is sure" in note for note in done.report["notes"])
