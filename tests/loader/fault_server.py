"""A web server that misbehaves on command: in front of a real S3 server, or with its own files.

Faults are queued; each affects one request for an object's bytes, in order of arrival. Without a fault, requests are
answered correctly.
"""

from __future__ import annotations

import dataclasses
import http.client
import http.server
import re
import socket
import ssl
import struct
import threading
import time
from collections.abc import Callable


@dataclasses.dataclass
class Answer:
    status: int
    headers: dict[str, str]
    body: bytes


@dataclasses.dataclass
class Fault:
    """What happens to one response; nothing if no field is set."""

    status: int = 0  # this status instead of the response
    headers: dict[str, str] = dataclasses.field(default_factory=dict)  # added to the response, or replacing its own
    cut_after: int | None = None  # bytes of the body, although Content-Length says more
    reset: bool = False  # ends with a reset instead of an orderly close
    stall_s: float = 0  # silence before the body, or at cut_after, before the rest follows
    hold: threading.Event | None = None  # the same until this is set


class FaultServer:
    """Serves from `upstream` (host and port), else `files` by path, with ranges and ETags."""

    def __init__(self, upstream: tuple[str, int] | None = None, tls: ssl.SSLContext | None = None) -> None:
        self.upstream = upstream
        self.files: dict[str, bytes] = {}
        self.ranges = True
        self.versions = True  # ETags
        self.redirects: dict[str, str] = {}
        self.faults: list[Fault] = []
        self.seen: list[tuple[str, str, dict[str, str]]] = []  # method, path, headers in lower case
        self.lock = threading.Lock()
        self.before_answer: Callable[[str, str], None] | None = None
        outer = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"
            wbufsize = 1 << 16

            def do_GET(self) -> None:  # noqa: N802
                outer.handle(self)

            do_HEAD = do_GET  # noqa: N815

            def log_message(self, *_: object) -> None:
                pass

        class Server(http.server.ThreadingHTTPServer):
            daemon_threads = True
            request_queue_size = 128

            def handle_error(self, *_: object) -> None:
                pass  # clients that leave are part of the tests

        self.server = Server(("127.0.0.1", 0), Handler)
        if tls:
            self.server.socket = tls.wrap_socket(self.server.socket, server_side=True)
        self.port = self.server.server_address[1]
        self.url = f"{'https' if tls else 'http'}://127.0.0.1:{self.port}"
        self.thread = threading.Thread(target=self.server.serve_forever, args=(0.05,), daemon=True)
        self.thread.start()

    def close(self) -> None:
        self.server.shutdown()
        self.server.server_close()

    def gets(self) -> list[tuple[str, str, dict[str, str]]]:
        """Requests for bytes, so far."""
        with self.lock:
            return [seen for seen in self.seen if seen[0] == "GET"]

    def handle(self, request: http.server.BaseHTTPRequestHandler) -> None:
        headers = {name.lower(): value for name, value in request.headers.items()}
        with self.lock:
            self.seen.append((request.command, request.path, headers))
            wants_bytes = request.command == "GET" and "list-type=2" not in request.path
            fault = self.faults.pop(0) if self.faults and wants_bytes else Fault()
        if self.before_answer:
            self.before_answer(request.command, request.path)
        answer = Answer(fault.status, {"Content-Length": "0"}, b"") if fault.status else self.answer(request, headers)
        answer.headers.update(fault.headers)
        self.send(request, answer, fault)

    def answer(self, request: http.server.BaseHTTPRequestHandler, headers: dict[str, str]) -> Answer:
        return self.forward(request) if self.upstream else self.own(request, headers)

    def forward(self, request: http.server.BaseHTTPRequestHandler) -> Answer:
        connection = http.client.HTTPConnection(*self.upstream, timeout=60)
        connection.putrequest(request.command, request.path, skip_host=True, skip_accept_encoding=True)
        for name, value in request.headers.items():
            connection.putheader(name, value)  # Host too: the signature covers it
        connection.endheaders()
        response = connection.getresponse()
        body = response.read()
        kept = {k: v for k, v in response.getheaders() if k.lower() not in ("connection", "transfer-encoding", "date")}
        length = next((v for k, v in kept.items() if k.lower() == "content-length"), str(len(body)))
        kept = {k: v for k, v in kept.items() if k.lower() != "content-length"}
        connection.close()
        return Answer(response.status, {**kept, "Content-Length": length}, body)

    def own(self, request: http.server.BaseHTTPRequestHandler, headers: dict[str, str]) -> Answer:
        path = request.path
        if path in self.redirects:
            return Answer(302, {"Location": self.redirects[path], "Content-Length": "0"}, b"")
        if path not in self.files:
            return Answer(404, {"Content-Length": "0"}, b"")
        data = self.files[path]
        extra = {"ETag": f'"{hash(data) & 0xFFFFFFFF:x}"'} if self.versions else {}
        if "if-match" in headers and self.versions and headers["if-match"] != extra["ETag"]:
            return Answer(412, {"Content-Length": "0"}, b"")
        status, part = 200, data
        wanted = re.fullmatch(r"bytes=(\d+)-(\d+)", headers.get("range", ""))
        if wanted and self.ranges:
            first, last = int(wanted[1]), min(int(wanted[2]), len(data) - 1)
            if first >= len(data):
                return Answer(416, {"Content-Range": f"bytes */{len(data)}", "Content-Length": "0"}, b"")
            status, part = 206, data[first : last + 1]
            extra["Content-Range"] = f"bytes {first}-{last}/{len(data)}"
        body = b"" if request.command == "HEAD" else part
        return Answer(status, {**extra, "Content-Length": str(len(part))}, body)

    def send(self, request: http.server.BaseHTTPRequestHandler, answer: Answer, fault: Fault) -> None:
        request.send_response_only(answer.status)
        for name, value in answer.headers.items():
            request.send_header(name, value)
        request.end_headers()
        silent = fault.stall_s > 0 or fault.hold is not None
        until = fault.cut_after if fault.cut_after is not None else 0 if silent else len(answer.body)
        request.wfile.write(answer.body[:until])
        request.wfile.flush()
        if silent:
            if fault.hold:
                fault.hold.wait(60)
            time.sleep(fault.stall_s)
            request.wfile.write(answer.body[until:])
            request.wfile.flush()
        elif fault.reset:
            linger = struct.pack("ii", 1, 0)
            request.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
            request.wfile.detach()
            request.rfile.detach()
            request.connection.close()
            request.close_connection = True
        elif fault.cut_after is not None:
            request.close_connection = True
