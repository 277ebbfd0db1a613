"""Programs that wait for their data, each for another reason, and some that only seem to."""

from __future__ import annotations

import random

from ..case import Case
from . import data, loops, models
from .compose import Plan, compose
from .pieces import Piece

BATCHES = {"image": (8, 16), "flat": (32, 64), "tokens": (16, 32), "series": (32, 64), "categories": (128, 256)}
DECODED = ("image", "image", "series", "tokens")  # kinds whose samples can cost a lot of CPU time


def batch_size(rng: random.Random, kind: str) -> int:
    return rng.choice(BATCHES[kind])


def no_workers(rng: random.Random, name: str) -> Case:
    kind = rng.choice(DECODED)
    plan = Plan(
        cause="no-workers",
        about="every sample is decoded or augmented in the training thread",
        model=models.any_model(rng, kind, rng.choice([0.7, 1.0])),
        data=data.costly(rng, kind),
        batch_size=batch_size(rng, kind),
        cure={"num_workers": 2},
        head=rng.choice(["", "torch.set_num_threads(1)"]),
    )
    return compose(rng, name, plan)


def too_few_workers(rng: random.Random, name: str) -> Case:
    kind = rng.choice(DECODED)
    plan = Plan(
        cause="too-few-workers",
        about="one worker prepares the samples, and needs longer for a batch than the model",
        model=models.any_model(rng, kind, 0.6),
        data=data.costly(rng, kind),
        batch_size=batch_size(rng, kind),
        num_workers=1,
        cure={"num_workers": 2},
        head="torch.set_num_threads(1)",
    )
    return compose(rng, name, plan)


def workers_fill_the_cores(rng: random.Random, name: str) -> Case:
    kind = rng.choice(("image", "image", "tokens"))
    plan = Plan(
        cause="decode",
        about="as many workers as cores, all busy decoding: only cheaper samples would help",
        model=models.any_model(rng, kind, 0.7),
        data=data.photos(rng) if kind == "image" else data.text(rng, "tokens", 900),
        batch_size=batch_size(rng, kind),
        num_workers=rng.choice([2, 3, 4]),
    )
    return compose(rng, name, plan)


def short_waits(rng: random.Random, name: str) -> Case:
    """A cheap dataset and workers=0: it waits a little, but the cores are full."""
    kind = rng.choice(("flat", "image", "tokens", "series"))
    source = rng.choice((data.in_memory, data.in_memory, data.cheap))
    plan = Plan(
        cause="healthy",
        about="samples from memory, num_workers=0: the short waits are not worth a worker",
        model=models.any_model(rng, kind, rng.choice([1.0, 1.5])),
        data=source(rng, "flat" if source is data.cheap and kind not in data.SHAPES else kind),
        batch_size=batch_size(rng, kind) * (1 if kind == "image" else 2),
    )
    if source is data.cheap and kind not in data.SHAPES:
        plan.model = models.any_model(rng, "flat", 1.0)
    return compose(rng, name, plan)


def accumulated(rng: random.Random, name: str) -> Case:
    kind = rng.choice(("flat", "image", "tokens"))
    plan = Plan(
        cause="healthy",
        about="gradient accumulation over batches from memory: a step is several batches",
        model=models.any_model(rng, kind, 1.0),
        data=data.in_memory(rng, kind),
        batch_size=batch_size(rng, kind),
        settings={"accumulate": rng.choice([2, 4, 8])},
        loop=loops.accumulating,
    )
    return compose(rng, name, plan)


SLOW_READS = '''
class Remote(torch.utils.data.Dataset):
    """Samples of another dataset, which have to be fetched first: that takes a round trip each."""

    def __init__(self, dataset, latency):
        self.dataset = dataset
        self.latency = latency

    def __len__(self):
        return len(self.dataset)

    def __getitem__(self, index):
        if self.latency > 0:
            time.sleep(self.latency)
        return self.dataset[index]
'''

SHARED_LINK = '''
class Link:
    """A network link that all readers share: the bytes of one request delay those of the next."""

    def __init__(self, bytes_per_s):
        self.rate = bytes_per_s
        self.free_at = multiprocessing.Value("d", 0.0)

    def transfer(self, size):
        with self.free_at.get_lock():
            start = max(self.free_at.value, time.time())
            self.free_at.value = start + size / self.rate
            until = self.free_at.value
        time.sleep(max(0.0, until - time.time()))


class FromLink(torch.utils.data.Dataset):
    def __init__(self, dataset, sample_bytes):
        self.dataset, self.sample_bytes = dataset, sample_bytes
        self.link = Link($link_rate) if $link_rate > 0 else None

    def __len__(self):
        return len(self.dataset)

    def __getitem__(self, index):
        if self.link is not None:
            self.link.transfer(self.sample_bytes)
        return self.dataset[index]
'''

LOCKED = '''
lock = multiprocessing.Lock()


class OneAtATime(torch.utils.data.Dataset):
    """The reader underneath is not thread-safe, so somebody put a lock around it that all workers share."""

    def __init__(self, dataset):
        self.dataset = dataset

    def __len__(self):
        return len(self.dataset)

    def __getitem__(self, index):
        if $use_lock:
            with lock:
                time.sleep($hold)
        return self.dataset[index]
'''


def wrapped(source: Piece, wrapper: str, use: str, imports: tuple[str, ...] = ()) -> Piece:
    joined = "\n\n".join(text.strip("\n") for text in (wrapper, source.text) if text)
    return Piece("\n" + joined, use.replace("DATASET", source.use), (*source.imports, *imports, "import time"))


def slow_reads(rng: random.Random, name: str) -> Case:
    kind = rng.choice(("image", "flat", "tokens"))
    latency = rng.choice([0.003, 0.005])
    plan = Plan(
        cause="storage-latency",
        about="each sample is fetched over a slow link, with a delay that workers could overlap",
        model=models.any_model(rng, kind, 1.0),
        data=wrapped(data.cheap(rng, kind if kind in data.SHAPES else "flat"), SLOW_READS, "Remote(DATASET, $latency)"),
        batch_size=16,
        num_workers=rng.choice([0, 0, 1]),
        settings={"latency": latency},
        changes={"storage": {"latency": 0.0}},
        cure={"latency": 0.0},
    )
    if kind not in data.SHAPES:
        plan.model = models.any_model(rng, "flat", 1.0)
    return compose(rng, name, plan)


def narrow_link(rng: random.Random, name: str) -> Case:
    rate = rng.choice([8e6, 12e6])
    plan = Plan(
        cause="storage",
        about="all workers read through one link whose bandwidth is the limit: more of them do not help",
        model=models.any_model(rng, "image", 0.7),
        data=wrapped(data.cheap(rng, "image"), SHARED_LINK, "FromLink(DATASET, 49152)", ("import multiprocessing",)),
        batch_size=8,
        num_workers=rng.choice([1, 2]),
        settings={"link_rate": rate},
        changes={"storage": {"link_rate": 0.0}},
        cure={"link_rate": 0.0},
    )
    return compose(rng, name, plan)


def locked(rng: random.Random, name: str) -> Case:
    kind = rng.choice(("flat", "series"))
    plan = Plan(
        cause="blocked",
        about="a lock that all workers share makes __getitem__ wait: neither workers nor disks help",
        model=models.any_model(rng, kind, 1.0),
        data=wrapped(data.cheap(rng, kind), LOCKED, "OneAtATime(DATASET)", ("import multiprocessing",)),
        batch_size=16,
        num_workers=2,
        settings={"use_lock": True, "hold": rng.choice([0.002, 0.003])},
        changes={"blocked": {"use_lock": False}},
        cure={"use_lock": False},
    )
    return compose(rng, name, plan)


PAD_SLOWLY = """
def pad(samples):
    longest = max(len(tokens) for tokens, _ in samples)
    batch = torch.zeros(len(samples), longest, dtype=torch.long)
    for row, (tokens, _) in enumerate(samples):
        if $pad_fast:
            batch[row, : len(tokens)] = torch.tensor(tokens)
        else:
            for column, token in enumerate(tokens):
                batch[row, column] = token
    return batch, torch.tensor([label for _, label in samples])
"""

PAD_REMOTELY = """
def collate_with_service(samples):
    # The tokeniser is a service; its client sends one request per batch.
    time.sleep($service_delay)
    rows = torch.nn.utils.rnn.pad_sequence([torch.tensor(tokens) for tokens, _ in samples], batch_first=True)
    return rows, torch.tensor([label for _, label in samples])
"""


def slow_collate(rng: random.Random, name: str) -> Case:
    plan = Plan(
        cause="collate",
        about="the collate function copies tokens one by one",
        model=models.bag_of_words(rng, 1.0),
        data=data.ragged_text(rng),
        batch_size=rng.choice([8, 16]),
        num_workers=rng.choice([0, 1]),
        collate=Piece(PAD_SLOWLY, "pad"),
        settings={"pad_fast": False},
        changes={"collate": {"pad_fast": True}},
        cure={"pad_fast": True},
    )
    return compose(rng, name, plan)


def blocked_collate(rng: random.Random, name: str) -> Case:
    plan = Plan(
        cause="blocked-collate",
        about="the collate function waits for a service: nothing to vectorise",
        model=models.bag_of_words(rng, 1.0),
        data=data.ragged_text(rng),
        batch_size=16,
        num_workers=rng.choice([0, 1]),
        collate=Piece(PAD_REMOTELY, "collate_with_service", ("import time",)),
        settings={"service_delay": rng.choice([0.06, 0.1])},
        changes={"blocked": {"service_delay": 0.0}},
        cure={"service_delay": 0.0},
    )
    return compose(rng, name, plan)


SLOW_SAMPLE = '''
class WithOutliers(torch.utils.data.Dataset):
    """A few samples are huge scans that are scaled down on the fly."""

    def __init__(self, dataset):
        self.dataset = dataset
        self.scan = np.random.default_rng(0).integers(0, 256, (2400, 3000, 3), dtype=np.uint8)

    def __len__(self):
        return len(self.dataset)

    def __getitem__(self, index):
        if index % $outlier_every == 7 and not $outliers_fixed:
            Image.fromarray(self.scan).resize((64, 64), Image.LANCZOS).rotate(3)
            Image.fromarray(self.scan).filter(ImageFilter.BoxBlur(2))
        return self.dataset[index]
'''


def slow_samples(rng: random.Random, name: str) -> Case:
    plan = Plan(
        cause="slow-sample",
        about="one sample in some dozens takes a hundred times as long as the others",
        model=models.any_model(rng, "image", 0.7),
        data=wrapped(
            data.arrays(rng, "image", 2),
            SLOW_SAMPLE,
            "WithOutliers(DATASET)",
            ("import numpy as np", "from PIL import Image, ImageFilter"),
        ),
        batch_size=8,
        num_workers=1,
        shuffle=rng.random() < 0.5,
        settings={"outlier_every": rng.choice([41, 67]), "outliers_fixed": False},
        changes={"slow-sample": {"outliers_fixed": True}},
        cure={"outliers_fixed": True},
        head="torch.set_num_threads(1)",
    )
    return compose(rng, name, plan)


def short_epochs(rng: random.Random, name: str) -> Case:
    kind = rng.choice(("image", "series"))
    batch = batch_size(rng, kind)
    workers = rng.choice([1, 2])
    plan = Plan(
        cause="epoch-start",
        about="epochs of a dozen batches: each starts its workers anew",
        model=models.any_model(rng, kind, 0.7),
        data=data.cheap(rng, kind),
        batch_size=batch,
        num_workers=workers,
        length=batch * rng.choice([10, 15]),
        loader_options="persistent_workers=$persistent_workers and $num_workers > 0",
        settings={"persistent_workers": False},
        changes={"persistent-workers": {"persistent_workers": True}},
        cure={"persistent_workers": True},
        loop=rng.choice((loops.plain, loops.with_functions, loops.trainer_class)),
    )
    return compose(rng, name, plan)


def many_workers(rng: random.Random, name: str) -> Case:
    kind = rng.choice(("image", "flat"))
    batch = batch_size(rng, kind)
    plan = Plan(
        cause="worker-overcommit",
        about="a dozen workers for a small dataset of short epochs",
        model=models.any_model(rng, kind, 1.0),
        data=data.cheap(rng, kind),
        batch_size=batch,
        num_workers=rng.choice([8, 12]),
        length=batch * 20,
        cure={"num_workers": 0},
        loop=rng.choice((loops.plain, loops.with_functions, loops.trainer_class)),
    )
    return compose(rng, name, plan)
