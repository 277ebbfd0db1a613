"""The remote store against realistic servers: a real S3 server that checks signatures, and one that misbehaves."""

from __future__ import annotations

import pathlib
import socket
import ssl
import subprocess
import threading
from collections.abc import Iterator
from typing import Any

import pytest
from fault_server import Fault, FaultServer
from s3_server import KEYS_WITHOUT_READING
from s3_server import S3 as Server
from store_fetch import TIMEOUT_S, Said, command, digest, environment, fetch, make_bytes, needs_store_fetch

ODD_KEY = "a b+c/ü&<>'\"=%20?#~;,@!*()$.bin"
pytestmark = needs_store_fetch


# --- A real S3 server


class S3(Server):
    def __init__(self) -> None:
        super().__init__()
        self.files = {"shard.tar": make_bytes(2_000_000), ODD_KEY: make_bytes(1000, 2), "empty": b""}
        for name, data in self.files.items():
            self.put(name, data)

    def fetch(self, *arguments: str, endpoint: str | None = None, env: dict[str, str] | None = None) -> Said:
        fixed = ["--cache-bytes", "0", "--endpoint", endpoint or self.endpoint]
        return fetch(*arguments, *fixed, env={**self.keys, **(env or {})})


@pytest.fixture(scope="session")
def s3() -> Iterator[S3]:
    made = S3()
    yield made
    made.close()


def test_the_s3_server_checks_signatures(s3: S3) -> None:
    import botocore.exceptions

    with pytest.raises(botocore.exceptions.ClientError, match="SignatureDoesNotMatch"):
        s3.client(s3.keys["AWS_ACCESS_KEY_ID"], "wrong").list_objects_v2(Bucket="data")


@pytest.mark.parametrize("key", ["shard.tar", ODD_KEY])
def test_an_object_is_read_with_a_signature(s3: S3, key: str) -> None:
    said = s3.fetch(f"s3://data/{key}")
    assert said.digests == [digest(s3.files[key])]
    part = s3.fetch(f"s3://data/{key}", "--offset", "100", "--length", "500")
    assert part.digests == [digest(s3.files[key][100:600])]


def test_an_empty_object_is_read(s3: S3) -> None:
    assert s3.fetch("s3://data/empty").digests == [digest(b"")]


def test_a_prefix_is_listed_whatever_its_characters(s3: S3) -> None:
    assert s3.fetch("--list", "s3://data/a b+c/").files == {f"s3://data/{ODD_KEY}": 1000}
    assert s3.fetch("--list", "s3://data/none").files == {}
    every = s3.fetch("--list", "s3://data/").files
    assert set(every) >= {f"s3://data/{name}" for name in s3.files}


@pytest.mark.long
def test_a_listing_spans_many_pages(s3: S3) -> None:
    count = 1002  # a page has a thousand
    for i in range(count):
        s3.put(f"many/{i:04}", b"x" * (i % 3))
    files = s3.fetch("--list", "s3://data/many/").files
    assert files == {f"s3://data/many/{i:04}": i % 3 for i in range(count)}
    assert list(files) == sorted(files)


def test_listing_and_stat_agree_on_the_version(s3: S3) -> None:
    listed = s3.fetch("--list", "s3://data/shard").lines[0]
    assert s3.fetch("s3://data/shard.tar").lines[0] == listed


@pytest.mark.parametrize(
    ("url", "env", "kind", "text", "hint"),
    [
        ("s3://data/shard.tar", {"AWS_SECRET_ACCESS_KEY": "wrong"}, "permission", "SignatureDoesNotMatch", "SECRET"),
        ("s3://data/shard.tar", {"AWS_ACCESS_KEY_ID": "AKIAUNKNOWN"}, "permission", "InvalidAccessKeyId", "KEY_ID"),
        ("s3://data/none", {}, "not found", "NoSuchKey", "key"),
        ("s3://nobucket/x", {}, "not found", "NoSuchBucket", "bucket"),
        ("s3://data/shard.tar", KEYS_WITHOUT_READING, "permission", "AccessDenied", "s3:GetObject"),
    ],
)
def test_a_refused_request_says_why_and_what_to_do(
    s3: S3, url: str, env: dict[str, str], kind: str, text: str, hint: str
) -> None:
    said = s3.fetch(url, env=env)
    assert said.error, said.lines
    assert said.error["error"] == kind
    assert text in said.error["text"]
    assert hint in said.error["hint"]
    assert not said.messages  # nothing was retried


def test_without_keys_the_error_says_where_they_are_looked_for(s3: S3) -> None:
    said = s3.fetch("s3://data/shard.tar", env={"AWS_ACCESS_KEY_ID": "", "AWS_SECRET_ACCESS_KEY": ""})
    assert said.error and said.error["error"] == "permission"
    assert "AWS_PROFILE" in said.error["hint"]


def test_keys_come_from_a_profile(s3: S3, tmp_path: pathlib.Path) -> None:
    (tmp_path / "credentials").write_text(
        "[default]\naws_access_key_id = x\naws_secret_access_key = y\n[mine]\n"
        f"aws_access_key_id = {s3.keys['AWS_ACCESS_KEY_ID']}\n"
        f"aws_secret_access_key = {s3.keys['AWS_SECRET_ACCESS_KEY']}\n"
    )
    without = {"AWS_ACCESS_KEY_ID": "", "AWS_SECRET_ACCESS_KEY": ""}
    files = {"AWS_SHARED_CREDENTIALS_FILE": str(tmp_path / "credentials"), "AWS_PROFILE": "mine"}
    assert s3.fetch("s3://data/shard.tar", env={**without, **files}).ok
    assert not s3.fetch("s3://data/shard.tar", env={**without, **files, "AWS_PROFILE": "default"}).ok
    nobody = s3.fetch("s3://data/shard.tar", env={**without, **files, "AWS_PROFILE": "nobody"})
    assert nobody.error and "nobody" in nobody.error["text"]


def test_a_clock_that_is_wrong_is_named(server: FaultServer) -> None:
    body = b"<Error><Code>RequestTimeTooSkewed</Code><Message>The difference is too large.</Message></Error>"

    def skewed(*_: object) -> Any:
        from fault_server import Answer

        return Answer(403, {"Content-Length": str(len(body))}, body)

    server.answer = skewed
    keys = {"AWS_ACCESS_KEY_ID": "a", "AWS_SECRET_ACCESS_KEY": "b"}
    said = fetch("s3://data/x", "--endpoint", server.url, env=keys)
    assert said.error and "RequestTimeTooSkewed" in said.error["text"]
    assert "clock" in said.error["hint"]


def test_a_session_token_is_sent_and_signed(server: FaultServer) -> None:
    server.files["/data/x"] = b"hello"
    keys = {"AWS_ACCESS_KEY_ID": "a", "AWS_SECRET_ACCESS_KEY": "b", "AWS_SESSION_TOKEN": "t/o+k=en"}
    assert fetch("s3://data/x", "--endpoint", server.url, env=keys).ok
    _, _, headers = server.gets()[0]
    assert headers["x-amz-security-token"] == "t/o+k=en"
    assert "x-amz-security-token" in headers["authorization"]


# --- Faults, between us and the real server, and with a plain web server


FAULTS = {
    "500": ([Fault(status=500)], "answers 500"),
    "503 with Retry-After": ([Fault(status=503, headers={"Retry-After": "1"})], "answers 503"),
    "429 twice": ([Fault(status=429), Fault(status=429)], "answers 429"),
    "a partial body": ([Fault(cut_after=1_000_000)], "remaining to read"),
    "a reset": ([Fault(cut_after=300_000, reset=True)], "reset"),
    "a reset before the first byte": ([Fault(cut_after=0, reset=True)], ""),
    "five partial bodies and a 502": (
        [Fault(cut_after=200_000)] * 3 + [Fault(status=502)] + [Fault(cut_after=200_000)] * 2,
        "tried",
    ),
}


@pytest.mark.parametrize("name", FAULTS)
@pytest.mark.parametrize("kind", ["s3", "http"])
def test_temporary_faults_are_survived(request: pytest.FixtureRequest, name: str, kind: str) -> None:
    faults, text = FAULTS[name]
    between = FaultServer()
    try:
        between.faults = list(faults)
        if kind == "s3":
            real: S3 = request.getfixturevalue("s3")
            between.upstream = ("127.0.0.1", real.port)
            said = real.fetch("s3://data/shard.tar", endpoint=between.url)
            expected = real.files["shard.tar"]
        else:
            expected = between.files["/shard.tar"] = make_bytes(2_000_000)
            said = fetch(f"{between.url}/shard.tar", "--cache-bytes", "0")
        assert said.digests == [digest(expected)], said.lines
        assert said.said(text if text != "tried" else "retry in"), said.messages
        assert said.said("shard.tar"), "the message names no URL"
        assert said.said("answers again"), said.messages
        assert not between.faults
    finally:
        between.close()


def test_a_body_is_resumed_where_it_ended(server: FaultServer) -> None:
    server.files["/x"] = make_bytes(1_000_000)
    server.faults = [Fault(cut_after=600_000)]
    assert fetch(f"{server.url}/x", "--cache-bytes", "0").ok
    assert [headers["range"] for _, _, headers in server.gets()] == ["bytes=0-999999", "bytes=600000-999999"]


@pytest.mark.long
@pytest.mark.parametrize(("stall_s", "cut_after"), [(8, 0), (10, 500_000)])
def test_a_long_stall_is_reported_and_survived(server: FaultServer, stall_s: float, cut_after: int) -> None:
    server.files["/x"] = make_bytes(1_000_000)
    server.faults = [Fault(stall_s=stall_s, cut_after=cut_after)]
    said = fetch(f"{server.url}/x", "--cache-bytes", "0")
    assert said.digests == [digest(server.files["/x"])]
    assert said.said("the server has been silent for"), said.messages
    assert said.said("answers again"), said.messages
    assert len(server.gets()) == 1  # the same response continued


def test_an_endless_stall_is_given_up_and_retried(server: FaultServer) -> None:
    server.files["/x"] = make_bytes(1_000_000)
    held = threading.Event()
    server.faults = [Fault(hold=held, cut_after=400_000)]
    said = fetch(f"{server.url}/x", "--cache-bytes", "0", "--timeout", "1")
    held.set()
    assert said.digests == [digest(server.files["/x"])]
    assert said.said("no data for 1.0 s"), said.messages


def test_a_server_that_stays_silent_ends_in_an_error(server: FaultServer) -> None:
    server.files["/x"] = make_bytes(1000)
    held = threading.Event()
    server.faults = [Fault(hold=held)] * 10
    said = fetch(f"{server.url}/x", "--cache-bytes", "0", "--timeout", "0.5", "--retries", "1")
    held.set()
    assert said.error and said.error["error"] == "unavailable"


def test_cancel_ends_a_stalled_read_at_once(server: FaultServer) -> None:
    server.files["/x"] = make_bytes(1_000_000)
    held = threading.Event()
    server.faults = [Fault(hold=held)] * 10
    said = fetch(f"{server.url}/x", "--cache-bytes", "0", "--cancel-after", "0.5", "--threads", "4", "--piece", "9999")
    held.set()
    assert said.error and "cancelled" in said.error["text"]


def test_a_missing_server_is_an_error_with_a_next_step() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))  # bound, but nobody listens
        url = f"http://127.0.0.1:{taken.getsockname()[1]}/x"
        said = fetch(url, "--cache-bytes", "0", "--retries", "2")
    assert said.error and said.error["error"] == "unavailable"
    assert "reachable" in said.error["hint"]


@pytest.mark.parametrize("kind", ["s3", "http"])
def test_an_object_that_changes_between_two_reads_is_corrupt(request: pytest.FixtureRequest, kind: str) -> None:
    between = FaultServer()
    try:
        if kind == "s3":
            real: S3 = request.getfixturevalue("s3")
            real.put("changing", make_bytes(100_000, 3))
            process = subprocess.Popen(
                command("s3://data/changing", "--cache-bytes", "0", "--endpoint", real.endpoint, "--wait-before-read"),
                env=environment(**real.keys),
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                text=True,
            )
            assert "version" in process.stdout.readline()
            real.put("changing", make_bytes(100_000, 4))
            out, err = process.communicate("go on\n", timeout=TIMEOUT_S)
            said = Said(process.returncode, out, err)
        else:
            between.files["/x"] = make_bytes(100_000, 3)
            between.faults = [Fault(headers={"ETag": '"another"'})]
            said = fetch(f"{between.url}/x", "--cache-bytes", "0")
        assert said.error and said.error["error"] == "corrupt", said.lines
        assert "changed while it was in use" in said.error["text"]
    finally:
        between.close()


def test_a_server_without_ranges_still_serves(server: FaultServer) -> None:
    server.ranges = False
    server.files["/x"] = make_bytes(300_000)
    said = fetch(f"{server.url}/x", "--cache-bytes", "0", "--offset", "1000", "--length", "5000")
    assert said.digests == [digest(server.files["/x"][1000:6000])]
    assert said.said("ignores the range")


def test_a_redirect_is_followed(server: FaultServer) -> None:
    server.files["/there"] = make_bytes(5000)
    server.redirects["/here"] = f"{server.url}/there"
    assert fetch(f"{server.url}/here", "--cache-bytes", "0").digests == [digest(server.files["/there"])]


@pytest.fixture
def secure_server(certificate: pathlib.Path) -> Iterator[FaultServer]:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, certificate.with_name("key.pem"))
    server = FaultServer(tls=context)
    yield server
    server.close()


def test_https_is_read_only_from_a_server_that_proves_who_it_is(
    secure_server: FaultServer, certificate: pathlib.Path
) -> None:
    secure_server.files["/x"] = make_bytes(300_000)
    said = fetch(f"{secure_server.url}/x", "--cache-bytes", "0", env={"SSL_CERT_FILE": str(certificate)})
    assert said.digests == [digest(secure_server.files["/x"])]
    refused = fetch(f"{secure_server.url}/x", "--cache-bytes", "0")
    assert refused.error and "SSL_CERT_FILE" in refused.error["hint"]
    assert not refused.messages  # a retry would not change it


def test_https_is_not_redirected_to_http(
    server: FaultServer, secure_server: FaultServer, certificate: pathlib.Path
) -> None:
    trusted = {"SSL_CERT_FILE": str(certificate)}
    secure_server.files["/there"] = server.files["/there"] = make_bytes(5000)
    secure_server.redirects["/here"] = f"{secure_server.url}/there"
    assert fetch(f"{secure_server.url}/here", "--cache-bytes", "0", env=trusted).digests
    secure_server.redirects["/here"] = f"{server.url}/there"
    said = fetch(f"{secure_server.url}/here", "--cache-bytes", "0", env=trusted)
    assert said.error and not said.digests
    assert not server.seen
    server.redirects["/here"] = f"{secure_server.url}/there"  # HTTP to HTTPS is fine
    assert fetch(f"{server.url}/here", "--cache-bytes", "0", env=trusted).digests
