"""fullbore.data with a function of the user's: map, in threads and in processes."""

from __future__ import annotations

import gc
import os
import threading
import time
import warnings
import weakref

import pytest
from python_data import require, run_script

require()
torch = pytest.importorskip("torch")
numpy = pytest.importorskip("numpy")

from fullbore import data as fb  # noqa: E402
from fullbore.data import transforms as T  # noqa: E402

SMALL = [T.Resize((16, 16))]


def test_a_map_function_changes_rows_in_place_or_returns_them(photos):
    def in_place(sample):
        sample["image"] *= 0
        sample["image"] += sample.id
        sample["label"] += 100

    images, labels = next(iter(fb.ImageFolder(photos, SMALL, 24, shuffle=False, map=in_place)))
    assert images[:, 0, 0, 0].tolist() == list(range(24)) and labels.tolist() == [100] * 8 + [101] * 8 + [102] * 8

    def returned(sample):
        return {"image": numpy.full((3, 16, 16), sample.seed % 1000), "label": 5}

    loader = fb.ImageFolder(photos, SMALL, 24, shuffle=False, map=returned)
    first = next(iter(loader))
    again = next(iter(fb.ImageFolder(photos, SMALL, 24, shuffle=False, map=returned, threads=1)))
    assert torch.equal(first[0], again[0]) and first[1].tolist() == [5] * 24
    assert "user" in [stage["name"] for stage in loader.stats()["stages"]]


def test_an_exception_in_map_makes_a_bad_sample_with_the_tracebacks_last_line(photos):
    def fails(sample):
        if sample.id == 3:
            raise KeyError("no such thing")
        if sample.id == 4:
            sample["image"] = numpy.zeros((1, 2, 3))

    loader = fb.ImageFolder(photos, SMALL, 24, shuffle=False, map=fails)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert sum(len(labels) for _, labels in loader) == 22
    errors = {bad.id: bad.error for bad in loader.bad_samples}
    assert "KeyError: 'no such thing'" in errors[3] and "test_python_map.py" in errors[3]
    assert "shape (1, 2, 3)" in errors[4]


def test_a_map_function_may_keep_its_views(photos):
    seen = []
    loader = fb.ImageFolder(photos, SMALL, 4, as_numpy=True, map=lambda sample: seen.append(sample["image"]))
    delivered = {image.tobytes() for images, _ in loader for image in images}
    loader.close()
    del loader
    gc.collect()
    assert delivered <= {view.tobytes() for view in seen}  # released memory would crash the process


def test_a_loader_whose_map_function_refers_to_it_is_garbage_collected(photos):
    class Trainer:
        def __init__(self):
            self.loader = fb.ImageFolder(photos, SMALL, 4, map=self.change)

        def change(self, sample):
            sample["label"] += 1

    for leave_early in (True, False):
        trainer = Trainer()
        for _ in trainer.loader:
            if leave_early:
                break
        gone = weakref.ref(trainer)
        del trainer
        until = time.monotonic() + 20
        while gone() is not None and time.monotonic() < until:  # a running call keeps it alive
            gc.collect()
            time.sleep(0.001)
        assert gone() is None


def test_threads_get_the_requested_niceness(photos):
    own, seen = os.getpriority(os.PRIO_PROCESS, 0), set()

    def note(sample):
        seen.add(os.getpriority(os.PRIO_PROCESS, threading.get_native_id()))

    list(fb.ImageFolder(photos, SMALL, 4, map=note, nice=3))
    assert seen == {min(own + 3, 19)}  # 19 is the highest niceness
    assert os.getpriority(os.PRIO_PROCESS, 0) == own  # the training's own stays the same


MAP_PROCESSES = """
    import os, sys, warnings
    from fullbore.data import ImageFolder, transforms as T

    def work(sample):
        if sys.argv[2] == "kill" and sample.id == 5 and not os.path.exists(sys.argv[3]):
            open(sys.argv[3], "w").close()
            os.kill(os.getpid(), 9)
        if sys.argv[2] == "always" and sample.id == 5:
            os.kill(os.getpid(), 9)
        sample["label"] = os.getppid()  # its own pid says nothing if others have replaced it

    if __name__ == "__main__":
        warnings.simplefilter("always")
        loader = ImageFolder(sys.argv[1], [T.Resize((8, 8))], 24, as_numpy=True, map=work, map_processes=2)
        pids = set(loader._pool.pids())
        _, labels = next(iter(loader))
        print(len(labels), set(labels.tolist()) == {os.getpid()})
        print([bad.error for bad in loader.bad_samples])
        pids |= set(loader._pool.pids())
        loader.close()
        print([pid for pid in pids if os.path.exists(f"/proc/{pid}")])
"""


@pytest.mark.parametrize(("how", "rows"), [("never", 24), ("kill", 24), ("always", 23)])
def test_map_processes_survive_being_killed(photos, tmp_path, how, rows):
    done = run_script(MAP_PROCESSES, photos, how, tmp_path / "once", directory=tmp_path)
    assert done.returncode == 0, done.stderr
    counted, bad, left = done.stdout.splitlines()
    assert counted == f"{rows} True" and left == "[]"
    assert ("killed by signal 9" in bad) == (how == "always")
    restarts = done.stderr.count("restarted")
    assert restarts == {"never": 0, "kill": 1}.get(how, restarts) and restarts <= 3
