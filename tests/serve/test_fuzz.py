"""Fuzzed requests to `fullbore serve`: refused or harmless. A minute of them: bench/serve/serve_fuzz.py."""

from __future__ import annotations

import pytest

from tests.serve import fuzzing
from tests.serve.conftest import start

SECONDS = 5
MOST_GROWTH_BYTES = 16e6


@pytest.mark.long
def test_fuzzed_requests_are_refused_or_harmless(serving, runs):
    report = fuzzing.fuzz(serving, runs, SECONDS, seed=1)
    assert not report.flaws, "\n\n".join(report.flaws)
    assert serving.ask("/healthz").json["status"] == "ok"
    assert not report.changed
    assert report.grown_bytes < MOST_GROWTH_BYTES
    # They get as far as they should.
    assert report.answered > 200
    assert {"200", "400", "401", "404", "405", "closed"} <= report.answers.keys(), report.answers


def test_what_is_planted_would_be_seen(serving, runs):
    fuzzing.plant(runs)
    careless = start("--dir", str(runs.parent))
    try:
        assert fuzzing.MARK in careless.ask("/api/v1/runs/outside/about").body
    finally:
        careless.process.terminate()
        careless.process.wait(timeout=30)


GOOD = (
    b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nConnection: close\r\nX-Content-Type-Options: nosniff\r\n"
    b"Content-Length: 2\r\n\r\n{}"
)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (b"HTTP/1.1 200 OK", b"HTTP/1.1 500 Internal Server Error"),
        (b"HTTP/1.1 200 OK", b"HTTP/1.1 200 OK\r\nInjected\x00: x"),
        (b"Connection: close", b"Connection: keep-alive"),
        (b"{}", b"{}" + b"HTTP/1.1 200 OK\r\n\r\n"),
        (b"{}", b"{,"),
        (b"\r\n\r\n{}", b"\r\n"),
        (b"{}", fuzzing.MARK),
    ],
)
def test_a_flawed_answer_would_be_noticed(old, new):
    assert fuzzing.flaw(b"GET / HTTP/1.1", GOOD) is None
    assert fuzzing.flaw(b"GET / HTTP/1.1", GOOD.replace(old, new)) is not None
