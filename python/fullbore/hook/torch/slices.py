"""Whether the samples of a loader are slices of tensors or arrays that lie in memory already.

A whole batch of them is one indexing operation; sample by sample, Python makes an object for each field of each sample.
It is told from the first batch that torch's own function puts together in the training's process: the same field of two
samples lies in the same memory. Nothing of the script's is called, and no data is read.
"""

from __future__ import annotations

import sys
from typing import Any, Callable

from ..core.interrupts import is_the_scripts
from ..core.runtime import guarded, hook

FACT, MAPPED = "slices", "slices of a file"
IN_MEMORY = (b"/dev/", b"/memfd:", b"/SYSV", b"/anon_hugepage")  # how the kernel names what is no file on a disk
MOST = 16  # loaders, and fields of a sample

Collate = Callable[[Any], Any]


def looking_first(fetcher: Any, collate: Collate, timed: Collate) -> Collate:
    """A collate function for one batch, after which `timed` takes its place."""

    def first(samples: Any) -> Any:
        fetcher.collate_fn = timed
        look(samples)
        return collate(samples)

    return first


@guarded
def look(samples: Any) -> None:
    """For each loader of slices, as a fact: how many fields a sample has, and their bytes."""
    if not hook.on or hook.is_worker:
        return
    known = hook.facts.get(FACT, {})
    loader = str(hook.here().loader)
    if loader in known or len(known) >= MOST or f"{MAPPED} {loader}" in hook.said:
        return
    size = size_of_slices(samples)
    if size is None:
        return
    if is_a_file_mapped_at({address_of(field) for field in fields_of(samples[0]) if not is_number(field)}):
        hook.said.add(f"{MAPPED} {loader}")  # looked up once
    else:
        hook.fact(FACT, {**known, loader: {"fields": size[0], "bytes": size[1]}})


def size_of_slices(samples: Any) -> tuple[int, int] | None:
    """Fields and bytes of a sample; None where the samples are not slices."""
    if not isinstance(samples, list) or len(samples) < 2:
        return None
    fields, others = fields_of(samples[0]), fields_of(samples[-1])
    if not fields or len(fields) != len(others):
        return None
    slices = size = 0
    for one, other in zip(fields, others):
        if is_number(one):  # a label out of a list
            continue
        memory = memory_of(one)
        if memory is None or memory != memory_of(other):
            return None
        slices += 1
        size += int(one.nbytes)
    return (len(fields), size) if slices else None


def fields_of(sample: Any) -> list[Any]:
    if type(sample) is dict:
        fields = list(sample.values())
    elif isinstance(sample, (tuple, list)):
        fields = list(sample)
    else:
        fields = [sample]
    return fields if len(fields) <= MOST else []


def is_number(value: Any) -> bool:
    numpy = sys.modules.get("numpy")
    return type(value) in (int, float, bool) or (numpy is not None and isinstance(value, numpy.number))


def memory_of(value: Any) -> int | None:
    """What names the memory that a slice lies in; None of what has memory of its own, or is something else."""
    torch, numpy = sys.modules["torch"], sys.modules.get("numpy")
    if type(value) is torch.Tensor and value.layout is torch.strided:
        of_torch_2 = getattr(value, "untyped_storage", None)
        if of_torch_2 is None:
            return None
        storage = of_torch_2()
        return int(storage.data_ptr()) if storage.nbytes() > value.nbytes else None
    if numpy is not None and type(value) is numpy.ndarray:
        return None if value.base is None else id(value.base)
    return None


def address_of(value: Any) -> int:
    """Of a slice: of a tensor, or an array."""
    return int(value.data_ptr() if hasattr(value, "data_ptr") else value.__array_interface__["data"][0])


def is_a_file_mapped_at(addresses: set[int]) -> bool:
    """At one of them; also where that cannot be told. What lies below /dev is memory: shared, or a device's."""
    try:
        with open("/proc/self/maps", "rb") as maps:
            for line in maps:
                place, *_, name = line.split(None, 5)  # without a name, the last is the inode's number
                if name.startswith(b"/") and not name.startswith(IN_MEMORY):
                    begin, end = (int(text, 16) for text in place.split(b"-"))
                    if any(begin <= address < end for address in addresses):
                        return True
        return False
    except (OSError, ValueError) as error:
        if is_the_scripts(error):
            raise
        return True
