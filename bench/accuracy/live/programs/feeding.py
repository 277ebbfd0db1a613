"""Programs that feed their steps by other means than a loader over samples by number, and one with torchvision's."""

from __future__ import annotations

import random

from ..case import Case
from . import data, loops, models
from .compose import Plan, compose
from .loading import DECODED, SLOW_READS, batch_size, wrapped
from .pieces import Piece

STREAM = """
class Stream(IterableDataset):
    def __init__(self, source):
        self.source = source

    def __iter__(self):
        info = get_worker_info()
        first, stride = (0, 1) if info is None else (info.id, info.num_workers)
        for index in range(first, len(self.source), stride):
            yield self.source[index]
"""


def stream(rng: random.Random, name: str) -> Case:
    kind = rng.choice(("tokens", "tokens", "image", "series"))
    source = data.text(rng, "tokens", 600) if kind == "tokens" else data.costly(rng, kind)
    iterable = Piece(
        source.text + "\n\n\n" + STREAM.strip("\n"),
        f"Stream({source.use})",
        (*source.imports, "from torch.utils.data import IterableDataset, get_worker_info"),
    )
    plan = Plan(
        cause="no-workers",
        about="an IterableDataset that tokenises or decodes in the training thread",
        model=models.any_model(rng, kind, 0.7),
        data=iterable,
        batch_size=batch_size(rng, kind),
        shuffle=False,
        cure={"num_workers": 2},
    )
    return compose(rng, name, plan)


GENERATOR = """
def batches(dataset, size):
    order = list(range(len(dataset)))
    random.shuffle(order)
    for begin in range(0, len(order) - size, size):
        samples = [dataset[i] for i in order[begin : begin + size]]
        yield torch.stack([s[0] for s in samples]), torch.tensor([s[1] for s in samples])


class Stream(IterableDataset):
    def __init__(self, dataset):
        self.dataset = dataset

    def __iter__(self):
        return batches(self.dataset, $batch_size)


class Epochs:
    def __init__(self, dataset, workers):
        self.stream, self.workers = Stream(dataset), workers

    def __iter__(self):
        if self.workers:
            return iter(DataLoader(self.stream, batch_size=None, num_workers=self.workers))
        return iter(self.stream)
"""


def generator(rng: random.Random, name: str) -> Case:
    kind = rng.choice(DECODED)
    source = data.costly(rng, kind)
    imports = (*source.imports, "import random", "from torch.utils.data import DataLoader, IterableDataset")
    plan = Plan(
        cause="own-loader",
        about="a plain generator prepares each batch inside the loop; there is no DataLoader",
        model=models.any_model(rng, kind, 0.7),
        data=Piece(source.text + "\n\n\n" + GENERATOR.strip("\n"), source.use, imports),
        batch_size=batch_size(rng, kind),
        length=4000,
        loader=f"Epochs({source.use}, $workers)",
        settings={"workers": 0},
        changes={"behind-loader": {"workers": 1}},
        cure={"workers": 1},
        loop=loops.iterations,
    )
    return compose(rng, name, plan)


QUEUE_THREAD = """
class Prefetcher:
    \"\"\"Threads, or processes, that prepare batches and put them into a queue.\"\"\"

    def __init__(self, dataset, size, depth=4):
        self.dataset, self.size = dataset, size
        self.queue = multiprocessing.Queue(depth) if $processes else queue.Queue(maxsize=depth)
        make = multiprocessing.Process if $processes else threading.Thread
        for _ in range($producers):
            make(target=self.work, daemon=True).start()

    def work(self):
        if $processes:
            torch.set_num_threads(1)
        position = 0
        while True:
            samples = [self.dataset[(position + i) % len(self.dataset)] for i in range(self.size)]
            position += self.size
            self.queue.put((torch.stack([s[0] for s in samples]), torch.tensor([s[1] for s in samples])))

    def __iter__(self):
        while True:
            yield self.queue.get()
"""


def queue_thread(rng: random.Random, name: str) -> Case:
    kind = rng.choice(("image", "flat", "tokens"))
    slow = kind != "image" and rng.random() < 0.5
    source = data.cheap(rng, "flat") if slow else data.costly(rng, kind)
    # The advice: threads where they wait, processes where they compute.
    settings, cure = {"producers": 1, "processes": 0}, {"producers": 1, "processes": 1}
    changes = {"more-producers": cure}
    if slow:
        kind = "flat"
        source = wrapped(source, SLOW_READS, "Remote(DATASET, $latency)")
        settings["latency"], cure = rng.choice([0.002, 0.004]), {"latency": 0.0}
        changes = {"storage": cure, "more-producers": {"producers": 4}}
    plan = Plan(
        cause="own-loader",
        about="an own loader thread with a queue, which runs dry",
        model=models.any_model(rng, kind, 0.5),
        data=Piece(
            source.text + "\n\n\n" + QUEUE_THREAD.strip("\n"),
            source.use,
            (*source.imports, "import queue", "import threading", "from torch import multiprocessing"),
        ),
        batch_size=16 if slow else batch_size(rng, kind),
        loader=f"Prefetcher({source.use}, $batch_size)",
        settings=settings,
        changes=changes,
        cure=cure,
    )
    return compose(rng, name, plan)


def loader_process(rng: random.Random, name: str) -> Case:
    """The same with a process: what people write who have read about the GIL."""
    process = """
def produce(dataset, size, out, seed):
    torch.set_num_threads(1)
    rng = random.Random(seed)
    while True:
        samples = [dataset[rng.randrange(len(dataset))] for _ in range(size)]
        out.put((torch.stack([s[0] for s in samples]), torch.tensor([s[1] for s in samples])))


class ProcessLoader:
    def __init__(self, dataset, size):
        self.queue = multiprocessing.Queue(4)
        for seed in range($producers):
            multiprocessing.Process(target=produce, args=(dataset, size, self.queue, seed), daemon=True).start()

    def __iter__(self):
        while True:
            yield self.queue.get()
"""
    source = data.costly(rng, "image")
    imports = (*source.imports, "import random", "from torch import multiprocessing")
    plan = Plan(
        cause="own-loader",
        about="an own loader process with a queue, which runs dry",
        model=models.any_model(rng, "image", 0.5),
        data=Piece(source.text + "\n\n\n" + process.strip("\n"), source.use, imports),
        batch_size=16,
        loader=f"ProcessLoader({source.use}, $batch_size)",
        settings={"producers": 1},
        changes={"more-producers": {"producers": 2}},
        cure={"producers": 2},
        head="torch.set_num_threads(1)",
        loop=loops.iterations,
    )
    return compose(rng, name, plan)


IMAGE_FOLDER = """
transform = transforms.Compose([
    transforms.RandomResizedCrop(96),
    transforms.RandomHorizontalFlip(),
    transforms.ToTensor(),
    transforms.Normalize([0.485, 0.456, 0.406], [0.229, 0.224, 0.225]),
])


def make_loader():
    dataset = datasets.ImageFolder($data, transform)
    loader = DataLoader(dataset, batch_size=$batch_size, shuffle=True, num_workers=$num_workers)
    if $fast_data:
        import fullbore.data

        loader = fullbore.data.from_torch(loader)
    return loader
"""


def image_folder(rng: random.Random, name: str) -> Case:
    plan = Plan(
        cause="image-folder",
        about="torchvision's ImageFolder with few workers: fullbore.data can take its place",
        model=models.any_model(rng, "image", 1.0),
        data=Piece(IMAGE_FOLDER, "", ("from torchvision import datasets, transforms",)),
        batch_size=16,
        num_workers=rng.choice([0, 1]),
        loader="make_loader()",
        settings={"num_workers": 1, "fast_data": False, "data": "photos"},
        changes={"fast-data": {"fast_data": True}},
        cure={"fast_data": True},
        needs=("torchvision",),
        imports=("from torch.utils.data import DataLoader",),
    )
    plan.settings["num_workers"] = plan.num_workers
    return compose(rng, name, plan)
