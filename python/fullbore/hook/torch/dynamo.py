"""What torch.compile compiles while the training runs, and how often.

Dynamo tells its begin and its end, on the thread that it holds up: once, whatever is compiled inside. Older versions of
torch, without these callbacks, are not counted.
"""

from __future__ import annotations

import sys
from types import CodeType
from typing import Any

from ..core import channel
from ..core.compilations import Compiled, count
from ..core.frames import is_user_file, variable
from ..core.runtime import clock, get_ident, hook

MAX_DEPTH = 50  # frames between dynamo's callback and its entry

compiled: dict[CodeType, Compiled] = {}
began: dict[int, int] = {}  # ns, by thread
hook.forget_in_child.append(compiled.clear)


def begin(*_: Any) -> None:
    began[get_ident()] = clock()


def end(*_: Any) -> None:
    """Must not raise: dynamo would pass it on."""
    begin_ns = began.pop(get_ident(), None)
    if begin_ns is None or not hook.on or hook.is_worker:
        return
    try:
        end_ns = clock()
        hook.record(channel.OTHER, channel.COMPILATION, hook.here().number, begin_ns, end_ns)
        code = function_compiled()
        if code is not None:
            if code not in compiled:
                compiled[code] = Compiled(code.co_name)
                if is_user_file(code.co_filename):
                    compiled[code].place = code.co_filename, code.co_firstlineno
            count(compiled[code], end_ns - begin_ns, "")
    except Exception as error:
        if not hook.fail("compilation", error):
            raise


def function_compiled() -> CodeType | None:
    """What dynamo's entry, further out on this thread, was called for."""
    frame = sys._getframe(2)
    for _ in range(MAX_DEPTH):
        if frame is None:
            break
        if frame.f_code.co_name == "_compile":
            code = variable(frame, "code")
            return code if isinstance(code, CodeType) else None
        frame = frame.f_back  # type: ignore[assignment]
    return None


def attach(module: Any) -> None:
    """Registers with torch._dynamo.callback."""
    handler = getattr(module, "callback_handler", None)
    if handler is not None:
        handler.register_start_callback(begin)
        handler.register_end_callback(end)
