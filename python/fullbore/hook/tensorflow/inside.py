"""Iterators of tf.data that are passed to a tf.function, whose compiled code takes the batches (all of Keras's `fit`).

No Python runs there. So while such a function is traced, each `get_next` of its outermost graph gets a timestamp before
and one after, and one variable adds up waits, batches and samples. To read it after each call is most of the cost:
about 90 of 115 us a step, the operations themselves being within the noise. They are outside of the function that
computes (Keras compiles the step by itself, perhaps by XLA), so they change neither its graph nor the seeds of its
operations.

Rejected: taking the batch in Python and passing it. The compiled function would be another one, traced again for the
last batch of an epoch, and `steps_per_execution` would gain nothing.
"""

from __future__ import annotations

import functools
from typing import Any, NamedTuple

from ..core.runtime import get_ident, hook

OwnedIterator: Any = ()  # the class; set when it is patched


class Meter:
    """What all compiled functions of this process add to: seconds, batches and samples outside of loops; seconds and
    batches in them."""

    def __init__(self, tensorflow: Any) -> None:
        with tensorflow.init_scope(), tensorflow.device("CPU:0"):
            self.sums = tensorflow.Variable([0.0] * 5, trainable=False, dtype="float64", name="fullbore")
        self.known = [0.0] * 5
        self.read_variable = functools.partial(
            tensorflow.raw_ops.ReadVariableOp, resource=self.sums.handle, dtype=self.sums.dtype
        )

    def read(self) -> Added:
        """What was added since it was last read."""
        before, self.known = self.known, self.read_variable().numpy().tolist()
        return Added(*(now - then for now, then in zip(self.known, before)))


class Added(NamedTuple):
    wait_s: float
    batches: float
    samples: float
    loop_wait_s: float
    loop_batches: float

    def all_batches(self) -> int:
        return int(self.batches + self.loop_batches)

    def all_samples(self, batch_size: int | None) -> int:
        """In loops batches are not looked into: they are taken to be like those before the loop."""
        if self.batches:
            return int(self.samples * (1 + self.loop_batches / self.batches))
        return int((batch_size or 0) * self.loop_batches)

    def exposed_wait_ns(self, call_ns: int) -> int:
        """Of the call, what it waited for batches. In a loop the next batch is taken while the step runs, so that one
        turn takes as long as the longer of the two; how long a step takes follows from the whole call."""
        outside_ns = self.wait_s * 1e9
        if self.loop_batches < 1:
            return int(min(outside_ns, call_ns))
        rest_ns, take_ns = call_ns - outside_ns, self.loop_wait_s * 1e9 / self.loop_batches
        step_ns = rest_ns / (self.loop_batches + 1)
        if step_ns < take_ns:
            step_ns = max(0.0, rest_ns - self.loop_batches * take_ns)
        return int(max(0.0, min(outside_ns + self.loop_batches * max(0.0, take_ns - step_ns), call_ns)))


meter: Meter | None = None
tracing: dict[int, Any] = {}  # by thread: the role of the function that it has called with an iterator


def forget() -> None:
    tracing.clear()


hook.forget_in_child.append(forget)


def prepare(tensorflow: Any) -> None:
    """Before a function with an iterator is traced."""
    global meter
    if meter is None and not tensorflow.distribute.has_strategy():
        meter = Meter(tensorflow)


def iterator_in(arguments: Any) -> Any:
    for argument in arguments:
        if isinstance(argument, OwnedIterator):
            return argument
    return None


def measured(tensorflow: Any, original: Any, name: str) -> Any:
    """`get_next` while a graph is built."""
    optional = name == "get_next_as_optional"

    @functools.wraps(original)
    def take(self: Any) -> Any:
        role = tracing.get(get_ident())
        if role is None or meter is None or not hook.on:
            return original(self)
        before = timestamp(tensorflow)
        if before is None:
            return original(self)
        with tensorflow.control_dependencies([before]):
            batch = original(self)
        add(tensorflow, batch, before, optional, role)
        return batch

    return take


def timestamp(tensorflow: Any) -> Any:
    try:
        return tensorflow.timestamp()
    except Exception as error:
        if not hook.fail("a timestamp in a graph", error):
            raise
        return None


def add(tensorflow: Any, batch: Any, before: Any, optional: bool, role: Any) -> None:
    try:
        assert meter is not None
        parts = [batch._variant_tensor] if optional else tensorflow.nest.flatten(batch, expand_composites=True)
        with tensorflow.control_dependencies(parts):
            wait_s = tensorflow.timestamp() - before
        loop = in_loop(tensorflow)
        one = tensorflow.cast(batch.has_value(), "float64") if optional else tensorflow.constant(1.0, "float64")
        none = tensorflow.constant(0.0, "float64")
        if loop:
            sums = [none, none, none, wait_s * one, one]
        else:
            count = samples_of_optional if optional else leading
            sums = [wait_s * one, one, tensorflow.cast(count(tensorflow, batch), "float64"), none, none]
        meter.sums.assign_add(tensorflow.stack(sums))
        role.reads = True
    except Exception as error:
        if not hook.fail("measuring in a graph", error):
            raise


def in_loop(tensorflow: Any) -> bool:
    """Whether the graph that is being built is a part of the function: the body of a loop, or a branch in one. To look
    into a batch there keeps TensorFlow from running the step beside it, now and then."""
    graph = tensorflow.compat.v1.get_default_graph()
    return hasattr(getattr(graph, "outer_graph", None), "outer_graph")


def leading(tensorflow: Any, batch: Any) -> Any:
    """The leading dimension of the first tensor that has one."""
    for part in tensorflow.nest.flatten(batch, expand_composites=True):
        if part.shape.rank != 0:
            return tensorflow.shape(part, out_type="int64")[0]
    return 1


def samples_of_optional(tensorflow: Any, optional: Any) -> Any:
    return tensorflow.cond(
        optional.has_value(),
        lambda: tensorflow.cast(leading(tensorflow, optional.get_value()), "float64"),
        lambda: tensorflow.constant(0.0, "float64"),
    )
