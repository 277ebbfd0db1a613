"""Lets Fullbore see a training process from inside, once that process imports torch, or fullbore to mark its loops.

`fullbore run` puts this directory in front of PYTHONPATH, so Python imports this file at its start. It must cost
next to nothing and change nothing: it installs a finder that waits for either, then runs the `sitecustomize` that
would have run without us. Nothing is imported that Python's own start has not imported already, and the hook package
itself is loaded, by its place beside this directory and under a name of its own, only when they are.
"""

import _frozen_importlib
import _frozen_importlib_external
import os
import sys
import time

HERE = __file__.rpartition("/")[0]
NAMES = {"torch", "jax", "tensorflow", "keras", "fullbore"}  # finder.PARTS has what is watched


TRIAL_NOT_PROTECTED = 125  # exit status


class FirstFinder:
    """Finds nothing itself: it lets the other finders find torch, and loads the hook once torch is imported; or once
    fullbore is, with which a script marks its loops."""

    @staticmethod
    def find_spec(name, path=None, target=None):
        if name not in NAMES:
            return None
        try:
            sys.meta_path.remove(FirstFinder)
            hook = load_hook()
        except Exception as error:
            report(error)
            return None
        return hook.find_spec(name, path, target)


def load_hook():
    return load_package("_fullbore_hook", HERE.rpartition("/")[0]).start()


def protect_outputs(directory):
    """A trial of `fullbore tune`: from now on, before any module takes `open` by name. What is not protected does not
    run."""
    try:
        package = load_package("_fullbore_hook", HERE.rpartition("/")[0])
        with package.standard_library:
            import _fullbore_hook.steer.outputs

        _fullbore_hook.steer.outputs.attach(directory)
    except BaseException as error:
        os.write(2, f"fullbore: the script's outputs cannot be protected in {directory}: {error}\n".encode())
        os._exit(TRIAL_NOT_PROTECTED)


def load_package(name, place):
    if name not in sys.modules:
        spec = _frozen_importlib_external.spec_from_file_location(
            name, place + "/__init__.py", submodule_search_locations=[place]
        )
        package = _frozen_importlib.module_from_spec(spec)
        sys.modules[name] = package
        spec.loader.exec_module(package)
    return sys.modules[name]


def report(error):
    """Without a hook the script still runs. One line of docs/channel.md, without using what just failed."""
    try:
        now = time.monotonic_ns()
        text = f"the hook did not start: {type(error).__name__}: {error}; the training goes on without it"
        text = "".join(c if c.isprintable() and c not in '"\\' else " " for c in text)
        line = f'{{"t": {now}, "k": "message", "severity": "error", "text": "{text}"}}\n'
        path = f"{os.environ['FULLBORE_CHANNEL']}/{os.getpid()}-{now}.jsonl"
        fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
        try:
            os.write(fd, line.encode("utf-8", "replace"))
        finally:
            os.close(fd)
    except Exception:  # nothing left to try
        pass


def run_the_other_sitecustomize():
    """Replaces this module by the user's or the distribution's own; an error in that one is reported as usual."""
    sys.path[:] = [entry for entry in sys.path if entry.rstrip("/") != HERE]
    spec = _frozen_importlib_external.PathFinder.find_spec("sitecustomize", sys.path)
    if spec is None or spec.loader is None or (spec.origin or "").rpartition("/")[0] == HERE:
        return
    module = _frozen_importlib.module_from_spec(spec)
    sys.modules["sitecustomize"] = module
    spec.loader.exec_module(module)


try:
    if os.environ.get("FULLBORE_TRIAL_FILES"):
        protect_outputs(os.environ["FULLBORE_TRIAL_FILES"])
    if os.environ.get("FULLBORE_CHANNEL"):
        if NAMES & sys.modules.keys():
            load_hook().attach()
        else:
            sys.meta_path.insert(0, FirstFinder)
except Exception as error:
    report(error)

run_the_other_sitecustomize()
