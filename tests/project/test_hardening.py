"""The program is built as one that reads what others made: scripts/check_hardening.sh, also for the Debian package."""

from __future__ import annotations

import os
import pathlib
import shutil
import subprocess

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
BINARY = pathlib.Path(os.environ.get("FULLBORE_TEST_BINARY", ROOT / "build" / "release" / "fullbore"))
CHECK = ROOT / "scripts" / "check_hardening.sh"

pytestmark = pytest.mark.skipif(not shutil.which("readelf"), reason="no readelf")


def check(file: pathlib.Path) -> subprocess.CompletedProcess:
    return subprocess.run([CHECK, file], capture_output=True, text=True)


def test_the_program_is_hardened() -> None:
    said = check(BINARY)
    assert said.returncode == 0, said.stderr


@pytest.mark.parametrize(
    ("flags", "said"),
    [
        (["-no-pie", "-fno-pie"], "position-independent"),
        (["-Wl,-z,norelro"], "read-only relocations"),
        (["-Wl,-z,lazy"], "bound late"),
        (["-Wl,-z,execstack"], "executable stack"),
        (["-fno-stack-protector"], "watched stacks"),
        (["-U_FORTIFY_SOURCE"], "watched buffers"),
        ([f'-DPLACE="{ROOT}/src"'], "names a place"),
        (["-Wl,-rpath,/usr/lib:"], "looks for libraries in the working directory"),
        (["-Wl,-rpath,lib:/usr/lib"], "looks for libraries in the working directory"),
        (["-Wl,-rpath,/usr/lib:$ORIGIN/../lib"], ""),
        ([], ""),
    ],
)
def test_the_check_tells_what_is_missing(tmp_path: pathlib.Path, flags: list[str], said: str) -> None:
    compiler = shutil.which("g++")
    if compiler is None:
        pytest.skip("no g++")
    source = tmp_path / "program.cc"
    source.write_text(
        """#include <cstdio>
#include <cstring>
#ifndef PLACE
#define PLACE "nowhere"
#endif
int main(int, char** words) {
  char text[8];
  std::strcpy(text, words[0]);
  std::puts(text);
  std::puts(PLACE);
}
"""
    )
    good = "-O2 -fPIE -pie -fstack-protector-strong -U_FORTIFY_SOURCE -D_FORTIFY_SOURCE=2"
    good += " -Wl,-z,relro,-z,now,-z,noexecstack"
    program = tmp_path / "program"
    subprocess.run([compiler, *good.split(), *flags, source, "-o", program], check=True, capture_output=True)
    checked = check(tmp_path / "program")
    assert said in checked.stderr and (checked.returncode == 0) == (said == "")
