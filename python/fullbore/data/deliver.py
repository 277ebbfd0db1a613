"""Turns the engine's arrays into what the training loop gets: the same memory, never a copy."""

from __future__ import annotations

import collections
import importlib.util
import keyword
import re
from typing import Any, Callable

from .errors import argument

Convert = Callable[[Any], Any]


def converter(as_numpy: bool, device: Any, dtype: str, already_there: bool) -> Convert:
    """To torch tensors if torch is installed, else numpy arrays, else memoryviews."""
    with_torch = not as_numpy and importlib.util.find_spec("torch") is not None
    if dtype == "bfloat16" and not with_torch:
        raise argument("dtype='bfloat16' needs torch", "use float16 or float32 with numpy")
    if with_torch:
        import torch.utils.dlpack  # now, rather than while waiting for the first batch

        if device is not None:
            try:
                torch.device(device)
            except (RuntimeError, TypeError):
                raise argument(f"torch does not know device={device!r}", "such as 'cuda', 'cuda:1' or 'cpu'") from None
        return to_torch if device is None or already_there else to_device(device)
    if device is not None:
        raise argument(f"device={device!r} needs torch", "without it, batches are delivered in host memory")
    return to_numpy if importlib.util.find_spec("numpy") is not None else memoryview


def to_torch(array: Any) -> Any:
    import torch.utils.dlpack

    try:
        return torch.utils.dlpack.from_dlpack(array)
    except (RuntimeError, TypeError, BufferError):  # a type that this torch or its DLPack lacks: bool, uint16
        view = to_numpy(array)
        return torch.from_numpy(view.astype("int32") if view.dtype == "uint16" else view)


def cuda_ordinal(device: Any) -> int | None:
    """The index of the CUDA device that "cuda", "cuda:1" or a torch.device names; None for any other device."""
    if not str(device).startswith("cuda") or importlib.util.find_spec("torch") is None:
        return None
    import torch

    if not torch.cuda.is_available():
        raise argument(f"device={str(device)!r}: torch sees no CUDA device", "leave device out to stay in host memory")
    index = torch.device(device).index
    return torch.cuda.current_device() if index is None else index


def current_stream(ordinal: int) -> int:
    """The handle of the CUDA stream on which the script currently queues its work."""
    import torch

    return torch.cuda.current_stream(ordinal).cuda_stream


def to_device(device: Any) -> Convert:
    """For devices whose memory the engine does not fill itself."""

    def convert(array: Any) -> Any:
        return to_torch(array).to(device, non_blocking=True)

    return convert


def to_numpy(array: Any) -> Any:
    import numpy

    return numpy.asarray(array)


def batch_maker(names: list[str]) -> Callable[[list[Any]], Any]:
    """One field: the field itself. Two: a tuple. More: a named tuple that also supports batch["name"]."""
    if len(names) == 1:
        return lambda values: values[0]
    if len(names) == 2:
        return tuple
    made = named_batch(names)
    return lambda values: made(*values)


def named_batch(names: list[str]) -> Any:
    # A field "jpg;png" is the first of these extensions that a sample has.
    attributes = [re.sub(r"\W", "_", name.split(";")[0]) for name in names]
    attributes = [name + "_" if keyword.iskeyword(name) else name for name in attributes]
    plain = collections.namedtuple("Batch", attributes, rename=True)  # type: ignore[misc]
    positions = {name: position for position, name in enumerate(names)}

    class Batch(plain):  # type: ignore[misc, valid-type]
        __slots__ = ()

        def __getitem__(self, key: Any) -> Any:
            return tuple.__getitem__(self, positions[key] if isinstance(key, str) else key)

    return Batch
