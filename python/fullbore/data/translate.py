"""`from_torch`: translates a torch DataLoader over torchvision's ImageFolder, or says precisely why it cannot.

Everything is recognised by the module and name of its class, so nothing is imported that the user does not have. What
is known is carried over by value; everything that is not known is refused by name, all at once: a loader that is
almost the same would be worse than none.
"""

from __future__ import annotations

import os
import sys
from dataclasses import dataclass, field
from typing import Any, Callable

from . import transforms as ours
from .errors import LoaderError, NotTranslatable
from .loader import Loader
from .sources import FileList

OWN_LOADER = "or write the loader with fullbore.data.ImageFolder, and pass your own code as map="
MAX_SHOWN = 100  # characters of a transform in a reason; timm's RandAugment fills a page
DECODED = (".jpg", ".jpeg", ".png", ".webp")


@dataclass
class Translation:
    """What a DataLoader was found to do."""

    samples: list[tuple[str, int]] = field(default_factory=list)
    classes: list[str] = field(default_factory=list)
    steps: list[tuple[Any, ours.Transform | None]] = field(default_factory=list)  # (theirs, ours), in order
    read: Any = None  # the dataset's own function: path -> PIL image
    options: dict[str, Any] = field(default_factory=dict)
    reasons: list[str] = field(default_factory=list)

    def refuse(self, reason: str) -> None:
        self.reasons.append(reason)

    def transforms(self) -> list[ours.Transform]:
        return [made for _, made in self.steps if made is not None]

    def open(self, **options: Any) -> Loader:
        return FileList(self.samples, self.transforms(), classes=self.classes, **{**self.options, **options})


def from_torch(dataloader: Any, **options: Any) -> Loader:
    """A loader that gives the same as `dataloader`: samples, labels, transforms, batches and share of ranks.

    dataloader: a torch DataLoader over torchvision's ImageFolder, DatasetFolder or ImageNet (or a Subset of one) with
    torchvision's or timm's transforms, a sequential, random or distributed sampler, and the default collate function.
    options: further options of Loader (threads=, progress=, seed=, ...).

    The random order and the random crops are different draws from the same distribution. With a DistributedSampler
    call set_epoch on the loader. `worker_init_fn`, `num_workers` and `prefetch_factor` have no effect.

    Raises NotTranslatable, whose `reasons` say what is in the way, each by name and with a remedy.
    """
    found = understand(dataloader)
    loader = found.open(**options)
    if "batch_size" not in options and len(loader) != len(dataloader):
        mine, theirs = len(loader), len(dataloader)
        loader.close()
        raise NotTranslatable(
            [f"{named(dataloader)} has {theirs} batches per epoch, the equivalent loader {mine}: use drop_last=False"]
        )
    return loader


def understand(dataloader: Any, most: int | None = None) -> Translation:
    """Raises NotTranslatable with all reasons. most: of this many samples only, spread evenly over the dataset."""
    found = Translation()
    if not is_a(dataloader, "torch.utils.data.dataloader", "DataLoader"):
        raise NotTranslatable([f"{named(dataloader)} is not a torch.utils.data.DataLoader: pass one"])
    read_dataloader(dataloader, found)
    indices = read_sampler(dataloader, found)
    read_dataset(dataloader.dataset, indices, most, found)
    if found.reasons:
        raise NotTranslatable(found.reasons)
    return found


# --- Recognising classes


def is_a(value: Any, module: str, name: str) -> bool:
    """By the names of its class and base classes; `module` may be a parent package."""
    return base_named(value, module, name) is not None


def base_named(value: Any, module: str, name: str) -> type | None:
    for base in type(value).__mro__:
        if base.__name__ == name and (base.__module__ + ".").startswith(module + "."):
            return base
    return None


def is_exactly(value: Any, module: str, name: str) -> bool:
    kind = type(value)
    return kind.__name__ == name and (kind.__module__ + ".").startswith(module + ".")


def named(value: Any) -> str:
    """For example "MyDataset (train.data)": enough to find it in the script."""
    kind = value if callable(value) and hasattr(value, "__qualname__") else type(value)
    return f"{kind.__qualname__} ({kind.__module__})"


# --- The DataLoader and its sampler


def read_dataloader(dataloader: Any, found: Translation) -> None:
    base: Any = base_named(dataloader, "torch.utils.data.dataloader", "DataLoader")
    if type(dataloader).__iter__ is not base.__iter__:
        found.refuse(f"{named(dataloader)} overrides how it iterates: pass a plain DataLoader")
    batch_sampler = dataloader.batch_sampler
    if batch_sampler is None:
        found.refuse("the DataLoader does not make batches (batch_size=None): give it a batch_size")
    elif not is_exactly(batch_sampler, "torch.utils.data", "BatchSampler"):
        found.refuse(f"batch_sampler={named(batch_sampler)} is not known: use batch_size= and sampler=")
    else:
        found.options.update(batch_size=batch_sampler.batch_size, drop_last=batch_sampler.drop_last)
    collate = dataloader.collate_fn
    if batch_sampler is None:
        return  # its collate function handles single samples
    if getattr(collate, "__name__", "") != "default_collate" or not collate.__module__.startswith("torch.utils.data"):
        found.refuse(f"collate_fn={named(collate)} is not the default one: leave it out, {OWN_LOADER}")


def read_sampler(dataloader: Any, found: Translation) -> list[int] | None:
    """Records the order and this rank's share. Returns the indices of the dataset that it visits, or None for all."""
    sampler = getattr(dataloader.batch_sampler, "sampler", dataloader.sampler)
    found.options.update(rank=0, world_size=1, seed=seed_of(dataloader, sampler))
    size = len(dataloader.dataset) if hasattr(dataloader.dataset, "__len__") else -1
    if is_exactly(sampler, "torch.utils.data", "SequentialSampler"):
        found.options["shuffle"] = False
    elif is_exactly(sampler, "torch.utils.data", "RandomSampler"):
        found.options["shuffle"] = True
        if sampler.replacement or sampler.num_samples != size:
            found.refuse(
                f"RandomSampler(replacement={sampler.replacement}, num_samples={sampler.num_samples}) does not visit "
                "every sample once: use shuffle=True"
            )
    elif is_exactly(sampler, "torch.utils.data", "SubsetRandomSampler"):
        found.options["shuffle"] = True
        return [int(index) for index in sampler.indices]
    elif is_exactly(sampler, "torch.utils.data", "DistributedSampler"):
        found.options.update(shuffle=sampler.shuffle, seed=sampler.seed)
        found.options.update(rank=sampler.rank, world_size=sampler.num_replicas)
        if sampler.drop_last and size % sampler.num_replicas:
            found.refuse(
                f"DistributedSampler(drop_last=True) leaves out {size % sampler.num_replicas} of {size} samples: use "
                "drop_last=False"
            )
    else:
        found.refuse(
            f"sampler={named(sampler)} is not known: use shuffle=True, a DistributedSampler or a SubsetRandomSampler"
        )
    return None


def seed_of(dataloader: Any, sampler: Any) -> int:
    generator = getattr(sampler, "generator", None) or dataloader.generator
    torch = sys.modules["torch"]
    return int(generator.initial_seed() if generator is not None else torch.initial_seed()) % (1 << 64)


# --- The dataset


def read_dataset(dataset: Any, indices: list[int] | None, most: int | None, found: Translation) -> None:
    while is_exactly(dataset, "torch.utils.data", "Subset"):
        chosen = [int(index) for index in dataset.indices]
        indices = chosen if indices is None else [chosen[index] for index in indices]
        dataset = dataset.dataset
    base: Any = base_named(dataset, "torchvision.datasets", "DatasetFolder")
    if base is None:
        found.refuse(f"dataset={named(dataset)} is not torchvision's ImageFolder: put the files into one, {OWN_LOADER}")
        return
    if type(dataset).__getitem__ is not base.__getitem__:
        found.refuse(f"dataset={named(dataset)} overrides __getitem__: use ImageFolder itself, {OWN_LOADER}")
    if getattr(dataset, "target_transform", None) is not None:
        found.refuse(f"target_transform={named(dataset.target_transform)} changes labels: rename the directories")
    read_image_loader(dataset.loader, found)
    if most is not None:
        every = range(len(dataset.samples)) if indices is None else indices
        indices = list(every[:: max(1, len(every) // most)])[:most]
    samples = dataset.samples if indices is None else [dataset.samples[index] for index in indices]
    found.samples = [(os.fspath(path), int(label)) for path, label in samples]
    found.classes = list(dataset.classes)
    for path, _ in found.samples:
        if not path.lower().endswith(DECODED):
            found.refuse(f"{path} is not {', '.join(DECODED)}: convert it")
            break
    if not found.samples:
        found.refuse(f"dataset={named(dataset)} is empty: check its root, {dataset.root!r}")
    read_transform(dataset.transform, found)


def read_image_loader(loader: Any, found: Translation) -> None:
    module, name = getattr(loader, "__module__", ""), getattr(loader, "__name__", "")
    torchvision = sys.modules.get("torchvision")
    backend = torchvision.get_image_backend() if torchvision is not None else "PIL"
    if module != "torchvision.datasets.folder" or name not in ("default_loader", "pil_loader"):
        found.refuse(f"loader={named(loader)} is not torchvision's own: leave loader= out, {OWN_LOADER}")
    elif name == "default_loader" and backend != "PIL":
        found.refuse(f"torchvision's image backend is {backend!r}, whose pixels differ: use set_image_backend('PIL')")
    found.read = loader


# --- The transforms


class Chain:
    """What the images are so far, while going through the transforms."""

    def __init__(self) -> None:
        self.tensor = False  # after ToTensor
        self.dtype = "uint8"
        self.normalized = False


def read_transform(transform: Any, found: Translation) -> None:
    chain = Chain()
    for theirs in unrolled(transform):
        name = type(theirs).__name__
        read = KNOWN.get(name)
        if read is None or not type(theirs).__module__.startswith(("torchvision.transforms", "timm.data", "torch.nn")):
            found.refuse(f"transform {described(theirs)} is not known: remove it, {OWN_LOADER}")
            continue
        try:
            step = (theirs, read(theirs, chain))
        except (Refused, LoaderError) as refused:
            found.refuse(f"transform {described(theirs)}: {refused}".replace("\nhint: ", "; "))
            continue
        if chain.normalized and name == "RandomHorizontalFlip":
            found.steps.insert(len(found.steps) - 1, step)  # a flip is the same before Normalize
        else:
            found.steps.append(step)
    if not chain.tensor:
        found.refuse("the transforms do not end with a tensor: add ToTensor()")
    if chain.dtype not in ("uint8", "float32", "float16", "bfloat16"):
        found.refuse(f"images of type {chain.dtype} are not supported: use float32")
    found.options["dtype"] = chain.dtype


class Refused(Exception):
    """Why one transform cannot be carried over."""


def unrolled(transform: Any) -> list[Any]:
    if transform is None:
        return []
    if type(transform).__name__ in ("Compose", "Sequential"):
        children = getattr(transform, "transforms", None)
        return [step for child in (transform if children is None else children) for step in unrolled(child)]
    return [transform]


def described(transform: Any) -> str:
    try:
        text = " ".join(repr(transform).split())
    except Exception:  # a class of the script whose __repr__ needs other attributes
        return named(transform)
    return named(transform) if " at 0x" in text or len(text) > MAX_SHOWN else text


def before_normalize(chain: Chain) -> None:
    if chain.normalized:
        raise Refused("it comes after Normalize: move it before")


def resampled(theirs: Any, chain: Chain) -> None:
    """Pillow always antialiases when it resamples, tensors only on request."""
    before_normalize(chain)
    if chain.tensor and getattr(theirs, "antialias", None) is not True:
        raise Refused("it resamples tensors without antialiasing: move it before ToTensor, or set antialias=True")


def resize(theirs: Any, chain: Chain) -> ours.Transform:
    resampled(theirs, chain)
    return ours.Resize(theirs.size, theirs.interpolation, getattr(theirs, "max_size", None))


def center_crop(theirs: Any, chain: Chain) -> ours.Transform:
    before_normalize(chain)
    return ours.CenterCrop(theirs.size)


def random_resized_crop(theirs: Any, chain: Chain) -> ours.Transform:
    resampled(theirs, chain)
    if isinstance(theirs.interpolation, (tuple, list)):
        raise Refused("it draws the interpolation at random: choose one, as in interpolation='bicubic'")
    return ours.RandomResizedCrop(theirs.size, theirs.scale, theirs.ratio, theirs.interpolation)


def flip(theirs: Any, chain: Chain) -> ours.Transform:
    return ours.RandomHorizontalFlip(theirs.p)


def color_jitter(theirs: Any, chain: Chain) -> ours.Transform:
    before_normalize(chain)
    return ours.ColorJitter(theirs.brightness, theirs.contrast, theirs.saturation, theirs.hue)


def rotation(theirs: Any, chain: Chain) -> ours.Transform:
    before_normalize(chain)
    fill = theirs.fill
    if isinstance(fill, dict):
        raise Refused("its fill differs by type: give one number")
    if theirs.expand or theirs.center is not None:
        raise Refused("expand and center are not supported: leave them out")
    if chain.tensor and chain.dtype != "uint8" and fill not in (0, None):
        raise Refused("it fills tensors: move it before ToTensor")
    return ours.RandomRotation(theirs.degrees, theirs.interpolation, fill or 0)


def to_tensor(theirs: Any, chain: Chain) -> None:
    chain.tensor = True
    chain.dtype = "float32"


def to_image(theirs: Any, chain: Chain) -> None:
    chain.tensor = True


def to_dtype(theirs: Any, chain: Chain) -> None:
    wanted = str(theirs.dtype).replace("torch.", "")
    if not chain.tensor:
        raise Refused("it comes before the image is a tensor: move it after ToImage or PILToTensor")
    if chain.dtype == "uint8" and wanted != "uint8" and getattr(theirs, "scale", True) is not True:
        raise Refused("floating-point values from 0 to 255 are not supported: set scale=True")
    if chain.normalized:
        raise Refused("it comes after Normalize: move it before")
    chain.dtype = wanted


def normalize(theirs: Any, chain: Chain) -> ours.Transform:
    before_normalize(chain)
    if not chain.tensor or chain.dtype == "uint8":
        raise Refused("it comes before the image is a floating-point tensor: move it after ToTensor")
    chain.normalized = True
    return ours.Normalize([float(part) for part in theirs.mean], [float(part) for part in theirs.std])


def nothing(theirs: Any, chain: Chain) -> None:
    return None


KNOWN: dict[str, Callable[[Any, Chain], ours.Transform | None]] = {
    "Resize": resize,
    "CenterCrop": center_crop,
    "RandomResizedCrop": random_resized_crop,
    "RandomResizedCropAndInterpolation": random_resized_crop,  # timm's
    "RandomHorizontalFlip": flip,
    "ColorJitter": color_jitter,
    "RandomRotation": rotation,
    "ToTensor": to_tensor,
    "MaybeToTensor": to_tensor,  # timm's
    "PILToTensor": to_image,
    "MaybePILToTensor": to_image,  # timm's
    "ToImage": to_image,
    "ToImageTensor": to_image,  # v2 before 0.16
    "ConvertImageDtype": to_dtype,
    "ToDtype": to_dtype,
    "Normalize": normalize,
    "Identity": nothing,
}
