"""The hook's modules for tests without training: loaded as sitecustomize loads them, without torch."""

from __future__ import annotations

import importlib
import importlib.util
import pathlib
import sys
from types import ModuleType

PLACE = pathlib.Path(__file__).parents[2] / "python" / "fullbore" / "hook"


def load(name: str) -> ModuleType:
    if "_fullbore_hook" not in sys.modules:
        spec = importlib.util.spec_from_file_location(
            "_fullbore_hook", PLACE / "__init__.py", submodule_search_locations=[str(PLACE)]
        )
        package = importlib.util.module_from_spec(spec)
        sys.modules["_fullbore_hook"] = package
        spec.loader.exec_module(package)
    return importlib.import_module(f"_fullbore_hook.{name}")
