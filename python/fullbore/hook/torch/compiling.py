"""Whether dynamo is tracing: then no part of ours may enter the graph."""

from __future__ import annotations

import sys
from typing import Callable


def never() -> bool:
    return False


def is_compiling_test() -> Callable[[], bool]:
    """torch's own test for 'dynamo is tracing this', which dynamo folds to a constant: our wrappers then vanish."""
    compiler = getattr(sys.modules["torch"], "compiler", None)
    return getattr(compiler, "is_compiling", never)
