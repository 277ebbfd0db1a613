"""What the loader as a whole promises, on real files and a real server: order, resuming, bad samples, faults, leaks."""

from __future__ import annotations

import hashlib
import io
import os
import pathlib
import tarfile
import threading
import time
import warnings

import pytest
from fault_server import Fault, FaultServer
from python_data import make_photos, require
from s3_server import S3

PER_CLASS = 34  # of three classes: 102 photos, so one is about 1 %
CROP = 24
PATIENCE_S = 180  # a leak, on any machine: a run beside this test has its channel in /dev/shm until it ends


@pytest.fixture(scope="module")
def photos(tmp_path_factory: pytest.TempPathFactory) -> pathlib.Path:
    require()
    return make_photos(tmp_path_factory.mktemp("promises") / "photos", PER_CLASS)


def folder(path: pathlib.Path, **options: object):
    from fullbore.data import ImageFolder, transforms

    augment = [
        transforms.RandomResizedCrop(CROP),
        transforms.RandomHorizontalFlip(),
        transforms.ColorJitter(0.3, 0.3, 0.3, 0.1),
        transforms.Normalize(),
    ]
    return ImageFolder(path, augment, **{"batch_size": 8, "seed": 11, "as_numpy": True, **options})


def batches(loader, upto: int | None = None) -> list[tuple[list[int], str]]:
    """Ids and a digest of the pixels and labels, for each batch."""
    found = []
    for images, labels in loader:
        digest = hashlib.sha256(images.tobytes() + labels.tobytes()).hexdigest()
        found.append((list(loader.last_batch.ids), digest))
        if upto is not None and len(found) == upto:
            break
    return found


# --- The same bytes, however they are loaded


def test_batches_are_the_same_bytes_for_any_number_of_threads(photos):
    expected = batches(folder(photos, threads=1))
    for options in ({"threads": 2}, {"threads": 8}, {}):
        with folder(photos, **options) as loader:
            assert batches(loader) == expected, options


def test_resuming_at_any_batch_gives_the_rest_byte_for_byte(photos):
    with folder(photos) as loader:
        whole = batches(loader)
    for stop in range(1, len(whole)):
        with folder(photos) as loader:
            first = batches(loader, stop)
            state = loader.state_dict()
        with folder(photos, threads=2) as loader:
            loader.load_state_dict(state)
            assert first + batches(loader) == whole, stop


def test_resuming_with_another_number_of_ranks_loses_and_repeats_nothing(photos):
    seen: list[int] = []
    for rank in range(2):
        with folder(photos, rank=rank, world_size=2) as loader:
            seen += [sample for ids, _ in batches(loader, 3) for sample in ids]
            state = loader.state_dict()
    for rank in range(3):
        with folder(photos, rank=rank, world_size=3, batch_size=5) as loader:
            loader.load_state_dict(state)
            for _ in loader:
                info = loader.last_batch
                seen += [sample for sample, valid in zip(info.ids, info.valid) if valid]
    assert sorted(seen) == list(range(3 * PER_CLASS))


# --- Bad samples


def damaged(photos: pathlib.Path, to: pathlib.Path) -> set[str]:
    """A copy with one file truncated, one emptied and one that is not an image; returns their names."""
    names = sorted(path.relative_to(photos) for path in photos.rglob("*.jpg"))
    bad = {names[5]: lambda data: data[: len(data) // 3], names[50]: lambda data: b"", names[90]: lambda data: b"text"}
    for name in names:
        (to / name).parent.mkdir(parents=True, exist_ok=True)
        data = (photos / name).read_bytes()
        (to / name).write_bytes(bad[name](data) if name in bad else data)
    return {str(to / name) for name in bad}


def test_corrupt_files_lose_only_their_own_samples(photos, tmp_path):
    bad = damaged(photos, tmp_path / "photos")
    with warnings.catch_warnings(record=True) as said, folder(tmp_path / "photos") as loader:
        warnings.simplefilter("always")
        seen = sorted(sample for ids, _ in batches(loader) for sample in ids)
        found = {sample.name for sample in loader.bad_samples}
        bad_ids = {sample.id for sample in loader.bad_samples}
    assert found == bad
    assert seen == sorted(set(range(3 * PER_CLASS)) - bad_ids)
    assert {name for name in bad if any(name in str(warning.message) for warning in said)} == bad


def test_a_file_that_vanishes_is_a_bad_sample_with_its_name(photos, tmp_path):
    damaged(photos, tmp_path / "photos")
    gone = tmp_path / "photos" / "cat" / "020.jpg"
    with warnings.catch_warnings(), folder(tmp_path / "photos") as loader:
        warnings.simplefilter("ignore")
        gone.unlink()
        batches(loader)
        assert str(gone) in {sample.name for sample in loader.bad_samples}


def as_shard(photos: pathlib.Path) -> bytes:
    held = io.BytesIO()
    with tarfile.open(fileobj=held, mode="w") as tar:
        for number, path in enumerate(sorted(photos.rglob("*.jpg"))):
            for extension, data in (("jpg", path.read_bytes()), ("cls", str(number % 3).encode())):
                entry = tarfile.TarInfo(f"{number:05}.{extension}")
                entry.size = len(data)
                tar.addfile(entry, io.BytesIO(data))
    return held.getvalue()


def shards(where: str, **options: object):
    from fullbore.data import WebDataset, transforms

    chosen = {"fields": ["jpg", "cls"], "batch_size": 8, "as_numpy": True, **options}
    return WebDataset(where, [transforms.Resize((CROP, CROP))], **chosen)


def test_a_shard_that_changes_under_the_loader_gives_no_wrong_sample(photos, tmp_path):
    from fullbore.data import LoaderError

    shard = tmp_path / "train.tar"
    shard.write_bytes(as_shard(photos))
    with warnings.catch_warnings(), shards(str(shard), prefetch_batches=1, threads=1) as loader:
        warnings.simplefilter("ignore")
        iteration = iter(loader)
        next(iteration)
        with open(shard, "r+b") as file:
            file.truncate(os.path.getsize(shard) // 4)
        with pytest.raises(LoaderError, match="bad"):  # more than an epoch may have
            for _ in iteration:
                pass
        assert all("chang" in sample.error for sample in loader.bad_samples)


# --- Storage that fails


@pytest.fixture
def server(photos):
    made = FaultServer()
    made.files["/train.tar"] = as_shard(photos)
    yield made
    made.close()


def remote(server: FaultServer, cache: pathlib.Path, **options: object):
    return shards(f"{server.url}/train.tar", cache_directory=cache, **options)


def test_an_epoch_over_a_failing_server_is_complete(server, tmp_path):
    server.faults += [Fault(status=503), Fault(status=500), Fault(reset=True, cut_after=1000), Fault(cut_after=50_000)]
    with warnings.catch_warnings(record=True) as said, remote(server, tmp_path / "cache") as loader:
        warnings.simplefilter("always")
        seen = sorted(sample for ids, _ in batches(loader) for sample in ids)
    assert seen == list(range(3 * PER_CLASS))
    assert any("train.tar" in str(warning.message) for warning in said)


@pytest.mark.long
def test_storage_that_stalls_for_ten_seconds_is_reported_and_waited_for(server, tmp_path):
    with remote(server, tmp_path / "cache", cache_bytes=0) as loader:
        server.faults.append(Fault(stall_s=10))
        with warnings.catch_warnings(record=True) as said:
            warnings.simplefilter("always")
            seen = sorted(sample for ids, _ in batches(loader) for sample in ids)
    assert not server.faults, "the server did not stall"
    assert seen == list(range(3 * PER_CLASS))
    assert any("train.tar" in str(warning.message) for warning in said), [str(warning.message) for warning in said]


def test_unavailable_storage_is_an_error_after_which_the_epoch_can_go_on(server, tmp_path):
    from fullbore.data import LoaderError

    with remote(server, tmp_path / "cache", cache_bytes=0, retries=1) as loader, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        server.faults += [Fault(status=500) for _ in range(500)]
        seen: list[int] = []
        failures = 0
        iteration = iter(loader)
        while True:
            try:
                next(iteration)
            except StopIteration:
                break
            except LoaderError:
                failures += 1
                server.faults.clear()
                continue
            seen += loader.last_batch.ids
    assert failures >= 1
    assert sorted(seen) == list(range(3 * PER_CLASS))


@pytest.fixture(scope="module")
def s3():
    made = S3()
    yield made
    made.close()


@pytest.mark.long
def test_shards_and_folders_are_read_in_full_from_a_real_s3_server(s3, photos, tmp_path, monkeypatch):
    for name, value in s3.keys.items():
        monkeypatch.setenv(name, value)
    s3.put("shards/train.tar", as_shard(photos))
    for path in photos.rglob("*.jpg"):
        s3.put(f"photos/{path.relative_to(photos)}", path.read_bytes())
    where = {"s3_endpoint": s3.endpoint, "cache_directory": tmp_path / "cache"}
    with shards("s3://data/shards/train.tar", **where) as loader:
        assert sorted(sample for ids, _ in batches(loader) for sample in ids) == list(range(3 * PER_CLASS))
    with folder("s3://data/photos/", **where) as remote_folder, folder(photos) as local_folder:
        assert remote_folder.classes == local_folder.classes
        assert batches(remote_folder) == batches(local_folder)


# --- Nothing is left behind


def resources() -> tuple[int, int, set[str]]:
    return len(os.listdir("/proc/self/fd")), len(os.listdir("/proc/self/task")), set(os.listdir("/dev/shm"))


def has_no_more_than(before: tuple[int, int, set[str]]) -> bool:
    return all(now <= then for now, then in zip(resources(), before))


def test_loaders_stopped_anywhere_leave_no_threads_files_or_shared_memory(photos):
    batches(folder(photos), 1)  # what a process creates only once
    settle()
    before = resources()
    for stop in (None, 1, 3):
        loader = folder(photos)
        batches(loader, stop)
        loader.close()
    consumer_that_stops = folder(photos)
    next(iter(consumer_that_stops))
    time.sleep(0.3)  # its buffer is full now, and its threads wait
    del consumer_that_stops
    # A thread that has finished its work may still be exiting, and other programs use shared memory, too.
    until = time.monotonic() + PATIENCE_S
    while not has_no_more_than(before) and time.monotonic() < until:
        time.sleep(0.02)
    assert has_no_more_than(before), (before, resources())


def settle() -> None:
    """Waits a while for the threads of earlier tests; threads of other libraries stay."""
    for _ in range(100):
        if len(os.listdir("/proc/self/task")) <= threading.active_count():
            break
        time.sleep(0.02)
