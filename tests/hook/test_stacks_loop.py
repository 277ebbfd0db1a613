"""What a sample of the training thread's stack says of its loop: what feeds it, and whose line it is."""

from __future__ import annotations

import contextlib
import sys
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest
from sampled_training import Training, act, beside, does, most, needs_columns, needs_lock, stacks

pytestmark = needs_lock


# ---- what feeds the loop ----


def prepared() -> Iterator[int]:
    while True:
        yield sum(range(20000))


class Batches:
    """An iterator of the script's own."""

    def __iter__(self) -> Batches:
        return self

    def __next__(self) -> int:
        return sum(range(20000))


@pytest.mark.parametrize("items", [prepared, Batches])
def test_the_iterator_of_the_loop_that_steps_feeds_it(items):
    def train(training: Training) -> None:
        for _ in items():
            training.step()
            if training.over:
                return

    assert most(Training(train).sampled(), "feeds") == stacks.ITERATOR


@needs_columns
def test_next_in_the_loop_feeds_it():
    items = prepared()

    def train(training: Training) -> None:
        while not training.over:
            item = next(items)
            training.step()
            del item

    assert most(Training(train).sampled(), "feeds") == stacks.ITERATOR


def test_a_loop_inside_the_body_does_not_feed_the_training():
    def body() -> None:
        for _, value in zip(range(3), prepared()):
            del value

    assert most(beside(body), "feeds") == stacks.NOTHING


def test_generators_that_are_no_iterators_of_the_loop_do_not_feed_it():
    @contextlib.contextmanager
    def timed() -> Iterator[None]:
        sum(range(20000))
        yield

    def train(training: Training) -> None:
        while not training.over:
            training.step()
            with timed():
                pass
            sum(value for value in range(20000))

    assert most(Training(train).sampled(), "feeds") == stacks.NOTHING


def test_results_of_a_pool_feed_the_loop():
    gate = threading.Event()

    def work(item: int) -> int:
        if item > 0:
            gate.wait()
        return item

    with ThreadPoolExecutor(1) as pool:

        def train(training: Training) -> None:
            for _ in pool.map(work, range(2)):
                training.step()

        training = Training(train)
        seen = training.sampled()
        gate.set()
    assert (does(seen), most(seen, "feeds")) == (act.FUTURE, stacks.ITERATOR)


class Slow:
    """A dataset whose samples take a while."""

    def __len__(self) -> int:
        return 1000

    def __getitem__(self, index: int) -> int:
        time.sleep(0.02)
        return index


@pytest.mark.long
@pytest.mark.parametrize("wrap", [iter, lambda loader: zip(loader, range(1000))])
def test_the_processes_of_a_dataloader_are_no_other_process_that_is_waited_for(wrap):
    data = pytest.importorskip("torch.utils.data")

    def train(training: Training) -> None:
        items = wrap(data.DataLoader(Slow(), batch_size=4, num_workers=1))
        while not training.over:
            next(items)
            training.step()

    seen = Training(train).sampled()
    assert seen and stacks.FROM_PROCESS not in {sample.feeds for sample in seen}


# ---- the line ----


def library(directory, name: str, text: str):
    """A package installed where pip installs them."""
    folder = directory / "site-packages" / name
    folder.mkdir(parents=True)
    (folder / "__init__.py").write_text(text)
    sys.path.insert(0, str(folder.parent))
    try:
        return __import__(name)
    finally:
        sys.path.remove(str(folder.parent))


LOOP_OF_A_LIBRARY = """
def fit(training, callback=None):
    while not training.over:
        training.step()
        if callback is None:
            sum(range(20000))  # the library's own work
        else:
            callback()
"""


def test_where_the_user_has_no_line_in_the_loop_the_library_is_named(tmp_path):
    trainer = library(tmp_path, "some_trainer", LOOP_OF_A_LIBRARY)
    training = Training(lambda training: trainer.fit(training))
    seen = training.sampled()
    assert most(seen, "library") == "some_trainer"
    assert most(seen, "file").endswith("site-packages/some_trainer/__init__.py")
    assert most(seen, "function") == "fit"


def test_the_users_own_line_inside_a_librarys_loop_is_named(tmp_path):
    trainer = library(tmp_path, "other_trainer", LOOP_OF_A_LIBRARY)

    def mine() -> None:
        sum(range(20000))

    training = Training(lambda training: trainer.fit(training, mine))
    seen = training.sampled()
    assert (most(seen, "library"), most(seen, "function"), most(seen, "file")) == ("", "mine", __file__)
