"""The servers of trackers, real or as this project needs them, and how to ask them."""

from __future__ import annotations

import contextlib
import json
import pathlib
import subprocess
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from scripts.ports import free_port

PATIENCE_S = 120


def ask(url: str, body: Any = None) -> Any:
    data = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(url, data, {"Content-Type": "application/json"})
    with urllib.request.urlopen(request, timeout=30) as answer:
        text = answer.read().decode()
    return json.loads(text) if text.startswith(("{", "[")) else text


def wait_for(what: Any, why: str) -> Any:
    """Until it answers with something."""
    end = time.monotonic() + PATIENCE_S
    while time.monotonic() < end:
        with contextlib.suppress(OSError, ValueError, LookupError):
            if (found := what()) is not None:
                return found
        time.sleep(0.2)
    raise AssertionError(f"{why}: not within {PATIENCE_S} s")


@contextlib.contextmanager
def served(command: list[Any], url: str, log: pathlib.Path) -> Iterator[None]:
    with log.open("w") as output:
        server = subprocess.Popen([str(word) for word in command], stdout=output, stderr=output, cwd=log.parent)
    try:
        wait_for(lambda: ask(url), log.read_text())
        yield
    finally:
        server.terminate()
        server.wait(PATIENCE_S)


class Mlflow:
    """A server, and its REST API."""

    def __init__(self, python: pathlib.Path, directory: pathlib.Path) -> None:
        self.directory, self.port = directory, free_port()
        self.uri = f"http://127.0.0.1:{self.port}"
        store = ["--backend-store-uri", f"sqlite:///{directory}/mlflow.db", "--default-artifact-root", directory]
        self.command = [python, "-m", "mlflow", "server", "--port", self.port, "--workers", 1, *store]

    def serve(self) -> contextlib.AbstractContextManager[None]:
        return served(self.command, f"{self.uri}/health", self.directory / "mlflow.log")

    def runs(self, filter: str = "") -> list[dict[str, Any]]:
        body = {"experiment_ids": ["0"], "filter": filter}
        return ask(f"{self.uri}/api/2.0/mlflow/runs/search", body).get("runs", [])

    def history(self, run: dict[str, Any], metric: str) -> list[dict[str, Any]]:
        query = f"run_id={run['info']['run_id']}&metric_key={metric}"
        return ask(f"{self.uri}/api/2.0/mlflow/metrics/get-history?{query}").get("metrics", [])


class Collector:
    """Keeps what is posted, and answers as it is told."""

    def __init__(self) -> None:
        self.bodies: list[bytes] = []
        self.headers: list[Any] = []
        self.status, self.answer, self.pause_s = 200, b"{}", 0.0
        collector = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                time.sleep(collector.pause_s)
                if collector.status == 200:
                    collector.bodies.append(body)
                    collector.headers.append((self.path, dict(self.headers)))
                self.send_response(collector.status)
                self.send_header("Content-Length", str(len(collector.answer)))
                self.end_headers()
                self.wfile.write(collector.answer)

            def log_message(self, *_: Any) -> None:
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_address[1]}"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def points(self, name: str) -> list[dict[str, Any]]:
        metrics = [
            metric
            for body in self.bodies
            for resource in json.loads(body)["resourceMetrics"]
            for scope in resource["scopeMetrics"]
            for metric in scope["metrics"]
        ]
        return [point for each in metrics if each["name"] == name for point in each["gauge"]["dataPoints"]]
