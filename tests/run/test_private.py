"""What a run leaves is its user's alone, and nothing that others put in its way is followed."""

from __future__ import annotations

import os
import pathlib
import stat

TRAIN = ["sh", "-c", "sleep 0.1"]


def mode_of(path: pathlib.Path) -> int:
    return stat.S_IMODE(path.lstat().st_mode)


def test_a_report_replaces_a_link_and_not_where_it_leads(fullbore):
    victim = fullbore.directory / "victim"
    victim.write_text("precious")
    for name in ("page.html", "page.html.part"):
        (fullbore.directory / name).symlink_to(victim)
    done = fullbore.run(*TRAIN, flags=["--html", "page.html"])
    assert done.code == 0, done.stderr
    assert victim.read_text() == "precious"
    page = fullbore.directory / "page.html"
    assert not page.is_symlink() and "<html" in page.read_text()
