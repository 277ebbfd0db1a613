"""The tokens of batches, which of them are padding, and how much of the model's work follows them: of a few batches."""

from __future__ import annotations

import pytest
from hook_package import load

padding = load("torch.padding")

SCRIPT = """
    import random, sys, torch
    from torch import nn
    from torch.utils.data import DataLoader, TensorDataset
    from torch.nn import functional
    ROWS, WIDTH, WORDS = 128, 32, 50
    lengths = [1 + row % (WIDTH // 2) for row in range(ROWS)]
    random.seed(1)

    def sentences(pad=0, left=False):
        ids = torch.full((ROWS, WIDTH), pad)
        for row, length in enumerate(lengths):
            place = slice(WIDTH - length, WIDTH) if left else slice(0, length)
            ids[row, place] = torch.tensor([random.randrange(1, WORDS - 1) for _ in range(length)])
        return ids

    class Tagger(nn.Module):
        def __init__(self, **options):
            super().__init__()
            self.words, self.inner, self.out = nn.Embedding(WORDS, 8, **options), nn.Linear(8, 8), nn.Linear(8, 2)
        def forward(self, input_ids, attention_mask=None):
            return self.out(self.inner(self.words(input_ids)).mean(1))

    class Bag(Tagger):
        def forward(self, ids):
            return self.out(self.inner(self.words(ids).mean(1)))

    class Columns(Tagger):
        def forward(self, ids):
            return self.out(self.inner(self.words(ids)).mean(0))

    def step(model, optimizer, output):
        optimizer.zero_grad()
        output.sum().backward()
        optimizer.step()

    def train(model, dataset, call=lambda model, batch: model(batch[0]), **options):
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        for batch in DataLoader(dataset, batch_size=8, **options):
            step(model, optimizer, call(model, batch))

    class Dictionaries(TensorDataset):
        def __getitem__(self, index):
            return dict(zip(("labels", "attention_mask", "input_ids"), super().__getitem__(index)))
"""
LENGTHS = [1 + row % 16 for row in range(128)]
LENGTHS_SAID = {"useful", "longest", "lengths", "told_by"}


def sizes_of(said: dict) -> dict:
    """What is said of so many batches of eight rows of one width."""
    rows = 8 * said["batches"]
    return {"batches": said["batches"], "rows": rows, "computed": [rows * 32, rows * 32 * 32], "widths": 1}


def said_of(runner, lines: str) -> dict | None:
    channel, _ = runner.run(SCRIPT + "".join(f"    {line}\n" for line in lines.splitlines()))
    return channel.trainer.facts.get("tokens")


NAMED = """train(Tagger(), Dictionaries(torch.ones(ROWS), (sentences() > 0).long(), sentences()),
    call=lambda model, batch: model(batch["input_ids"], attention_mask=batch["attention_mask"]))"""
WITHOUT_LOADER = """model, ids = Tagger(), sentences()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for row in range(0, ROWS, 8):
    step(model, optimizer, model(ids[row:row + 8]))"""


@pytest.mark.long
@pytest.mark.parametrize(
    ("lines", "told_by"),
    [
        ("train(Tagger(), TensorDataset(sentences(), torch.ones(ROWS)))", "ends"),
        ("train(Tagger(), TensorDataset(sentences(pad=49), torch.ones(ROWS)))", "ends"),
        ("train(Tagger(), TensorDataset(sentences(left=True), torch.ones(ROWS)))", "ends"),
        ("train(Tagger(), TensorDataset(sentences(), torch.ones(ROWS)), num_workers=1)", "ends"),
        ("train(Tagger(padding_idx=0), TensorDataset(sentences(), torch.ones(ROWS)))", "padding_idx"),
        (NAMED, "attention_mask"),
        (WITHOUT_LOADER, "ends"),
    ],
)
def test_padding_is_told(newest, lines, told_by):
    said = said_of(newest, lines)
    assert said is not None
    assert sizes_of(said).items() <= said.items() and said["batches"] >= 4
    assert (said["told_by"], said["attends"], said["features"]) == (told_by, False, 8)
    # An id that stands for padding may end a sentence, too.
    assert said["useful"] == pytest.approx(said["rows"] * 8.5, abs=said["rows"])
    assert said["lengths"][0] <= 2 and said["lengths"][-1] == 16 and len(said["lengths"]) == 33
    assert said["follows"] == pytest.approx(
        64 * 256 / (64 * 256 + 16 * 8 + 20 * 400), abs=0.01
    )  # not the last layer, nor the table


@pytest.mark.long
def test_positions_that_are_looked_up_first_are_no_tokens(newest):
    lines = """class Placed(Tagger):
    def __init__(self):
        super().__init__()
        self.places = nn.Embedding(WIDTH, 8)
    def forward(self, ids):
        return self.out(self.inner(self.places(torch.arange(ids.shape[1])[None]) + self.words(ids)).mean(1))
train(Placed(), TensorDataset(sentences()))"""
    said = said_of(newest, lines)
    assert said is not None and said["follows"] > 0.6


@pytest.mark.long
def test_a_batch_of_columns_is_turned(newest):
    columns = "train(Columns(), TensorDataset(sentences(), torch.ones(ROWS)), lambda model, batch: model(batch[0]),\n"
    columns += "    collate_fn=lambda rows: (torch.stack([ids for ids, _ in rows], 1),))"
    said = said_of(newest, columns)
    assert said is not None and said["computed"][0] == said["rows"] * 32
    widest = [(8, 16)[number % 2] for number in range(said["batches"] + 1)]
    in_turns = widest[:-1], widest[1:]
    assert said["longest"] in [[8 * sum(each), 8 * sum(width**2 for width in each)] for each in in_turns]


@pytest.mark.long
def test_batches_of_their_own_widths_are_told(newest):
    cut = "lambda rows: [torch.stack([ids for ids, _ in rows])[:, :max(int((ids > 0).sum()) for ids, _ in rows)]]"
    said = said_of(newest, f"train(Tagger(), TensorDataset(sentences(), torch.ones(ROWS)), collate_fn={cut})")
    assert said is not None and (said["widths"], said["longest"]) == (2, said["computed"])


@pytest.mark.long
def test_what_is_computed_once_for_a_sentence_does_not_follow_its_tokens(newest):
    said = said_of(newest, "train(Bag(), TensorDataset(sentences(), torch.ones(ROWS)))")
    assert said is not None and said["follows"] == 0


@pytest.mark.long
def test_batches_of_an_evaluation_are_not_counted(newest):
    lines = """model, ids, other = Tagger(), sentences(), torch.full((ROWS, WIDTH), 3)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
held_out = DataLoader(TensorDataset(other), batch_size=8)
for (batch,) in DataLoader(TensorDataset(ids), batch_size=8):
    model.eval()
    with torch.no_grad():
        model(next(iter(held_out))[0])
    model.train()
    step(model, optimizer, model(batch))"""
    said = said_of(newest, lines)
    assert said is not None and said["useful"] < 0.4 * said["computed"][0]


TAGS = "(torch.arange(ROWS * WIDTH).view(ROWS, WIDTH) % 9 == 0).long()"


def test_of_several_matrices_the_one_that_is_looked_up_counts(newest):
    lines = f"train(Tagger(), TensorDataset({TAGS}, sentences()), call=lambda model, batch: model(batch[1]))"
    said = said_of(newest, lines)
    assert said is not None and said["useful"] == pytest.approx(said["rows"] * 8.5, abs=said["rows"])


@pytest.mark.long
def test_a_recurrent_layer_over_packed_rows_computes_no_padding(newest):
    lines = """class Packed(Tagger):
    def __init__(self):
        super().__init__(padding_idx=0)
        self.inner = nn.LSTM(8, 8, batch_first=True)
    def forward(self, ids):
        packed = nn.utils.rnn.pack_padded_sequence(self.words(ids), (ids > 0).sum(1), True, enforce_sorted=False)
        return self.out(self.inner(packed)[1][0][0])
train(Packed(), TensorDataset(sentences()))"""
    said = said_of(newest, lines)
    assert said is not None and said["follows"] == 0


@pytest.mark.long
def test_batches_that_cannot_be_read_end_the_looks_and_nothing_else(newest):
    lines = """class Odd(dict):
    def get(self, name):
        raise RuntimeError("no get")
train(Tagger(), TensorDataset(sentences()), collate_fn=lambda rows: Odd({0: torch.stack([ids for ids, in rows])}))"""
    channel, _ = newest.run(SCRIPT + "".join(f"    {line}\n" for line in lines.splitlines()))
    assert channel.trainer.facts.get("tokens") is None
    assert channel.trainer.facts.get("optimizer") == "SGD" and not channel.trainer.say("message")


@pytest.mark.long
@pytest.mark.parametrize(
    "lines",
    [
        "train(Tagger(padding_idx=0), TensorDataset(torch.randint(2, (ROWS, WIDTH))))",  # scattered
        NAMED.replace("> 0", "== 0"),  # a mask that means the contrary
        "train(Tagger(), TensorDataset(torch.randint(1, WORDS, (ROWS, WIDTH)), torch.ones(ROWS)))",  # packed
        "train(Tagger(), TensorDataset(torch.randint(2, (ROWS, WIDTH)), torch.ones(ROWS)))",  # 0 means something
    ],
)
def test_nothing_is_said_of_what_is_not_known_to_be_padding(newest, lines):
    said = said_of(newest, lines)
    assert said is not None and sizes_of(said).items() <= said.items() and not LENGTHS_SAID & set(said)
    assert said["follows"] > 0.6, "and what the model computes for each token is known all the same"


@pytest.mark.long
@pytest.mark.parametrize(
    "lines",
    [
        "train(Tagger(), TensorDataset(sentences()[:, :3], torch.ones(ROWS)))",  # features
        "train(nn.Linear(WIDTH, 1), TensorDataset(sentences()), call=lambda model, batch: model(batch[0].float()))",
    ],
)
def test_integers_that_are_not_looked_up_or_only_a_few_are_no_tokens(newest, lines):
    assert said_of(newest, lines) is None


@pytest.mark.long
def test_what_stands_within_rows_is_taken_back(newest):
    lines = """ids = torch.cat([sentences() for _ in range(17)])  # a look comes after step 64 or 256
ids[4 * ROWS:, 0] = 0
train(Tagger(), TensorDataset(ids, torch.ones(17 * ROWS)))"""
    said = said_of(newest, lines)
    assert said is not None and said["computed"][0] == said["rows"] * 32 and not LENGTHS_SAID & set(said)


@pytest.mark.long
@pytest.mark.parametrize(("ids", "least", "most"), [("sentences()", 52, 64), ("sentences() * 0 + 1", 4, 9)])
def test_of_padded_batches_many_are_looked_at_where_that_takes_a_small_part_of_the_steps(newest, ids, least, most):
    lines = f"""import time
class Slow(TensorDataset):
    def __getitem__(self, index):
        time.sleep(0.005)
        return super().__getitem__(index)
ids = torch.cat([{ids} for _ in range(5)])
train(Tagger(padding_idx=0), Slow(ids[:72 * 8], torch.ones(72 * 8)))"""
    said = said_of(newest, lines)
    assert said is not None and least <= said["batches"] <= most


def test_batches_whose_padding_is_told_count_alone():
    counted = padding.Counted()
    counted.add(padding.Seen(None, 8, 32, [], ""))
    assert counted.about() == {"batches": 1, "rows": 8, "computed": [256, 8192], "widths": 1}
    counted.add(padding.Seen(None, 2, 16, [4, 8], "ends"))
    counted.add(padding.Seen(None, 8, 32, [], ""))
    said = counted.about()
    assert (said["batches"], said["rows"], said["computed"][0], said["useful"]) == (1, 2, 32, 12)


def test_of_a_batch_on_a_device_only_the_shape_is_read():
    torch = pytest.importorskip("torch")
    tokens = load("torch.tokens")
    ids = torch.zeros(8, 32, dtype=torch.int64, device="meta")  # whose elements nobody can read
    looking = tokens.Tokens()
    looking.lookups.shapes.add((8, 32))
    assert looking.seen_in("call", (ids, ids), {}) is None, "which argument it is shows after the step"
    looking.settle()
    assert looking.seen_in("call", (ids, ids), {}) == padding.Seen(None, 8, 32, [], "")
    assert looking.seen_in("call", (), {"input_ids": ids}) == padding.Seen(None, 8, 32, [], "")


def test_a_filler_is_an_id_that_fills_rows_unevenly():
    torch = pytest.importorskip("torch")
    assert padding.filler(torch.tensor([[4, 5, 0, 0], [4, 5, 6, 0]])) == 0
    assert padding.filler(torch.tensor([[0, 0, 4, 5], [0, 4, 5, 6]])) == 0
    assert padding.filler(torch.tensor([[4, 5, 6, 0], [5, 6, 7, 0]])) is None, "each row's own end"
    assert padding.filler(torch.tensor([[4, 0, 6, 0], [5, 6, 0, 0]])) is None, "within a row"
    mask = torch.tensor([[1, 1, 0, 0], [1, 1, 1, 0]])
    assert padding.is_mask_of(mask, torch.tensor([[4, 5, 0, 0], [4, 5, 6, 0]]))
    assert not padding.is_mask_of(mask, torch.tensor([[4, 5, 6, 0], [4, 5, 6, 0]])), "it leaves out more than one id"
    assert not padding.is_mask_of(1 - mask, torch.tensor([[4, 5, 0, 0], [4, 5, 6, 0]]))
    assert padding.quantiles([3, 1, 2], 2) == [1, 2, 3]
