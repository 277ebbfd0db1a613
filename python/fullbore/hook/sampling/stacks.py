"""What one sample of the training thread's stack says: the line, what is done there, and whether it feeds the loop.

The training loop is found rather than guessed: it is the innermost code that is also on the stack when the optimizer
steps. What it called is judged by the table in activities.txt.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from types import CodeType, FrameType
from typing import NamedTuple

from ..core.frames import STANDARD_LIBRARY, is_user_file, user_frame
from . import activities as act
from . import hooked
from .hooked import module_of
from .instructions import CALL, INDEX, INTERPRETER, LOOP, executing, local
from .levels import Level, innermost_of_user

# What feeds the steps: in the iterator that the loop goes through, or in its body, waiting to receive something.
NOTHING, ITERATOR, RECEIVES = range(3)
NOT_DATA = (act.LOGGING, act.PLOTTING, act.METRICS, act.ENVIRONMENT)
# A library that calls the user's code is what that code is for, except for those that only wrap a loop or a call.
ACROSS_USER_CODE = (act.METRICS, act.ENVIRONMENT, act.DATA_PREPARATION, act.TOKENISING)
IMPORTING = "importlib._bootstrap"  # the module whose code runs an import
CO_GENERATOR = 0x20
MAX_CODES = 4096
PROTOCOL_OF_AN_ENVIRONMENT = ("step", "reset")  # the methods of gym, gymnasium and dm_env


class Sample(NamedTuple):
    file: str
    line: int
    function: str
    library: str  # whose loop it is, where the user has no line of their own in it
    activity: int
    feeds: int


class Loop:
    """The stacks on which the optimizer stepped."""

    def __init__(self) -> None:
        self.codes: dict[int, CodeType] = {}
        self.offsets: dict[int, set[int]] = {}  # of a code: where its steps are
        self.user_lines: set[tuple[int, int]] = set()  # innermost lines of the user's, at a step

    def learn(self, frame: FrameType | None) -> None:
        """The calling thread is inside an optimizer's step: one of the first, or one now and then, because a later
        phase has a loop of its own."""
        if len(self.codes) > MAX_CODES:
            return
        user = user_frame(frame)
        if user is not None:
            self.user_lines.add((id(user.f_code), user.f_lineno))
        while frame is not None:
            code = frame.f_code
            self.codes[id(code)] = code
            self.offsets.setdefault(id(code), set()).add(frame.f_lasti)
            frame = frame.f_back

    def split(self, stack: Sequence[Level]) -> tuple[Sequence[Level], Level | None]:
        """What the loop has called, innermost first, and the loop's own level."""
        for number, at in enumerate(stack):
            if id(at.code) in self.codes:
                return stack[:number], at
        return stack, None


def read(stack: Sequence[Level], loop: Loop) -> Sample | None:
    """None where the user has no frame on the stack."""
    user = innermost_of_user(stack)
    if user is None:
        return None
    inside = hooked.find(stack, user)
    if inside is not None:
        file, line = inside.at.place()
        return Sample(file, line, inside.at.code.co_name, "", inside.activity, NOTHING)
    inner, own = loop.split(stack)
    activity, receives = activity_of(inner, own, stack[0])
    feeds = NOTHING
    if own is not None and activity not in NOT_DATA and advances(own, loop):
        feeds = ITERATOR
    elif receives:
        feeds = RECEIVES
    file, line = user.place()
    function, library = user.code.co_name, ""
    if own is not None and (id(user.code), user.line) in loop.user_lines:
        found = level_of_library(stack, own)
        if found is not None:
            library = package_of(own.frame)
            (file, line), function = found.place(), found.code.co_name
    return Sample(file, line, function, library, activity, feeds)


def activity_of(inner: Sequence[Level], own: Level | None, innermost: Level) -> tuple[int, bool]:
    """What the loop's callees do, and whether they wait to receive something from elsewhere."""
    purpose, wait, receives = act.UNKNOWN, act.UNKNOWN, False
    crossed = False  # a frame of the user's
    caller = None  # the user's innermost frame, or the loop's: what it calls is looked up
    for at in inner:
        code = at.code
        if is_user_file(code.co_filename):
            caller = caller or at
            crossed = True
            if purpose == act.UNKNOWN and is_environment(at.frame):
                purpose = act.ENVIRONMENT
            continue
        name = module_of(at.frame)
        if name == IMPORTING:  # what a module does while it is imported is not what it is for
            purpose, wait, receives, crossed, caller = act.UNKNOWN, act.UNKNOWN, False, False, None
            continue
        module = act.of_module(name)
        if module is act.NOTHING:
            continue
        if module.purpose:
            # A progress bar is an iterator around the one that works.
            bar = module.purpose == act.LOGGING and code.co_flags & CO_GENERATOR and (purpose or wait)
            if not crossed and not bar:
                purpose = module.purpose
            elif crossed and purpose == act.UNKNOWN and module.purpose in ACROSS_USER_CODE:
                purpose = module.purpose
        if not crossed:
            found = act.of_wait(module, code.co_name)
            if found is not None:
                wait, receives = found
    if purpose:
        return purpose, False
    if wait:
        return wait, receives
    caller = caller or own or innermost
    now = executing(caller)
    if now.kind == CALL:
        called = act.of_call(now.callee) if now.callee else act.UNKNOWN
        if called == act.PYTHON and now.callee == "builtins.next":
            called = act.UNKNOWN
        return called, called == act.QUEUE
    if caller is not innermost:
        return act.UNKNOWN, False
    return {INDEX: act.DATA_PREPARATION, INTERPRETER: act.PYTHON}.get(now.kind, act.UNKNOWN), False


def advances(own: Level, loop: Loop) -> bool:
    """Whether the loop is asking its iterator for the next item: at the head of the `for` that steps, or in next()."""
    now = executing(own)
    if now.kind == LOOP:
        begin, end = now.body
        return any(begin < offset < end for offset in loop.offsets.get(id(own.code), ()))
    return now.kind == CALL and now.callee == "builtins.next"


_environments: dict[int, tuple[CodeType, bool]] = {}


def is_environment(frame: FrameType) -> bool:
    """Whether it runs a method of an object that one steps and resets. Asked once for each method."""
    code = frame.f_code
    if code.co_name not in PROTOCOL_OF_AN_ENVIRONMENT or not code.co_argcount:
        return False
    known = _environments.get(id(code))
    if known is None:
        kind = type(local(frame, code.co_varnames[0]))
        has = all(any(name in vars(base) for base in kind.__mro__) for name in PROTOCOL_OF_AN_ENVIRONMENT)
        known = _environments[id(code)] = (code, has)
    return known[1]


def package_of(frame: FrameType) -> str:
    return module_of(frame).partition(".")[0]


def level_of_library(stack: Sequence[Level], own: Level) -> Level | None:
    """The innermost of the library whose loop `own` is; None where that is the user's, torch's or Python's."""
    name = own.code.co_filename
    library = package_of(own.frame)
    if is_user_file(name) or name.startswith((STANDARD_LIBRARY + "/", "<")) and "-packages" not in name:
        return None
    if library in ("torch", "_fullbore_hook", ""):
        return None
    return next((at for at in stack if package_of(at.frame) == library), None)


def all_wait(frames: Iterable[FrameType]) -> bool:
    """Whether all of these threads wait: none of them wants Python's lock."""
    return all(act.of_wait(act.of_module(module_of(frame)), frame.f_code.co_name) is not None for frame in frames)
