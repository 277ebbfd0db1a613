"""A program: everything that decides how its steps run. A cure is another program, with some fields replaced."""

from dataclasses import dataclass, field

from second.layers import Numerics

FIRST_BUCKET = 1 << 20  # torch.distributed's _DEFAULT_FIRST_BUCKET_BYTES


@dataclass(frozen=True)
class Loader:
    """A DataLoader; times are those of one worker alone."""

    workers: int = 4
    batch_ns: float = 1e6  # to read, decode and collate one batch
    sigma: float = 0.12  # drawn: variation between batches
    prefetch: int = 2  # DataLoader's default for each worker
    get_ns: float = 150e3  # drawn: next() with workers: queue and shared memory
    contention: float = 1.0  # workers are this much slower than the main process alone


@dataclass(frozen=True)
class Feed:
    """How a batch comes to the device."""

    batch_bytes: int = 1 << 20
    pinned: bool = True
    blocking: bool = False
    ahead: bool = False  # on a stream of its own, one step ahead
    as_bytes: bool = False  # uint8, converted on the device


@dataclass(frozen=True)
class Exchange:
    """Data parallelism."""

    style: str = (
        "ddp"  # "ddp": buckets behind the backward pass; "after": one by one after it; "flat": in buckets after it
    )
    bucket: float = 25.0  # MB
    half: bool = False  # fp16_compress_hook
    link: float = 100.0  # GB/s, bus bandwidth of a large all-reduce
    latency: float = 15e3  # ns, of the smallest all-reduce
    sms: int = 16  # SMs that NCCL's kernel holds: its channels
    buffers: bool = True  # broadcast_buffers: rank 0's running statistics go to all before each forward pass
    contention: float = 1.05  # a collective takes this much longer beside compute kernels


@dataclass(frozen=True)
class Lag:
    """One rank that is slower than the others, or work that is spread unevenly."""

    kind: str = ""  # "", "host", "device", "loader", "work"
    rank: int = 0
    factor: float = 1.0  # for "work": sigma of a step's work


@dataclass(frozen=True)
class Periodic:
    """Work of every n-th step; every = 0: none."""

    every: int = 0
    batches: int = 0  # validation
    disk: float = 1.0  # checkpoint, GB/s with pickling
    pause: float = 0.0  # garbage collection, ns
    explicit: bool = False  # gc.collect() in the loop
    beside: bool = False  # validation, checkpoint: only a snapshot in the loop


@dataclass(frozen=True)
class Program:
    """One training program on one kind of machine."""

    family: str
    shape: dict
    batch: int
    device: str
    ranks: int = 1
    cpu: float = 1.0  # the host's time as a multiple of a fast core's
    numerics: Numerics = field(default_factory=Numerics)
    scaler: bool = False
    loader: Loader = field(default_factory=Loader)
    feed: Feed = field(default_factory=Feed)
    optimizer: str = "Adam"
    step_style: str = "foreach"  # loop, foreach, fused
    clip: bool = False
    set_to_none: bool = True
    reads: tuple = ()  # places where the host reads a value back: "loss", "norm", or a share of the forward pass
    graphs: bool = False
    compiled: bool = False
    exchange: Exchange = field(default_factory=Exchange)
    accumulate: int = 1
    lag: Lag = field(default_factory=Lag)
    checkpoint: Periodic = field(default_factory=Periodic)
    validation: Periodic = field(default_factory=Periodic)
    collection: Periodic = field(default_factory=Periodic)
    loop_ns: float = 45e3  # the script's own Python in a step, on a fast core: counters, a progress bar
    stall_chance: float = 0.01  # of a step: rare long stalls of the host
    stall_ns: float = 2e6

    @property
    def period(self) -> int:
        """Steps after which everything has come once."""
        result = 1
        for every in (self.checkpoint.every, self.validation.every, self.collection.every, self.accumulate):
            result = max(result, every)
        return result
