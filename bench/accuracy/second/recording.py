"""What the profiler keeps while it watches: operators, runtime calls, device work, annotations, Python functions."""

from dataclasses import dataclass

# What the profiler costs the host for each event: an operator, its shapes, the Python frames around it, CUPTI's
# callbacks around a runtime call. Drawn by hand so that a step that waits for the host is recorded 5 to 20 % too long.
OPERATOR_NS = 350.0
SHAPES_NS = 200.0
STACK_NS = 450.0
CALL_NS = 500.0


@dataclass(frozen=True)
class Profile:
    """How a recording is made."""

    wait: int = 1
    warmup: int = 5
    active: int = 6
    shapes: bool = True
    stack: bool = False
    style: str = "new"  # "old": 1.8 to 1.9; "middle": 1.13; "new": 2.x
    annotate: bool = True  # record_function around validation and checkpoints
    orphans: bool = True  # kernels launched before the window are kept
    memory: bool = False  # profile_memory: the allocator's events

    @property
    def operator_ns(self) -> float:
        """Of each operator."""
        return OPERATOR_NS + SHAPES_NS * self.shapes + STACK_NS * self.stack

    @property
    def first(self) -> int:
        """The first recorded step."""
        return self.wait + self.warmup

    @property
    def steps(self) -> int:
        """All steps of the run."""
        return self.first + self.active


@dataclass
class Launch:
    """A runtime call: what ties it to an operator and to device work."""

    name: str
    thread: int
    start: float
    end: float
    correlation: int
    external: int


class Recorder:
    """Events of one rank."""

    def __init__(self, profile: Profile):
        self.profile = profile
        self.on = False
        self.operators = []  # (name, thread, start, end, external, shapes, dtype, sequence)
        self.annotations = []  # (name, thread, start, end, external)
        self.functions = []  # (name, thread, start, end)
        self.calls = []  # Launch
        self.tasks = []
        self.external = 0
        self.correlation = 4000

    def operator(self, name, thread, start, end, shapes=(), dtype="float", sequence=None, external=None):
        """An operator that has ended."""
        self.operators.append((name, thread, start, end, external or self.new_external(), shapes, dtype, sequence))

    def annotation(self, name, thread, start, end):
        """A user annotation that has ended."""
        self.annotations.append((name, thread, start, end, self.new_external()))

    def function(self, name, thread, start, end):
        """A Python function, if stacks are recorded."""
        if self.profile.stack:
            self.functions.append((name, thread, start, end))

    def new_external(self) -> int:
        """A number for an operator."""
        self.external += 1
        return self.external

    def call(self, name, thread, start, end, external) -> Launch:
        """A runtime call."""
        self.correlation += 3
        launch = Launch(name, thread, start, end, self.correlation, external)
        self.calls.append(launch)
        return launch

    def task(self, task):
        """Device work that has ended; what was launched before the window has no launch."""
        if self.on and (task.launch is not None or self.profile.orphans):
            self.tasks.append(task)
