"""What is hooked into torch's passes: functions that a script or a tracker has registered on modules and tensors, and
the stacks that anomaly detection keeps. The passes call them, and no clock around a pass tells them from the model."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from types import CodeType, FrameType
from typing import NamedTuple

from ..core.frames import is_user_file
from . import activities as act
from .instructions import local
from .levels import Level

MODULE = ("torch.nn.modules.module", ("_call_impl", "inner"))  # calls a module's forward, and the hooks around it
WRAPPERS = "torch.utils.hooks"  # the hooks of a module's backward pass
ENGINE = (("torch.autograd.graph", "_engine_run_backward"), ("torch.autograd", "backward"))  # since 2.3, and before
STACKS = ("torch.fx.traceback", "traceback")  # who formats the stack of an operation


class Hooked(NamedTuple):
    activity: int
    at: Level  # whose line is named


def find(stack: Sequence[Level], user: Level) -> Hooked | None:
    """What runs inside a pass without being of the model: None for all else. `user`: the user's innermost level."""
    if keeps_stack(stack):
        return Hooked(act.ANOMALY, user)
    own: Level | None = None  # the user's innermost, from its level outwards
    for at, caller in zip(stack, stack[1:]):
        if at is user:
            own = user
        if calls_hooks(caller.frame) and is_hook(at.frame, caller.frame):
            return Hooked(act.HOOK, own or at)
    return None


def calls_hooks(frame: FrameType) -> bool:
    name, function = module_of(frame), frame.f_code.co_name
    return name == WRAPPERS or (name == MODULE[0] and function in MODULE[1]) or (name, function) in ENGINE


def is_hook(frame: FrameType, caller: FrameType) -> bool:
    """The user's function, or a tracker's: not what torch, a wrapper of the model or we ourselves have hooked in."""
    if not is_user_file(frame.f_code.co_filename) and act.of_module(module_of(frame)).purpose != act.LOGGING:
        return False
    if module_of(caller) != MODULE[0]:
        return True
    return not is_same(frame.f_code, forward_of(local(caller, "self"), frame.f_code))


def is_same(code: CodeType, other: CodeType) -> bool:
    """Also where torch.compile runs code of its own making in place of the other: it keeps file, name and line."""
    place, of_other = [(each.co_filename, each.co_name, each.co_firstlineno) for each in (code, other)]
    return place == of_other


def forward_of(module: object, unknown: CodeType) -> CodeType:
    """The code of a module's forward, past any property of the script's; `unknown` where it is no plain function."""
    if module is None or "forward" in vars(module):
        return unknown
    for kind in type(module).__mro__:
        if "forward" in vars(kind):
            code = getattr(vars(kind)["forward"], "__code__", unknown)
            return code if isinstance(code, CodeType) else unknown
    return unknown


def keeps_stack(stack: Sequence[Level]) -> bool:
    """Whether torch is keeping the stack of an operation, to name it where a gradient is NaN."""
    torch = sys.modules.get("torch")
    if torch is None or not getattr(torch, "is_anomaly_enabled", bool)():
        return False
    for at in stack:
        if is_user_file(at.code.co_filename):
            return False
        if at.code.co_name == "format_stack" and module_of(at.frame) in STACKS:
            return True
    return False


def module_of(frame: FrameType) -> str:
    name = frame.f_globals.get("__name__")
    return name if type(name) is str else ""
