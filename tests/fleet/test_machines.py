"""One training on two machines, each with its own recorder and file: two launchers of torchrun on this one, or on two
hosts of namespaces."""

from __future__ import annotations

import json
import sys
import textwrap
from collections.abc import Sequence

import pytest
from hosts import Host, hosts, why_not
from ports import free_port

TRAIN = """
    import os, sys, time
    import torch
    import torch.distributed as dist
    from torch.nn.parallel import DistributedDataParallel

    dist.init_process_group("gloo")
    late = os.environ.get("GROUP_RANK") == sys.argv[1]
    model = DistributedDataParallel(torch.nn.Linear(64, 64))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    loader = torch.utils.data.DataLoader(torch.utils.data.TensorDataset(torch.randn(1600, 64)), batch_size=8)
    for (x,) in loader:
        time.sleep(0.030 if late else 0.005)
        optimizer.zero_grad()
        model(x).sum().backward()
        optimizer.step()
    dist.barrier()
    dist.destroy_process_group()
    sys.stdout.flush()
    os._exit(0)  # torch's gloo threads sometimes abort a regular exit, also without fullbore
"""


def train(fullbore, late: int, ranks: int = 2, on: Sequence[Host] = ()):
    """Both machines until they have ended; the folder of the run."""
    script = fullbore.script("train.py", textwrap.dedent(TRAIN))
    address, port = (on[0].address, 29500) if on else ("127.0.0.1", free_port())
    processes = []
    runs = fullbore.directory / "shared"
    for number, node in enumerate(("left", "right")):
        launch = ["-m", "torch.distributed.run", "--nnodes", "2", "--node-rank", number, "--nproc-per-node", ranks]
        launch += ["--master-addr", address, "--master-port", port, script, late]
        words = [str(word) for word in (sys.executable, *launch)]
        recorded = fullbore.arguments(words, ["-o", runs, "--run", "exp", "--node", node, "-q"])
        there = on[number].prefix() if on else []
        env = {"GLOO_SOCKET_IFNAME": "eth0"} if on else {}
        processes.append(fullbore.begin(*there, *recorded, env=env))
    for process in processes:
        _, stderr = process.communicate(timeout=120)
        assert process.returncode == 0, stderr.decode()
    return runs / "exp.fbr"


@pytest.mark.long
def test_the_late_machine_is_named_in_one_report_of_both(fullbore):
    folder = train(fullbore, late=1)
    assert sorted(file.name for file in folder.glob("*.fbr")) == ["left.fbr", "right.fbr"]
    report = fullbore.explain(folder)
    assert report["run_id"] == "exp"
    assert [rank["rank"] for rank in report["ranks"]] == [0, 1, 2, 3]
    assert [(node["name"], node["ranks"]) for node in report["nodes"]] == [("left", [0, 1]), ("right", [2, 3])]
    found = next(each for each in report["findings"] if each["id"] == "straggler")
    assert found.get("cause", "") == ""  # of two machines either may be the odd one
    assert found["title"].startswith("right (ranks 2-3) arrives last in ")

    the_run_is_one_wherever_a_run_is_accepted(fullbore, folder)


@pytest.mark.long
@pytest.mark.skipif(why_not() != "", reason=why_not())
def test_two_hosts_are_one_run_although_their_clocks_began_at_other_times(fullbore):
    with hosts("left", "right") as both:
        folder = train(fullbore, late=0, ranks=1, on=both)
    report = fullbore.explain(folder)
    assert [(node["name"], node["ranks"]) for node in report["nodes"]] == [("left", [0]), ("right", [1])]
    found = next(each for each in report["findings"] if each["id"] == "straggler")
    assert found["title"].startswith("Rank 0 on left arrives last in ")
    database = fullbore.directory / "fleet.db"
    assert fullbore.call("fleet", "collect", folder.parent, "--to", database, "-q").code == 0
    account = json.loads(fullbore.call("fleet", "report", "--from", database, "--json", "-").stdout)
    assert account["runs"] == 1
    assert account["given_ns"] == sum(part["device_ns"] for part in account["parts"])


def the_run_is_one_wherever_a_run_is_accepted(fullbore, folder) -> None:
    listed = json.loads(fullbore.call("runs", "-o", folder.parent, "--json", "-").stdout)
    assert [each["id"] for each in listed] == ["exp"]
    assert listed[0]["steps"] == 4 * 200
    by_name = fullbore.call("explain", "-o", folder.parent, "exp")
    assert b"2 machines, 4 ranks" in by_name.stdout, by_name.stderr
    alone = fullbore.explain(folder / "right.fbr")
    assert [rank["rank"] for rank in alone["ranks"]] == [2, 3]
    assert "nodes" not in alone
    compared = fullbore.call("compare", folder, folder / "left.fbr", "--json", "-")
    assert compared.code == 0, compared.stderr
    page = fullbore.directory / "page.html"
    assert fullbore.call("explain", folder, "--html", page, "-q").code == 0
    assert '"nodes"' in page.read_text()


def test_a_machine_needs_the_name_of_its_run(fullbore):
    refused = fullbore.call("run", "--node", "a", "--", "true")
    assert refused.code == 2
    assert "it needs --run ID" in refused.stderr


def test_several_machines_without_a_name_are_told_of_it(fullbore):
    done = fullbore.run("sh", "-c", "true", "--nnodes", "2")
    assert done.code == 0
    assert "this is one of several machines" in done.stderr
    assert done.run_file.is_file()


def test_under_slurm_nothing_needs_to_be_named(fullbore):
    step = {
        "SLURM_JOB_ID": "4711",
        "SLURM_STEP_ID": "0",
        "SLURM_STEP_NUM_NODES": "2",
        "SLURM_STEP_NUM_TASKS": "2",
        "SLURM_JOB_ACCOUNT": "vision",
    }
    for node in ("gpu-1", "gpu-2"):
        assert fullbore.call("run", "-o", "runs", "--", "true", env={**step, "SLURMD_NODENAME": node}).code == 0
    folder = fullbore.directory / "runs" / "slurm-4711.0.fbr"
    assert sorted(file.stem for file in folder.glob("*.fbr")) == ["gpu-1", "gpu-2"]
    assert fullbore.explain(folder)["machine"]["job_account"] == "vision"


def test_a_command_that_does_not_exist_leaves_nothing(fullbore):
    done = fullbore.call("run", "-o", "runs", "--run", "exp", "--node", "a", "--", "no-such-command")
    assert done.code == 127
    assert list((fullbore.directory / "runs").glob("*.fbr")) == []


def test_alerts_are_each_machines_own(fullbore):
    assert fullbore.call("run", "-o", "runs", "--run", "exp", "--node", "a", "--", "true").code == 0
    refused = fullbore.call("alerts", "-o", "runs", "exp")
    assert refused.code == 2
    assert "name one of the files in it" in refused.stderr
    assert fullbore.explain("runs/exp.fbr/")["run_id"] == "exp"  # as a shell completes it


def test_one_machine_and_several_do_not_share_a_name(fullbore):
    runs = ("-o", "runs", "--run", "exp")
    assert fullbore.call("run", *runs, "--", "true").code == 0
    done = fullbore.call("run", *runs, "--node", "a", "--", "sh", "-c", "echo ran")
    assert done.code == 0
    assert done.stdout == b"ran\n"
    assert "is of one machine" in done.stderr
