"""`fullbore loader bench`: the real binary on small synthetic data."""

from __future__ import annotations

import io
import json
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import tarfile
import textwrap
import time

import pytest
from fault_server import Fault

ROOT = pathlib.Path(__file__).resolve().parents[2]
BINARY = pathlib.Path(os.environ.get("FULLBORE_TEST_BINARY", ROOT / "build" / "release" / "fullbore"))
TIMEOUT_S = 180  # a hang, on any machine


@pytest.fixture(scope="module")
def photos(tmp_path_factory) -> pathlib.Path:
    image = pytest.importorskip("PIL.Image")
    numpy = pytest.importorskip("numpy")
    random = numpy.random.default_rng(1)
    root = tmp_path_factory.mktemp("photos")
    for number in range(24):
        folder = root / ("cat", "dog")[number % 2]
        folder.mkdir(exist_ok=True)
        pixels = random.integers(0, 255, (120, 160, 3), dtype=numpy.uint8)
        image.fromarray(pixels).save(folder / f"{number:03d}.jpg", quality=90)
    return root


@pytest.fixture(scope="module")
def texts(tmp_path_factory) -> pathlib.Path:
    root = tmp_path_factory.mktemp("texts")
    with tarfile.open(root / "shard-000.tar", "w") as archive:
        for number in range(20):
            path = root / f"{number:03d}.txt"
            path.write_text(f"sample {number} " * 200)
            archive.add(path, path.name)
            path.unlink()
    return root


def bench(*arguments: str | os.PathLike, **how) -> subprocess.CompletedProcess:
    environment = {name: value for name, value in os.environ.items() if not name.startswith("FULLBORE_")}
    return subprocess.run(
        [BINARY, "loader", "bench", *map(os.fspath, arguments)],
        capture_output=True,
        text=True,
        timeout=TIMEOUT_S,
        env=environment,
        **how,
    )


def test_table_bars_and_verdict_are_plain_text_in_a_pipe(photos):
    done = bench(photos, "--seconds", "0.2", "--threads", "1,2", "--image-size", "32", "--batch-size", "8")
    assert done.returncode == 0, done.stderr
    assert "24 samples" in done.stdout and "3x32x32 float32" in done.stdout
    assert "threads" in done.stdout and "decode" in done.stdout
    assert "reading alone, in memory" in done.stdout
    assert "binds" in done.stdout and "next: " in done.stdout
    assert "\x1b" not in done.stdout
    assert done.stderr == ""


def test_json_has_rates_stages_and_the_threads_that_a_rate_takes(photos):
    flags = ("--seconds", "0.2", "--threads", "2,1", "--image-size", "32", "--samples-per-s", "1e9", "--json", "-")
    done = bench(photos, *flags)
    assert done.returncode == 0, done.stderr
    said = json.loads(done.stdout)  # there is nothing else on standard output
    assert said["schema"] == "fullbore.loader_bench/1"
    assert said["samples"] == 24
    assert [point["threads"] for point in said["points"]] == [1, 2]
    assert all(point["samples_per_s"] > 0 for point in said["points"])
    assert {"read", "decode", "transform", "collate"} <= said["points"][0]["us_per_sample"].keys()
    assert said["verdict"]["binds"] in ("storage", "read", "decode", "transform", "collate")
    assert "threads" not in said["demand"] and said["demand"]["at_most"] > 0
    assert said["interrupted"] is False


def test_bad_samples_are_noted_and_too_many_are_an_error(photos, tmp_path):
    copied = shutil.copytree(photos, tmp_path / "photos")
    (copied / "cat" / "000.jpg").write_bytes(b"")
    (copied / "dog" / "001.jpg").write_bytes(b"not a picture")
    flags = ("--seconds", "0.2", "--threads", "1,2", "--image-size", "32", "--batch-size", "8", "--warm-only")
    done = bench(copied, *flags, "--json", "-")
    assert done.returncode == 0, done.stderr
    (note,) = [note for note in json.loads(done.stdout)["notes"] if "bad" in note]
    assert note.startswith("2 bad samples were left out") and "cat/000.jpg" in note
    for path in copied.glob("*/*.jpg"):
        path.write_bytes(b"not a picture")
    done = bench(copied, *flags)
    assert done.returncode == 1
    assert ".jpg: not an image" in done.stderr and "bad_sample_budget" not in done.stderr


def test_shards_of_text_are_measured_without_a_decoder(texts):
    done = bench(texts / "shard-000.tar", "--seconds", "0.2", "--threads", "1", "--json", "-")
    assert done.returncode == 0, done.stderr
    said = json.loads(done.stdout)
    assert said["row"] == "text"
    assert "decode" not in said["points"][0]["us_per_sample"]


def test_no_secret_of_a_url_is_shown(server, texts):
    name = "/shard.tar?X-Amz-Signature=abcdef"
    server.files[name] = (texts / "shard-000.tar").read_bytes()
    url = server.url + name
    flags = ("--seconds", "0.1", "--threads", "1", "--warm-only")
    for said in (bench(url, *flags), bench(url, *flags, "--json", "-")):
        assert said.returncode == 0, said.stderr
        assert "/shard.tar?***" in said.stdout
        assert "abcdef" not in said.stdout + said.stderr


@pytest.mark.long
def test_failed_storage_ends_the_bench_with_the_storage_error(server, tmp_path):
    held = io.BytesIO()
    with tarfile.open(fileobj=held, mode="w") as archive:
        for number in range(40):
            member = tarfile.TarInfo(f"{number:03d}.txt")
            member.size = 500_000
            archive.addfile(member, io.BytesIO(b"x" * member.size))
    server.files["/shard.tar"] = held.getvalue()
    server.versions = False  # so that nothing is cached

    def fail(*_: object) -> None:
        if len(server.gets()) > 60:  # past opening it and reading a few samples
            server.faults[:] = [Fault(status=500)]

    server.before_answer = fail
    flags = ("--seconds", "0.2", "--threads", "1", "--batch-size", "8", "--warm-only")
    failed = bench(f"{server.url}/shard.tar", *flags)
    assert failed.returncode == 1, failed.stdout
    assert "shard.tar" in failed.stderr and "500" in failed.stderr


@pytest.mark.long
def test_pytorch_is_measured_for_comparison(photos):
    pytest.importorskip("torch")
    flags = (
        "--seconds",
        "0.2",
        "--threads",
        "1",
        "--image-size",
        "32",
        "--batch-size",
        "8",
        "--warm-only",
        "--json",
        "-",
    )
    done = bench(photos, *flags, "--like", "torch", "--python", sys.executable)
    assert done.returncode == 0, done.stderr
    said = json.loads(done.stdout)
    assert [point["workers"] for point in said["torch"]["points"]] == [0, 1], said["notes"]
    assert all(point["samples_per_s"] > 0 for point in said["torch"]["points"])
    assert "torch" in said["torch"]["versions"]
    assert not any(reading["cold"] for reading in said["readings"])


def test_a_python_without_torch_is_a_note_not_a_failure(photos, tmp_path):
    without = tmp_path / "python"
    without.write_text(f'#!/bin/sh\nexec {sys.executable} -S -I "$@"\n')  # no site-packages
    without.chmod(0o755)
    done = bench(photos, "--seconds", "0.1", "--threads", "1", "--like", "torch", "--python", without)
    assert done.returncode == 0, done.stderr
    assert "PyTorch was not measured: this Python has no torch" in done.stdout


@pytest.mark.long
def test_the_training_loader_of_a_script_is_found_and_iterated_alone(tmp_path):
    pytest.importorskip("torch")
    script = tmp_path / "train.py"
    script.write_text(
        textwrap.dedent("""
            import sys, time, torch
            from torch.utils.data import DataLoader, TensorDataset

            class Slow(TensorDataset):
                def __getitem__(self, index):
                    time.sleep(0.001)
                    return super().__getitem__(index)

            print("hello from the script", sys.argv[1])
            model = torch.nn.Linear(4, 1)
            optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
            for other in DataLoader(TensorDataset(torch.ones(8, 4))):  # feeds no step
                pass
            for (x,) in DataLoader(Slow(torch.ones(64, 4)), batch_size=8, shuffle=True, num_workers=2):
                optimizer.zero_grad()
                model(x).sum().backward()
                optimizer.step()
            open("the-training-went-on", "w")
        """)
    )
    flags = ("--script", script, "--python", sys.executable, "--seconds", "0.5", "--json", "-")
    done = bench(*flags, "--", "argument", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "hello from the script argument" in done.stderr
    said = json.loads(done.stdout)
    assert said["schema"] == "fullbore.loader_bench_script/1"
    assert (said["dataset"], said["dataset_samples"]) == ("Slow", 64)
    assert (said["batch_size"], said["num_workers"]) == (8, 2)
    assert said["where"] == "train.py:15"
    assert 0 < said["samples_per_s"] <= 2000 * 1.1  # two workers that sleep a millisecond per sample
    assert not (tmp_path / "the-training-went-on").exists()


@pytest.mark.long
def test_a_script_that_trains_nothing_or_fails_is_an_error(tmp_path):
    pytest.importorskip("torch")
    script = tmp_path / "train.py"
    script.write_text("import torch\n")
    done = bench("--script", script, "--python", sys.executable)
    assert done.returncode == 1
    assert "no DataLoader that feeds an optimizer step was seen" in done.stderr
    script.write_text("raise SystemExit(3)\n")
    done = bench("--script", script, "--python", sys.executable)
    assert done.returncode == 1
    assert "ended with status 3" in done.stderr


def catches(pid: int, number: signal.Signals) -> bool:
    (line,) = re.findall(r"SigCgt:\s*(\w+)", pathlib.Path(f"/proc/{pid}/status").read_text())
    return bool(int(line, 16) >> (number - 1) & 1)


def cpu_ticks(pid: int) -> int:
    """A process's CPU time so far, in hundredths of a second."""
    fields = pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return int(fields[11]) + int(fields[12])


def test_ctrl_c_prints_what_was_measured_so_far(photos):
    command = [
        BINARY,
        "loader",
        "bench",
        photos,
        "--seconds",
        "30",
        "--threads",
        "1,2",
        "--image-size",
        "32",
        "--warm-only",
    ]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        while process.poll() is None and not catches(process.pid, signal.SIGINT):
            time.sleep(0.01)
        ready = cpu_ticks(process.pid)
        while process.poll() is None and cpu_ticks(process.pid) < ready + 30:  # 0.3 s of work: it is measuring
            time.sleep(0.01)
        process.send_signal(signal.SIGINT)
        out, errors = process.communicate(timeout=TIMEOUT_S)
    assert process.returncode == 130, errors
    assert "interrupted" in out
    assert "24 samples" in out


@pytest.mark.parametrize(
    "arguments, said",
    [
        ((), "give either a PATH"),
        (("nowhere",), "nowhere"),
        ((".",), "no images"),
        (("--threads", "0", "."), "--threads 0"),
        (("--threads", "one", "."), "--threads"),
        (("--like", "tensorflow", "."), "tensorflow"),
        (("--seconds", "0", "."), "--seconds"),
        (("--seconds", "nan", "."), "--seconds"),
        (("--samples-per-s", "nan", "."), "--samples-per-s"),
        (("--threads", "1000000", "."), "--threads 1000000"),
    ],
)
def test_usage_errors_are_one_line_and_status_2(tmp_path, arguments, said):
    done = bench(*arguments, cwd=tmp_path)
    assert done.returncode == 2, done.stderr
    assert said in done.stderr
    assert "hint: " in done.stderr or len(done.stderr.splitlines()) == 1
    assert done.stdout == ""


def test_an_unwritable_json_file_does_not_lose_the_measurements(photos, tmp_path):
    done = bench(photos, "--threads", "1", "--seconds", "0.2", "--warm-only", "--json", str(tmp_path / "no" / "x.json"))
    assert done.returncode == 1
    assert "samples/s" in done.stdout
    assert "x.json" in done.stderr


def test_help_begins_with_an_example():
    done = bench("--help")
    assert done.returncode == 0
    assert done.stdout.lstrip().startswith("fullbore loader bench photos/train")
