"""`fullbore compare` of two recordings: its exit status for scripts."""

from __future__ import annotations

import json
import os
import pathlib

GOLDEN = pathlib.Path(__file__).resolve().parents[1] / "golden"


def test_recordings_fail_as_asked_too(fullbore):
    slow, fast = GOLDEN / "resnet-no-workers.fbr", GOLDEN / "resnet-one-worker.fbr"  # 1.69x (1.63 to 1.74)

    def call(*arguments: str | os.PathLike) -> tuple[int, dict]:
        done = fullbore.call("compare", *arguments, "--json", "-")
        assert done.code in (0, 3), done.stderr
        return done.code, json.loads(done.stdout)

    code, said = call(slow, fast, "--fail-if", "slower", "--fail-if", "not-faster 50%", "--fail-if", "not-proven")
    assert (code, said["failed_if"]) == (0, [])
    code, said = call(slow, fast, "--fail-if", "not-faster:80%", "--fail-if", "slower")
    assert (code, said["failed_if"]) == (3, ["not-faster:80%"])
    code, said = call(fast, slow, "--fail-if", "slower 30%")
    assert (code, said["failed_if"]) == (3, ["slower 30%"])
    assert "failed_if" not in call(fast, slow)[1]


def test_recordings_that_say_no_rate_never_pass_in_silence(fullbore):
    for name in ("first", "second"):
        assert fullbore.call("run", "-q", "--run", name, "--", "true").code == 0
    assert fullbore.call("compare", "first", "second").code == 0
    done = fullbore.call("compare", "first", "second", "--fail-if", "slower")
    assert done.code == 1 and "is not known" in done.stderr
    assert fullbore.call("compare", "first", "second", "--fail-if", "not-proven").code == 3


def test_one_recording_is_compared_with_several_starts_of_another(fullbore):
    slow, fast = GOLDEN / "resnet-no-workers.fbr", GOLDEN / "resnet-one-worker.fbr"
    worse = fullbore.call("compare", *[fast] * 3, "--new", slow, "--fail-if", "samples_per_s < -3%", "--json", "-")
    said = json.loads(worse.stdout)
    assert worse.code == 3 and said["failed_if"] == ["samples_per_s < -3%"]
    assert said["starts"] == {"before": 3, "after": 1} and 0.55 < said["speedup"] < 0.65
    same = fullbore.call("compare", *[fast] * 9, "--new", fast, fast, "--fail-if", "samples_per_s < -3%")
    assert same.code == 0 and b"means of 9 starts and of 2 new" in same.stdout


def test_fewer_than_three_starts_are_no_baseline(fullbore):
    fast = GOLDEN / "resnet-one-worker.fbr"
    few = fullbore.call("compare", fast, fast, "--new", fast)
    assert few.code == 1 and "3 recordings or more" in few.stderr
    many = fullbore.call("compare", *[fast] * 9)
    assert many.code == 2 and "--new" in many.stderr
