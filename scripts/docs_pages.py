"""Hooks of mkdocs.yml: what the pages of docs/ need on the way to the site.

The pages stay as a terminal, a code review and `fullbore help` show them. Here their blocks lose the notes for tests,
links to files of the sources become links to copies of these, and the list of findings is made from their headings.
"""

from __future__ import annotations

import re
from pathlib import Path

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

ROOT = Path(__file__).resolve().parents[1]
NOTE = re.compile(r"^(```\w+) .*$", re.MULTILINE)
# Pages of the sources themselves that the site carries, too.
OF_SOURCES = {
    "CHANGELOG.md": "changelog.md",
    "ARCHITECTURE.md": "architecture.md",
    "CONTRIBUTING.md": "contributing.md",
}
FINDINGS = "findings/index.md"


def heading(markdown: str) -> str:
    return markdown.split("\n", 1)[0].lstrip("# ").strip()


def findings() -> dict[str, str]:
    """What each means, by its id."""
    pages = sorted((ROOT / "docs" / "findings").glob("*.md"))
    return {page.stem: heading(page.read_text(encoding="utf-8")).partition(": ")[2] for page in pages}


def list_of_findings() -> str:
    rows = "".join(f"| [{name}]({name}.md) | {what} |\n" for name, what in findings().items())
    return (
        "# Findings\n\nWhat a report can name. `fullbore help FINDING` prints the page of each.\n\n"
        f"| finding | what it is |\n|---|---|\n{rows}"
    )


def mentioned(nav: object) -> set[str]:
    if isinstance(nav, str):
        return {nav}
    parts = nav.values() if isinstance(nav, dict) else nav
    return set().union(*map(mentioned, parts)) if parts else set()


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    """Puts each finding below its list, and each page that stands nowhere under "Reference"."""
    sections = [section for section in config.nav if isinstance(section, dict)]
    by_title = {title: pages for section in sections for title, pages in section.items()}
    by_title["Findings"] += [{name: f"findings/{name}.md"} for name in findings()]
    there = sorted(page.relative_to(config.docs_dir).as_posix() for page in Path(config.docs_dir).rglob("*.md"))
    by_title["Reference"] += [page for page in there if page not in mentioned(config.nav)]
    by_title["Reference"] += OF_SOURCES.values()
    return config


def on_files(files: Files, config: MkDocsConfig) -> Files:
    files.append(File.generated(config, FINDINGS, content=list_of_findings()))
    for source, page in OF_SOURCES.items():
        files.append(File.generated(config, page, content=(ROOT / source).read_text(encoding="utf-8")))
    return files


def linked(target: str, page: str) -> str | None:
    """Where a link of a page leads on the site; nothing where it leads to a file that the site does not have."""
    path, _, anchor = target.partition("#")
    if re.match(r"\w+:", target) or not path:
        return target
    folder = ROOT if page in OF_SOURCES.values() else (ROOT / "docs" / page).parent
    within = (folder / path).resolve()
    name = within.relative_to(ROOT).as_posix()
    depth = "../" * page.count("/")
    if name in OF_SOURCES:
        return depth + OF_SOURCES[name]
    if name == "docs/findings":
        return depth + FINDINGS
    if not name.startswith("docs/") or within.is_dir():
        return None
    return depth + name.removeprefix("docs/") + (f"#{anchor}" if anchor else "")


def on_page_markdown(markdown: str, page: Page, **_: object) -> str:
    def link(match: re.Match[str]) -> str:
        target = linked(match[2], page.file.src_uri)
        return f"`{match[1].strip('`')}`" if target is None else f"[{match[1]}]({target})"

    return re.sub(r"(?<!!)\[([^\]]+)\]\(([^)\s]+)\)", link, NOTE.sub(r"\1", markdown))


def on_post_build(config: MkDocsConfig) -> None:
    """What the theme leaves open: from the disk it searches by a script on a server, where ours lies beside the pages,
    and its search is a dialog without a name."""
    site = Path(config.site_dir)
    for page in site.rglob("*.html"):
        text = page.read_text(encoding="utf-8")
        ours = "../" * len(page.relative_to(site).parents[:-1]) + "site.js"
        text = text.replace("https://unpkg.com/iframe-worker/shim", ours)
        dialog = 'data-md-component="search" role="dialog"'
        text = text.replace(dialog, dialog + ' aria-label="Search"')
        page.write_text(text, encoding="utf-8")
