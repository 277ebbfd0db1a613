"""Every call of a compiled function.

What jax.jit returns is an object of a C++ class, and a call that was compiled before never enters Python. So the class
itself gets a `__call__`: the objects stay what they are, with their attributes, their identity and their pickles,
whatever made them (jax.jit, pjit, nnx.jit, pmap, a library). Rejected: wrapping jax.jit, because its result is then
another object in every `isinstance`, cache and pickle; jax.monitoring, which is silent where nothing is compiled.

JAX's own functions (each operation of jax.numpy is compiled, too) pass through as they came, and so does what is
called while another function is traced.
"""

from __future__ import annotations

import functools
import sys
from typing import Any, Callable

from ..core import channel
from ..core.library import standard_library
from ..core.runtime import Thread, clock, hook
from . import compiling, functions
from .functions import Function

VECTORCALL = 1 << 11  # Py_TPFLAGS_HAVE_VECTORCALL
FLAGS_AT = 168  # of tp_flags in PyTypeObject: 64 bits, with Python's lock
OWN = ("jax.", "jaxlib.")


class Call:
    """One call in progress."""

    __slots__ = ("compiled", "function", "thread", "given", "samples", "outer_phase", "begin")

    def __init__(self, compiled: Any, function: Function, thread: Thread, given: tuple[Any, Any]) -> None:
        self.compiled = compiled
        self.function = function
        self.thread = thread
        self.given = given  # args and kwargs
        self.samples = functions.before_call(function, thread, *given)
        self.outer_phase, thread.phase = thread.phase, channel.FORWARD
        thread.in_forward = True
        self.begin = clock()


def trace_state_clean() -> bool:
    """Whether no function is being traced; JAX's own, once it is imported."""
    return True


def enter(compiled: Any, args: Any, kwargs: Any) -> Call | None:
    """None where this call is not ours to time: JAX's own, inside another one or a loader, traced, or switched off."""
    if not hook.on:
        return None
    try:
        function = compiled.__dict__.get("_fullbore_function") or known(compiled)
        if function is NOBODYS:
            return None
        thread = hook.here()
        if thread.in_forward or thread.in_next or hook.is_worker or not trace_state_clean():
            return None
        return Call(compiled, function, thread, (args, kwargs))
    except Exception as error:
        if not hook.fail("a compiled function", error):
            raise
        return None


def leave(call: Call, returned: Any, came_back: bool) -> None:
    end = clock()
    thread = call.thread
    thread.in_forward = False
    thread.phase = call.outer_phase
    if not hook.on:
        return
    try:
        compiling.after_call(call)
        functions.after_call(call, returned if came_back else None, end)
    except Exception as error:
        if not hook.fail("a compiled function", error):
            raise


NOBODYS = Function("", None)


def known(compiled: Any) -> Function:
    module = str(getattr(compiled, "__module__", "") or "")
    ahead = type(compiled).__name__ == "Compiled"  # jit(...).lower(...).compile(): by whomever, its class is JAX's
    is_own = not ahead and (module.startswith(OWN) or module == "jax")
    function = compiled.__dict__["_fullbore_function"] = NOBODYS if is_own else functions.known(compiled)
    return function


def timed_call(original: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(original)
    def __call__(self: Any, /, *args: Any, **kwargs: Any) -> Any:
        call = enter(self, args, kwargs)
        if call is None:
            return original(self, *args, **kwargs)
        returned, came_back = None, False
        try:
            returned = original(self, *args, **kwargs)
            came_back = True
            return returned
        finally:
            leave(call, returned, came_back)

    return __call__


def attach(jax: Any) -> None:
    global trace_state_clean
    stay_out_of_tracebacks()
    core = sys.modules.get("jax._src.core")
    trace_state_clean = getattr(core, "trace_state_clean", trace_state_clean)
    cls = type(jax.jit(attach))  # not called, so nothing is traced
    original = cls.__call__
    cls.__call__ = timed_call(original)
    if not calls_python(cls):
        cls.__call__ = original
        hook.say("message", severity="warning", text="compiled functions of this JAX cannot be seen from Python")
        return
    ahead = getattr(jax.stages, "Compiled", None)
    if ahead is not None:
        ahead.__call__ = timed_call(ahead.__call__)


def calls_python(cls: type) -> bool:
    """Whether calls of such an object go through the class's `__call__`. Up to 3.11 Python keeps the flag that lets
    them take a short cut past it, so it is cleared here."""
    if not cls.__flags__ & VECTORCALL:
        return True
    if sys.version_info >= (3, 12) or sys.implementation.name != "cpython" or sys.maxsize < 1 << 32:
        return False
    with standard_library:
        import ctypes

    flags = ctypes.c_ulong.from_address(id(cls) + FLAGS_AT)
    if flags.value != cls.__flags__:
        return False
    flags.value &= ~VECTORCALL
    return not cls.__flags__ & VECTORCALL


def stay_out_of_tracebacks() -> None:
    """JAX notes the user's line with each operation and shows tracebacks without its own frames: nor with ours."""
    for name in ("jax._src.traceback_util", "jax._src.source_info_util"):
        exclude = getattr(sys.modules.get(name), "register_exclusion", None)
        if exclude is not None:
            exclude(__file__)
