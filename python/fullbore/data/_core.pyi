"""The engine of fullbore.data. Use fullbore.data: the names in this module may change."""

from collections.abc import Callable
from typing import Any

class Batch:
    """A finished batch; its memory returns to the pool with the last array that uses it."""

    rows: int
    epoch: int
    index: int
    ids: list[int]
    valid: list[bool]
    def fields(self) -> list[tuple[str, Any]]:
        """(name, array with DLPack and the buffer protocol | list[str] | list[bytes]) of each field, without a copy."""

class Loader:
    samples: int
    batches_per_epoch: int
    class_names: list[str]
    def next(self) -> Batch | None:
        """Releases the interpreter while it waits; None at the end of the epoch. Ctrl-C ends the wait."""
    def set_stream(self, stream: int) -> None:
        """The handle of the CUDA stream that the script queues its work on; call it before `next`."""
    def set_epoch(self, epoch: int) -> None: ...
    def state(self) -> str: ...
    def restore(self, state: str) -> None: ...
    def stop(self) -> None: ...
    def close(self) -> None: ...
    def stats(self) -> dict[str, Any]: ...
    def take_messages(self) -> list[tuple[int, str]]: ...
    def bad_samples(self) -> list[tuple[int, int, str, str]]: ...

def open(options: str, function: Callable[..., str | None] | None, cuda_device: int) -> Loader:
    """cuda_device: the device whose memory the batches go to; -1: host memory."""

def allow_no_more_calls() -> None:
    """From now on, calls of map= and calls for batches fail."""

def mask_urls(text: str) -> str:
    """The text with the credentials and queries of its URLs masked."""

def await_calls(patience_s: float) -> bool: ...
