"""Outermost module calls: the forward pass.

`Module.__call__` is entered for every submodule, so it is patched only for the first steps, to learn which classes are
called outermost; after that those classes alone carry a `__call__` of their own.

Dynamo must not find a patch that comes and goes: it guards on what it traced, and would compile again. So the first
torch.compile ends the learning; then the compiled module's class is watched, and what calls it is found on the
stack. Our wrappers begin with torch's own test for tracing, which dynamo folds: no part of them enters a graph.
"""

from __future__ import annotations

import functools
import sys
import weakref
from typing import Any, Callable

from ..core import channel, native, steps
from ..core.frames import variable
from ..core.runtime import Thread, clock, get_ident, guarded, hook
from .compiling import is_compiling_test

LEARNING_STEPS = 2
LEARNING_CALLS = 400  # outermost ones: a script that never steps must not keep the patch
CALLS_WITHOUT_A_STEP = 32  # outermost ones, after which the script is asked about though no step has ended

Look = Callable[[Any, Any, Any], None]
LookAtResult = Callable[[Any, Any, Any, Any], None]
Call = tuple[Thread, int, int, int, int]  # thread, outer phase, training, what else is known of it, begin


class Forward:
    """The patches, and what was learnt from the first calls."""

    def __init__(self, torch: Any) -> None:
        self.Module = torch.nn.Module
        self.is_compiling = is_compiling_test()
        self.learning = False
        self.notes = True  # outermost modules are remembered, or `looks` are asked for
        self.looks: list[Look] = []  # called with the next one and its arguments, in training
        self.looks_at_results: list[LookAtResult] = []  # each with that of the next one, if that does not train it
        self.calls = 0
        self.classes: set[type] = set()
        self.watched: set[type] = set()
        self.models: list[Any] = []  # weak references to outermost modules that were called in training
        self.compiled = False

    def learn(self) -> None:
        """Patches Module.__call__ for the time being."""
        original = self.original = self.Module.__call__
        is_compiling = self.is_compiling

        @functools.wraps(original)
        def __call__(module: Any, *args: Any, **kwargs: Any) -> Any:
            if is_compiling() or not self.learning:
                return original(module, *args, **kwargs)
            result = self.run(original, module, args, kwargs)
            self.note_result(module, args, kwargs, result)
            return result

        self.learning = True
        self.patch = self.Module.__call__ = __call__

    def stop_learning(self) -> None:
        if not self.learning:
            return
        self.learning = False
        if self.Module.__call__ is self.patch:  # else somebody patched over us, and we only forward
            self.Module.__call__ = self.original
        for cls in self.classes:
            self.watch(cls)

    def watch(self, cls: type) -> None:
        """Gives a class called outermost a timed `__call__`."""
        if cls in self.watched or not issubclass(cls, self.Module):
            return
        self.watched.add(cls)
        Module, is_compiling, own = self.Module, self.is_compiling, cls.__call__
        inherits = own is Module.__call__  # looked up in each call: torch.fx patches it while it traces
        run = None if native.extension is None else hook.run_forward

        @functools.wraps(own)
        def timed(*args: Any, **kwargs: Any) -> Any:
            original = Module.__call__ if inherits else own
            if is_compiling():
                return original(*args, **kwargs)
            if self.notes:
                self.note_call(args[0], args[1:], kwargs)
                if self.looks_at_results:
                    result = run(original, args, kwargs)  # type: ignore[misc]
                    self.show_result(args[0], args[1:], kwargs, result)
                    return result
            return run(original, args, kwargs)  # type: ignore[misc]

        @functools.wraps(own)
        def __call__(module: Any, *args: Any, **kwargs: Any) -> Any:
            original = Module.__call__ if inherits else own
            if is_compiling():
                return original(module, *args, **kwargs)
            return self.run(original, module, args, kwargs)

        cls.__call__ = __call__ if run is None else timed  # type: ignore[assignment, method-assign]

    def run(self, original: Any, module: Any, args: Any, kwargs: Any) -> Any:
        """What the extension does in one call: a forward pass, timed if it is an outermost one."""
        if self.notes:
            self.note_call(module, args, kwargs)
        call = enter_forward(module)
        if call is None:
            return original(module, *args, **kwargs)
        try:
            result = original(module, *args, **kwargs)
        finally:
            leave_forward(call)
        if self.looks_at_results:
            self.show_result(module, args, kwargs, result)
        return result

    def note_call(self, module: Any, args: Any, kwargs: Any) -> None:
        """During the first steps, and where somebody looks; before enter_forward."""
        try:
            learns = hook.steps < LEARNING_STEPS and self.calls < LEARNING_CALLS
            if not learns and not self.looks and not self.looks_at_results:
                self.notes = False
            elif hook.on and not hook.is_worker:
                thread = hook.here()
                training = module.training and hook.is_grad_enabled()
                if not (thread.in_forward or thread.in_next):
                    self.note_outermost(module, args, kwargs, training, learns)
                if training and learns and not thread.in_next:
                    for follow in at_module:
                        follow(module, args[0] if args else None)
        except Exception as error:
            if not hook.fail("forward", error):
                raise

    def note_result(self, module: Any, args: Any, kwargs: Any, result: Any) -> None:
        """During the first steps, after each call that came to its end, whether for a gradient or not."""
        try:
            if hook.on and not hook.is_worker and hook.steps < LEARNING_STEPS and self.calls < LEARNING_CALLS:
                for follow in at_result:
                    follow(module, args, kwargs, result)
        except Exception as error:
            if not hook.fail("forward", error):
                raise

    def note_outermost(self, module: Any, args: Any, kwargs: Any, training: bool, learns: bool) -> None:
        if learns:
            self.note(module, training)
        if training and learns:
            for follow in at_forward:
                follow(module)
        if training and self.looks:
            looks, self.looks = self.looks, []
            for look in looks:
                look(module, args, kwargs)

    def look_at_next(self, look: Look) -> None:
        if look not in self.looks:
            self.looks.append(look)
        self.notes = True

    def look_at_next_result(self, look: LookAtResult) -> None:
        self.looks_at_results.append(look)
        self.notes = True

    def show_result(self, module: Any, args: Any, kwargs: Any, result: Any) -> None:
        """After a call that came to its end, where somebody looks."""
        try:
            thread = hook.here()
            if not hook.on or thread.in_forward or thread.in_next or not self.looks_at_results:
                return
            look = self.looks_at_results.pop(0)
            if not (module.training and hook.is_grad_enabled()):
                look(module, args, kwargs, result)
        except Exception as error:
            if not hook.fail("forward", error):
                raise

    def note_again(self) -> None:
        """A forked child may train something else."""
        self.notes = True

    def begin_anew(self) -> None:
        """Another run in this process trains what it likes."""
        self.calls, self.models = 0, []
        if not self.learning and not self.compiled:
            self.learn()

    def note(self, module: Any, training: bool) -> None:
        """Remembers an outermost module while learning."""
        self.calls += 1
        if self.calls == CALLS_WITHOUT_A_STEP and hook.steps == 0:
            for follow in without_steps:
                follow(module)
        cls = type(module)
        self.classes.add(cls)
        inner = module.__dict__.get("_modules", {}).get("module")
        if inner is not None and cls.__module__.startswith("torch.nn.parallel"):
            self.classes.add(type(inner))  # often evaluated without its wrapper
        if training and not any(known() is module for known in self.models):
            self.models.append(weakref.ref(module))
        if self.compiled:
            self.find_callers()
        if self.calls >= LEARNING_CALLS:
            self.stop_learning()

    def find_callers(self) -> None:
        """In a script that compiles: watches the outermost module whose forward is on the stack."""
        frame: Any = sys._getframe(1)
        outermost = None
        while frame is not None:
            if frame.f_code.co_name in ("forward", "_call_impl"):
                caller = variable(frame, "self")
                if isinstance(caller, self.Module):
                    outermost = caller
            frame = frame.f_back
        if outermost is not None:
            self.watch(type(outermost))

    def compiling(self, result: Any) -> None:
        """torch.compile was called."""
        self.compiled = True
        self.stop_learning()
        if isinstance(result, self.Module):
            self.watch(type(result))

    def main_model(self) -> Any | None:
        """The largest module called outermost in training."""
        alive = [module for module in (known() for known in self.models) if module is not None]
        return max(alive, key=parameter_count, default=None)


forward: Forward | None = None


def parameter_count(module: Any) -> int:
    return sum(parameter.numel() for parameter in module.parameters() if not is_lazy(parameter))


def is_lazy(parameter: Any) -> bool:
    return "Uninitialized" in type(parameter).__name__


def enter_forward(module: Any) -> Call | None:
    """None where this call is not ours to time: inside another one or a loader, in a worker, or switched off."""
    if not hook.on or hook.is_worker:
        return None
    try:
        thread = hook.threads.get(get_ident()) or hook.here()
        if thread.in_forward or thread.in_next:
            return None
        training = 1 if module.training and hook.is_grad_enabled() else 0
        about = 0 if training else hook.about_pass(module)
        outer, thread.phase = thread.phase, channel.FORWARD
        thread.in_forward = True
        return thread, outer, training, about, clock()
    except Exception as error:
        if not hook.fail("forward", error):
            raise
        return None


def leave_forward(call: Call) -> None:
    end = clock()
    thread, outer, training, about, begin = call
    thread.in_forward = False
    thread.phase = outer
    try:
        hook.record(channel.FORWARD, 0, thread.number, begin, end, training, 0, about)
    except Exception as error:
        if not hook.fail("forward", error):
            raise


if native.extension is not None:
    enter_forward, leave_forward = hook.enter_forward, hook.leave_forward

at_forward: list[Callable[[Any], None]] = []  # called with the module, in training, while learning
at_module: list[Callable[[Any, Any], None]] = []  # with any module, inner ones too, and its first argument; likewise
at_result: list[Callable[[Any, Any, Any, Any], None]] = []  # with any module, arguments, result, while learning
without_steps: list[Callable[[Any], None]] = []  # called with the module, once: see CALLS_WITHOUT_A_STEP


def after_step(optimizer: Any, thread: Thread, end: int) -> None:
    if forward is not None and forward.learning and hook.steps >= LEARNING_STEPS:
        forward.stop_learning()


def attach(nn: Any) -> None:
    """Patches torch.nn.Module, and torch.compile where there is one."""
    global forward
    torch = sys.modules["torch"]
    hook.is_grad_enabled = torch.is_grad_enabled
    forward = Forward(torch)
    forward.learn()
    hook.forget_in_child.append(forward.note_again)
    hook.at_new_run.append(forward.begin_anew)
    steps.after_first_steps.append(after_step)
    if hasattr(torch, "compile"):
        attach_compile(torch, forward)


def attach_compile(torch: Any, watch: Forward) -> None:
    compile_ = torch.compile

    @functools.wraps(compile_)
    def compile(*args: Any, **kwargs: Any) -> Any:  # noqa: A001  the name that torch gives it
        note_compile(watch, None, kwargs)
        result = compile_(*args, **kwargs)
        note_compile(watch, result, kwargs)
        return result

    torch.compile = compile
    if hasattr(torch.nn.Module, "compile"):
        attach_module_compile(torch.nn.Module, watch)


def attach_module_compile(Module: Any, watch: Forward) -> None:
    compile_ = Module.compile

    @functools.wraps(compile_)
    def compile(self: Any, *args: Any, **kwargs: Any) -> Any:  # noqa: A001
        note_compile(watch, self, kwargs)
        return compile_(self, *args, **kwargs)

    Module.compile = compile


@guarded
def note_compile(watch: Forward, result: Any, arguments: Any) -> None:
    watch.compiling(result)
    hook.fact("compile", str(arguments.get("mode") or arguments.get("backend") or "default"))
