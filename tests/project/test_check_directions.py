"""The checker of include directions finds what it must, and only that."""

import subprocess
import sys
from pathlib import Path

CHECKER = Path(__file__).resolve().parents[2] / "scripts" / "check_directions.py"
RULES = "base:\nrecord:\nmeasure/probe: record\nreport: record\nreport/export: record report\nserve: *\ncli: *\n"


def check(tmp_path: Path, files: dict[str, str]) -> subprocess.CompletedProcess:
    (tmp_path / "scripts").mkdir()
    (tmp_path / "scripts" / "directions.txt").write_text(RULES)
    for name, text in files.items():
        path = tmp_path / "src" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return subprocess.run([sys.executable, CHECKER, tmp_path], capture_output=True, text=True)


def test_an_include_along_the_arrows_passes(tmp_path):
    done = check(tmp_path, {"measure/probe/cpu.cc": '#include "record/recording.h"\n#include "base/text.h"\n#include <map>\n'})
    assert (done.returncode, done.stdout) == (0, "")


def test_an_include_against_the_arrows_is_named_with_file_and_line(tmp_path):
    done = check(tmp_path, {"record/share.h": '#pragma once\n#include "measure/probe/probe.h"\n', "measure/probe/probe.h": ""})
    assert done.returncode == 1
    assert "src/record/share.h:2: record may not use measure/probe" in done.stdout


def test_a_link_against_the_arrows_is_named(tmp_path):
    cmake = "fullbore_component(record\n  SOURCES share.cc\n  DEPENDS base probe)\n"
    done = check(tmp_path, {"record/CMakeLists.txt": cmake, "measure/probe/probe.h": ""})
    assert "src/record/CMakeLists.txt:3: record may not use measure/probe" in done.stdout


def test_nothing_uses_the_command_line_not_even_the_server(tmp_path):
    done = check(tmp_path, {"serve/http.cc": '#include "cli/main.h"\n', "cli/main.h": ""})
    assert "serve may not use cli" in done.stdout


def test_a_folder_without_a_rule_is_an_error(tmp_path):
    assert "src/extra: has no line" in check(tmp_path, {"extra/x.cc": ""}).stdout


def test_a_room_within_a_room_has_rules_of_its_own(tmp_path):
    files = {"report/html.cc": '#include "report/export/perfetto.h"\n', "report/export/perfetto.cc": '#include "report/html.h"\n'}
    done = check(tmp_path, files)
    assert done.stdout.splitlines()[0] == "src/report/html.cc:1: report may not use report/export"
