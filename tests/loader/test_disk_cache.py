"""The disk cache: shared by processes, killed, out of space, out of date."""

from __future__ import annotations

import os
import pathlib
import resource
import signal
import subprocess
import threading
import time

import pytest
from fault_server import Fault, FaultServer
from store_fetch import TIMEOUT_S, Said, command, digest, environment, fetch, make_bytes, needs_store_fetch

pytestmark = needs_store_fetch


def shard(server: FaultServer, count: int = 20_000_000) -> bytes:
    data = server.files["/shard.tar"] = make_bytes(count)
    return data


def chunks(cache: pathlib.Path) -> list[pathlib.Path]:
    return [path for path in cache.glob("chunks-1/??/*") if path.is_file()]


def test_an_epoch_in_any_order_costs_one_request_per_chunk(server: FaultServer, tmp_path: pathlib.Path) -> None:
    data = shard(server)
    samples = ["--piece", "100000", "--threads", "4", "--shuffled", "--cache", tmp_path]
    assert fetch(f"{server.url}/shard.tar", *samples).digests == [digest(data)]
    assert len(server.gets()) == 3
    assert fetch(f"{server.url}/shard.tar", *samples).digests == [digest(data)]
    assert len(server.gets()) == 3


def test_ranks_that_start_together_fetch_each_chunk_once(server: FaultServer, tmp_path: pathlib.Path) -> None:
    data = shard(server)
    ranks = [
        subprocess.Popen(
            command(f"{server.url}/shard.tar", "--piece", "100000", "--threads", "2", "--cache", tmp_path),
            env=environment(),
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for _ in range(4)
    ]
    for rank in ranks:
        out, err = rank.communicate(timeout=TIMEOUT_S)
        assert Said(rank.returncode, out, err).digests == [digest(data)]
    assert len(server.gets()) == 3


def test_without_the_cache_neighbours_share_requests(server: FaultServer) -> None:
    data = shard(server)
    assert fetch(f"{server.url}/shard.tar", "--piece", "100000", "--cache-bytes", "0").digests == [digest(data)]
    assert len(server.gets()) < 15  # of 200 samples


def test_a_changed_object_is_never_read_from_the_cache(server: FaultServer, tmp_path: pathlib.Path) -> None:
    for seed in (1, 2):
        server.files["/x"] = make_bytes(100_000, seed)
        assert fetch(f"{server.url}/x", "--cache", tmp_path).digests == [digest(server.files["/x"])]


def test_the_cache_keeps_to_its_limit(server: FaultServer, tmp_path: pathlib.Path) -> None:
    data = shard(server, 50_000_000)
    limit = 20_000_000
    said = fetch(f"{server.url}/shard.tar", "--piece", "1000000", "--cache", tmp_path, "--cache-bytes", str(limit))
    assert said.digests == [digest(data)]
    assert 0 < sum(path.stat().st_size for path in chunks(tmp_path)) <= limit


def test_killed_processes_leave_a_usable_cache(server: FaultServer, tmp_path: pathlib.Path) -> None:
    data = shard(server)
    for round_ in range(12):
        process = subprocess.Popen(
            command(
                f"{server.url}/shard.tar", "--piece", "300000", "--threads", "3", "--shuffled", "--cache", tmp_path
            ),
            env=environment(),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        time.sleep(0.01 + 0.012 * round_)
        process.send_signal(signal.SIGKILL)
        process.wait()
        if round_ % 4 == 3:
            for path in chunks(tmp_path)[:1]:
                path.unlink()  # so that there is something to write until the end
    said = fetch(f"{server.url}/shard.tar", "--piece", "100000", "--cache", tmp_path)
    assert said.digests == [digest(data)]
    assert not said.messages
    assert not list(tmp_path.glob("chunks-1/??/*.part"))


def test_a_full_disk_switches_the_cache_off_with_one_message(server: FaultServer, tmp_path: pathlib.Path) -> None:
    data = shard(server)
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=10m", "tmpfs", tmp_path], capture_output=True)
    if mounted.returncode != 0:
        pytest.skip("mounting a small tmpfs is not allowed here")
    try:
        said = fetch(f"{server.url}/shard.tar", "--piece", "100000", "--threads", "4", "--cache", tmp_path)
    finally:
        subprocess.run(["umount", "-l", tmp_path], check=True)
    assert said.digests == [digest(data)]
    assert len(said.messages) == 1 and "No space left" in said.messages[0]


def test_a_limit_on_file_sizes_switches_the_cache_off_with_one_message(
    server: FaultServer, tmp_path: pathlib.Path
) -> None:
    data = shard(server)

    def limited() -> None:
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)  # as in every Python process
        resource.setrlimit(resource.RLIMIT_FSIZE, (1_000_000, 1_000_000))

    said = fetch(
        f"{server.url}/shard.tar", "--piece", "100000", "--threads", "4", "--cache", tmp_path, preexec_fn=limited
    )
    assert said.digests == [digest(data)]
    assert len(said.messages) == 1 and "File too large" in said.messages[0]


def test_an_unusable_directory_is_reported_once(server: FaultServer, tmp_path: pathlib.Path) -> None:
    data = shard(server)
    (tmp_path / "file").touch()
    said = fetch(f"{server.url}/shard.tar", "--piece", "100000", "--cache", tmp_path / "file" / "cache")
    assert said.digests == [digest(data)]
    assert len(said.messages) == 1 and "disk cache" in said.messages[0]


def test_another_users_cache_is_reported_once(server: FaultServer, tmp_path: pathlib.Path) -> None:
    if os.geteuid() != 0:
        pytest.skip("only root can become somebody else")
    data = shard(server)
    (tmp_path / "cache").mkdir(mode=0o755)
    for folder in [tmp_path, *tmp_path.parents]:
        if not folder.stat().st_mode & 0o001:
            folder.chmod(folder.stat().st_mode | 0o011)

    def nobody() -> None:
        os.setgroups([])
        os.setgid(65534)
        os.setuid(65534)

    said = fetch(f"{server.url}/shard.tar", "--piece", "100000", "--cache", tmp_path / "cache", preexec_fn=nobody)
    assert said.digests == [digest(data)]
    assert len(said.messages) == 1 and "Permission denied" in said.messages[0]


def test_a_stopped_rank_does_not_stop_the_others(server: FaultServer, tmp_path: pathlib.Path) -> None:
    data = shard(server, 1_000_000)
    held = threading.Event()
    server.faults = [Fault(hold=held, cut_after=100_000)]
    first = subprocess.Popen(
        command(f"{server.url}/shard.tar", "--cache", tmp_path), env=environment(), stdout=subprocess.DEVNULL
    )
    try:
        while not server.gets():
            time.sleep(0.01)
        first.send_signal(signal.SIGSTOP)
        said = fetch(f"{server.url}/shard.tar", "--cache", tmp_path, "--timeout", "1")
        assert said.digests == [digest(data)]
    finally:
        held.set()
        first.kill()
        first.wait()
