"""The engine of fullbore.data. Use fullbore.data; this module's names may change."""

from collections.abc import Callable
from typing import Any

class Batch:
    """A finished batch; its memory returns to the pool with the last array on it."""

    rows: int
    epoch: int
    index: int
    ids: list[int]
    valid: list[bool]
    def fields(self) -> list[tuple[str, Any]]:
        """(name, array with DLPack and the buffer protocol | list[str] | list[bytes]) of each field, uncopied."""

class Loader:
    samples: int
    batches_per_epoch: int
    class_names: list[str]
    pid: int
    def next(self) -> Batch | None:
        """Waits without the interpreter; None at the end of the epoch. Ctrl-C ends the wait."""
    def set_stream(self, stream: int) -> None:
        """The address of the CUDA stream that the script queues its work on, before `next`."""
    def set_epoch(self, epoch: int) -> None: ...
    def state(self) -> str: ...
    def restore(self, state: str) -> None: ...
    def stop(self) -> None: ...
    def close(self) -> None: ...
    def stats(self) -> dict[str, Any]: ...
    def take_messages(self) -> list[tuple[int, str]]: ...
    def bad_samples(self) -> list[tuple[int, int, str, str]]: ...

def open(options: str, function: Callable[..., str | None] | None, cuda_device: int) -> Loader:
    """cuda_device: whose memory the batches land in; -1: the host's."""

def open_process(
    options: str, command: list[str], environment: dict[str, str], stage: bytes, max_restarts: int
) -> Loader: ...
def allow_no_more_calls() -> None:
    """Calls of map=, and for batches, from now on fail."""

def mask_urls(text: str) -> str:
    """The text with the credentials and queries of its URLs masked."""

def await_calls(patience_s: float) -> bool: ...
def serve(fd: int, make_stage: Callable[[bytes], Callable[..., str | None]]) -> None: ...
