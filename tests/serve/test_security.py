"""What others may try with `fullbore serve`: refused or harmless, and never at the cost of memory."""

from __future__ import annotations

import random
import socket
import subprocess
import time

import pytest

from tests.serve.conftest import BINARY, MADE_RUNS, TOKEN, Serving, start

MAX_HEAD_BYTES = 16 << 10  # src/serve/http.h


def raw(serving: Serving, sent: bytes, wait_s: float = 20) -> bytes:
    """What comes back until the server closes."""
    with socket.create_connection((serving.host, serving.port), timeout=wait_s) as connection:
        received = b""
        try:
            connection.sendall(sent)
            while got := connection.recv(65536):
                received += got
        except (ConnectionError, TimeoutError):
            pass
        return received


@pytest.mark.parametrize("path", ["/", "/runs/made-0", "/compare?runs=a,b", "/alerts", "/login", "/assets/page.js"])
def test_every_page_has_a_policy_without_inline_scripts(serving, path):
    answer = serving.ask(path)
    assert answer.status == 200
    policy = answer.headers["content-security-policy"]
    assert "script-src 'self'" in policy and "unsafe" not in policy
    assert "default-src 'none'" in policy and "frame-ancestors 'none'" in policy
    assert answer.headers["x-content-type-options"] == "nosniff"
    assert not [name for name in answer.headers if name.startswith("access-control")]
    if answer.headers["content-type"].startswith("text/html"):
        assert b"<script>" not in answer.body and b" on" not in answer.body and b"style=" not in answer.body


def test_another_name_or_origin_is_refused(serving):
    assert serving.ask("/api/v1/runs", headers={"Host": "evil.example"}).status == 421
    assert serving.ask("/api/v1/runs", headers={"Origin": "https://evil.example"}).status == 403
    assert serving.put("/api/v1/runs/made-2/note", {"note": "x"}, Origin="https://evil.example").status == 403


def test_writing_needs_the_token_and_the_type(serving):
    path = "/api/v1/runs/made-2/note"
    json_type = {"Content-Type": "application/json"}
    assert serving.ask(path, "PUT", json_type, '{"note": "x"}').status == 401
    assert serving.ask(path, "PUT", {**json_type, "Authorization": "Bearer wrong"}, '{"note": "x"}').status == 401
    assert serving.ask(path, "PUT", {"Cookie": "fullbore_token=wrong", **json_type}, '{"note": "x"}').status == 401
    form = {"Content-Type": "text/plain", "Authorization": f"Bearer {TOKEN}"}
    assert serving.ask(path, "PUT", form, '{"note": "x"}').status == 415
    assert "note" not in serving.ask("/api/v1/runs/made-2/about").json


def test_the_cookie_of_the_token_is_for_this_site_and_no_script(serving):
    assert serving.ask("/login", "POST", {}, '{"token": "wrong"}').status == 403
    cookie = serving.ask("/login", "POST", {}, f'{{"token": "{TOKEN}"}}').headers["set-cookie"]
    assert "HttpOnly" in cookie and "SameSite=Strict" in cookie


def test_another_address_than_loopback_needs_a_token(fullbore, tmp_path):
    refused = fullbore.call("serve", "--listen", "0.0.0.0:0")
    assert refused.code == 2
    assert "--token-file" in refused.stderr
    (tmp_path / "short").write_text("abc")
    assert fullbore.call("serve", "--listen", "0.0.0.0:0", "--token-file", tmp_path / "short").code == 2
    (tmp_path / "token").write_text(TOKEN)
    (tmp_path / "token").chmod(0o600)
    process = subprocess.Popen(
        [BINARY, "serve", "--listen", "0.0.0.0:0", "--token-file", tmp_path / "token"],
        cwd=tmp_path,
        stderr=subprocess.PIPE,
        text=True,
    )
    said = [process.stderr.readline(), process.stderr.readline()]
    assert "not encrypted" in said[1] and "command lines" in said[1]
    everywhere = Serving(process, "127.0.0.1:" + said[0].split("http://0.0.0.0:")[1].split("/")[0])
    assert everywhere.ask("/api/v1/runs").status == 401
    assert everywhere.ask("/").status == 401
    assert everywhere.ask("/metrics", headers={"Authorization": f"Bearer {TOKEN}"}).status == 200
    process.terminate()
    process.wait(timeout=30)


def test_a_token_that_others_may_read_is_said_to_be_and_one_that_they_may_change_is_refused(fullbore, tmp_path):
    token = tmp_path / "token"
    token.write_text(TOKEN)
    token.chmod(0o666)
    refused = fullbore.call("serve", "--listen", "127.0.0.1:0", "--token-file", token)
    assert refused.code == 2
    assert "chmod 600" in refused.stderr
    token.chmod(0o644)
    served = start("--dir", str(tmp_path), "--token-file", str(token))
    assert "chmod 600" in served.process.stderr.readline()
    served.process.terminate()
    served.process.wait(timeout=30)


@pytest.mark.parametrize(
    "target",
    [
        "/../../etc/passwd",
        "/assets/../../etc/passwd",
        "/assets/%2e%2e%2fetc%2fpasswd",
        "/runs/..%2f..%2fx/about",
        "//etc",
    ],
)
def test_no_path_leads_to_a_file(serving, target):
    received = raw(serving, f"GET {target} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode())
    assert received.split()[1] in (b"400", b"404")
    assert b"root:" not in received


def test_huge_heads_and_bodies_are_refused(serving):
    before = serving.memory_bytes()
    head = b"GET / HTTP/1.1\r\nHost: localhost\r\nX: "
    # A byte too many: all of it is read, so that the answer cannot be lost.
    assert raw(serving, head.ljust(MAX_HEAD_BYTES + 1, b"a")).split()[1] == b"431"
    # Of this one most is still on its way when the server closes, and the answer may be lost.
    assert raw(serving, head.ljust(10_000_000, b"a")).split()[1:2] in ([b"431"], [])
    many = b"GET / HTTP/1.1\r\nHost: localhost\r\n" + b"".join(b"X%d: y\r\n" % i for i in range(1000)) + b"\r\n"
    assert raw(serving, many).split()[1] == b"400"
    body = b"PUT / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100000000\r\n\r\n"
    assert raw(serving, body).split()[1] == b"413"
    assert serving.memory_bytes() - before < 5e6


def test_a_thousand_slow_connections_stop_nobody(serving):
    before = serving.memory_bytes()
    slow = []
    for _ in range(1000):
        connection = socket.create_connection((serving.host, serving.port), timeout=20)
        connection.sendall(b"GET / HTTP/1.1\r\nHost: lo")
        slow.append(connection)
        if len(slow) % 250 == 0:
            assert serving.ask("/healthz").status == 200
    assert serving.ask("/api/v1/runs").status == 200
    assert serving.memory_bytes() - before < 20e6
    for connection in slow:
        connection.close()


def test_those_who_take_no_answers_cost_little(serving):
    before = serving.memory_bytes()
    deaf = []
    for _ in range(200):
        connection = socket.socket()
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        connection.connect((serving.host, serving.port))
        connection.sendall(b"GET /api/v1/runs/made-0/page HTTP/1.1\r\nHost: localhost\r\n\r\n")
        deaf.append(connection)
    assert serving.ask("/healthz").status == 200
    assert serving.memory_bytes() - before < 40e6
    for connection in deaf:
        connection.close()


@pytest.mark.long
def test_requests_with_random_damage_are_answered_or_refused(serving):
    source = random.Random(20)
    whole = (
        b"PUT /api/v1/runs/made-0/tags?q=a%20b HTTP/1.1\r\nHost: localhost\r\nCookie: fullbore_token=x; b=c\r\n"
        b"Authorization: Bearer " + TOKEN.encode() + b"\r\nContent-Type: application/json\r\nContent-Length: 12\r\n\r\n"
        b'{"k": ["v"]}'
    )
    deadline = time.monotonic() + 5
    tried = 0
    while tried <= 100 or time.monotonic() < deadline:
        damaged = bytearray(whole)
        for _ in range(source.randint(1, 8)):
            at = source.randrange(len(damaged))
            damaged[at : at + source.randint(0, 3)] = bytes(
                source.choice([0, 10, 13, 32, 37, 58, 255, 91]) for _ in range(source.randint(0, 3))
            )
        with socket.create_connection((serving.host, serving.port), timeout=20) as connection:
            connection.sendall(bytes(damaged))
            connection.shutdown(socket.SHUT_WR)
            connection.recv(100)
        tried += 1
    assert serving.ask("/healthz").status == 200


def test_a_name_cannot_be_a_script(tmp_path):
    name = "<img src=x onerror=alert(1)>\"'&"
    subprocess.run([MADE_RUNS, tmp_path, name, "1", "1", "0"], check=True, stdout=subprocess.DEVNULL)
    server = start("--dir", str(tmp_path))
    try:
        for run in server.ask("/api/v1/runs").json["runs"]:
            assert run["name"].startswith(name)
        page = server.ask("/")
        assert b"onerror" not in page.body
    finally:
        server.process.terminate()
        server.process.wait(timeout=30)
