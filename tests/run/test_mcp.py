"""`fullbore mcp`: a conversation as a client has it, line by line."""

from __future__ import annotations

import array
import fcntl
import json
import os
import pathlib
import signal
import subprocess
import termios

ROOT = pathlib.Path(__file__).resolve().parents[2]


def say(process: subprocess.Popen, message: dict) -> None:
    process.stdin.write(json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n")
    process.stdin.flush()


def hear(process: subprocess.Popen) -> dict:
    return json.loads(process.stdout.readline())


def begin(fullbore, *flags: str) -> subprocess.Popen:
    process = fullbore.begin(fullbore.binary, "mcp", *flags, stdin=subprocess.PIPE)
    say(process, {"id": 0, "method": "initialize", "params": {"protocolVersion": "2025-06-18", "capabilities": {}}})
    assert hear(process)["result"]["serverInfo"]["name"] == "fullbore"
    return process


def leave(process: subprocess.Popen) -> None:
    process.stdin.close()
    process.stdin = None  # the fixture would flush it
    assert process.wait(60) == 0


def call(process: subprocess.Popen, number: int, name: str, **arguments) -> dict:
    say(process, {"id": number, "method": "tools/call", "params": {"name": name, "arguments": arguments}})
    answer = hear(process)
    assert answer["id"] == number
    return answer["result"]


def test_a_run_is_recorded_and_its_output_stays_off_the_protocol(fullbore):
    process = begin(fullbore, "--allow-run")
    result = call(process, 1, "run", command="sh -c 'echo hello; echo there >&2'")
    assert result["structuredContent"]["result"]["schema"] == "fullbore.report/1"
    assert result["structuredContent"]["result"]["next_step"]
    read = call(process, 2, "diagnose", what=["last"])
    assert read["structuredContent"]["result"]["run_id"] == result["structuredContent"]["result"]["run_id"]
    leave(process)


def test_without_leave_nothing_is_started(fullbore):
    process = begin(fullbore)
    result = call(process, 1, "run", command="touch made")
    assert result["isError"] and "--allow-run" in result["content"][0]["text"]
    assert not (fullbore.directory / "made").exists()


def test_errors_are_those_of_the_command_line(fullbore):
    process = begin(fullbore)
    assert "did you mean" in call(process, 1, "explain_finding", id="input-bond")["content"][0]["text"]
    assert "outside" in call(process, 2, "diagnose", what=["/etc/passwd"])["content"][0]["text"]


def test_what_was_started_ends_with_the_server(fullbore):
    process = begin(fullbore, "--allow-run")
    command = {"name": "run", "arguments": {"command": "sh -c 'echo $$ > pid; exec sleep 600'"}}
    say(process, {"id": 1, "method": "tools/call", "params": command})
    while not (written := fullbore.directory / "pid").exists() or not written.read_text():
        assert process.poll() is None
    leave(process)
    assert not pathlib.Path(f"/proc/{written.read_text().strip()}").exists()


def asked_for_more_than_a_pipe_holds(fullbore, **how) -> subprocess.Popen:
    process = fullbore.begin(fullbore.binary, "mcp", stdin=subprocess.PIPE, **how)
    say(process, {"id": 0, "method": "initialize", "params": {"capabilities": {}}})
    for number in range(1, 50):
        say(process, {"id": number, "method": "tools/list"})
    return process


def unread(pipe) -> int:
    count = array.array("i", [0])
    fcntl.ioctl(pipe, termios.FIONREAD, count)
    return count[0]


def test_a_client_that_reads_slowly_gets_all_whole_even_where_a_write_does_not_block(fullbore):
    read, write = os.pipe()
    os.set_blocking(write, False)
    process = asked_for_more_than_a_pipe_holds(fullbore, stdout=write)
    os.close(write)
    with open(read, "rb") as answers:
        assert [json.loads(answers.readline())["id"] for _ in range(50)] == list(range(50))
    leave(process)


def test_a_client_that_reads_nothing_does_not_keep_the_server_from_ending(fullbore):
    process = asked_for_more_than_a_pipe_holds(fullbore)
    while unread(process.stdout) < 32 << 10:  # then there is soon no room for more
        assert process.poll() is None
    process.send_signal(signal.SIGTERM)
    assert process.wait(60) == 0


def test_the_skill_is_what_the_program_says(fullbore):
    made = subprocess.run([fullbore.binary, "__skill"], capture_output=True, text=True, check=True).stdout
    assert (ROOT / "docs/skill/SKILL.md").read_text() == made, "fullbore __skill > docs/skill/SKILL.md"
