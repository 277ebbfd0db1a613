"""Which parameters the optimizers hold: whether a module that is called without being trained by that call is the model
that is trained, or one apart (a teacher, a target network, a frozen backbone); and gradients that nobody uses.

Nothing of the script's is kept: only identities of parameters, and weak references to modules and optimizers.
"""

from __future__ import annotations

import weakref
from typing import Any, NamedTuple

from ..core import steps
from ..core.runtime import Thread, guarded, hook
from . import facts, forward

# What is known of a forward pass: kPass... in src/record/channel.h.
IN_EVALUATION, WITH_GRADIENTS, OF_TRAINED, OF_APART, OF_COPY = 1, 2, 4, 8, 16
MOST_MODULES = 256  # remembered at a time
LOOKS = (7, 8, 9, 10)  # of those between steps, at gradients, too: each needs the one before it
MOST_NAMES = 3

Mark = tuple[int, int]


class Known(NamedTuple):
    module: Any  # a weak reference
    generation: int
    bits: int


class Held:
    """The parameters of all optimizers that have stepped."""

    def __init__(self) -> None:
        self.optimizers: dict[int, Any] = {}  # weak references by id
        self.sizes: dict[int, int] = {}  # how many parameters each held when it was looked at last
        self.generation = 0  # counted up when that changes
        self.parameters: set[int] = set()  # their ids
        self.shapes: set[Any] = set()  # of the modules that are trained
        self.sure = False  # a module that was called in training is held: else they hold copies of parameters
        self.known: dict[int, Known] = {}  # modules by id
        self.marks: dict[int, Mark] = {}  # of gradients that no optimizer uses, at the last look
        self.looks = 0

    def note(self, optimizer: Any) -> None:
        """After a step of it that was not a usual one."""
        groups = getattr(optimizer, "param_groups", None)
        if groups is None:  # Keras's, a compiled function, or the script's own word
            return
        ident, size = id(optimizer), sum(len(group["params"]) for group in groups)
        before = self.optimizers.get(ident)
        if before is not None and before() is optimizer and self.sizes[ident] == size:
            return
        self.optimizers[ident], self.sizes[ident] = weakref.ref(optimizer), size
        self.learn()

    def learn(self) -> None:
        self.generation += 1
        alive = {ident: known for ident, known in self.optimizers.items() if known() is not None}
        self.optimizers = alive
        self.parameters = {
            id(parameter)
            for optimizer in (known() for known in alive.values())
            if optimizer is not None
            for group in optimizer.param_groups
            for parameter in group["params"]
        }
        trained = [module for module in called_in_training() if self.holds(module)]
        self.sure = bool(trained)
        self.shapes = {shapes_of(module) for module in trained}

    def holds(self, module: Any) -> bool:
        return any(id(parameter) in self.parameters for parameter in module.parameters())

    def bits_of(self, module: Any) -> int:
        known = self.known.get(id(module))
        if known is not None and known.generation == self.generation and known.module() is module:
            return known.bits
        bits = self.judge(module)
        if len(self.known) >= MOST_MODULES:
            self.known.clear()
        self.known[id(module)] = Known(weakref.ref(module), self.generation, bits)
        return bits

    def judge(self, module: Any) -> int:
        if self.holds(module):
            return OF_TRAINED
        shapes = shapes_of(module)
        if not self.sure or not shapes:
            return 0
        return OF_APART | (OF_COPY if shapes in self.shapes else 0)

    def look(self) -> None:
        """At gradients of parameters that no optimizer holds: those that have changed since the last look are computed
        in vain, over and over."""
        self.looks += 1
        if self.looks not in LOOKS:
            return
        before, self.marks = self.marks, {}
        if not self.sure:
            return
        found = [unused for unused in (self.unused_in(module, before) for module in self.modules()) if unused]
        if found:
            hook.fact(
                "unused_gradients",
                {
                    "tensors": sum(len(unused) for unused, _ in found),
                    "parameters": sum(sum(unused.values()) for unused, _ in found),
                    "used": self.size(),
                    "modules": [name for _, names in found for name in names][:MOST_NAMES],
                },
            )
        elif "unused_gradients" in hook.facts:
            hook.fact("unused_gradients", {})

    def alive(self) -> list[Any]:
        """The optimizers, for the moment: whoever keeps them would keep the parameters."""
        return [optimizer for optimizer in (known() for known in self.optimizers.values()) if optimizer is not None]

    def size(self) -> int:
        """How many parameters the optimizers hold and train."""
        groups = [group for optimizer in self.alive() for group in optimizer.param_groups]
        trained = (each for group in groups for each in group["params"] if each.requires_grad)
        return sum(each.numel() for each in trained if not forward.is_lazy(each))

    def modules(self) -> list[Any]:
        """Those called outermost, none within another one."""
        apart = [known.module() for known in tuple(self.known.values()) if known.bits & OF_APART]
        modules = {id(module): module for module in (*called_in_training(), *apart) if module is not None}
        for module in tuple(modules.values()):
            for inner in module.modules():
                if inner is not module:
                    modules.pop(id(inner), None)
        return list(modules.values())

    def unused_in(self, module: Any, before: dict[int, Mark]) -> tuple[dict[int, int], list[str]] | None:
        """The sizes of such parameters by their ids, and which parts of the module they make up."""
        unused: dict[int, int] = {}
        changed = False
        for parameter in module.parameters():
            ident = id(parameter)
            if ident in self.parameters or not (parameter.requires_grad and parameter.is_leaf):
                continue
            gradient = parameter.grad
            if gradient is None:
                continue
            unused[ident] = parameter.numel()
            mark = self.marks[ident] = (id(gradient), facts.ask(lambda grad=gradient: grad._version) or 0)
            changed = changed or (ident in before and before[ident] != mark)
        if not changed:
            return None
        whole = [type(module).__name__]
        return unused, whole if not self.holds(module) else names_of(module, unused) or whole


def names_of(module: Any, unused: dict[int, int]) -> list[str]:
    """Those of its children whose parameters are all among them."""
    names = []
    for name, child in module.named_children():
        parameters = [id(parameter) for parameter in child.parameters()]
        if parameters and all(ident in unused for ident in parameters):
            names.append(name)
    return names


def shapes_of(module: Any) -> tuple[Any, ...]:
    return tuple(tuple(parameter.shape) for parameter in module.parameters() if not forward.is_lazy(parameter))


def called_in_training() -> list[Any]:
    known = () if forward.forward is None else tuple(forward.forward.models)
    return [module for module in (reference() for reference in known) if module is not None]


held = Held()


def about_pass(module: Any) -> int:
    """Of a module that is called outermost, in evaluation mode or without gradients. May raise."""
    bits = 0 if module.training else IN_EVALUATION
    if hook.is_grad_enabled():
        bits |= WITH_GRADIENTS
    return bits | held.bits_of(module)


@guarded
def after_step(optimizer: Any, thread: Thread, end: int) -> None:
    held.look()


def attach() -> None:
    hook.about_pass = about_pass
    hook.forget_in_child.append(lambda: held.__init__())  # type: ignore[misc]
    steps.at_unusual_step.append(held.note)
    steps.now_and_then.append(after_step)
