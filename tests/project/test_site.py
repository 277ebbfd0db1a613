"""The site that scripts/docs.sh makes: whole, closed to the network, and readable by everybody."""

from __future__ import annotations

import html
import re
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
SITE = ROOT / "build" / "docs"
sys.path.insert(0, str(ROOT / "tests" / "report"))
LOOKED_AT = [
    "index",
    "tutorial",
    "troubleshooting",
    "howto/pytorch",
    "findings/index",
    "findings/input-bound",
    "traces",
]


class Links(HTMLParser):
    """What a page fetches by itself, where it leads, and what can be led to."""

    def __init__(self, text: str):
        super().__init__()
        self.fetched: list[str] = []
        self.links: list[str] = []
        self.anchors: set[str] = set()
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        attributes = dict(attrs)
        self.anchors.add(attributes.get("id") or "")
        fetches = tag == "link" and attributes.get("rel") in ("stylesheet", "icon", "preload", "preconnect")
        self.fetched += [attributes["src"]] if attributes.get("src") else []
        self.fetched += [attributes["href"]] if fetches else []
        self.links += [attributes["href"]] if tag == "a" and attributes.get("href") else []


@pytest.fixture(scope="module")
def site() -> Path:
    done = subprocess.run([ROOT / "scripts" / "docs.sh"], capture_output=True, text=True)
    if "pip" in done.stderr and done.returncode != 0:
        pytest.skip(f"mkdocs-material cannot be installed: {done.stderr[-300:]}")
    assert done.returncode == 0, done.stderr
    return SITE


@pytest.fixture(scope="module")
def pages(site) -> dict[str, Links]:
    return {
        page.relative_to(site).as_posix(): Links(page.read_text(encoding="utf-8"))
        for page in sorted(site.rglob("*.html"))
    }


@pytest.mark.long
def test_every_page_of_docs_is_on_the_site_and_in_its_navigation(pages):
    written = {
        page.relative_to(ROOT / "docs").with_suffix(".html").as_posix() for page in (ROOT / "docs").rglob("*.md")
    }
    assert written - set(pages) == set()
    reached = {(Path("x") / link).as_posix().removeprefix("x/") for link in pages["index.html"].links}
    assert written - reached == set()


@pytest.mark.long
def test_no_page_asks_another_machine_for_anything(site, pages):
    assert [(name, url) for name, page in pages.items() for url in page.fetched if re.match(r"(\w+:)?//", url)] == []
    styles = "\n".join(style.read_text(encoding="utf-8") for style in site.rglob("*.css"))
    assert re.findall(r"url\([\"']?(?:\w+:)?//[^)]*", styles) == []


@pytest.mark.long
def test_links_lead_to_pages_and_places_that_are_there(site, pages):
    wrong = []
    for name, page in pages.items():
        for link in page.links:
            path, _, anchor = link.partition("#")
            if re.match(r"\w+:", link) or name == "404.html":
                continue
            target = (site / name).parent / path if path else site / name
            there = target.is_file()
            known = pages.get(target.resolve().relative_to(site).as_posix()) if there else None
            if not there or (anchor and known and anchor not in known.anchors):
                wrong.append((name, link))
    assert wrong == []


@pytest.mark.long
def test_notes_for_tests_are_not_shown(site):
    for page in site.rglob("*.html"):
        assert "not-run:" not in page.read_text(encoding="utf-8").replace("<code>not-run: REASON</code>", ""), page


@pytest.mark.long
@pytest.mark.parametrize("width", [390, 1280])
@pytest.mark.parametrize(("scheme", "primary"), [("default", "white"), ("slate", "black")])
def test_everybody_can_read_it(site, tmp_path, width, scheme, primary):
    from importlib.resources import files

    from browser import _said, in_browser

    axe = (files("axe_core_python") / "axe.min.js").read_text(encoding="utf-8")
    for name in LOOKED_AT:
        script = f"""{axe};
          document.head.append(Object.assign(document.createElement("style"), {{  // colours would fade in
            textContent: "* {{ transition: none !important; animation: none !important; }}" }}));
          document.body.setAttribute("data-md-color-scheme", "{scheme}");
          document.body.setAttribute("data-md-color-primary", "{primary}");
          const outside = performance.getEntriesByType("resource").map((each) => each.name)
            .filter((url) => !url.startsWith("file:") && !url.startsWith("data:"));
          setTimeout(() => axe.run().then((found) => {{
            const faults = found.violations.map((each) =>
              [each.id, ...each.nodes.slice(0, 3).map((node) => node.target.join(" "))]);
            const said = [outside, faults, document.documentElement.scrollWidth - innerWidth];
            parent.postMessage("said:" + JSON.stringify(said) + ":said", "*");
          }}), 500);"""
        page = site / f"{name}.html"
        copy = page.with_name(f"{page.stem}-looked-at.html")
        text = page.read_text(encoding="utf-8")
        copy.write_text(text.replace("</body>", f"<script>{script}</script></body>"), encoding="utf-8")
        frame = tmp_path / "frame.html"  # a headless window is at least 500 pixels wide, a frame is not
        source = html.escape(copy.as_uri())
        listen = '<script>addEventListener("message", (said) => document.body.append(said.data))</script>'
        frame.write_text(
            f'{listen}<body><iframe width="{width}" height="900" style="border:0" src="{source}"></iframe>'
        )
        try:
            shown, _ = in_browser(frame, tmp_path / "profile", width=width + 100)
        finally:
            copy.unlink()
        outside, faults, wider = _said(shown)
        assert (outside, faults) == ([], []), name
        assert wider <= 0, f"{name} is {wider} pixels wider than the screen"


@pytest.mark.long
def test_its_search_works_from_the_disk(site, tmp_path):
    from browser import _said, in_browser

    script = """
      const asked = document.querySelector("input.md-search__input"), opener = document.getElementById("__search");
      setTimeout(() => {
        opener.checked = true;
        opener.dispatchEvent(new Event("change", { bubbles: true }));
        asked.focus();
        asked.value = "straggler";
        asked.dispatchEvent(new KeyboardEvent("keyup", { bubbles: true, key: "r" }));
      }, 2000);
      setTimeout(() => {
        const found = [...document.querySelectorAll(".md-search-result__link")].map((each) => each.href);
        document.body.append("said:" + JSON.stringify(found) + ":said");
      }, 6000);
    """
    copy = site / "searched.html"
    text = (site / "index.html").read_text(encoding="utf-8")
    copy.write_text(text.replace("</body>", f"<script>{script}</script></body>"), encoding="utf-8")
    try:
        shown, console = in_browser(copy, tmp_path / "profile")
    finally:
        copy.unlink()
    assert any("findings/straggler.html" in link for link in _said(shown)), console
