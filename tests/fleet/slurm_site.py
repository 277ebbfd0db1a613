"""A site with Slurm and our plugin, as the tests of both use it: jobs of ordinary users, and what became of them."""

from __future__ import annotations

import contextlib
import os
import pathlib
import pwd
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.append(str(ROOT / "scripts"))

from slurm_cluster import cluster, end, host, missing  # noqa: E402

BUILD = ROOT / "build" / "release"
PLUGIN = BUILD / "libfullbore_slurm.so"
BINARY = BUILD / "fullbore"
USER = "games"  # of Debian: nobody's own, and on every machine
PYTHON = "/usr/bin/python3"  # that other users may execute
MOST_S = 40
GOES_ON = {"PENDING", "CONFIGURING", "RUNNING", "COMPLETING", "SUSPENDED", "REQUEUED"}


def why_not() -> str:
    """Why this machine cannot be such a site; empty if it can."""
    if missing():
        return missing()
    return "" if PLUGIN.exists() else f"no {PLUGIN}: scripts/build.sh release fullbore, with libslurm-dev"


def other_python() -> str:
    """Why other users have no Python with torch here; empty where they have."""
    asked = subprocess.run(["runuser", "-u", USER, "--", PYTHON, "-c", "import torch"], cwd="/", capture_output=True)
    return "" if asked.returncode == 0 else "python3-torch is not installed (Debian)"


class Site:
    def __init__(self, folder: pathlib.Path, environment: dict[str, str]) -> None:
        self.folder = folder
        self.environment = environment
        self.runs = folder / "runs"
        self.started: list[subprocess.Popen] = []

    def configure(self, line: str | None = None) -> None:
        """Of plugstack.conf, which each step reads anew. A machine that is busy with other tests may take its time."""
        usual = f"required {PLUGIN} default=on dir={self.runs} binary={BINARY} wait_ms=10000\n"
        (self.folder / "cluster" / "plugstack.conf").write_text(usual if line is None else line)

    def call(self, *words: str | os.PathLike, user: str = "root", **how) -> subprocess.CompletedProcess:
        as_user = ["runuser", "-u", user, "--"] if user != "root" else []
        command = [str(word) for word in (*as_user, *words)]
        pipes = {"capture_output": True, "text": True, "timeout": MOST_S, "cwd": self.home(user)}
        return subprocess.run(command, env={**self.environment, **how.pop("env", {})}, **{**pipes, **how})

    def home(self, user: str) -> pathlib.Path:
        """Where this user's jobs run."""
        home = self.folder / "work" / user
        home.mkdir(parents=True, exist_ok=True)
        os.chown(home, pwd.getpwnam(user).pw_uid, pwd.getpwnam(user).pw_gid)
        return home

    def submit(
        self, script: str, *flags: str | os.PathLike, user: str = USER, env: dict[str, str] | None = None
    ) -> str:
        words = ["sbatch", "--parsable", "--export=ALL", *flags]
        done = self.call(*words, user=user, input=f"#!/bin/sh\n{script}\n", env=env or {})
        assert done.returncode == 0, done.stderr
        return done.stdout.strip()

    def job(self, job: str) -> dict[str, str]:
        said = self.call("scontrol", "show", "job", "--oneliner", job).stdout
        return dict(re.findall(r"(\w+)=(\S*)", said))

    def wait(self, job: str, states: set[str] | None = None) -> dict[str, str]:
        """What Slurm says of the job once it has ended, or is in one of these states."""
        until = time.monotonic() + MOST_S
        while time.monotonic() < until:
            about = self.job(job)
            if about["JobState"] in states if states else about["JobState"] not in GOES_ON:
                return about
            time.sleep(0.1)
        raise AssertionError(f"job {job} is still {about}")

    def run(self, script: str, *flags: str | os.PathLike, **how) -> dict[str, str]:
        """Submits, waits, and adds what the job printed as "said"."""
        job = self.submit(script, "--output=%j.out", *flags, **how)
        about = self.wait(job)
        about["said"] = (self.home(how.get("user", USER)) / f"{job}.out").read_text()
        return about

    def files(self, job: str = "", user: str = USER) -> list[str]:
        """The names of the run files of a job, once its recorders have ended."""
        self.wait_for_recorders()
        return sorted(path.name for path in (self.runs / user).glob(f"slurm-{job}*.fbr"))

    def recorders(self) -> list[int]:
        found = []
        for entry in pathlib.Path("/proc").iterdir():
            with contextlib.suppress(OSError):
                words = (entry / "cmdline").read_bytes().split(b"\0") if entry.name.isdigit() else []
                ours = f"{self.folder}/"  # others of this machine record, too
                here = any(word.startswith(ours.encode()) for word in words) or os.readlink(entry / "cwd").startswith(
                    ours
                )
                if b"--started-by" in words and bytes(BINARY) in words and here:
                    found.append(int(entry.name))
        return found

    def wait_for_recorders(self) -> None:
        until = time.monotonic() + 30
        while self.recorders():
            assert time.monotonic() < until, f"recorders stay behind: {self.recorders()}"
            time.sleep(0.05)

    def lose_slurmd(self) -> None:
        os.kill(int((self.folder / "cluster" / f"slurmd.{host()}.pid").read_text()), signal.SIGKILL)

    def start_slurmd(self) -> None:
        quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
        self.started.append(subprocess.Popen(["slurmd", "-D"], env=self.environment, start_new_session=True, **quiet))

    def channels(self) -> list[pathlib.Path]:
        return list(pathlib.Path("/dev/shm").glob("fullbore-slurm-*"))


@contextlib.contextmanager
def site(cgroups: str = "", **more: object) -> Iterator[Site]:
    """In a folder that all users may pass. `cgroups` is the text of cgroup.conf."""
    folder = pathlib.Path(tempfile.mkdtemp(prefix="fullbore-site-"))
    folder.chmod(0o755)
    try:
        for name in ("cluster", "runs"):
            (folder / name).mkdir(mode=0o755)
        (folder / "cluster" / "cgroup.conf").write_text(cgroups)
        with cluster(folder / "cluster", **more) as environment:
            made = Site(folder, environment)
            made.configure()
            yield made
            for process in made.started:
                end(process)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
