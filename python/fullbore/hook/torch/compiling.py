"""Whether dynamo is tracing: then no part of ours may enter the graph."""

from __future__ import annotations

import sys
from typing import Callable


def never() -> bool:
    return False


def is_compiling_test() -> Callable[[], bool]:
    """torch's own test for 'dynamo is tracing this', which dynamo folds to a constant: our wrappers then vanish.

    Of its two tests the narrower one, where that is a bare `return False` for everybody but dynamo: the other one calls
    functions, five times in a step."""
    compiler = getattr(sys.modules["torch"], "compiler", None)
    narrow = getattr(compiler, "is_dynamo_compiling", None)
    if narrow is not None and not getattr(getattr(narrow, "__code__", None), "co_names", True):
        return narrow
    return getattr(compiler, "is_compiling", never)
