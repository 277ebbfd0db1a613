"""`fullbore run --open`: the report in a browser, where there is a desktop."""

from __future__ import annotations

import time

DESKTOP = ("DISPLAY", "WAYLAND_DISPLAY")


def opener(fullbore, tmp_path):
    """A desktop's program that notes what it is asked to open."""
    programs, opened = tmp_path / "bin", tmp_path / "opened"
    programs.mkdir()
    (programs / "xdg-open").write_text(f'#!/bin/sh\necho "$1" > {opened}.part; mv {opened}.part {opened}\n')
    (programs / "xdg-open").chmod(0o755)
    return programs, opened


def test_the_report_is_opened_on_a_desktop(fullbore, tmp_path):
    programs, opened = opener(fullbore, tmp_path)
    path = f"{programs}:{fullbore.environment()['PATH']}"
    done = fullbore.run("sh", "-c", "exit 3", flags=["--open"], env={"DISPLAY": ":0", "PATH": path})
    assert done.code == 3, "the exit status is the command's"
    for _ in range(100):
        if opened.exists():
            break
        time.sleep(0.1)
    assert opened.read_text().strip() == str(done.run_file.with_suffix(".html"))
    assert "--open" not in done.stderr


def test_without_a_desktop_it_says_where_the_report_is(fullbore, tmp_path):
    programs, opened = opener(fullbore, tmp_path)
    none = dict.fromkeys(DESKTOP, "")
    done = fullbore.run("true", flags=["--open"], env={**none, "PATH": f"{programs}:{fullbore.environment()['PATH']}"})
    assert "no desktop" in done.stderr and str(done.run_file.with_suffix(".html")) in done.stderr
    assert not opened.exists()


def test_without_an_opener_it_says_so(fullbore, tmp_path):
    (tmp_path / "empty").mkdir()
    done = fullbore.run("/bin/true", flags=["--open"], env={"DISPLAY": ":0", "PATH": str(tmp_path / "empty")})
    assert "neither xdg-open nor open is installed" in done.stderr
    assert done.code == 0
