"""`fullbore mcp` as a coding agent meets it: through the official client, from a slow script to a proven gain."""

from __future__ import annotations

import json
import pathlib
import subprocess
import time
from collections.abc import Callable

import jsonschema
import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
PYTHON = ROOT / "build" / "mcp" / "bin" / "python"
SCHEMA = json.loads((ROOT / "docs" / "contest.schema.json").read_text())

# A training that waits for its data: each sample sleeps.
SLOW = """
import time, torch
from torch import nn

class Slow(torch.utils.data.Dataset):
    def __len__(self):
        return 100_000

    def __getitem__(self, index):
        time.sleep(0.004)
        return torch.full((16,), float(index % 7)), index % 4

if __name__ == "__main__":
    torch.set_num_threads(1)
    torch.manual_seed(0)
    model = nn.Linear(16, 4)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    loader = torch.utils.data.DataLoader(Slow(), batch_size=4, num_workers=0)
    for x, y in loader:
        optimizer.zero_grad()
        nn.functional.cross_entropy(model(x), y).backward()
        optimizer.step()
"""
BRIEFLY = {"most": "5s", "budget": "3m"}


@pytest.fixture
def agent(fullbore) -> Callable:
    """An agent that speaks with `fullbore mcp FLAGS`, and a person who says yes or no; returns what calls a tool."""
    if not PYTHON.exists():
        pytest.skip("the official client is not installed: scripts/mcp_client.sh")

    def begin(person: str, *flags: str) -> Callable:
        client = pathlib.Path(__file__).with_name("mcp_client.py")
        process = fullbore.begin(
            PYTHON, client, person, fullbore.binary, "mcp", *flags, stdin=subprocess.PIPE, stderr=None
        )

        def call(tool: str, cancel_at: pathlib.Path | None = None, **arguments) -> dict | None:
            asked = {"tool": tool, "arguments": arguments, "cancel_at": cancel_at and str(cancel_at)}
            process.stdin.write(json.dumps(asked).encode() + b"\n")
            process.stdin.flush()
            return json.loads(process.stdout.readline())

        return call

    return begin


def advised(script: str, finding: dict) -> str:
    """The script with the edit that the finding advises: workers, or, where no core is free for them, to wait once."""
    assert finding["id"] == "input-bound"
    if change := finding.get("change"):
        assert change.startswith("DataLoader(num_workers=")
        return script.replace("num_workers=0", change.removeprefix("DataLoader(").removesuffix(")"))
    assert "do it once, before training" in finding["fix"][0]
    (line,) = (place["text"] for place in finding["where"] if "sleep" in place.get("text", ""))
    return script.replace(f"        {line}\n", "").replace("Slow()", f"({line}, Slow())[1]")


def ends(pid: str) -> bool:
    """Whether the process ends; that it does is waited for, as long as its patience lasts and then some."""
    for _ in range(600):
        if not pathlib.Path(f"/proc/{pid}").exists():
            return True
        time.sleep(0.1)
    return False


@pytest.mark.long
def test_a_slow_script_is_diagnosed_edited_and_proven_and_no_other_gain_is(fullbore, agent, torch_python):
    call = agent("yes")
    fullbore.script("before.py", SLOW)

    def compare(edited: str) -> dict:
        fullbore.script("after.py", edited)
        sides = {"baseline": f"'{torch_python}' before.py", "candidate": f"'{torch_python}' after.py"}
        answer = call("compare", **sides, **BRIEFLY)
        assert [side in answer["asked"][0] for side in sides.values()] == [True, True]
        said = answer["data"]["result"]
        jsonschema.validate(said, SCHEMA)
        return said

    diagnosed = call("run", command=f"'{torch_python}' before.py", limit="40s")
    assert "before.py" in diagnosed["asked"][0] and len(diagnosed["progress"]) > 1
    first = diagnosed["data"]["result"]["findings"][0]
    assert "## Fix it" in call("explain_finding", id=first["id"])["text"]

    edited = advised(SLOW, first)
    faster = compare(edited)
    assert faster["claim"]["holds"] and faster["claim"]["same_losses"], faster["claim"]
    assert faster["gain"]["low"] > 1

    idle = compare(SLOW + "\n# faster\n")
    assert not idle["claim"]["holds"] and idle["claim"]["same_losses"], idle["claim"]

    other = compare(edited.replace("lr=0.1", "lr=0.2"))
    assert not other["claim"]["holds"] and other["claim"]["same_losses"] is False, other["claim"]
    assert other["verdict"] != "faster" or "does not compute the same" in other["claim"]["why"], other["claim"]


@pytest.mark.long
def test_nothing_is_started_where_the_person_says_no(fullbore, agent):
    answer = agent("no")("run", command="touch made")
    assert "touch made" in answer["asked"][0]
    assert answer["is_error"] and "--allow-run" in answer["text"]
    assert not (fullbore.directory / "made").exists()


@pytest.mark.long
def test_a_cancelled_call_ends_its_process_and_the_next_one_may_run(fullbore, agent):
    call = agent("no", "--allow-run")
    written = fullbore.directory / "pid"
    command = "sh -c 'echo $$ > new; mv new pid; exec sleep 600'"
    assert call("run", cancel_at=written, command=command) is None
    assert ends(written.read_text().strip())
    while (answer := call("run", command="true"))["is_error"]:
        assert "another call" in answer["text"], "the one that is being ended"
    assert answer["asked"] == [], "--allow-run"
