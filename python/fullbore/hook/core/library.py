"""The standard library for the hook, whatever files of the same names lie beside the script.

    with standard_library:
        import json

takes it, and all that it imports in turn, from where Python is installed. If the script's own `import` would find
another file for any of what was loaded now, all of that is the hook's alone: it leaves `sys.modules`, and what the
script imports later is what it imports without us. What the script has imported itself is not touched, and is what the
hook uses, too, unless it is a file of the script's.

This file imports nothing that Python's own start has not imported already; not even `__future__`.
"""

import _frozen_importlib
import _frozen_importlib_external
import _thread
import os
import posix
import sys

PACKAGE = __name__.partition(".")[0]
PLACES = tuple(place for place in sys.path if place == os.path.dirname(os.__file__) or place.endswith("/lib-dynload"))
NOT_OURS = {"sitecustomize", "usercustomize", "site-packages", "dist-packages", "__pycache__", PACKAGE}


def find_names():
    """The modules that may have a namesake beside a script: all that come from files."""
    names = set()
    for place in PLACES:
        try:
            names.update(entry.partition(".")[0] for entry in posix.listdir(place))
        except OSError:
            pass
    return names - NOT_OURS


def top(name):
    return name.partition(".")[0]


def is_file_of_library(name, file):
    """Whether the top-level module of this name comes from the library."""
    place, _, base = file.rpartition("/")
    if base.startswith("__init__."):
        place, _, package = place.rpartition("/")
        return package == name and place in PLACES
    return place in PLACES


def is_foreign(name, module):
    """Whether a module of the script's stands for the library's, or something else that the script put there."""
    try:
        members = vars(module)
        file, spec = members.get("__file__"), members.get("__spec__")
    except TypeError:
        return True
    if file is None:
        return getattr(spec, "origin", None) not in ("built-in", "frozen")
    return not is_file_of_library(name, file)


def is_shadowed(name):
    """Whether the script would import another file."""
    if name in sys.builtin_module_names or _frozen_importlib.FrozenImporter.find_spec(name) is not None:
        return False
    spec = _frozen_importlib_external.PathFinder.find_spec(name)
    return spec is None or spec.origin is None or not is_file_of_library(name, spec.origin)


class StandardLibrary:
    """A context manager, and while it is entered a finder for the thread that entered it."""

    def __init__(self):
        self.names = None
        self.own = {}  # the hook's alone: name -> module
        self.start()
        posix.register_at_fork(after_in_child=self.start)

    def start(self):
        self.lock = _thread.RLock()
        self.depth = 0
        self.thread = 0

    def find_spec(self, name, path=None, target=None):
        if path is not None or _thread.get_ident() != self.thread or name not in self.names:
            return None
        return (
            _frozen_importlib.BuiltinImporter.find_spec(name)
            or _frozen_importlib.FrozenImporter.find_spec(name)
            or _frozen_importlib_external.PathFinder.find_spec(name, PLACES)
        )

    def __enter__(self):
        self.lock.acquire()
        self.depth += 1
        if self.depth > 1:
            return
        if self.names is None:
            self.names = find_names()
        here = [name for name in list(sys.modules) if top(name) in self.names]
        foreign = {name for name in here if name == top(name) and is_foreign(name, sys.modules[name])}
        self.aside = {name: sys.modules.pop(name) for name in here if top(name) in foreign or name in self.own}
        sys.modules.update(self.own)
        self.before = set(sys.modules)
        self.thread = _thread.get_ident()
        sys.meta_path.insert(0, self)

    def __exit__(self, *_):
        try:
            if self.depth == 1:
                self.leave()
        finally:
            self.depth -= 1
            self.lock.release()

    def leave(self):
        self.thread = 0
        if self in sys.meta_path:
            sys.meta_path.remove(self)
        new = {name: sys.modules[name] for name in sys.modules.keys() - self.before if top(name) in self.names}
        if self.own or self.aside or any(is_shadowed(name) for name in {top(name) for name in new}):
            self.own.update(new)
        for name in self.own:
            sys.modules.pop(name, None)
        sys.modules.update(self.aside)


standard_library = StandardLibrary()
