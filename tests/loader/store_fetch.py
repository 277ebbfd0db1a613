"""Runs the tool store_fetch, which reads through the remote store, and keeps its output."""

from __future__ import annotations

import hashlib
import json
import os
import pathlib
import random
import subprocess
from typing import Any

import pytest
from s3_server import HOME

ROOT = pathlib.Path(__file__).resolve().parents[2]
BUILD = pathlib.Path(os.environ.get("FULLBORE_TEST_BINARY", ROOT / "build" / "release" / "fullbore")).parent
STORE_FETCH = BUILD / "src/loader/core/source/remote/store_fetch"
TIMEOUT_S = 180  # a hang, on any machine: nothing here takes that long
AUTHORITIES = ("CURL_CA_BUNDLE", "SSL_CERT_FILE")

needs_store_fetch = pytest.mark.skipif(not STORE_FETCH.exists(), reason="store_fetch is not built: ninja store_fetch")


def make_bytes(count: int, seed: int = 1) -> bytes:
    return random.Random(seed).randbytes(count)


def digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


class Said:
    """What store_fetch printed."""

    def __init__(self, code: int, stdout: str, stderr: str) -> None:
        assert code in (0, 1), f"store_fetch ended with {code}: {stderr}\n{stdout}"
        self.ok = code == 0
        self.lines: list[dict[str, Any]] = [json.loads(line) for line in stdout.splitlines()]
        self.messages = [line["message"] for line in self.lines if "message" in line]
        self.error = next((line for line in self.lines if "error" in line), None)
        self.digests = [line["sha256"] for line in self.lines if "sha256" in line]
        self.files = {line["path"]: line["bytes"] for line in self.lines if "path" in line}
        for resources in (line for line in self.lines if "before" in line):
            assert resources["after"] == resources["before"], "file descriptors or threads were leaked"

    def said(self, text: str) -> bool:
        return any(text in message for message in self.messages)


def command(*arguments: str | pathlib.Path) -> list[str]:
    return [str(STORE_FETCH), *map(str, arguments)]


def environment(**more: str) -> dict[str, str]:
    kept = {k: v for k, v in os.environ.items() if not k.startswith("AWS_") and k not in AUTHORITIES}
    return {**kept, "no_proxy": "127.0.0.1", "HOME": HOME.name, "XDG_CACHE_HOME": "", **more}


def fetch(*arguments: str | pathlib.Path, env: dict[str, str] | None = None, **how: Any) -> Said:
    done = subprocess.run(
        command(*arguments), capture_output=True, text=True, timeout=TIMEOUT_S, env=environment(**(env or {})), **how
    )
    return Said(done.returncode, done.stdout, done.stderr)
