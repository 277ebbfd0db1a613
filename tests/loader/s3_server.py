"""A real S3 server on loopback, with a bucket `data` and a user whose keys are checked."""

from __future__ import annotations

import json
import os
import pathlib
import subprocess
import sys
import tempfile
from typing import Any

# Without keys, and what is cached there goes with these tests. Not a path that does not exist: root would make it.
HOME = tempfile.TemporaryDirectory(prefix="fullbore-home-")


def without_credentials() -> dict[str, str]:
    """The environment, but for what would change where requests go and how they are signed."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("AWS_")}
    return {**kept, "no_proxy": "127.0.0.1", "HOME": HOME.name}


# The kernel chooses the port, so that nobody can take it meanwhile.
SERVE = """
import time
from moto.server import ThreadedMotoServer
server = ThreadedMotoServer("127.0.0.1", 0, verbose=False)
server.start()
print("port", server.get_host_and_port()[1], flush=True)
time.sleep(10**6)
"""


class S3:
    """moto's server with its checks of signatures and policies switched on."""

    def __init__(self, directory: pathlib.Path) -> None:
        # So many requests go unchecked: those of `prepare`, which make the user whose keys are checked then.
        # Pages of ten keys, so that few of them make many pages.
        env = dict(
            without_credentials(),
            INITIAL_NO_AUTH_ACTION_COUNT="3",
            MOTO_S3_DEFAULT_MAX_KEYS="10",
            AWS_ACCESS_KEY_ID="setup",
            AWS_SECRET_ACCESS_KEY="setup",
        )
        self.log = (directory / "moto.log").open("w")
        self.process = subprocess.Popen(
            [sys.executable, "-c", SERVE], env=env, stdout=subprocess.PIPE, stderr=self.log, text=True
        )
        said = self.process.stdout.readline()
        assert said.startswith("port "), f"moto's server does not start: {(directory / 'moto.log').read_text()}"
        self.port = int(said.split()[1])
        self.endpoint = f"http://127.0.0.1:{self.port}"
        self.prepare()

    def client(self, service: str, key: str, secret: str) -> Any:
        import boto3

        return boto3.client(
            service,
            endpoint_url=self.endpoint,
            region_name="us-east-1",
            aws_access_key_id=key,
            aws_secret_access_key=secret,
        )

    def prepare(self) -> None:
        iam = self.client("iam", "setup", "setup")
        iam.create_user(UserName="reader")
        everything = {
            "Version": "2012-10-17",
            "Statement": [
                {"Effect": "Allow", "Action": ["s3:*"], "Resource": "*"},
                {"Effect": "Deny", "Action": ["s3:GetObject"], "Resource": "arn:aws:s3:::data/secret/*"},
            ],
        }
        iam.put_user_policy(UserName="reader", PolicyName="p", PolicyDocument=json.dumps(everything))
        key = iam.create_access_key(UserName="reader")["AccessKey"]
        self.keys = {"AWS_ACCESS_KEY_ID": key["AccessKeyId"], "AWS_SECRET_ACCESS_KEY": key["SecretAccessKey"]}
        self.s3 = self.client("s3", *self.keys.values())
        self.s3.create_bucket(Bucket="data")

    def put(self, name: str, data: bytes) -> None:
        self.s3.put_object(Bucket="data", Key=name, Body=data)

    def close(self) -> None:
        self.process.kill()
        self.process.communicate()
        self.log.close()
