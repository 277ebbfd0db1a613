"""Which samples are slices of what lies in memory: told from a loader's first batch."""

from __future__ import annotations

import pytest

SCRIPT = """
    import numpy, sys, torch
    from torch.utils.data import DataLoader, Dataset, IterableDataset, Subset, TensorDataset
    x, y = torch.randn(64, 5), torch.arange(64)
    array = numpy.ones((64, 5), dtype=numpy.float32)

    class Rows(Dataset):
        def __init__(self, get):
            self.get = get
        def __len__(self):
            return 64
        def __getitem__(self, index):
            return self.get(index)

    class Stream(IterableDataset):
        def __iter__(self):
            return iter(x)

    class Whole(Rows):
        def __getitems__(self, indices):
            return [self.get(index) for index in indices]

    def train(dataset, **options):
        model = torch.nn.Linear(5, 1)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        for _ in range(2):
            for batch in DataLoader(dataset, batch_size=8, **options):
                inputs = batch if torch.is_tensor(batch) else next(iter(batch.values())) if isinstance(batch, dict) \\
                    else batch[0]
                optimizer.zero_grad()
                model(inputs.float()).sum().backward()
                optimizer.step()
"""


def said_of(runner, dataset: str, options: str = "") -> dict | None:
    channel, _ = runner.run(SCRIPT + f"    train({dataset}{options})\n")
    known = channel.trainer.facts.get("slices")
    return known and known.get("1")


@pytest.mark.long
@pytest.mark.parametrize(
    ("dataset", "fields", "size"),
    [
        ("TensorDataset(x, y)", 2, 28),
        ("Subset(TensorDataset(x, y), range(32))", 2, 28),
        ("Rows(lambda index: x[index])", 1, 20),
        ("Rows(lambda index: (array[index], index % 3))", 2, 20),
        ("Rows(lambda index: {'x': x[index], 'y': numpy.float32(1)})", 2, 20),
    ],
)
def test_slices_of_what_lies_in_memory_are_told(newest, dataset, fields, size):
    assert said_of(newest, dataset) == {"fields": fields, "bytes": size}


@pytest.mark.long
@pytest.mark.parametrize(
    "dataset",
    [
        "Rows(lambda index: x[index] * 2)",
        "Rows(lambda index: (x[index], torch.tensor(index)))",
        "Rows(lambda index: (x[index], str(index)))",
        "Rows(lambda index: torch.randn(9, 5)[3])",
        "Rows(lambda index: array[index] + 1)",
        "Stream()",
        "Whole(lambda index: x[index])",
    ],
)
def test_samples_that_are_made_anew_are_not(newest, dataset):
    assert said_of(newest, dataset) is None


MAPPED = """
    import mmap
    numpy.save("array.npy", array)
    torch.save(x, "x.pt")
    mapped = numpy.load("array.npy", mmap_mode="r+")
    of_torch, of_numpy = torch.from_numpy(mapped), numpy.asarray(mapped)
    loaded = torch.load("x.pt", mmap=True) if torch.__version__ >= "2.1" else of_torch
    anonymous = numpy.frombuffer(mmap.mmap(-1, 1280), dtype=numpy.float32).reshape(64, 5)
    shared = x.clone().share_memory_()
    slices = sys.modules["_fullbore_hook.torch.slices"]
    look_up, looked = slices.is_a_file_mapped_at, []
    slices.is_a_file_mapped_at = lambda addresses: looked.append(addresses) or look_up(addresses)
    for get in (
        lambda index: loaded[index],
        lambda index: (of_torch[index], y[index]),
        lambda index: (x[index], of_numpy[index]),
        lambda index: (anonymous[index], x[index]),
        lambda index: shared[index],
    ):
        loader = DataLoader(Rows(get), batch_size=8)
        for _ in range(3):
            list(loader)
    print(len(looked))
"""


def test_slices_of_a_mapped_file_are_none_in_memory_which_is_looked_up_once_for_each_loader(newest):
    channel, said = newest.run(SCRIPT + MAPPED)
    assert list(channel.trainer.facts["slices"]) == ["4", "5"]
    assert said == "5\n"


@pytest.mark.long
@pytest.mark.parametrize("options", [", collate_fn=torch.stack", ", num_workers=1"])
def test_nothing_is_told_where_torchs_own_function_does_not_collate_in_this_process(newest, options):
    dataset = "Rows(lambda index: x[index])"
    assert said_of(newest, dataset, options) is None


@pytest.mark.long
def test_the_first_batch_is_what_it_would_be(runner):
    script = (
        SCRIPT + "    print([a.tolist() + b.tolist() for a, b in DataLoader(TensorDataset(y, y), batch_size=32)])\n"
    )
    _, said = runner.run(script)
    whole = [list(range(begin, begin + 32)) * 2 for begin in (0, 32)]
    assert said == f"{whole}\n"
