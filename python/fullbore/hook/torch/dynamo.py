"""What torch.compile compiles while the training runs, how often, and why again; and where it does not compile.

Dynamo tells its begin and its end, on the thread that it holds up: once, whatever is compiled inside. Older versions of
torch, without these callbacks, are not counted. Which guard failed, where a graph breaks and which functions are given
up are in dynamo's own tables, which are read after a compilation and now and then, never in a step.
"""

from __future__ import annotations

import re
import sys
from types import CodeType
from typing import Any

from ..core import channel, steps
from ..core.compilations import Compiled, count
from ..core.frames import full_name, is_user_file, variable
from ..core.runtime import Thread, clock, get_ident, guarded, hook

MAX_DEPTH = 50  # frames between dynamo's callback and its entry
MOST_BREAKS, MOST_LETTERS = 4, 120
LIMIT_REACHED = re.compile(r"recompile limit exceeded|cache_size_limit reached", re.IGNORECASE)
# "0/1: tensor 'x' size mismatch at index 0. expected 8, actual 7", "0/0: self.power == 0  # train.py:9 in step"
GUARD = re.compile(r"(?:\d+/\d+: )?(.*?)(?:\s+#|\n|$)")
OF_SHAPES = re.compile(r"(size|stride|rank) mismatch|\.size\(\)|\.stride\(\)")
OF_CONSTANTS = re.compile(r"(?!len\()\S+ == ")

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
                    compiled[code].place = full_name(code), code.co_firstlineno
            reason, compiled[code].example = why_again(code)
            count(compiled[code], end_ns - begin_ns, reason)
    except Exception as error:
        if not hook.fail("compilation", error):
            raise


def why_again(code: CodeType) -> tuple[str, str]:
    """As record/channel.h names it, and in dynamo's words: the guard that failed last."""
    failed = getattr(sys.modules.get("torch._dynamo.utils"), "guard_failures", {}).get(code)
    words = GUARD.match(str(failed[-1])) if failed else None
    if words is None:
        return "", ""
    said = words[1][:MOST_LETTERS]
    return "shapes" if OF_SHAPES.search(said) else "constants" if OF_CONSTANTS.match(said) else "", said


def looked_up(kind: str) -> dict[str, int]:
    """Of dynamo's counters, by what it says."""
    counters = getattr(sys.modules.get("torch._dynamo.utils"), "counters", {})
    return {str(said): number for said, number in counters.get(kind, {}).items()}


@guarded
def now_and_then(optimizer: Any, thread: Thread, end: int) -> None:
    if any(LIMIT_REACHED.search(said) for kind in ("unimplemented", "graph_break") for said in looked_up(kind)):
        hook.fact("compile_limit", True)
    breaks = [(said.split("\n")[0], number) for said, number in looked_up("graph_break").items()]
    breaks = [each for each in breaks if not LIMIT_REACHED.search(each[0])]
    if breaks:
        most = sorted(breaks, key=lambda each: -each[1])[:MOST_BREAKS]
        named = [{"reason": said[:MOST_LETTERS], "count": number} for said, number in most]
        hook.fact("graph_breaks", {"count": sum(number for _, number in breaks), "most": named})


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
        steps.now_and_then.append(now_and_then)
