"""What `serve --allow-delete` deletes, for whom, and that it does not without; and the report as a file to send."""

from __future__ import annotations

import json
import pathlib
import re
import shutil
from collections.abc import Iterator
from importlib.resources import files
from typing import Any

import pytest

from tests.serve.browser import Browser
from tests.serve.conftest import MADE_RUNS, TOKEN, Made, Serving, names, start
from tests.serve.test_api import check

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
WIDTHS = [390, 768, 1200, 1920]


@pytest.fixture
def made(tmp_path) -> Iterator[pathlib.Path]:
    """Three ended runs and a live one, for this test alone."""
    if not MADE_RUNS.exists():
        pytest.skip("made_runs is not built: make build")
    runs = Made(tmp_path / "runs", "made", 3, 1)
    yield runs.directory
    runs.process.kill()
    runs.process.wait()


def ended(server: Serving) -> None:
    server.process.terminate()
    assert server.process.wait(timeout=30) == 0


@pytest.fixture
def deleting(made, tmp_path) -> Iterator[Serving]:
    token = tmp_path / "token"
    token.write_text(TOKEN + "\n")
    token.chmod(0o600)
    server = start("--dir", str(made), "--token-file", str(token), "--allow-delete")
    yield server
    ended(server)


@pytest.fixture(scope="module")
def browser(tmp_path_factory) -> Iterator[Browser]:
    if CHROMIUM is None:
        pytest.skip("chromium is not installed")
    opened = Browser(CHROMIUM, tmp_path_factory.mktemp("profile"))
    yield opened
    opened.close()


def post(server: Serving, name: str, body: Any, **headers: str):
    sent = {"Content-Type": "application/json", "Authorization": f"Bearer {TOKEN}", **headers}
    return server.ask(f"/api/v1/runs/{name}/delete", "POST", sent, json.dumps(body))


def left(directory: pathlib.Path) -> list[str]:
    return sorted(each.stem for each in directory.glob("*.fbr"))


def test_a_run_is_deleted_by_who_has_the_token_and_names_it(deleting, made):
    assert check(deleting, "/api/v1/runs/made-1/about", "/api/v1/runs/{name}/about")["may_be_deleted"] is True
    answer = post(deleting, "made-1", {"name": "made-1"})
    said = check(deleting, "", "/api/v1/runs/{name}/delete", "post", answer=answer)
    assert said["deleted"] == "made-1" and said["bytes"] > 0
    assert left(made) == ["made-0", "made-2", "made-live-0"]
    assert "made-1" not in names(deleting.ask("/api/v1/runs"))
    assert post(deleting, "made-1", {"name": "made-1"}).status == 404


@pytest.mark.parametrize(
    ("body", "headers", "status"),
    [
        ({"name": "made-1"}, {"Authorization": ""}, 401),
        ({"name": "made-1"}, {"Authorization": "Bearer wrong"}, 401),
        ({"name": "made-1"}, {"Origin": "https://evil.example"}, 403),
        ({"name": "made-1"}, {"Host": "evil.example"}, 421),
        ({"name": "made-1"}, {"Content-Type": "text/plain"}, 415),
        ({"name": "made-2"}, {}, 400),
        ({}, {}, 400),
        ([], {}, 400),
    ],
)
def test_what_is_not_asked_for_properly_deletes_nothing(deleting, made, body, headers, status):
    assert post(deleting, "made-1", body, **headers).status == status
    assert left(made) == ["made-0", "made-1", "made-2", "made-live-0"]


def test_a_run_that_is_being_recorded_or_pinned_stays(deleting, made):
    assert deleting.put("/api/v1/runs/made-0/tags", {"keep": "yes"}).status == 200
    for name, why in {"made-live-0": "being recorded", "made-0": "pinned"}.items():
        assert "may_be_deleted" not in deleting.ask(f"/api/v1/runs/{name}/about").json
        answer = post(deleting, name, {"name": name})
        assert answer.status == 409 and why in answer.json["error"]
    assert left(made) == ["made-0", "made-1", "made-2", "made-live-0"]


def test_a_server_without_the_right_deletes_nothing(made, fullbore, tmp_path):
    token = tmp_path / "token"
    token.write_text(TOKEN + "\n")
    token.chmod(0o600)
    server = start("--dir", str(made), "--token-file", str(token))
    try:
        answer = post(server, "made-1", {"name": "made-1"})
        assert answer.status == 403 and "--allow-delete" in answer.json["hint"]
        assert "may_be_deleted" not in server.ask("/api/v1/runs/made-1/about").json
    finally:
        ended(server)
    assert "made-1" in left(made)
    refused = fullbore.call("serve", "--dir", made, "--listen", "127.0.0.1:0", "--allow-delete")
    assert refused.code == 2 and "--token-file" in refused.stderr


@pytest.mark.long
def test_a_run_is_deleted_by_hand(browser, deleting, made):
    browser.open(f"http://{deleting.address}/runs/made-2")
    browser.wait("document.querySelector('.deletion') !== null")
    browser.value("document.querySelector('.deletion').open = true")
    click = "document.querySelector('button.danger').click()"
    browser.value(click)
    browser.wait("document.querySelector('.said').textContent.includes('token')")
    assert "made-2" in left(made)
    browser.value(f"document.querySelector('.about [type=password]').value = {TOKEN!r}; {click}")
    rows = "[...document.querySelectorAll('td.run a')].map((each) => each.textContent).join()"
    browser.wait(f"location.pathname === '/' && {rows}.includes('made-0')")
    assert "made-2" not in browser.value(rows)
    assert left(made) == ["made-0", "made-1", "made-live-0"]


@pytest.mark.long
def test_the_page_that_deletes_can_be_read_at_any_width(browser, deleting):
    for width in WIDTHS:
        for dark in (False, True):
            browser.open(f"http://{deleting.address}/runs/made-0", width, dark)
            browser.wait("document.querySelector('.deletion') !== null")
            browser.value("document.querySelectorAll('details').forEach((each) => { each.open = true; })")
            assert browser.value("document.documentElement.scrollWidth") <= width, width
            browser.value((files("axe_core_python") / "axe.min.js").read_text(encoding="utf-8") + "; 0")
            found = browser.value("axe.run().then((found) => JSON.stringify(found.violations))")
            violations = [[each["id"], *(node["target"] for node in each["nodes"][:3])] for each in json.loads(found)]
            assert violations == [], (width, dark)
            assert browser.console == []


@pytest.mark.long
def test_the_report_to_send_is_one_file_that_needs_nothing(browser, serving, tmp_path):
    answer = serving.ask("/api/v1/runs/made-0/report.html")
    assert answer.status == 200
    assert answer.headers["content-disposition"] == 'attachment; filename="made-0.html"'
    assert not re.search(rb"""(?:src|href)=["']?https?:""", answer.body)
    file = tmp_path / "sent.html"
    file.write_bytes(answer.body)
    for width in WIDTHS:
        browser.open(file.as_uri(), width)
        browser.wait("document.body.innerText.includes('Training waits for data')")
        assert browser.value("document.documentElement.scrollWidth") <= width, width
        assert browser.console == []
    assert browser.value("performance.getEntriesByType('resource').length") == 0


def test_the_link_to_the_file_is_on_the_page_and_its_name_is_plain(serving):
    assert serving.ask("/api/v1/runs/none/report.html").status == 404
    assert serving.ask("/api/v1/runs/made-live-0/report.html").status == 200
