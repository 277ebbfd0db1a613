"""Requests that nobody sends by accident, from several connections at once, and what every answer to them must be.

Shared by the test, which sends them for some seconds, and bench/serve/serve_fuzz.py, which does so for a minute. None
of them has the token: whatever they say, no run may change.
"""

from __future__ import annotations

import collections
import contextlib
import hashlib
import json
import pathlib
import random
import re
import select
import socket
import sqlite3
import struct
import subprocess
import threading
import time
from collections.abc import Iterator
from typing import NamedTuple

from tests.serve.conftest import MADE_RUNS, TOKEN, Serving

MARK = b"planted-7f3a91"  # in what lies beside the directory of the runs, and in no request
EXPECTED = {200, 400, 401, 403, 404, 405, 408, 413, 415, 421, 431, 501}
OPEN_AT_ONCE = 16  # of each thread; with all threads fewer than the server takes, or it would be right to drop some

ROUTES = [
    "/",
    "/alerts",
    "/api/v1/alerts",
    "/api/v1/compare?runs=made-0,made-1",
    "/api/v1/openapi.json",
    "/api/v1/runs",
    "/api/v1/runs/made-0",
    "/api/v1/runs/made-0/about",
    "/api/v1/runs/made-live-0/page",
    "/api/v1/runs/made-1/series.csv",
    "/api/v1/runs/made-live-0/events",
    "/assets/page.js",
    "/compare?runs=made-0,made-1",
    "/healthz",
    "/login",
    "/metrics",
    "/runs/made-2",
]
WRITES = [
    ("PUT", "/api/v1/runs/made-0/tags", b'{"changed": "by-nobody"}'),
    ("PUT", "/api/v1/runs/made-live-0/tags", b'{"changed": "by-nobody"}'),
    ("PUT", "/api/v1/runs/made-1/note", b'{"note": "changed by nobody"}'),
    ("POST", "/login", b'{"token": "a wrong one"}'),
]
DOTS = ["..", ".", "%2e%2e", "%2E.", "..%2f", "..%5c", "..\\", "%252e%252e", "%c0%ae%c0%ae", "....", "..;", "..%00"]
# Where the planted files are, seen from the directory of the runs.
OUTSIDE = ["secret.txt", "outside", "outside.fbr", "%73ecret.txt", "secret.txt%00.fbr", "outside/about", "outside/page"]
ODD = ["%", "%2", "%zz", "%00", "\x00", "\t", "\x7f", "%ff%fe", "é", "日本", "\u202e", "%0d%0aX:%20y", "'", '"', "<b>"]
QUERIES = [
    "limit=99999999999999999999&offset=-1",
    "limit=1e3&offset=0x10",
    "sort=" + "-" * 3000,
    "sort=%00",
    "q=state:%20tag:=%20-%20--%20finding:",
    "q=" + "+".join(f"-{c}:" for c in "abcdefgh"),
    "q=" + "a+" * 4000,
    "runs=" + ",".join(["made-0"] * 9),
    "runs=" + "," * 5000,
    "&".join(f"k{i}={i}" for i in range(1500)),
    "&&&===&=&%3d=%26",
]
METHODS = ["HEAD", "POST", "PUT", "DELETE", "OPTIONS", "TRACE", "CONNECT", "get", "G", "", "GET\t", "G\x00T", "Ä"]
HEADERS = [
    b"Host: localhost",  # a second one
    b"Host: evil.example",
    b"Origin: https://evil.example",
    b"Origin: null",
    b"Transfer-Encoding: chunked",
    b"Transfer-Encoding: identity, chunked",
    b"Expect: 100-continue",
    b"Upgrade: websocket\r\nConnection: Upgrade",
    b"Connection: keep-alive",
    b"Range: bytes=0-18446744073709551615",
    b"Accept: text/html",
    b"Accept-Encoding: gzip, br",
    b"Last-Event-ID: -1",
    b"X-Forwarded-For: 127.0.0.1\r\nX-HTTP-Method-Override: PUT",
    b"Cookie: fullbore_token=; fullbore_token; =; ;;",
    b"Cookie: " + b"fullbore_token=x;" * 500,
    b"Authorization: Basic YTpi",
    b"Authorization: Bearer ",
    b": no name",
    b"No colon",
    b"Blank : before the colon",
    b" Folded: line",
    b"Null: \x00",
    b"Feed: a\nb",
    b"Return: a\rb",
    b"H\xc3\xa4: name",
    b"Bytes: \xff\xfe\x80",
    b"Long: " + b"y" * 15_000,
    b"Longer: " + b"y" * 17_000,
    b"\r\n".join(b"H%d: v" % i for i in range(101)),
    b"",
]
# Close to the token, and further from it than what is damaged at random could make good.
WRONG_TOKENS = [TOKEN[:-9], TOKEN[::-1], TOKEN.upper(), TOKEN + "-and-much-more", TOKEN * 2, "\x80" * len(TOKEN)]
LENGTHS = ["-1", "+5", "0x10", "1e3", " 7 7", "", "00000000007", "9" * 30, "65536", "65537", "4294967301", "5, 5", "५"]


class Attempt(NamedTuple):
    kind: str
    pieces: list[bytes]  # sent one after the other, with something else in between
    ending: str  # "open": nothing more is said; "half": no more will come; "gone": nobody waits for the answer

    @property
    def sent(self) -> bytes:
        return b"".join(self.pieces)


class Attempts:
    """An endless row of them; the same for the same seed."""

    def __init__(self, seed: int, host: str) -> None:
        self.random = random.Random(seed)
        self.host = host.encode()

    def __iter__(self) -> Iterator[Attempt]:
        kinds = {
            self.whole: 2,
            self.odd_method: 2,
            self.odd_path: 6,
            self.odd_query: 2,
            self.odd_headers: 5,
            self.wrong_token: 2,
            self.odd_body: 3,
            self.odd_length: 3,
            self.chunked: 1,
            self.pipelined: 2,
            self.truncated: 3,
            self.damaged: 6,
            self.noise: 1,
        }
        while True:
            (kind,) = self.random.choices(list(kinds), list(kinds.values()))
            sent = kind()
            yield Attempt(kind.__name__, self.split(sent), self.random.choices(["open", "half", "gone"], [6, 3, 1])[0])

    def split(self, sent: bytes) -> list[bytes]:
        if self.random.random() < 0.7 or len(sent) < 3:
            return [sent]
        at = sorted(self.random.sample(range(1, len(sent)), min(len(sent) - 1, self.random.randint(1, 4))))
        return [sent[a:b] for a, b in zip([0, *at], [*at, len(sent)], strict=True)]

    def request(self, method="GET", path=None, headers=(), body=b"", length: str | None = None) -> bytes:
        path = self.random.choice(ROUTES) if path is None else path
        lines = [f"{method} {path} HTTP/1.1".encode(), b"Host: " + self.host, *headers]
        if body or length is not None:
            lines += [b"Content-Type: application/json", f"Content-Length: {length or len(body)}".encode()]
        return b"\r\n".join([*lines, b"", body])

    def whole(self) -> bytes:
        if self.random.random() < 0.7:
            return self.request()
        method, path, body = self.random.choice(WRITES)
        return self.request(method, path, body=body)

    def odd_method(self) -> bytes:
        return self.request(self.random.choice(METHODS))

    def odd_path(self) -> bytes:
        choose = self.random.choice
        start = choose(["/", "//", "/runs/", "/assets/", "/api/v1/", "/api/v1/runs/", "/api/v1/runs/made-0/", "", "*"])
        start = choose([start, start, start, "http://localhost/", "file:///", "\\"])
        parts = [choose([DOTS, DOTS, ODD, OUTSIDE]) for _ in range(self.random.randint(0, 6))]
        path = start + choose(["/", "%2f", "%2F", "\\", "//", "/./"]).join(choose(part) for part in parts)
        if self.random.random() < 0.6:
            path += choose(["/", "%2f", "%2F", ""]) + choose(OUTSIDE)
        if self.random.random() < 0.05:
            path += choose(["a", "/", "%41", "/.."]) * self.random.choice([2000, 20_000])
        return self.request(path=path)

    def odd_query(self) -> bytes:
        path = self.random.choice(["/api/v1/runs", "/api/v1/compare", "/compare", "/api/v1/runs/made-0", "/"])
        return self.request(path=path + "?" + self.random.choice([*QUERIES, *ODD]))

    def odd_headers(self) -> bytes:
        method, path, body = self.random.choice([("GET", None, b""), ("GET", None, b""), *WRITES])
        headers = self.random.sample(HEADERS, self.random.randint(1, 3))
        return self.request(method, path, headers, body)

    def wrong_token(self) -> bytes:
        method, path, body = self.random.choice(WRITES)
        token = self.random.choice(WRONG_TOKENS).encode()
        header = self.random.choice([b"Authorization: Bearer ", b"Authorization: bearer ", b"Cookie: fullbore_token="])
        return self.request(method, path, [header + token], body)

    def odd_body(self) -> bytes:
        method, path, _ = self.random.choice(WRITES)
        bodies = [
            b"[" * 60_000,
            b'{"a":' * 10_000,
            b'{"note": "\xff\xfe"}',
            b'{"note": "\\ud800"}',
            b'{"token": 7, "token": null}',
            b'{"changed": ' + b"9" * 5000 + b"}",
            b"\x00" * 65_536,
            b"x" * 65_537,
            b"null",
            b"{}",
        ]
        return self.request(method, path, body=self.random.choice(bodies))

    def odd_length(self) -> bytes:
        method, path, body = self.random.choice(WRITES)
        more = self.random.choice([(), (), (b"Content-Length: 2",), (f"Content-Length: {len(body)}".encode(),)])
        return self.request(method, path, more, body, self.random.choice(LENGTHS))

    def chunked(self) -> bytes:
        method, path, body = self.random.choice(WRITES)
        size = self.random.choice([b"%x" % len(body), b"ffffffffffffffff", b"-1", b"0", b"g"])
        length = self.random.choice([None, "3"])
        chunks = size + b"\r\n" + body + b"\r\n0\r\n\r\n"
        return self.request(method, path, [b"Transfer-Encoding: chunked"], length=length) + chunks

    def pipelined(self) -> bytes:
        return b"".join(self.whole() for _ in range(self.random.choice([2, 3, 50])))

    def truncated(self) -> bytes:
        whole = self.whole()
        return whole[: self.random.randrange(1, len(whole))]

    def damaged(self) -> bytes:
        damaged = bytearray(self.random.choice([self.whole, self.odd_headers, self.odd_length])())
        for _ in range(self.random.randint(1, 8)):
            at = self.random.randrange(len(damaged))
            alphabet = self.random.choice([b"\x00\n\r %:\xff[]{}/.", bytes(range(256))])
            added = bytes(self.random.choice(alphabet) for _ in range(self.random.randint(0, 3)))
            damaged[at : at + self.random.randint(0, 3)] = added
        return bytes(damaged) or b"\n"

    def noise(self) -> bytes:
        return self.random.randbytes(self.random.choice([1, 10, 1000, 20_000, 100_000]))


def flaw(sent: bytes, received: bytes) -> str | None:
    """What is wrong with an answer; nothing at all, from a server that closed, is none."""
    for secret in (MARK, TOKEN.encode(), b"root:x:0:"):
        if secret in received:
            return f"says {secret!r}"
    if not received:
        return None
    head, found, body = received.partition(b"\r\n\r\n")
    lines = head.split(b"\r\n")
    first = re.fullmatch(rb"HTTP/1\.1 (\d{3}) [A-Za-z ]+", lines[0])
    if not found or not first:
        return "is no answer of HTTP"
    headers = {}
    for line in lines[1:]:
        field = re.fullmatch(rb"([A-Za-z-]+): ([\x20-\x7e]+)", line)
        if not field or field[1].lower() in headers:
            return f"has the header {line!r}"
        headers[field[1].lower()] = field[2]
    if int(first[1]) not in EXPECTED:
        return f"has the status {first[1].decode()}"
    if headers.get(b"connection") != b"close" or headers.get(b"x-content-type-options") != b"nosniff":
        return "lacks a header that every answer has"
    if headers[b"content-type"] == b"text/event-stream":
        return None if body.startswith(b"retry: ") or sent.startswith(b"HEAD ") else "is no stream of events"
    said = b"0" if sent.startswith(b"HEAD ") else headers.get(b"content-length")
    if said != b"%d" % len(body):
        return f"has {len(body)} bytes, and says {said!r}"
    if headers[b"content-type"] == b"application/json" and body:
        try:
            json.loads(body)
        except ValueError as e:
            return f"is no JSON: {e}"
    return None


class Talk:
    """One connection, from the first piece of its request to the end of the answer."""

    def __init__(self, serving: Serving, attempt: Attempt) -> None:
        self.attempt = attempt
        self.pieces = list(attempt.pieces)
        self.received = b""
        self.over = False
        self.connection = socket.create_connection((serving.host, serving.port), timeout=20)

    def fileno(self) -> int:
        return self.connection.fileno()

    def speak(self) -> None:
        with contextlib.suppress(OSError):  # refused before all of it was sent: what was said is still to be heard
            self.connection.sendall(self.pieces.pop(0))
            if not self.pieces and self.attempt.ending == "half":
                self.connection.shutdown(socket.SHUT_WR)
        self.over = not self.pieces and self.attempt.ending == "gone"

    def listen(self) -> None:
        try:
            got = self.connection.recv(1 << 16)
        except ConnectionError:
            got = b""
        self.received += got
        is_event = b"text/event-stream" in self.received and self.received.endswith(b"\n\n")
        self.over = not got or is_event

    def end(self) -> None:
        if self.attempt.ending == "gone":  # and in the rudest way
            self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.connection.close()


class Fuzzer(threading.Thread):
    """Many talks at once, none of which waits for another."""

    def __init__(self, serving: Serving, seed: int, seconds: float, until_answered_s: float) -> None:
        super().__init__(name=f"seed {seed}")
        self.serving = serving
        self.seconds = seconds
        self.until_answered_s = until_answered_s
        self.order = random.Random(seed)
        self.attempts = iter(Attempts(seed, serving.address))
        self.talks: list[Talk] = []
        self.answers: collections.Counter[tuple[str, str]] = collections.Counter()
        self.flaws: list[str] = []

    def run(self) -> None:
        try:
            self.fuzz()
        except Exception as e:  # such as a server that is gone
            self.flaws.append(f"{self.name}: {e!r}")
        for talk in self.talks:
            talk.end()

    def fuzz(self) -> None:
        end = time.monotonic() + self.seconds
        while time.monotonic() < end and not self.flaws:
            self.talks.append(Talk(self.serving, next(self.attempts)))
            self.talks[-1].speak()
            unfinished = [talk for talk in self.talks if talk.pieces]
            if unfinished and self.order.random() < 0.7:
                self.order.choice(unfinished).speak()
            self.hear(0.01)
            while len(self.talks) > OPEN_AT_ONCE:
                self.give_up(self.talks.pop(0))
        end = time.monotonic() + self.until_answered_s
        while self.talks and time.monotonic() < end and not self.flaws:
            self.hear(1)
        if self.until_answered_s:
            for talk in self.talks:
                self.flaws.append(f"{self.name}: neither answered nor closed: {talk.attempt.sent[:3000]!r}")

    def give_up(self, talk: Talk) -> None:
        talk.end()
        self.answers[talk.attempt.kind, "given up unfinished" if talk.pieces else "given up"] += 1

    def hear(self, wait_s: float) -> None:
        for talk in select.select(self.talks, [], [], wait_s)[0]:
            talk.listen()
        for talk in [each for each in self.talks if each.over]:
            talk.end()
            self.talks.remove(talk)
            self.judge(talk.attempt, talk.received)

    def judge(self, attempt: Attempt, received: bytes) -> None:
        wrong = flaw(attempt.sent, received)
        if wrong:
            said = f"{self.name}, {attempt.kind}: the answer {wrong}\n{attempt.sent[:3000]!r}\n{received[:3000]!r}"
            self.flaws.append(said)
        status = received.split(b" ")[1].decode() if not wrong and received else "closed"
        self.answers[attempt.kind, "gone" if attempt.ending == "gone" else status] += 1


def plant(runs: pathlib.Path) -> None:
    """A file and a run beside the directory of the runs, which nobody may ever be given."""
    (runs.parent / "secret.txt").write_bytes(MARK)
    subprocess.run([MADE_RUNS, runs.parent, "outside", "1", "0", "0"], check=True, stdout=subprocess.DEVNULL)
    outside = (runs.parent / "outside-0.fbr").rename(runs.parent / "outside.fbr")
    with contextlib.closing(sqlite3.connect(outside)) as database, database:
        database.execute("INSERT INTO tag VALUES ('planted', ?)", (MARK.decode(),))


def state_of(serving: Serving, runs: pathlib.Path) -> dict[str, object]:
    """All that a request could change: ended runs to the byte, live ones' tags and notes, and which files there are."""
    passing = ("-wal", "-shm", ".index", ".index.new")
    state: dict[str, object] = {
        file.name: hashlib.sha256(file.read_bytes()).hexdigest() if "-live-" not in file.name else "there"
        for file in runs.iterdir()
        if not file.name.endswith(passing)
    }
    state["beside"] = sorted(file.name for file in runs.parent.iterdir())
    for file in runs.glob("*-live-*.fbr"):
        about = serving.ask(f"/api/v1/runs/{file.stem}/about").json
        state[f"{file.stem} says"] = (about["tags"], about.get("note"))
    return state


class Report(NamedTuple):
    """An attempt that is given up is no flaw: what it sent may lack something that the server rightly waits for, and a
    slow machine answers only after OPEN_AT_ONCE others have begun."""

    attempts: int
    answered: int  # in HTTP
    closed: int  # by the server, without an answer
    gone: int  # the sender was, as the attempt wanted it
    given_up: int  # by the sender, for later ones; all of it was sent
    given_up_unfinished: int  # the same, with pieces still to be sent
    answers: collections.Counter[str]  # by status
    by_kind: dict[str, collections.Counter[str]]
    flaws: list[str]
    changed: dict[str, tuple[object, object]]
    memory_bytes: int  # once every page has been asked for
    grown_bytes: int  # at most, since then


def fuzz(serving: Serving, runs: pathlib.Path, seconds: float, seed: int, until_answered_s: float = 0) -> Report:
    """`until_answered_s`: how long every connection may take to be answered or closed; 0: nobody looks."""
    plant(runs)
    for path in ROUTES:
        if not path.endswith("events"):
            serving.ask(path)
    before = state_of(serving, runs)
    memory = most = serving.memory_bytes()
    fuzzers = [Fuzzer(serving, seed + i, seconds, until_answered_s) for i in range(4)]
    for fuzzer in fuzzers:
        fuzzer.start()
    while any(fuzzer.is_alive() for fuzzer in fuzzers):
        if serving.process.poll() is not None:
            break
        most = max(most, serving.memory_bytes())
        time.sleep(0.1)
    for fuzzer in fuzzers:
        fuzzer.join()
    flaws = [each for fuzzer in fuzzers for each in fuzzer.flaws]
    changed: dict[str, tuple[object, object]] = {}
    if serving.process.poll() is None:
        after = state_of(serving, runs)
        changed = {k: (before.get(k), after.get(k)) for k in before | after if before.get(k) != after.get(k)}
    else:
        flaws.append(f"the server ended with status {serving.process.returncode}")
    answers: collections.Counter[str] = collections.Counter()
    by_kind: dict[str, collections.Counter[str]] = collections.defaultdict(collections.Counter)
    for fuzzer in fuzzers:
        for (kind, status), count in fuzzer.answers.items():
            answers[status] += count
            by_kind[kind][status] += count
    return Report(
        attempts=sum(answers.values()),
        answered=sum(count for status, count in answers.items() if status.isdigit()),
        closed=answers["closed"],
        gone=answers["gone"],
        given_up=answers["given up"],
        given_up_unfinished=answers["given up unfinished"],
        answers=answers,
        by_kind=dict(by_kind),
        flaws=flaws,
        changed=changed,
        memory_bytes=memory,
        grown_bytes=most - memory,
    )
