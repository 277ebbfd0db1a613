"""What is printed goes through base/print.h, which keeps names from controlling the terminal; nothing else prints."""

from __future__ import annotations

import pathlib
import re

ROOT = pathlib.Path(__file__).resolve().parents[2]
PRINTS = re.compile(r"\b(?:fmt::print|std::f?puts|std::v?f?printf|std::putchar|std::cout|std::cerr|std::clog|perror)\b")

# Why each may: it prints to a file, not a terminal, or prints only our own constants.
ALLOWED = {
    "base/result.cc": "reports a bug with constants of the compiler",
}


def sources() -> list[pathlib.Path]:
    found = [path for suffix in ("h", "cc") for path in (ROOT / "src").rglob(f"*.{suffix}")]
    return [path for path in found if not path.stem.endswith("_test") and "testing" not in path.parts]


def test_there_is_one_way_to_print():
    others = []
    for path in sources():
        name = path.relative_to(ROOT / "src").as_posix()
        if name in ALLOWED or name == "base/print.h":
            continue
        for number, line in enumerate(path.read_text().splitlines(), 1):
            if PRINTS.search(line.split("//")[0]):
                others.append(f"src/{name}:{number}: {line.strip()}")
    assert not others, "print with Print or PrintLaidOut of base/print.h:\n" + "\n".join(others)


def test_what_is_allowed_is_still_there():
    for name in ALLOWED:
        assert PRINTS.search((ROOT / "src" / name).read_text()), f"{name} prints no more: take it out of ALLOWED"
