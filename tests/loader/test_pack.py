"""`fullbore loader pack`, as people run it: what it writes, Python's own tarfile reads; Ctrl-C leaves whole shards."""

from __future__ import annotations

import json
import os
import pathlib
import signal
import subprocess
import tarfile
import time

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
BINARY = pathlib.Path(os.environ.get("FULLBORE_TEST_BINARY", ROOT / "build" / "release" / "fullbore"))
TIMEOUT_S = 180  # a hang, on any machine


def pack(*arguments: object) -> subprocess.CompletedProcess:
    return subprocess.run(
        [BINARY, "loader", "pack", *map(str, arguments)], capture_output=True, text=True, timeout=TIMEOUT_S
    )


@pytest.fixture
def images(tmp_path: pathlib.Path) -> list[tuple[pathlib.Path, int]]:
    """Files and labels in ImageFolder's order."""
    samples = []
    for label, name in enumerate(["ape", "z\u00e9bra"]):
        (tmp_path / "in" / name).mkdir(parents=True)
        for i in range(40):
            path = tmp_path / "in" / name / f"{i:03}.jpg"
            path.write_bytes(f"{name} {i} ".encode() * (i + 1))
            samples.append((path, label))
    return samples


def members(out: pathlib.Path) -> list[tuple[bytes, int]]:
    read = []
    for shard in sorted(out.glob("*.tar")):
        with tarfile.open(shard) as tar:
            data = [tar.extractfile(member).read() for member in tar.getmembers()]
        read += [(image, int(label)) for image, label in zip(data[::2], data[1::2])]
    return read


def test_tarfile_reads_what_it_writes(tmp_path: pathlib.Path, images: list[tuple[pathlib.Path, int]]) -> None:
    ended = pack(tmp_path / "in", tmp_path / "out", "--shard-size", "20K", "--json", "-")
    assert ended.returncode == 0, ended.stderr
    summary = json.loads(ended.stdout)
    assert summary["samples"] == len(images)
    names = json.loads((tmp_path / "out" / "classes.json").read_text())
    assert summary["class_names"] == names == ["ape", "z\u00e9bra"]
    assert summary["shards"] == len(list((tmp_path / "out").glob("*.tar"))) > 1
    assert members(tmp_path / "out") == [(path.read_bytes(), label) for path, label in images]


def test_a_directory_that_is_not_empty_is_refused(tmp_path: pathlib.Path, images: object) -> None:
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "mine").write_text("keep")
    ended = pack(tmp_path / "in", tmp_path / "out")
    assert ended.returncode == 2
    assert "is not empty" in ended.stderr and "--force" in ended.stderr
    assert [path.name for path in (tmp_path / "out").iterdir()] == ["mine"]


def test_an_interrupt_leaves_whole_shards_and_says_so(
    tmp_path: pathlib.Path, images: list[tuple[pathlib.Path, int]]
) -> None:
    # A link to a large sparse file, many times: packing it lasts until it is interrupted.
    with open(tmp_path / "large", "wb") as large:
        large.truncate(64 << 20)
    for i in range(200):
        (tmp_path / "in" / "z\u00e9bra" / f"{i + 100}.jpg").symlink_to(tmp_path / "large")
    command = [BINARY, "loader", "pack", tmp_path / "in", tmp_path / "out", "--shard-size", "30K"]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process:
        while process.poll() is None and not list((tmp_path / "out").glob("*.tar")):
            time.sleep(0.01)
        process.send_signal(signal.SIGINT)
        _, said = process.communicate(timeout=TIMEOUT_S)
    assert process.returncode == 128 + signal.SIGINT
    assert "interrupted" in said and "whole shard" in said
    assert not list((tmp_path / "out").glob("*.part"))
    expected = [(path.read_bytes(), label) for path, label in images]
    got = members(tmp_path / "out")
    assert got and all(sample in expected or len(sample[0]) == 64 << 20 for sample in got)
