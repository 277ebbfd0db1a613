"""The checker of directions finds every violation, and nothing else."""

import subprocess
import sys
from pathlib import Path

CHECKER = Path(__file__).resolve().parents[2] / "scripts" / "check_directions.py"
RULES = """
fullbore:
base:
record:
measure/probe: record
report: record
report/export: record report
serve: *
cli: *
tool.data:
tool.hook: (tool.data)
"""


def check(tmp_path: Path, files: dict[str, str]) -> subprocess.CompletedProcess:
    (tmp_path / "scripts").mkdir()
    (tmp_path / "scripts" / "directions.txt").write_text(RULES)
    for name, text in files.items():
        path = tmp_path / (name if name.startswith(("include/", "python/")) else f"src/{name}")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return subprocess.run([sys.executable, CHECKER, tmp_path], capture_output=True, text=True)


def test_an_include_along_the_arrows_passes(tmp_path):
    includes = '#include "record/recording.h"\n#include "base/text.h"\n#include <map>\n'
    done = check(tmp_path, {"measure/probe/cpu.cc": includes})
    assert (done.returncode, done.stdout) == (0, "")


def test_an_include_against_the_arrows_is_named_with_file_and_line(tmp_path):
    files = {"record/share.h": '#pragma once\n#include "measure/probe/probe.h"\n', "measure/probe/probe.h": ""}
    done = check(tmp_path, files)
    assert done.returncode == 1
    assert "src/record/share.h:2: record may not use measure/probe" in done.stdout


def test_a_link_against_the_arrows_is_named(tmp_path):
    cmake = "fullbore_component(record\n  SOURCES share.cc\n  DEPENDS base probe)\n"
    probe = "fullbore_component(probe\n  SOURCES probe.cc\n  PUBLIC_DEPENDS record)\n"
    done = check(tmp_path, {"record/CMakeLists.txt": cmake, "measure/probe/CMakeLists.txt": probe})
    assert done.stdout.splitlines()[0] == "src/record/CMakeLists.txt:3: record may not use measure/probe"


def test_nothing_uses_the_command_line_not_even_the_server(tmp_path):
    done = check(tmp_path, {"serve/http.cc": '#include "cli/main.h"\n', "cli/main.h": ""})
    assert "serve may not use cli" in done.stdout


def test_a_folder_without_a_rule_is_an_error(tmp_path):
    assert "src/extra: has no line" in check(tmp_path, {"extra/x.cc": ""}).stdout


def test_a_component_within_a_component_has_its_own_rules(tmp_path):
    files = {
        "report/html.cc": '#include "report/export/perfetto.h"\n',
        "report/export/perfetto.cc": '#include "report/html.h"\n',
    }
    done = check(tmp_path, files)
    assert done.stdout.splitlines()[0] == "src/report/html.cc:1: report may not use report/export"


def test_a_public_header_includes_no_private_one(tmp_path):
    files = {"include/fullbore/tool.h": '#include "fullbore/result.h"\n#include "base/text.h"\n', "base/text.h": ""}
    assert check(tmp_path, files).stdout.splitlines()[0] == "include/fullbore/tool.h:2: fullbore may not use base"


def test_everybody_may_use_public_headers(tmp_path):
    assert check(tmp_path, {"base/result.cc": '#include "fullbore/result.h"\n'}).returncode == 0


def test_a_python_package_imports_along_the_arrows(tmp_path):
    files = {"python/tool/data/x.py": "from ..hook import y\n", "python/tool/hook/y.py": ""}
    assert check(tmp_path, files).stdout.splitlines()[0] == "python/tool/data/x.py:1: tool.data may not use tool.hook"


def test_what_may_be_imported_in_functions_may_not_be_at_the_top(tmp_path):
    late = {"python/tool/hook/y.py": "def f():\n    import tool.data.x\n", "python/tool/data/x.py": ""}
    assert check(tmp_path, late).returncode == 0
    (tmp_path / "python/tool/hook/y.py").write_text("import tool.data.x\n")
    done = subprocess.run([sys.executable, CHECKER, tmp_path], capture_output=True, text=True)
    assert done.stdout.splitlines()[0] == "python/tool/hook/y.py:1: tool.hook may not use tool.data"


def test_an_import_cycle_is_named_from_start_to_end(tmp_path):
    files = {
        "python/tool/hook/__init__.py": "",
        "python/tool/hook/steps.py": "from . import facts\n",
        "python/tool/hook/facts.py": "from .waits import Wait\n",
        "python/tool/hook/waits.py": "def attach():\n    from .steps import state\n",  # inside a function, too
        "python/tool/hook/other.py": "from . import steps\n",  # leads into the cycle but is not part of it
    }
    cycle = "tool.hook.facts -> tool.hook.waits -> tool.hook.steps -> tool.hook.facts"
    lines = check(tmp_path, files).stdout.splitlines()
    assert lines[0] == f"python: import cycle: {cycle}"
    assert len(lines) == 2  # the cycle and the hint


def test_a_package_that_collects_its_modules_is_not_a_cycle(tmp_path):
    files = {
        "python/tool/data/__init__.py": "from .loader import Loader\n",
        "python/tool/data/loader.py": "from . import _core\nclass Loader: ...\n",
        "python/tool/data/_core.pyi": "",
    }
    assert check(tmp_path, files).returncode == 0
