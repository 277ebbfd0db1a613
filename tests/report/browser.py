"""Pages in a headless browser: their DOM once the scripts ran, and what they said to the console."""

import html
import json
import re
import shutil
import subprocess
from html.parser import HTMLParser
from importlib.resources import files
from pathlib import Path

import pytest

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")


class Page(HTMLParser):
    """Elements with their attributes, and the text of the page (scripts and styles left out)."""

    def __init__(self, text: str):
        super().__init__()
        self.elements: list[tuple[str, dict]] = []
        self.text = ""
        self._silent = 0
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        self.elements.append((tag, dict(attrs)))
        self._silent += tag in ("script", "style")

    def handle_endtag(self, tag):
        self._silent -= tag in ("script", "style")

    def handle_data(self, data):
        self.text += "" if self._silent else data

    def having(self, tag: str, css_class: str) -> list[dict]:
        return [a for t, a in self.elements if t == tag and css_class in (a.get("class") or "").split()]


def in_browser(path: Path, profile: Path, width: int = 1200) -> tuple[Page, list[str]]:
    """The page's DOM after its scripts ran, and the console output."""
    if CHROMIUM is None:
        pytest.skip("chromium is not installed")
    command = [
        CHROMIUM,
        "--headless",
        "--no-sandbox",
        "--disable-gpu",
        f"--user-data-dir={profile}",
        f"--window-size={width},900",
        "--virtual-time-budget=10000",  # scripts that wait are waited for
    ]
    command += ["--enable-logging=stderr", "--dump-dom", path.as_uri()]
    done = subprocess.run(command, capture_output=True, timeout=120)
    console = [line for line in done.stderr.decode(errors="replace").splitlines() if ":CONSOLE" in line]
    return Page(done.stdout.decode("utf-8", errors="replace")), console


def with_script(reports: Path, name: str, script: str) -> Path:
    """A copy of a page that runs a script once it is built, as if a reader had acted."""
    page = (reports / f"{name}.html").read_text(encoding="utf-8")
    copy = reports / f"{name}-scripted.html"
    copy.write_text(page.replace("</body>", f"<script>{script}</script></body>"), encoding="utf-8")
    return copy


def _said(page: Page) -> object:
    return json.loads(re.search("said:(.*?):said", page.text)[1])


def said_by(reports: Path, profile: Path, name: str, script: str) -> object:
    """What `script` left in its variable `said`."""
    after = "document.body.append('said:' + JSON.stringify(said) + ':said')"
    page, console = in_browser(with_script(reports, name, f"let said = null; {script}; {after}"), profile)
    assert console == []
    return _said(page)


AXE = """
  document.querySelectorAll("details").forEach((each) => { each.open = true; });
  applyTheme("THEME");
  setTimeout(() => axe.run().then((found) => document.body.append("said:" + JSON.stringify(found.violations.map(
    (each) => [each.id, ...each.nodes.slice(0, 3).map((node) => node.target.join(" "))])) + ":said")), 50);
"""


def axe_violations(reports: Path, profile: Path, name: str, theme: str, width: int) -> object:
    """What keeps somebody from reading the page, with all its details open."""
    axe = (files("axe_core_python") / "axe.min.js").read_text(encoding="utf-8")
    copy = with_script(reports, name, axe + ";" + AXE.replace("THEME", theme))
    return _said(in_browser(copy, profile, width=width)[0])


def on_a_telephone(reports: Path, profile: Path, name: str) -> tuple[int, int, list[str]]:
    return without_room(reports, profile, name, 390)


def without_room(reports: Path, profile: Path, name: str, width: int) -> tuple[int, int, list[str]]:
    """The room for the page in a window so wide, the width that it takes, and what is wider than that."""
    script = """
      document.querySelectorAll("details").forEach((each) => { each.open = true; });
      const room = document.documentElement.clientWidth;
      const wide = [...document.querySelectorAll("main *")]
        .filter((each) => each.getBoundingClientRect().right > room && !each.closest(".scroll, pre, svg"))
        .map((each) => each.tagName + "." + each.className);
      const said = [room, document.documentElement.scrollWidth, wide.slice(0, 5)];
      parent.document.body.append("said:" + JSON.stringify(said) + ":said");
    """
    page = with_script(reports, name, script).read_text(encoding="utf-8")
    window = profile / "window.html"  # a headless window is at least 500 pixels wide, a frame is not
    window.write_text(f'<iframe width="{width}" height="800" style="border:0" srcdoc="{html.escape(page)}"></iframe>')
    shown, console = in_browser(window, profile, width=max(width, 1200))
    assert console == []
    return tuple(_said(shown))
