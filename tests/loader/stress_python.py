"""What a training script does to the loader at the wrong moment: threads, forks, garbage collection, early exits.

`make test` leaves it out; `make asan` and `make tsan` run it with an engine built for that (sanitize_python.sh).
By hand: python -m pytest tests/loader/stress_python.py.
"""

from __future__ import annotations

import gc
import json
import os
import signal
import threading
import time
import warnings
import weakref

import pytest
from python_data import FAKE_CUDA, make_photos, require, run_script

require()
numpy = pytest.importorskip("numpy")

from fullbore import data as fb  # noqa: E402
from fullbore.data import _core  # noqa: E402
from fullbore.data import transforms as T  # noqa: E402

SMALL = [T.RandomResizedCrop((16, 16)), T.RandomHorizontalFlip(), T.Normalize()]
SAMPLES = 48


@pytest.fixture(scope="module")
def photos(tmp_path_factory):
    return make_photos(tmp_path_factory.mktemp("photos") / "train", per_class=SAMPLES // 3)


def opened(photos, **options):
    return fb.ImageFolder(photos, SMALL, 4, as_numpy=True, **{"threads": 4, **options})


def at_once(*functions):
    """Runs each in a separate thread; an exception, or a thread that does not end, fails the test."""
    raised = []

    def kept(function):
        try:
            function()
        except BaseException as error:
            raised.append(error)

    threads = [threading.Thread(target=kept, args=(function,), daemon=True) for function in functions]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert not raised, raised
    assert not any(thread.is_alive() for thread in threads)


def asker(loader, done):
    """Queries everything that may be queried from any thread, until told to stop."""

    def ask():
        while not done.is_set():
            loader.stats(), loader.bad_samples, loader.state_dict(), len(loader), loader.classes, loader.samples
            loader._say()
            gc.collect(0)

    return ask


def touch(sample):
    sample["image"] += 1
    sample["label"] += sample.seed % 2


@pytest.mark.parametrize("options", [{}, {"map": touch}])
def test_threads_share_an_iteration_while_others_query(photos, options):
    loader = opened(photos, **options)
    done = threading.Event()
    rows, lock = [], threading.Lock()

    def share():
        for images, labels in iteration:
            with lock:
                rows.append(len(labels))
            images += 1

    def epochs():
        nonlocal iteration
        for _ in range(4):
            iteration = iter(loader)
            at_once(share, share, share)
        done.set()

    iteration = None
    at_once(epochs, asker(loader, done), asker(loader, done))
    assert sum(rows) == 4 * SAMPLES  # none twice, none from the next epoch


def test_state_is_set_and_epochs_are_left_while_others_query(photos):
    loader, done = opened(photos, map=touch), threading.Event()

    def leave():
        for turn in range(15):
            for index, _ in enumerate(loader):
                if index == turn % 5:
                    break
            state = loader.state_dict()
            loader.set_epoch(turn)
            next(iter(loader))
            loader.load_state_dict(state)
            next(iter(loader))
        done.set()

    at_once(leave, asker(loader, done))


@pytest.mark.parametrize("options", [{}, {"map": touch}])
def test_a_loader_is_closed_while_threads_wait_in_it(photos, options):
    for turn in range(10):
        loader = opened(photos, **options)

        def consume(loader=loader):
            with pytest.raises(fb.LoaderError, match="closed|stopped|newer"):
                while True:
                    for _ in loader:
                        pass

        def close(loader=loader, turn=turn):
            time.sleep(0.002 * turn)
            loader.close()

        at_once(consume, consume, close, close)


def test_batches_are_released_by_other_threads_and_after_the_loader(photos):
    loader = opened(photos)
    kept = [batch for _ in range(3) for batch in loader]
    expected = [float(images.sum()) for images, _ in kept]
    parts = [kept[i::3] for i in range(3)]
    del loader, kept
    gc.collect()
    assert [float(images.sum()) for images, _ in (parts[i % 3][i // 3] for i in range(len(expected)))] == expected
    at_once(*(part.clear for part in parts))


def test_a_user_stage_raises_collects_garbage_and_queries(photos):
    def stage(sample):
        gc.collect(0)
        loader.stats(), loader.state_dict()
        if sample.id % 16 == 0:
            raise ValueError(f"sample {sample.id}")

    loader = opened(photos, map=stage)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for _ in range(3):
            assert sum(len(labels) for _, labels in loader) == SAMPLES - 3
    assert all("ValueError" in bad.error for bad in loader.bad_samples)
    loader.close()


def test_a_loader_is_collected_by_its_own_thread(photos):
    """The last reference goes while the stage runs, and it is the stage's thread that collects the cycle."""
    for _ in range(3):
        calls, dropped, collected = [], threading.Event(), threading.Event()

        def stage(sample, calls=calls, dropped=dropped, collected=collected):
            calls.append(sample.id)
            if len(calls) > 4 and dropped.wait(20):  # the first batch passes
                gc.collect()
                collected.set()

        loader = opened(photos, map=stage, threads=1)
        loader.itself = loader
        gone = weakref.ref(loader)
        gc.disable()
        try:
            next(iter(loader))
            del loader
            assert gone() is not None
            dropped.set()
            assert collected.wait(20)
            until = time.monotonic() + 20
            while gone() is not None and time.monotonic() < until:
                time.sleep(0.01)
            assert gone() is None
        finally:
            gc.enable()


FORK = """
    import os, sys, threading, time
    from fullbore.data import ImageFolder, LoaderError, transforms as T

    def opened(**options):
        return ImageFolder(sys.argv[1], [T.Resize((8, 8))], 4, as_numpy=True, threads=4, **options)

    def touch(sample):
        time.sleep(0.001)
        sample["label"] += 1

    if __name__ == "__main__":
        loader = opened({options})
        iteration = iter(loader)
        batch = next(iteration)
        children = []
        for turn in range(8):
            child = os.fork()
            if child == 0:
                try:
                    next(iteration)
                    sys.exit(1)
                except LoaderError as error:
                    assert "is a fork" in str(error)
                assert float(batch[0].sum()) > 0
                del batch
                if turn % 2:
                    fresh = opened(map=touch)
                    assert sum(len(labels) for _, labels in fresh) == int(sys.argv[2])
                    if turn % 4 == 1:
                        fresh.close()
                sys.exit(7)  # with destructors and atexit
            children.append(child)
            next(iteration)
        print([os.WEXITSTATUS(os.waitpid(child, 0)[1]) for child in children], flush=True)
        print(len(list(iteration)), flush=True)
"""


@pytest.mark.parametrize("options", ["", "map=touch"])
def test_children_forked_in_the_middle_exit_by_themselves(photos, tmp_path, options):
    done = run_script(FORK.replace("{options}", options), photos, SAMPLES, directory=tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.splitlines() == [str([7] * 8), str(SAMPLES // 4 - 9)], done.stderr


@pytest.mark.parametrize("ending", ["", "raise SystemExit(3)", "os.kill(os.getpid(), signal.SIGINT)"])
@pytest.mark.parametrize("options", ["map=slow", "map=slow, map_processes=2"])
def test_the_interpreter_exits_in_the_middle_of_everything(photos, tmp_path, options, ending):
    done = run_script(
        f"""
        import os, signal, sys, threading, time
        from fullbore.data import ImageFolder, transforms as T

        def slow(sample):
            time.sleep(0.02)

        def drain():
            for _ in range(100):
                for batch in loader:
                    kept.append(batch)

        if __name__ == "__main__":
            kept = []
            loader = ImageFolder(sys.argv[1], [T.Resize((8, 8))], 4, as_numpy=True, threads=4, {options})
            loader.itself = loader
            kept.append(next(iter(loader)))
            threading.Thread(target=drain, daemon=True).start()
            time.sleep(0.05)
            {ending}
        """,
        photos,
        directory=tmp_path,
    )
    expected = {"": 0, "raise SystemExit(3)": 3}.get(ending, -signal.SIGINT)
    assert done.returncode == expected, done.stderr
    for word in ("Fatal", "FATAL", "terminate", "Sanitizer"):
        assert word not in done.stderr


def test_a_pool_of_map_processes_is_closed_while_it_works(photos):
    for turn in range(3):
        loader = opened(photos, map=touch, map_processes=2)
        iteration = iter(loader)
        next(iteration)
        pids = loader._pool.pids()
        if turn == 1:
            os.kill(pids[0], signal.SIGKILL)
        if turn == 2:
            assert sum(len(labels) for _, labels in iteration) == SAMPLES - 4
        loader.close()
        assert not [pid for pid in pids if os.path.exists(f"/proc/{pid}")]


def test_texts_bytes_and_bad_samples_are_transferred(photos, tmp_path):
    rows = [f"{photos}/ant/{i % 16:03}.jpg,{i},text {i} \u00e4\u00f6" for i in range(60)]
    rows[7] = f"{photos}/ant/missing.jpg,7,gone"
    (tmp_path / "list.csv").write_text("path,label,caption\n" + "\n".join(rows) + "\n")
    loader = fb.FileList(
        tmp_path / "list.csv", SMALL, 8, fields=["path", "label", "caption"], as_numpy=True, map=lambda sample: None
    )
    kept = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for _ in range(3):
            kept += [(batch.caption, batch.label) for batch in loader]
    for captions, labels in kept:
        assert captions == [f"text {label} \u00e4\u00f6" for label in labels]
    assert sum(len(captions) for captions, _ in kept) == 3 * 59
    assert {bad.id for bad in loader.bad_samples} == {7}


def test_a_device_loader_is_queried_from_other_threads(photos, tmp_path):
    if not FAKE_CUDA.exists():
        pytest.skip("the fake driver is not built")
    options = {"source": {"paths": [str(photos)]}, "transforms": [T.Resize((8, 8)).describe()], "batch_size": 4}
    ran = run_script(
        f"""
        import threading
        from fullbore.data import _core
        loader = _core.open({json.dumps(options)!r}, None, 0)
        done = threading.Event()

        def ask():
            while not done.is_set():
                loader.stats(), loader.state(), loader.take_messages()

        asking = threading.Thread(target=ask)
        asking.start()
        rows, kept = 0, []
        for epoch in range(3):
            loader.set_stream(0)
            while (batch := loader.next()) is not None:
                rows += batch.rows
                kept = [batch.fields()]
        done.set()
        asking.join()
        print(rows)
        """,
        env={"FULLBORE_CUDA": str(FAKE_CUDA)},
        directory=tmp_path,
    )
    assert ran.returncode == 0, ran.stderr
    assert ran.stdout == f"{3 * SAMPLES}\n"


def test_nothing_of_the_engine_leaks(photos):
    """The garbage collector does not know batches: nanobind and the leak sanitizer report them when Python exits."""
    for _ in range(10):
        loader = opened(photos, map=touch)
        next(iter(loader))
    del loader
    gc.collect()
    left = [thing for thing in gc.get_objects() if type(thing) is _core.Loader]
    assert left == []
