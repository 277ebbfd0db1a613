"""What one sample of the training thread's stack says: the line, what is done there, and whether it feeds the loop.

The training loop is found rather than guessed: it is the innermost code that is also on the stack when the optimizer
steps. What it called is judged by the table in activities.txt.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from types import CodeType, FrameType
from typing import Any, NamedTuple

from ..core.frames import STANDARD_LIBRARY, is_user_file, user_frame
from . import activities as act
from . import hooked
from .hooked import module_of
from .instructions import CALL, INDEX, INTERPRETER, LOOP, executing, local, member
from .levels import Level, innermost_of_user

# What feeds the steps: in the iterator that the loop goes through, or in its body, waiting to receive something; of
# another process, if it is known to be one.
NOTHING, ITERATOR, RECEIVES, FROM_PROCESS = range(4)
NOT_DATA = (act.LOGGING, act.PLOTTING, act.METRICS, act.ENVIRONMENT)
# A library that calls the user's code is what that code is for, except for those that only wrap a loop or a call.
ACROSS_USER_CODE = (act.METRICS, act.ENVIRONMENT, act.DATA_PREPARATION, act.TOKENISING)
IMPORTING = "importlib._bootstrap"  # the module whose code runs an import
CO_GENERATOR = 0x20
MAX_CODES = 4096
RECEIVING_CALLS = ("socket.socket.recv", "socket.socket.recv_into", "zmq.sugar.socket.Socket.recv")
THIS_MACHINE = ("127.", "localhost", "::1")
PROTOCOL_OF_AN_ENVIRONMENT = ("step", "reset")  # the methods of gym, gymnasium and dm_env


class Sample(NamedTuple):
    file: str
    line: int
    function: str
    library: str  # whose loop it is, where the user has no line of their own in it
    activity: int
    feeds: int
    peer: str = ""  # "127.0.0.1:8000", whose answer it waits for


class Doing(NamedTuple):
    """What the loop's callees do, and what they wait to receive from elsewhere."""

    activity: int
    receives: int = act.SENDS
    at: Level | None = None  # the frame that receives it


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

    def is_before_its_step(self, own: Level) -> bool:
        """In the order of the code: what comes after the step is no part of what it trains on."""
        return own.offset < max(self.offsets[id(own.code)])


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
    doing = activity_of(inner, own, stack[0])
    feeds = feeds_of(doing, inner, own, loop)
    file, line = user.place()
    function, library = user.code.co_name, ""
    if own is not None and (id(user.code), user.line) in loop.user_lines:
        found = level_of_library(stack, own)
        if found is not None:
            library = package_of(own.frame)
            (file, line), function = found.place(), found.code.co_name
    peer = peer_of(doing.at) if feeds == FROM_PROCESS else ""
    return Sample(file, line, function, library, doing.activity, feeds, peer)


def feeds_of(doing: Doing, inner: Sequence[Level], own: Level | None, loop: Loop) -> int:
    from_process = doing.receives == act.FROM_PROCESS and not is_download(inner)
    if from_process and own is not None and loop.is_before_its_step(own):
        return FROM_PROCESS
    if own is not None and doing.activity not in NOT_DATA and advances(own, loop):
        return ITERATOR
    # An answer that comes after the step is one to what was sent: a report, an upload.
    return RECEIVES if doing.receives and doing.activity != act.NETWORK else NOTHING


def activity_of(inner: Sequence[Level], own: Level | None, innermost: Level) -> Doing:
    purpose, wait = act.UNKNOWN, Doing(act.UNKNOWN)
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
            purpose, wait, crossed, caller = act.UNKNOWN, Doing(act.UNKNOWN), False, None
            continue
        module = act.of_module(name)
        if module is act.NOTHING:
            continue
        if module.purpose:
            # A progress bar is an iterator around the one that works.
            bar = module.purpose == act.LOGGING and code.co_flags & CO_GENERATOR and (purpose or wait.activity)
            if not crossed and not bar:
                purpose = module.purpose
            elif crossed and purpose == act.UNKNOWN and module.purpose in ACROSS_USER_CODE:
                purpose = module.purpose
        if not crossed:
            found = act.of_wait(module, code.co_name)
            if found is not None and (not is_answer(wait) or is_answer(Doing(*found))):
                wait = Doing(*found, at)
    if purpose:
        return Doing(purpose)
    if wait.activity:
        return wait._replace(receives=act.FROM_PROCESS) if waits_for_descriptors(wait.at) else wait
    caller = caller or own or innermost
    now = executing(caller)
    if now.kind == CALL:
        called = act.of_call(now.callee) if now.callee else act.UNKNOWN
        if called == act.PYTHON and now.callee == "builtins.next":
            called = act.UNKNOWN
        if now.callee in RECEIVING_CALLS:
            return Doing(called, act.FROM_PROCESS)
        return Doing(called, act.RECEIVES if called == act.QUEUE else act.SENDS)
    if caller is not innermost:
        return Doing(act.UNKNOWN)
    return Doing({INDEX: act.DATA_PREPARATION, INTERPRETER: act.PYTHON}.get(now.kind, act.UNKNOWN))


def is_answer(wait: Doing) -> bool:
    """A client's frames stand around the one that waits for the answer: it does not send."""
    return wait.activity == act.NETWORK and wait.receives == act.FROM_PROCESS


def waits_for_descriptors(at: Level | None) -> bool:
    """Whether asyncio's loop waits for more than its own wake-up call: a socket, or a program's pipe."""
    if at is None or at.code.co_name != "_run_once" or module_of(at.frame) != "asyncio.base_events":
        return False
    selector = member(local(at.frame, "self"), "_selector")
    return len(member(selector, "_fd_to_key") or ()) > 1


def self_of(at: Level) -> Any:
    return local(at.frame, "self") if at.code.co_argcount else None


def host_of(connection: Any) -> str:
    """Of http.client, which most clients use that wait in the calling thread. That of urllib3 computes `host`."""
    host = member(connection, "host") or member(connection, "_dns_host")
    return host if isinstance(host, str) else ""


def peer_of(at: Level | None) -> str:
    connection = self_of(at) if at is not None else None
    host, port = host_of(connection), member(connection, "port")
    return f"{host}:{port}" if host and isinstance(port, int) else ""


def is_download(inner: Iterable[Level]) -> bool:
    """Who only gets something from another machine is not answered by what works for this training. The connection, the
    answer, or urllib3's around it says so: which of them waits is as the body is sent, in pieces or in one."""
    gets = False
    for at in inner:
        this = self_of(at)
        host = host_of(this) or host_of(member(this, "_connection"))
        if host.startswith(THIS_MACHINE):
            return False
        gets = gets or "GET" in (member(this, "_method"), member(member(this, "_original_response"), "_method"))
    return gets


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
