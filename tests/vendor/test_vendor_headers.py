"""Our declarations of NVML and the CUDA driver, compiled against several versions of the vendor's own headers
(scripts/vendor-headers.txt): the libraries are opened at run time, and a test machine may not have them.

Every function, structure and constant of ours must have a check; what differs between versions is named below, with the
place where it is handled.
"""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
HERE = Path(__file__).parent
NVML = ROOT / "src" / "measure" / "probe" / "nvml"
CUDA = ROOT / "src" / "loader" / "cuda"
HEADERS = ROOT / ".venv" / "vendor-headers"

# The oldest driver branch that a toolkit's headers are for (CUDA Toolkit Release Notes, table 3).
BRANCH_OF_TOOLKIT = {"12.0": 525, "12.2": 535, "12.4": 550, "12.6": 560, "12.8": 570, "12.9": 575, "13.0": 580}
NEWER_BRANCH = 590  # 13.1 and newer


def wanted(prefix: str) -> list[str]:
    lines = (ROOT / "scripts" / "vendor-headers.txt").read_text().splitlines()
    return [line.replace("==", "-") for line in lines if line.startswith(prefix)]


def header(package: str, name: str) -> Path:
    found = sorted((HEADERS / package).rglob(name))
    if not found:
        pytest.skip(f"{package} is not installed: make test does that")
    return found[0]


def text_without_comments(path: Path) -> str:
    return re.sub(r"//[^\n]*|/\*.*?\*/", "", path.read_text(errors="replace"), flags=re.DOTALL)


def functions(source: Path) -> dict[str, list[str]]:
    """For each member that a library's source fills, the symbols it may come from, in order of preference."""
    found: dict[str, list[str]] = {}
    for member, names in re.findall(r'find\((?:driver->)?(\w+),\s*(\{[^}]*\}|"\w+")\)', text_without_comments(source)):
        found[member] = re.findall(r'"(\w+)"', names)
    assert len(found) > 15, f"no calls of find() in {source}"
    return found


def compile_(source: Path, vendor: Path, checks: str, directory: Path, *more: Path) -> subprocess.CompletedProcess:
    (directory / f"{source.stem.split('_')[0]}_functions.inc").write_text(checks)
    return subprocess.run(
        ["g++", "-std=c++20", "-Wall", "-Wno-deprecated-declarations", "-Wno-invalid-offsetof"]
        + ["-isystem", vendor.parent, "-I", directory, "-I", ROOT / "src", "-I", ROOT / "include", "-I", HERE]
        + [source, *more, "-o", directory / "check"],
        capture_output=True,
        text=True,
    )


@pytest.mark.parametrize("package", wanted("nvidia-nvml-dev"))
def test_our_nvml_declarations_match_the_header(package: str, tmp_path: Path) -> None:
    vendor = header(package, "nvml.h")
    offered = set(re.findall(r"\b(nvml\w+)\s*\(", text_without_comments(vendor)))
    checks = []
    for member, names in functions(NVML / "nvml_library.cc").items():
        assert set(names) & offered, f"{package} has none of {names}"
        taken = next(name for name in names if name in offered)
        checks.append(
            f"static_assert(abi::SameFunction<decltype(PointerOf(ours::Library::{member})),"
            f' decltype(&{taken})>::value, "{taken}");'
        )
    done = compile_(HERE / "nvml_check.cc", vendor, "\n".join(checks), tmp_path, NVML / "slowdown_fields.cc")
    assert done.returncode == 0, done.stderr

    toolkit = re.search(r"-(\d+\.\d+)\.\d+$", package).group(1)
    branch = BRANCH_OF_TOOLKIT.get(toolkit, NEWER_BRANCH)
    said = subprocess.run([tmp_path / "check", f"{branch}.10"], capture_output=True, text=True, check=True).stdout
    numbers = {name: (int(ours), int(theirs)) for name, ours, theirs in (line.split() for line in said.splitlines())}
    ours, theirs = numbers.pop("gpm_metrics")
    assert ours >= theirs, "the library fills all of its own array: see GpmMetricsGet in nvml_abi.h"
    for name, (ours, theirs) in numbers.items():
        assert ours == theirs, f"{name} of driver {branch}: see slowdown_fields.h"


@pytest.mark.parametrize("package", wanted("nvidia-cuda-runtime"))
def test_our_cuda_driver_declarations_match_the_header(package: str, tmp_path: Path) -> None:
    vendor = header(package, "cuda.h")
    checks = [
        f'static_assert(abi::SameFunction<decltype(ours::Driver::{member}), decltype(&{name})>::value, "{name}");'
        for member, (name,) in functions(CUDA / "driver.cc").items()
    ]
    (tmp_path / "main.cc").write_text("int main() {}\n")
    # Only declarations are checked: nothing is linked but an empty program.
    done = compile_(HERE / "cuda_check.cc", vendor, "\n".join(checks), tmp_path, tmp_path / "main.cc")
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize(
    ("declarations", "check"),
    [(NVML / "nvml_abi.h", "nvml_check.cc"), (CUDA / "driver.h", "cuda_check.cc")],
    ids=["nvml", "cuda"],
)
def test_every_declaration_of_ours_is_checked(declarations: Path, check: str) -> None:
    ours = text_without_comments(declarations)
    names = set(re.findall(r"inline constexpr [\w:]+ (k\w+) =|(?:struct|union) (\w+) \{", ours))
    names = {constant or type_ for constant, type_ in names}
    assert names
    checked = (HERE / check).read_text()
    missing = {name for name in names if not re.search(rf"ours::{name}\b", checked)}
    assert not missing, f"{check} does not check {sorted(missing)}"


def test_a_declaration_that_differs_does_not_compile(tmp_path: Path) -> None:
    vendor = header(wanted("nvidia-nvml-dev")[-1], "nvml.h")
    wrong = (
        "static_assert(abi::SameFunction<decltype(PointerOf(ours::Library::power_mw)),"
        ' decltype(&nvmlDeviceGetTotalEnergyConsumption)>::value, "32 bits for 64");'
    )
    done = compile_(HERE / "nvml_check.cc", vendor, wrong, tmp_path, NVML / "slowdown_fields.cc")
    assert done.returncode != 0
    assert "32 bits for 64" in done.stderr
