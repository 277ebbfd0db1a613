"""Speaks with `fullbore mcp` through the official client, whose Python (build/mcp) runs this:

    mcp_client.py YES-OR-NO FULLBORE...

Starts the command, and then takes a line of JSON for each call of a tool: its `tool`, its `arguments`, and, to cancel
it, the file at whose appearance that is done (`cancel_at`). Answers each with a line: the `text` and the `data` of the
result, `is_error`, what the person was `asked` and how often `progress` was told; null where it was cancelled. A person
who is asked says YES-OR-NO.
"""

from __future__ import annotations

import json
import os
import pathlib
import sys
from typing import Any

import anyio
import anyio.to_thread
import mcp_types as types

from mcp import Client, StdioServerParameters


class Conversation:
    def __init__(self, says_yes: bool) -> None:
        self.says_yes = says_yes
        self.asked: list[str] = []
        self.progress: list[float] = []

    async def answer(self, _context: Any, question: types.ElicitRequestParams) -> types.ElicitResult:
        self.asked.append(question.message)
        if not self.says_yes:
            return types.ElicitResult(action="decline")
        return types.ElicitResult(action="accept", content={"allow": True})

    async def hear(self, progress: float, _total: float | None, _message: str | None) -> None:
        self.progress.append(progress)

    async def call(self, client: Client, tool: str, arguments: dict, cancel_at: str | None = None) -> dict | None:
        self.asked, self.progress, result = [], [], None
        async with anyio.create_task_group() as tasks:
            if cancel_at:
                tasks.start_soon(self.cancel, pathlib.Path(cancel_at), tasks.cancel_scope)
            result = await client.call_tool(tool, arguments, progress_callback=self.hear)
            tasks.cancel_scope.cancel()
        return result and {
            "text": result.content[0].text,
            "data": result.structured_content,
            "is_error": result.is_error,
            "asked": self.asked,
            "progress": self.progress,
        }

    async def cancel(self, appears: pathlib.Path, call: anyio.CancelScope) -> None:
        while not appears.exists():
            await anyio.sleep(0.05)
        call.cancel()


async def converse(says_yes: bool, command: list[str]) -> None:
    conversation = Conversation(says_yes)
    server = StdioServerParameters(command=command[0], args=command[1:], env=dict(os.environ))
    async with Client(server, elicitation_callback=conversation.answer) as client:
        while line := await anyio.to_thread.run_sync(sys.stdin.readline):
            print(json.dumps(await conversation.call(client, **json.loads(line))), flush=True)


anyio.run(converse, sys.argv[1] == "yes", sys.argv[2:])
