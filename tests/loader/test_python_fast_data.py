"""fullbore run --fast-data: an unmodified script gets faster with the same samples, or stays as it is and says why."""

from __future__ import annotations

import contextlib
import json
import sqlite3
import subprocess

import pytest
from python_data import make_photos, require, torchvision_python

require()

TRAIN = """
import json, sys, torch
from torch import nn
from torch.utils.data import DataLoader
from torchvision import datasets, transforms as T

class Own(datasets.ImageFolder):
    def __getitem__(self, index):
        return super().__getitem__(index)

if __name__ == "__main__":
    torch.manual_seed(0)
    steps = [T.RandomResizedCrop(32, scale=(0.5, 1.0)), T.RandomHorizontalFlip()]
    steps += [T.ToTensor(), T.Normalize((0.5,) * 3, (0.25,) * 3)]
    kind = Own if "own" in sys.argv else datasets.ImageFolder
    workers = int("workers" in sys.argv)
    train = DataLoader(kind(sys.argv[1], T.Compose(steps)), batch_size=8, shuffle=True, num_workers=workers)
    test = DataLoader(kind(sys.argv[1], T.Compose([T.Resize((32, 32)), *steps[2:]])), batch_size=8)
    model = nn.Sequential(nn.Conv2d(3, 8, 3, 2), nn.ReLU(), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(8, 3))
    optimizer = torch.optim.SGD(model.parameters(), 0.2)
    losses, labels, kinds = [], [], set()
    for epoch in range(4):
        labels.append([])
        total = 0.0
        for index, batch in enumerate(train):
            kinds.add(type(batch).__name__)
            images, targets = batch
            optimizer.zero_grad()
            loss = nn.functional.cross_entropy(model(images), targets)
            loss.backward()
            optimizer.step()
            total += loss.item()
            labels[-1] += targets.tolist()
            if epoch == 2 and index == 1:
                break
        losses.append(total / (index + 1))
    with torch.no_grad():
        right = sum(int((model(x).argmax(1) == y).sum()) for x, y in test)
    said = {"losses": losses, "labels": labels, "right": right, "length": len(train), "kinds": sorted(kinds)}
    print(json.dumps(said))
"""


@pytest.fixture(scope="module")
def python():
    return torchvision_python()


@pytest.fixture(scope="module")
def photos(tmp_path_factory):
    return make_photos(tmp_path_factory.mktemp("photos") / "train", per_class=12, size=(120, 90))


def train(fullbore, python, photos, *arguments, flags=("--fast-data",)):
    script = fullbore.script("train.py", TRAIN)
    done = fullbore.run(python, script, str(photos), *arguments, flags=flags)
    assert done.code == 0, done.stderr
    messages = [message for message in done.report["messages"] if "--fast-data" in json.dumps(message)]
    return json.loads(done.stdout), messages


@pytest.mark.long
def test_the_script_trains_as_before_on_the_fast_loader(fullbore, python, photos):
    before, none = train(fullbore, python, photos, flags=())
    after, messages = train(fullbore, python, photos)
    assert none == [] and len(messages) == 1
    assert "served by fullbore.data" in json.dumps(messages) and "train.py:17" in json.dumps(messages)
    everything = sorted(12 * [0, 1, 2])
    for said in (before, after):
        assert [len(epoch) for epoch in said["labels"]] == [36, 36, 16, 36]
        assert sorted(said["labels"][0]) == sorted(said["labels"][3]) == everything
        assert said["length"] == 5 and said["kinds"] == ["list"]
        assert said["losses"][3] < 0.5 * said["losses"][0]
        assert said["right"] >= 34
    orders = {tuple(epoch) for epoch in after["labels"]}
    assert len(orders) == 4  # shuffled anew each epoch


@pytest.mark.long
def test_the_fast_loader_is_recorded_as_the_training_loader_and_each_batch_once(fullbore, python, photos):
    done = fullbore.run(python, fullbore.script("train.py", TRAIN), str(photos), flags=("--fast-data",))
    with contextlib.closing(sqlite3.connect(done.run_file)) as run:
        loaders = [json.loads(about) for (about,) in run.execute("SELECT about FROM loader ORDER BY id")]
    (fast,) = (loader for loader in loaders if loader["feeds_training"])
    assert fast["library"] == "fullbore.data" and fast["where"].endswith("train.py:17")
    assert [loader.get("library") for loader in loaders] == [
        None,
        "fullbore.data",
        None,
    ]  # and none for the comparison
    # Five per epoch, two in the one that ends early.
    steps = done.report["window"]["steps"] + done.report["window"]["warmup_steps"]
    assert steps == 17


@pytest.mark.long
def test_what_has_no_equivalent_trains_unchanged_with_one_message(fullbore, python, photos):
    said, messages = train(fullbore, python, photos, "own", "workers")
    assert len(messages) == 1
    text = json.dumps(messages)
    assert "stays as it is" in text and "Own" in text
    assert sorted(said["labels"][0]) == sorted(12 * [0, 1, 2])


def test_the_outcome_is_reported_while_the_script_runs(fullbore, python, photos):
    """The script does not exit before the test has seen the message or given up."""
    waiting = "if __name__ == '__main__':\n    assert sys.stdin.readline() == 'seen\\n'\n"
    script = fullbore.script("train.py", TRAIN + waiting)
    process, _ = fullbore.start(python, script, str(photos), "own", flags=("--fast-data",), stdin=subprocess.PIPE)
    told = next((line for line in process.stderr if b"--fast-data" in line), b"")
    assert told.startswith(b"fullbore: --fast-data: the DataLoader of train.py:17 stays as it is")
    _, rest = process.communicate(b"seen\n", timeout=300)
    assert process.returncode == 0 and rest.count(b"--fast-data: the DataLoader") == 1  # in the report


@pytest.mark.long
def test_a_script_whose_pixels_differ_trains_unchanged_with_one_message(fullbore, python, photos):
    # torchvision reads something other than it says: only the comparison can detect that.
    patched = TRAIN.replace(
        "class Own",
        "from PIL import Image, ImageOps\n"
        "datasets.folder.pil_loader = lambda path: ImageOps.invert(Image.open(path).convert('RGB'))\n\nclass Own",
    )
    done = fullbore.run(python, fullbore.script("train.py", patched), str(photos), flags=("--fast-data",))
    assert done.code == 0, done.stderr
    (message,) = [m for m in done.report["messages"] if "--fast-data" in json.dumps(m)]
    assert "stays as it is" in json.dumps(message) and "pixels differ by" in json.dumps(message)
    said = json.loads(done.stdout)
    assert sorted(said["labels"][0]) == sorted(12 * [0, 1, 2])
    assert said["losses"][3] < said["losses"][0]


@pytest.mark.long
def test_a_python_without_the_extension_trains_unchanged(fullbore, python, photos, monkeypatch, tmp_path):
    # Another package of that name, as from an older version, comes first on the path.
    (tmp_path / "shadow" / "fullbore").mkdir(parents=True)
    (tmp_path / "shadow" / "fullbore" / "__init__.py").write_text("")
    script = fullbore.script("train.py", TRAIN)
    env = {"PYTHONPATH": str(tmp_path / "shadow")}
    done = fullbore.run(python, script, str(photos), flags=("--fast-data",), env=env)
    assert done.code == 0, done.stderr
    (message,) = [m for m in done.report["messages"] if "--fast-data" in json.dumps(m)]
    assert "cannot be imported" in json.dumps(message) and "pip install" in json.dumps(message)


def test_the_flag_needs_the_hook(fullbore):
    done = fullbore.call("run", "--fast-data", "--no-hook", "--", "true")
    assert done.code == 2 and "--no-hook" in done.stderr


def loaders_of(done):
    with contextlib.closing(sqlite3.connect(done.run_file)) as run:
        return [json.loads(about) for (about,) in run.execute("SELECT about FROM loader ORDER BY id")]


@pytest.mark.long
def test_a_run_without_it_learns_at_its_end_what_it_would_cost(fullbore, python, photos):
    done = fullbore.run(python, fullbore.script("train.py", TRAIN), str(photos))
    training, other = loaders_of(done)
    assert training["fast_sample_ns"] > 0 and "fast_refused" not in training
    assert "fast_sample_ns" not in other  # it only validates
    assert json.loads(done.stdout)["length"] == 5


@pytest.mark.long
def test_a_run_whose_loader_it_cannot_serve_learns_why(fullbore, python, photos):
    done = fullbore.run(python, fullbore.script("train.py", TRAIN), str(photos), "own")
    training, _ = loaders_of(done)
    assert "fast_sample_ns" not in training
    assert "Own (__main__)" in training["fast_refused"] and "overrides __getitem__" in training["fast_refused"]
