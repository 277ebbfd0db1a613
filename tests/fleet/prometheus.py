"""A Prometheus, or what answers as one, with the configuration that deploy/ ships."""

from __future__ import annotations

import json
import pathlib
import time
import urllib.parse
import urllib.request
from collections.abc import Callable, Sequence

import pytest
import yaml

from tests.conftest import ROOT

DEPLOY = ROOT / "deploy"
RULES = DEPLOY / "prometheus" / "rules.yml"


class Store:
    def __init__(self, port: int) -> None:
        self.port = port

    def ask(self, path: str, **query: str):
        url = f"http://127.0.0.1:{self.port}/api/v1/{path}?{urllib.parse.urlencode(query)}"
        with urllib.request.urlopen(url, timeout=20) as answer:
            return json.load(answer)["data"]

    def query(self, expression: str) -> list:
        return self.ask("query", query=expression)["result"]

    def wait_for(self, expression: str, seconds: float = 90) -> list:
        found: list = []

        def answers() -> bool:
            found[:] = self.query(expression)
            return bool(found)

        self.until(answers, f"nothing came of {expression}", seconds)
        return found

    def until(self, holds: Callable[[], bool], otherwise: str = "it did not come", seconds: float = 90) -> None:
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            try:
                if holds():
                    return
            except OSError:
                pass  # it is not there yet
            time.sleep(0.3)
        pytest.fail(otherwise)


def scrape_configuration(
    targets: Sequence[str],
    directory: pathlib.Path,
    rules: Callable[[str], str] | None = None,
    token: pathlib.Path | None = None,
) -> pathlib.Path:
    """The shipped one, of these agents and every second; with what `rules` makes of the shipped rules."""
    shipped = yaml.safe_load((DEPLOY / "prometheus" / "scrape.yml").read_text())
    shipped["global"] = {"scrape_interval": "1s"}
    shipped["scrape_configs"][0]["static_configs"] = [{"targets": list(targets)}]
    if token:
        shipped["scrape_configs"][0]["authorization"]["credentials_file"] = str(token)
    else:
        del shipped["scrape_configs"][0]["authorization"]
    del shipped["rule_files"]
    if rules:
        (directory / "rules.yml").write_text(rules(RULES.read_text()))
        shipped["global"]["evaluation_interval"] = "1s"
        shipped["rule_files"] = [str(directory / "rules.yml")]
    path = directory / "prometheus.yml"
    path.write_text(yaml.safe_dump(shipped))
    return path
