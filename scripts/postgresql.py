"""A PostgreSQL server of Debian's packages on loopback, with a directory of its own and nothing of the machine's."""

from __future__ import annotations

import contextlib
import os
import pathlib
import pwd
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator

from ports import free_port

BINARIES = sorted(pathlib.Path("/usr/lib/postgresql").glob("*/bin"))
ADMINISTRATOR = "postgres"


def unprivileged() -> dict[str, int]:
    """How the server is started: it refuses to run as root."""
    if os.geteuid() != 0:
        return {}
    user = pwd.getpwnam("nobody")
    return {"user": user.pw_uid, "group": user.pw_gid}


class Server:
    def __init__(self, port: int) -> None:
        self.port = port

    def url(self, role: str = ADMINISTRATOR, database: str = "postgres") -> str:
        return f"postgresql://{role}@127.0.0.1:{self.port}/{database}"

    def sql(self, text: str, role: str = ADMINISTRATOR) -> list[list[str]]:
        said = subprocess.run(
            ["psql", "-XAtq", "-F", "\t", "-v", "ON_ERROR_STOP=1", "-d", self.url(role), "-c", text],
            check=True,
            text=True,
            stdout=subprocess.PIPE,
        )
        return [line.split("\t") for line in said.stdout.splitlines()]


@contextlib.contextmanager
def server(*settings: str) -> Iterator[Server]:
    """`settings`: lines of postgresql.conf."""
    directory = pathlib.Path(tempfile.mkdtemp(prefix="fullbore-postgresql."))
    how = unprivileged()
    if how:
        os.chown(directory, how["user"], how["group"])
    data, port = directory / "data", free_port()
    process = None
    try:
        initdb = [BINARIES[-1] / "initdb", "-D", data, "-U", ADMINISTRATOR, "--auth=trust", "-E", "UTF8", "-N"]
        subprocess.run(initdb, check=True, stdout=subprocess.DEVNULL, cwd=directory, **how)
        with open(data / "postgresql.conf", "a") as conf:
            conf.write(
                "\n".join((f"port = {port}", f"unix_socket_directories = '{directory}'", "fsync = off", *settings))
            )
        with open(directory / "log", "w") as log:
            command = [BINARIES[-1] / "postgres", "-D", data]
            process = subprocess.Popen(command, stdout=log, stderr=log, cwd=directory, **how)
        started = Server(port)
        deadline = time.monotonic() + 30
        while subprocess.run(["pg_isready", "-q", "-h", "127.0.0.1", "-p", str(port)]).returncode != 0:
            if process.poll() is not None or time.monotonic() > deadline:
                raise RuntimeError("PostgreSQL did not start: " + (directory / "log").read_text())
            time.sleep(0.05)
        yield started
    finally:
        if process is not None:
            process.terminate()
            process.wait()
        shutil.rmtree(directory, ignore_errors=True)
