"""Receivers that answer as the incoming webhooks of Slack, Discord and Teams do: what they take, what they refuse, and
how they say that somebody talks too much."""

from __future__ import annotations

import http.server
import json
import threading
import time
from collections.abc import Iterator
from typing import Any

SECRET = "T0S3CR3T"


class Chat:
    """`busy`: so many messages are refused at first, as being too many, for `wait_s` each."""

    wait_s = 2.0

    def __init__(self, busy: int = 0) -> None:
        self.busy, self.gone = busy, False
        self.heard: list[dict[str, Any]] = []
        self.asked_at: list[float] = []
        outer = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                outer.asked_at.append(time.monotonic())
                typed = self.headers["Content-Type"] == "application/json"
                status, headers, answer = outer.answer(json.loads(body) if typed else None)
                self.send_response(status)
                for name, value in headers.items():
                    self.send_header(name, value)
                self.end_headers()
                self.wfile.write(answer.encode())

            def log_message(self, *_: Any) -> None:
                pass

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}/services/{SECRET}"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def answer(self, message: dict[str, Any] | None) -> tuple[int, dict[str, str], str]:
        if self.gone:
            return self.no_more()
        if self.busy > 0:
            self.busy -= 1
            return self.too_many()
        if message is None or (wrong := self.what_is_wrong(message)):
            return self.refusal("" if message is None else wrong)
        self.heard.append(message)
        return self.taken()

    def close(self) -> None:
        self.server.shutdown()
        self.server.server_close()

    def no_more(self) -> tuple[int, dict[str, str], str]:
        raise NotImplementedError

    def too_many(self) -> tuple[int, dict[str, str], str]:
        raise NotImplementedError

    def what_is_wrong(self, message: dict[str, Any]) -> str:
        raise NotImplementedError

    def refusal(self, wrong: str) -> tuple[int, dict[str, str], str]:
        raise NotImplementedError

    def taken(self) -> tuple[int, dict[str, str], str]:
        raise NotImplementedError


class Slack(Chat):
    kind = "slack"

    def what_is_wrong(self, message: dict[str, Any]) -> str:
        if not isinstance(message.get("text"), str):
            return "no_text"
        for block in message["blocks"]:
            texts = [block["text"]] if "text" in block else block["fields"]
            most = 150 if block["type"] == "header" else 3000
            known = block["type"] in ("header", "section") and len(texts) <= 10
            if not known or not all(0 < len(text["text"]) <= most for text in texts):
                return "invalid_blocks"
            if not all(text["type"] == "plain_text" for text in texts):
                return "invalid_blocks"
        return ""

    def refusal(self, wrong: str) -> tuple[int, dict[str, str], str]:
        return 400, {}, wrong or "invalid_payload"

    def too_many(self) -> tuple[int, dict[str, str], str]:
        return 429, {"Retry-After": str(int(self.wait_s))}, "rate_limited"

    def no_more(self) -> tuple[int, dict[str, str], str]:
        return 404, {}, "no_service"

    def taken(self) -> tuple[int, dict[str, str], str]:
        return 200, {}, "ok"


class Discord(Chat):
    kind = "discord"

    def what_is_wrong(self, message: dict[str, Any]) -> str:
        embeds = message.get("embeds", [])
        if not message.get("content") and not embeds:
            return "Cannot send an empty message"
        for embed in embeds:
            fields = embed["fields"]
            fits = len(embed["title"]) <= 256 and 0 < len(embed["description"]) <= 4096 and len(fields) <= 25
            fits = fits and all(0 < len(each["name"]) <= 256 and 0 < len(each["value"]) <= 1024 for each in fields)
            if not fits or not 0 <= embed["color"] <= 0xFFFFFF:
                return "Invalid Form Body"
        return ""

    def refusal(self, wrong: str) -> tuple[int, dict[str, str], str]:
        return 400, {}, json.dumps({"message": wrong or "Invalid Form Body", "code": 50035})

    def too_many(self) -> tuple[int, dict[str, str], str]:
        said = {"message": "You are being rate limited.", "retry_after": self.wait_s + 0.25, "global": False}
        return 429, {"Retry-After": "1", "Content-Type": "application/json"}, json.dumps(said)

    def no_more(self) -> tuple[int, dict[str, str], str]:
        return 404, {}, json.dumps({"message": "Unknown Webhook", "code": 10015})

    def taken(self) -> tuple[int, dict[str, str], str]:
        return 204, {}, ""


class Teams(Chat):
    kind = "teams"

    def what_is_wrong(self, message: dict[str, Any]) -> str:
        if message.get("type") != "message" or len(message.get("attachments", [])) != 1:
            return "TriggerInputSchemaMismatch"
        (attachment,) = message["attachments"]
        card = attachment["content"]
        fits = attachment["contentType"] == "application/vnd.microsoft.card.adaptive" and card["type"] == "AdaptiveCard"
        small = len(json.dumps(message)) <= 28 << 10
        return "" if fits and small and card["version"] and card["body"] else "TriggerInputSchemaMismatch"

    def refusal(self, wrong: str) -> tuple[int, dict[str, str], str]:
        return 400, {}, json.dumps({"error": {"code": wrong}})

    def too_many(self) -> tuple[int, dict[str, str], str]:
        return 429, {"Retry-After": str(int(self.wait_s))}, ""

    def no_more(self) -> tuple[int, dict[str, str], str]:
        return 404, {}, json.dumps({"error": {"code": "WorkflowNotFound"}})

    def taken(self) -> tuple[int, dict[str, str], str]:
        return 202, {}, ""


def texts_in(message: Any) -> Iterator[str]:
    """Every text of a message, in order."""
    if isinstance(message, str):
        yield message
    elif isinstance(message, dict):
        for each in message.values():
            yield from texts_in(each)
    elif isinstance(message, list):
        for each in message:
            yield from texts_in(each)
