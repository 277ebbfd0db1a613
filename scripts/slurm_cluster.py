"""A real Slurm cluster on this machine: munged, slurmctld and slurmd in a folder of their own, and, where it is to
account, slurmdbd with a MariaDB."""

from __future__ import annotations

import contextlib
import os
import secrets
import shutil
import socket
import subprocess
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from ports import free_ports

# In Debian they are in /usr/sbin, which a user's PATH may lack.
PATH = os.pathsep.join([os.environ.get("PATH", ""), "/usr/sbin", "/sbin"])
PROGRAMS = ["munged", "slurmctld", "slurmd", "sbatch", "srun", "squeue"]
ACCOUNTING_PROGRAMS = ["slurmdbd", "mariadbd", "mariadb-install-db", "sacct", "sacctmgr"]
START_S = 60


def missing() -> str:
    """Why this machine cannot run a cluster; empty if it can."""
    absent = [name for name in PROGRAMS if shutil.which(name, path=PATH) is None]
    if absent:
        return f"{absent[0]} is not installed (Debian: slurmctld, slurmd, slurm-client, munge)"
    return "" if os.geteuid() == 0 else "slurmd starts jobs as their users, and so must be root"


def missing_for_accounting() -> str:
    absent = [name for name in ACCOUNTING_PROGRAMS if shutil.which(name, path=PATH) is None]
    return f"{absent[0]} is not installed (Debian: slurmdbd, mariadb-server)" if absent else missing()


def host() -> str:
    return socket.gethostname().split(".")[0]


def configuration(folder: Path, nodes: list[str], each: str, more: Mapping[str, object]) -> str:
    """`each`: what all nodes have."""
    controller, *daemons = free_ports(1 + len(nodes))
    settings = {
        "ClusterName": "here",
        "SlurmctldHost": f"{nodes[0]}(127.0.0.1)",
        "SlurmUser": "root",
        "SlurmdUser": "root",
        "SlurmctldPort": controller,
        "AuthType": "auth/munge",
        "AuthInfo": f"socket={folder}/munge.socket,cred_expire=5",  # after which a job can be queued again
        "CredType": "cred/munge",
        "StateSaveLocation": folder / "state",
        "SlurmdSpoolDir": folder / "spool.%n",
        "SlurmctldPidFile": folder / "slurmctld.pid",
        "SlurmdPidFile": folder / "slurmd.%n.pid",
        "SlurmctldLogFile": folder / "slurmctld.log",
        "SlurmdLogFile": folder / "slurmd.%n.log",
        "ProctrackType": "proctrack/linuxproc",
        "TaskPlugin": "task/none",
        "SelectType": "select/cons_tres",
        "SelectTypeParameters": "CR_CPU",
        "MpiDefault": "none",
        "ReturnToService": 2,
        "JobRequeue": 1,
        "PreemptType": "preempt/partition_prio",
        "PreemptMode": "REQUEUE",
        "KillWait": 5,
        "MinJobAge": 300,
        "SchedulerParameters": "sched_interval=1,batch_sched_delay=0,sched_min_interval=0,bf_interval=1",
        **more,
    }
    lines = [f"{name}={value}" for name, value in settings.items()]
    lines += [
        f"NodeName={node} NodeAddr=127.0.0.1 Port={port} {each} State=UNKNOWN"
        for node, port in zip(nodes, daemons, strict=True)
    ]
    lines += [
        "PartitionName=low Nodes=ALL Default=YES State=UP PriorityTier=1 PreemptMode=REQUEUE",
        "PartitionName=high Nodes=ALL State=UP PriorityTier=2 PreemptMode=OFF",
    ]
    return "\n".join(lines) + "\n"


def accounted(folder: Path, port: int) -> dict[str, object]:
    return {
        "AccountingStorageType": "accounting_storage/slurmdbd",
        "AccountingStorageHost": "127.0.0.1",
        "AccountingStoragePort": port,
        "AccountingStoragePass": folder / "munge.socket",  # where a daemon of its own answers for it
        "JobAcctGatherType": "jobacct_gather/linux",
    }


def database(folder: Path, port: int) -> list[str]:
    """The command of a MariaDB in this folder that only this machine can reach."""
    words = ["mariadbd", "--no-defaults", "--user=root", f"--datadir={folder}/mariadb", "--bind-address=127.0.0.1"]
    return [*words, f"--port={port}", f"--socket={folder}/mariadb.socket", f"--pid-file={folder}/mariadb.pid"]


def configure_accounting(folder: Path, database_port: int, port: int) -> None:
    install = ["mariadb-install-db", "--no-defaults", "--user=root", f"--datadir={folder}/mariadb"]
    install += ["--auth-root-authentication-method=normal", "--skip-test-db"]
    subprocess.run(install, check=True, capture_output=True)
    settings = {
        "DbdHost": "localhost",
        "DbdAddr": "127.0.0.1",
        "DbdPort": port,
        "SlurmUser": "root",
        "AuthType": "auth/munge",
        "AuthInfo": f"socket={folder}/munge.socket",
        "PidFile": folder / "slurmdbd.pid",
        "LogFile": folder / "slurmdbd.log",
        "StorageType": "accounting_storage/mysql",
        "StorageHost": "127.0.0.1",
        "StoragePort": database_port,
        "StorageUser": "root",
    }
    file = folder / "slurmdbd.conf"
    file.write_text("".join(f"{name}={value}\n" for name, value in settings.items()))
    file.chmod(0o600)  # slurmdbd reads no other


@contextlib.contextmanager
def cluster(
    folder: Path,
    cpus: int | None = None,
    memory_mb: int = 1000,
    plugstack: str = "",
    others: Sequence[str] = (),
    accounting: bool = False,
    **more: object,
) -> Iterator[dict[str, str]]:
    """The environment in which sbatch, srun and squeue speak to it. Partitions: low (default, preemptible), high.
    `plugstack` is the text of plugstack.conf, `more` are settings of slurm.conf; `others` are names of further nodes,
    each a slurmd in a namespace where the host is called that. With `accounting`, sacct answers."""
    folder.chmod(0o755)  # munged wants nobody else to be able to write there
    for name in ["state", "munge"]:
        (folder / name).mkdir(mode=0o755)
    key = folder / "munge.key"
    key.write_bytes(secrets.token_bytes(128))
    key.chmod(0o400)
    each = f"CPUs={cpus or len(os.sched_getaffinity(0))} RealMemory={memory_mb}"
    [database_port, accounting_port] = free_ports(2) if accounting else [0, 0]
    if accounting:
        more = {**accounted(folder, accounting_port), **more}
        configure_accounting(folder, database_port, accounting_port)
    (folder / "slurm.conf").write_text(configuration(folder, [host(), *others], each, more))
    (folder / "plugstack.conf").write_text(plugstack)
    users = {name: value for name, value in os.environ.items() if not name.startswith("FULLBORE_")}  # jobs get it whole
    environment = {**users, "PATH": PATH, "SLURM_CONF": str(folder / "slurm.conf")}
    munged = ["munged", "--foreground", "--force", f"--key-file={key}", f"--socket={folder}/munge.socket"]
    munged += [f"--pid-file={folder}/munge.pid", f"--log-file={folder}/munged.log", f"--seed-file={folder}/munge.seed"]
    with contextlib.ExitStack() as stack:
        elsewhere = [["unshare", "--uts", "sh", "-c", f"hostname {other} && exec slurmd -D"] for other in others]

        def start(command: list[str]) -> None:
            log = stack.enter_context((folder / f"{command[0]}.out").open("a"))
            daemon = subprocess.Popen(command, env=environment, stdout=log, stderr=log, start_new_session=True)
            stack.callback(end, daemon)

        start(munged)
        wait_until((folder / "munge.socket").exists, folder)
        if accounting:
            start(database(folder, database_port))
            wait_until((folder / "mariadb.socket").exists, folder)
            start(["slurmdbd", "-D"])
            wait_until(lambda: "here" in said(["sacctmgr", "-n", "-i", "add", "cluster", "here"], environment), folder)
        for command in [["slurmctld", "-D"], ["slurmd", "-D"], *elsewhere]:
            start(command)
        all_idle = ["idle"] * (1 + len(others))
        ask = ["sinfo", "--noheader", "--Node", "--partition=low", "--format=%T"]
        wait_until(lambda: said(ask, environment).split() == all_idle, folder)
        yield environment
        for state in ("PENDING", "RUNNING"):
            subprocess.run(["scancel", f"--state={state}"], env=environment, check=False)


def said(command: list[str], environment: dict[str, str]) -> str:
    return subprocess.run(command, env=environment, capture_output=True, text=True, timeout=30).stdout


def wait_until(holds, folder: Path) -> None:
    until = time.monotonic() + START_S
    while not holds():
        if time.monotonic() > until:
            logs = "\n".join(f"{log.name}:\n{log.read_text()[-1500:]}" for log in sorted(folder.glob("*.[lo][ou]*")))
            raise TimeoutError(f"no Slurm cluster after {START_S} s\n{logs}")
        time.sleep(0.1)


def end(daemon: subprocess.Popen) -> None:
    daemon.terminate()
    try:
        daemon.wait(timeout=20)
    except subprocess.TimeoutExpired:
        daemon.kill()
        daemon.wait()
