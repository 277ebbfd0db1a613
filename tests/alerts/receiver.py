"""A receiver of webhooks that notes what it is told, and can be out of order, or not there at all, for a while."""

from __future__ import annotations

import http.server
import json
import pathlib
import ssl
import threading
import time
from typing import Any


class Receiver:
    def __init__(self, certificate: pathlib.Path | None = None) -> None:
        self.heard: list[dict[str, Any]] = []
        self.refused = 0
        self.down = False
        outer = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                if outer.down:
                    outer.refused += 1
                else:
                    outer.heard.append(body)
                self.send_response(503 if outer.down else 200)
                self.end_headers()

            def log_message(self, *_: Any) -> None:
                pass

        self.handler = Handler
        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        if certificate:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(certificate, certificate.with_name("key.pem"))
            self.server.socket = context.wrap_socket(self.server.socket, server_side=True)
        scheme = "https" if certificate else "http"
        self.url = f"{scheme}://127.0.0.1:{self.server.server_port}/hook/secret?token=secret"
        self.away = True
        self.come_back()

    def leave(self) -> None:
        """Connections are refused from now on; the port stays ours."""
        self.close()
        self.server = http.server.ThreadingHTTPServer(self.server.server_address, self.handler, False)
        self.server.server_bind()

    def come_back(self) -> None:
        if self.away:
            self.server.server_activate()
            threading.Thread(target=self.server.serve_forever, daemon=True).start()
        self.away = False

    def states(self, alert: str) -> list[str]:
        return [each["state"] for each in self.heard if each.get("alert") == alert]

    def wait_for(self, alert: str, state: str, timeout: float = 120) -> dict[str, Any]:
        until = time.monotonic() + timeout
        while time.monotonic() < until:
            for each in self.heard:
                if each.get("alert") == alert and each["state"] == state:
                    return each
            time.sleep(0.05)
        raise AssertionError(f"'{alert}' was not {state}: {self.heard}")

    def close(self) -> None:
        if not self.away:
            self.server.shutdown()
        self.away = True
        self.server.server_close()
