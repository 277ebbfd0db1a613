"""The loader's two examples run as their first lines say; the C++ one is built against the installed library."""

from __future__ import annotations

import pathlib
import shutil
import subprocess
import sys

import pytest
from python_data import PACKAGE, ROOT, TIMEOUT_S, environment, require

BUILD = PACKAGE.parent


def run(*command: object) -> subprocess.CompletedProcess:
    words = [str(word) for word in command]
    return subprocess.run(words, env=environment(), capture_output=True, text=True, timeout=TIMEOUT_S)


def tool(variable: str) -> str:
    """How the build was configured."""
    lines = (BUILD / "CMakeCache.txt").read_text().splitlines()
    return next(line.partition("=")[2] for line in lines if line.startswith(variable + ":"))


def must_succeed(*command: object) -> None:
    done = run(*command)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.fixture(scope="module")
def prefix(tmp_path_factory):
    """The installed library for C++ programs."""
    if not (BUILD / "src" / "loader" / "libfullbore_loader.a").exists():
        pytest.skip("the library is not built: scripts/build.sh release fullbore_loader")
    place = tmp_path_factory.mktemp("installed")
    must_succeed(tool("CMAKE_COMMAND"), "--install", BUILD, "--prefix", place, "--component", "dev")
    return place


@pytest.fixture(scope="module")
def in_cpp(prefix, tmp_path_factory):
    """The example, built where nothing in the source tree is reachable."""
    place = tmp_path_factory.mktemp("project")
    shutil.copytree(ROOT / "examples" / "loader", place / "source")
    compiler = f"-DCMAKE_CXX_COMPILER={tool('CMAKE_CXX_COMPILER')}"
    where = ("-S", place / "source", "-B", place / "build", f"-DCMAKE_PREFIX_PATH={prefix}")
    must_succeed(tool("CMAKE_COMMAND"), *where, compiler, "-DCMAKE_BUILD_TYPE=Release")
    must_succeed(tool("CMAKE_COMMAND"), "--build", place / "build")
    return place / "build" / "example_loader"


@pytest.fixture(params=["python", "c++"])
def example(request):
    if request.param == "c++":
        return [request.getfixturevalue("in_cpp")]
    require()
    return [sys.executable, ROOT / "examples" / "fast_loader.py"]


def test_it_reads_all_photos(example, photos):
    done = run(*example, photos)
    assert done.returncode == 0, done.stderr
    assert "24 images of 3 classes" in done.stdout and "images/s" in done.stdout


def test_without_a_directory_it_prints_its_usage(example):
    done = run(*example)
    assert done.returncode != 0
    assert done.stderr.startswith("usage: ") and "DIRECTORY" in done.stderr


@pytest.mark.long
def test_a_missing_directory_is_named(example):
    done = run(*example, "/nowhere/at/all")
    assert done.returncode != 0
    assert "/nowhere/at/all" in done.stderr


@pytest.mark.long
def test_each_installed_header_compiles_alone(prefix, tmp_path):
    headers = sorted(path.relative_to(prefix / "include") for path in (prefix / "include").rglob("*.h"))
    assert pathlib.Path("fullbore/loader.h") in headers and pathlib.Path("fullbore/loader/options.h") in headers
    for header in headers:
        source = tmp_path / "alone.cc"
        source.write_text(f'#include "{header}"\n')
        flags = ("-std=c++20", "-Wall", "-Wextra", "-Werror", "-fsyntax-only", "-I", prefix / "include")
        must_succeed(tool("CMAKE_CXX_COMPILER"), *flags, source)
