"""`fullbore serve` as a process of its own, and runs for it to show: ended ones, and live ones that grow."""

from __future__ import annotations

import http.client
import json
import pathlib
import re
import subprocess
from collections.abc import Iterator, Sequence
from typing import Any

import pytest

from tests.conftest import BINARY, ROOT

MADE_RUNS = ROOT / "build" / "release" / "src" / "watch" / "made_runs"
TOKEN = "a-token-for-the-tests"


class Answer:
    def __init__(self, answer: http.client.HTTPResponse) -> None:
        self.status = answer.status
        self.headers = {name.lower(): value for name, value in answer.getheaders()}
        self.body = answer.read()

    @property
    def json(self) -> Any:
        return json.loads(self.body)


class Serving:
    """A server that answers."""

    def __init__(self, process: subprocess.Popen, address: str) -> None:
        self.process = process
        self.address = address
        self.host, port = address.rsplit(":", 1)
        self.port = int(port)

    def ask(
        self,
        path: str,
        method: str = "GET",
        headers: dict[str, str] | None = None,
        body: bytes | str | None = None,
    ) -> Answer:
        connection = http.client.HTTPConnection(self.host, self.port, timeout=60)
        try:
            connection.request(method, path, body=body, headers=headers or {})
            return Answer(connection.getresponse())
        finally:
            connection.close()

    def put(self, path: str, what: Any, **headers: str) -> Answer:
        sent = {"Content-Type": "application/json", "Authorization": f"Bearer {TOKEN}", **headers}
        return self.ask(path, "PUT", sent, json.dumps(what))

    def memory_bytes(self) -> int:
        status = pathlib.Path(f"/proc/{self.process.pid}/status").read_text()
        return int(re.search(r"VmRSS:\s+(\d+) kB", status).group(1)) * 1000


class Made:
    """Runs in a directory; the live ones grow until the test ends."""

    def __init__(self, directory: pathlib.Path, name: str, ended: int, live: int) -> None:
        self.directory = directory
        arguments = [MADE_RUNS, directory, name, ended, live, 600 if live else 0]
        self.process = subprocess.Popen([str(each) for each in arguments], stdout=subprocess.PIPE, text=True)
        assert self.process.stdout.readline() == "ready\n"


def start(*arguments: str, expect: str = "serve: http://") -> Serving:
    process = subprocess.Popen(
        [str(BINARY), "serve", "--listen", "127.0.0.1:0", *arguments], stderr=subprocess.PIPE, text=True
    )
    said = process.stderr.readline()
    assert expect in said, said
    return Serving(process, said.split("http://")[1].split("/")[0])


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Iterator[pathlib.Path]:
    """Six ended runs and a live one."""
    if not MADE_RUNS.exists():
        pytest.skip("made_runs is not built: make build")
    made = Made(tmp_path_factory.mktemp("runs"), "made", 6, 1)
    yield made.directory
    made.process.kill()
    made.process.wait()


@pytest.fixture(scope="module")
def serving(runs: pathlib.Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Serving]:
    token = tmp_path_factory.mktemp("token") / "token"
    token.write_text(TOKEN + "\n")
    token.chmod(0o600)
    server = start("--dir", str(runs), "--token-file", str(token))
    yield server
    server.process.terminate()
    assert server.process.wait(timeout=30) == 0


def names(answer: Answer) -> Sequence[str]:
    return [run["name"] for run in answer.json["runs"]]
