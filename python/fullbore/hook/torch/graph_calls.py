"""How many operations a step takes whose modules torch.compile compiles: those of each graph (graphs.py), as often as
it is called.

That is counted in one step, after the last compilation: for so long the global that dynamo's code calls is one of ours.
Layers that are in no graph are followed meanwhile by hooks of their own, which dynamo never meets.
"""

from __future__ import annotations

import functools
import sys
from collections.abc import Iterator
from typing import Any, Callable, NamedTuple

from ..core import channel, steps
from ..core.interrupts import is_the_scripts
from ..core.runtime import Thread, clock, guarded, hook
from . import exchanges, flops, forward, graphs, held, tokens

PREFIX = "__compiled_fn"  # of the globals that dynamo's code calls
MOST_COUNTS = 8  # a training that compiles ever more is not followed for ever


class Known(NamedTuple):
    """A graph that was compiled."""

    scope: dict[str, Any]  # where its global is
    name: str
    work: graphs.Work


class Calls:
    """Of one step: which graphs it calls, and which layers outside of them."""

    def __init__(self, known: list[Known]) -> None:
        self.known = known
        self.count = flops.Count()
        self.trained: set[int] = set()  # graphs that a backward pass is to follow
        self.weights: set[int] = set()  # of the graphs that were called
        self.swapped: list[tuple[Known, Any, Any]] = []  # each with the script's function, and with ours
        self.handles: list[Any] = []
        self.outside: set[int] = set()  # modules that are followed

    def begin(self) -> None:
        disable = sys.modules["torch"]._dynamo.disable
        for each in self.known:
            original = each.scope[each.name]
            ours = each.scope[each.name] = disable(self.followed(each, original))
            self.swapped.append((each, original, ours))
        follow = disable(self.note_module)
        for module in outside(self.weights_known()):
            self.outside.add(id(module))
            self.handles.append(module.register_forward_hook(follow, with_kwargs=True))

    def end(self) -> None:
        for known, original, ours in self.swapped:
            if known.scope.get(known.name) is ours:
                known.scope[known.name] = original
        for handle in self.handles:
            handle.remove()

    def weights_known(self) -> set[int]:
        return {ident for each in self.known for ident in each.work.weights}

    def followed(self, known: Known, original: Any) -> Callable[..., Any]:
        def call(*args: Any, **kwargs: Any) -> Any:
            followed.ask(lambda: self.note_call(known, args))
            return original(*args, **kwargs)

        return call

    def note_module(self, module: Any, args: Any, kwargs: Any, result: Any) -> None:
        followed.ask(lambda: self.note_eager(module, args, kwargs, result))

    def note_eager(self, module: Any, args: Any, kwargs: Any, result: Any) -> None:
        self.count.add(module, args, kwargs, result)
        if not flops.is_in_backward(sys.modules["torch"]):
            tokens.tokens.lookups.note(module, args[0] if args else None)

    def note_call(self, known: Known, args: Any) -> None:
        """What the backward pass calls again is no work of the model's, unless it was called for no gradient before."""
        if hook.here().phase == channel.OPTIMIZER:
            return
        again = flops.is_in_backward(sys.modules["torch"])
        if known.work.is_backward or (again and id(known) in self.trained):
            return
        if not again:
            self.trained.add(id(known))
        self.weights |= known.work.weights
        self.count.add_graph(known.work, args, again)

    def note_uncounted(self) -> None:
        """Weights of graphs that were not called since dynamo gave them up, weights beside layers that are in a graph,
        and attention whose products are in none."""
        known, given_up = self.weights_known(), "compile_limit" in hook.facts
        attends = self.count.squares > 0 or bool(self.count.attentions)
        for module, idents in with_weights():
            counted = bool(idents & self.weights) or id(module) in self.count.seen
            beside = not idents & known and id(module) not in self.outside
            if not counted:
                self.count.weights += tokens.weights_of(module)
            if not counted and (given_up or beside):
                self.count.note_unknown(module, tokens.weights_of(module))
        if not attends:
            self.count.operators |= {type(each).__name__ for each in modules() if flops.is_called_attention(each)}


def modules() -> Iterator[Any]:
    for outermost in held.held.modules():
        yield from outermost.modules()


def with_weights() -> Iterator[tuple[Any, set[int]]]:
    """Modules that have weights of their own, with the identities of these: of what fully_shard took over, also those
    of what is gathered."""
    twins: dict[int, int] = {}
    for outermost in held.held.modules():
        for sharded, gathered in exchanges.gathered_of(outermost):
            twins[id(sharded)], twins[id(gathered)] = id(gathered), id(sharded)
    for module in modules():
        if tokens.weights_of(module):
            own = {id(each) for each in module._parameters.values() if each is not None}
            yield module, own | {twins[ident] for ident in own if ident in twins}


def outside(weights: set[int]) -> list[Any]:
    """Modules with weights of which no part is in a graph: dynamo has nothing of them to guard."""
    own = {id(module): idents for module, idents in with_weights()}
    found = []
    for module in modules():
        within = [own[id(each)] for each in module.modules() if id(each) in own]
        if within and not any(idents & weights for idents in within):
            found.append(module)
    return found


class Followed:
    """What dynamo compiles, and when a step is counted."""

    def __init__(self) -> None:
        self.read: dict[int, graphs.Work] = {}  # by the identity of dynamo's own object, until its global is known
        self.known: list[Known] = []
        self.changed = False
        self.calls: Calls | None = None
        self.counts = 0
        self.why = ""  # nothing more is counted

    def ask(self, question: Callable[[], Any]) -> None:
        """Graphs and modules of strange kinds end the count, and nothing else."""
        begin = clock()
        try:
            if hook.on and not self.why:
                question()
        except Exception as error:
            if is_the_scripts(error):
                raise
            self.give_up("a compiled graph cannot be read")
        hook.extra_ns += clock() - begin

    def give_up(self, why: str) -> None:
        self.why, self.known = why, []
        flops.say_why(why)

    # ---- What is compiled ----

    def read_graph(self, maker: Any, module: Any) -> None:
        autograd = sys.modules.get("torch._dynamo.compiled_autograd")
        work = graphs.Work(bool(getattr(autograd, "in_compiled_autograd_region", False)))
        work.read_inputs(module)
        work.read(module)
        self.read[id(maker)] = work

    def note(self, maker: Any, name: str) -> None:
        work = self.read.pop(id(maker), None) if name.startswith(PREFIX) else None
        if work is not None:
            self.known.append(Known(maker.global_scope, name, work))
            self.changed = True
            if self.counts < MOST_COUNTS:
                steps.look_soon()

    # ---- Steps ----

    def begin(self) -> None:
        self.counts += 1
        self.changed = False
        self.known = [each for each in self.known if each.name in each.scope]
        self.calls = Calls(self.known)
        steps.after_step.append(end_step)
        self.calls.begin()

    def say(self, calls: Calls) -> None:
        if self.changed:  # a part of it was compiled meanwhile
            return steps.look_soon() if self.counts < MOST_COUNTS else self.give_up("each step compiles anew")
        calls.note_uncounted()
        for lookup in calls.count.lookups:
            tokens.tokens.lookups.note_compiled(lookup)
        for weights, positions, _ in calls.count.applied:
            tokens.tokens.lookups.note_work(round(weights), round(positions))
        flops.say(calls.count)


followed = Followed()


@guarded
def after_step(optimizer: Any, thread: Thread, end: int) -> None:
    compiles = forward.forward is not None and forward.forward.compiled
    if not compiles or followed.calls is not None or hook.steps < forward.LEARNING_STEPS:
        return
    if followed.why:
        flops.say_why(followed.why)
    elif (followed.changed or not followed.counts) and followed.counts < MOST_COUNTS:
        followed.ask(followed.begin)


@guarded
def end_step(optimizer: Any, thread: Thread, end: int) -> None:
    calls = leave()
    if calls is not None:
        followed.ask(lambda: followed.say(calls))


def leave() -> Calls | None:
    """All is again as dynamo and the script have it."""
    calls, followed.calls = followed.calls, None
    steps.after_step[:] = [each for each in steps.after_step if each is not end_step]
    if calls is not None:
        calls.end()
    return calls


def forget() -> None:
    leave()
    followed.__init__()  # type: ignore[misc]


def attach(module: Any) -> None:
    """Follows the graphs of torch._dynamo.output_graph, where this torch has what it takes."""
    maker = getattr(module, "OutputGraph", None)
    if not (hasattr(maker, "call_user_compiler") and hasattr(maker, "install_global_unsafe")):
        followed.why = "this torch does not show what it compiles"
        steps.now_and_then.append(after_step)
        return
    compile_, install = maker.call_user_compiler, maker.install_global_unsafe

    @functools.wraps(compile_)
    def call_user_compiler(self: Any, graph: Any, *args: Any, **kwargs: Any) -> Any:
        followed.ask(lambda: followed.read_graph(self, graph))
        return compile_(self, graph, *args, **kwargs)

    @functools.wraps(install)
    def install_global_unsafe(self: Any, name: str, value: Any) -> None:
        install(self, name, value)
        followed.ask(lambda: followed.note(self, name))

    maker.call_user_compiler, maker.install_global_unsafe = call_user_compiler, install_global_unsafe
    steps.now_and_then.append(after_step)
    hook.forget_in_child.append(forget)
