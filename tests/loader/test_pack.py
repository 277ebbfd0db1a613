"""`fullbore loader pack` as users run it: Python's tarfile reads what it writes; Ctrl-C leaves complete shards."""

from __future__ import annotations

import json
import os
import pathlib
import pty
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


def test_a_non_empty_directory_is_refused(tmp_path: pathlib.Path, images: object) -> None:
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "mine").write_text("keep")
    ended = pack(tmp_path / "in", tmp_path / "out")
    assert ended.returncode == 2
    assert "is not empty" in ended.stderr and "--force" in ended.stderr
    assert [path.name for path in (tmp_path / "out").iterdir()] == ["mine"]


@pytest.mark.parametrize(
    ("out", "flags", "said"),
    [
        ("s3://bucket/packed", (), "s3://bucket/packed"),
        ("out", ("--shard-size", "0"), "0 bytes"),
        ("out", ("--shard-size", "-1"), "--shard-size"),
        ("out", ("--shard-size", "big"), "--shard-size"),
        ("out", ("--shuffle", "much"), "--shuffle"),
    ],
)
def test_wrong_usage_is_reported_and_leaves_nothing(
    tmp_path: pathlib.Path, images: object, monkeypatch: pytest.MonkeyPatch, out: str, flags: tuple, said: str
) -> None:
    monkeypatch.chdir(tmp_path)
    ended = pack("in", out, *flags)
    assert ended.returncode == 2
    assert said in ended.stderr
    assert [path.name for path in tmp_path.iterdir()] == ["in"]


def test_a_full_disk_leaves_complete_shards_and_the_next_attempt_needs_no_force(
    tmp_path: pathlib.Path, images: list[tuple[pathlib.Path, int]]
) -> None:
    (tmp_path / "disk").mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=100k", "tmpfs", tmp_path / "disk"]
    if subprocess.run(mount, capture_output=True).returncode != 0:
        pytest.skip("mounting a small tmpfs is not allowed here")
    try:
        ended = pack(tmp_path / "in", tmp_path / "disk" / "out", "--shard-size", "20K")
        assert ended.returncode == 1
        assert "No space left" in ended.stderr and "complete shards are in" in ended.stderr
        left = {path.name for path in (tmp_path / "disk" / "out").iterdir()}
        tars = sorted(name for name in left if name.endswith(".tar"))
        assert left == {"classes.json", *tars, *(f"{name}.idx" for name in tars)}
        assert f"{len(tars)} complete shards" in ended.stderr and tars[-1] in ended.stderr
        (tmp_path / "disk" / "out" / tars[0]).unlink()  # space for the names, not for a shard with all samples
        again = pack(tmp_path / "in", tmp_path / "disk" / "other", "--shard-size", "1M")
        assert again.returncode == 1 and "no shard was finished" in again.stderr
        assert list((tmp_path / "disk" / "other").iterdir()) == []
    finally:
        subprocess.run(["umount", "-l", tmp_path / "disk"], check=True)


def test_an_unwritable_summary_costs_no_shard(tmp_path: pathlib.Path, images: list) -> None:
    ended = pack(tmp_path / "in", tmp_path / "out", "--json", tmp_path / "no" / "summary.json")
    assert ended.returncode == 1
    assert "summary.json" in ended.stderr and f"{len(images)} samples of 2 classes" in ended.stderr
    assert len(members(tmp_path / "out")) == len(images)


def test_a_terminal_shows_progress(tmp_path: pathlib.Path, images: object) -> None:
    with open(tmp_path / "large", "wb") as large:
        large.truncate(64 << 20)
    for i in range(200):
        (tmp_path / "in" / "ape" / f"{i + 100}.jpg").symlink_to(tmp_path / "large")
    outer, inner = pty.openpty()
    with subprocess.Popen([BINARY, "loader", "pack", tmp_path / "in", tmp_path / "out"], stderr=inner) as process:
        os.close(inner)
        shown = b""
        while b" of 280 " not in shown:
            shown += os.read(outer, 65536)
        process.send_signal(signal.SIGINT)
        try:
            while part := os.read(outer, 65536):
                shown += part
        except OSError:  # EIO: everything was read
            pass
    os.close(outer)
    assert b"packing  [" in shown
    assert shown.rindex(b"\r\x1b[K") < shown.index(b"fullbore: interrupted")  # the line is gone by then


def test_an_interrupt_leaves_complete_shards_and_says_so(
    tmp_path: pathlib.Path, images: list[tuple[pathlib.Path, int]]
) -> None:
    # Many links to a large sparse file: packing takes until it is interrupted.
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
    assert "interrupted" in said and "complete shard" in said
    assert not list((tmp_path / "out").glob("*.part"))
    expected = [(path.read_bytes(), label) for path, label in images]
    got = members(tmp_path / "out")
    assert got and all(sample in expected or len(sample[0]) == 64 << 20 for sample in got)
