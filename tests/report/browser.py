"""Pages in a headless browser: their DOM once the scripts ran, and what they said to the console."""

import shutil
import subprocess
from html.parser import HTMLParser
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
