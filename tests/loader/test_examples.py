"""The two examples of the loader run as their first lines say."""

from __future__ import annotations

import subprocess
import sys

import pytest
from python_data import PACKAGE, ROOT, TIMEOUT_S, environment, make_photos, require

IN_CPP = PACKAGE.parent / "examples" / "example_loader"


def run(*command: object) -> subprocess.CompletedProcess:
    words = [str(word) for word in command]
    return subprocess.run(words, env=environment(), capture_output=True, text=True, timeout=TIMEOUT_S)


@pytest.fixture(scope="module")
def photos(tmp_path_factory):
    return make_photos(tmp_path_factory.mktemp("photos") / "train")


@pytest.fixture(params=["python", "c++"])
def example(request):
    require()
    if request.param == "python":
        return [sys.executable, ROOT / "examples" / "fast_loader.py"]
    if not IN_CPP.exists():
        pytest.skip("example_loader is not built: scripts/build.sh release")
    return [IN_CPP]


def test_it_goes_over_all_photos(example, photos):
    done = run(*example, photos)
    assert done.returncode == 0, done.stderr
    assert "24 images of 3 classes" in done.stdout and "images/s" in done.stdout


def test_without_a_directory_it_says_what_it_takes(example):
    done = run(*example)
    assert done.returncode != 0
    assert done.stderr.startswith("usage: ") and "DIRECTORY" in done.stderr


def test_a_directory_that_is_not_there_is_named(example):
    done = run(*example, "/nowhere/at/all")
    assert done.returncode != 0
    assert "/nowhere/at/all" in done.stderr
