"""A headless Chromium driven through its own protocol, over two pipes: no more than the tests need."""

from __future__ import annotations

import contextlib
import json
import os
import pathlib
import select
import subprocess
import time
from typing import Any


class PageLeft(AssertionError):
    """A page was left while it was asked something."""


class Browser:
    def __init__(self, chromium: str, profile: pathlib.Path) -> None:
        to_browser, self.write = os.pipe()
        self.read, from_browser = os.pipe()

        def third_and_fourth() -> None:  # where the browser expects them
            taken, given = os.dup(to_browser), os.dup(from_browser)
            os.dup2(taken, 3)
            os.dup2(given, 4)

        arguments = ["--headless", "--no-sandbox", "--disable-gpu", "--remote-debugging-pipe"]
        self.process = subprocess.Popen(
            [chromium, *arguments, f"--user-data-dir={profile}", "about:blank"],
            preexec_fn=third_and_fourth,
            close_fds=False,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        os.close(to_browser)
        os.close(from_browser)
        self.buffer = b""
        self.calls = 0
        self.console: list[str] = []
        target = self.call("Target.createTarget", {"url": "about:blank"}, session=None)["targetId"]
        attached = {"targetId": target, "flatten": True}
        self.session = self.call("Target.attachToTarget", attached, session=None)["sessionId"]
        for domain in ("Page", "Runtime", "Log"):
            self.call(f"{domain}.enable")

    session: str | None = None

    def close(self) -> None:
        self.process.kill()
        self.process.wait()
        os.close(self.read)
        os.close(self.write)

    def _next(self, deadline: float) -> dict[str, Any]:
        while b"\0" not in self.buffer:
            ready, _, _ = select.select([self.read], [], [], max(0.0, deadline - time.monotonic()))
            assert ready, "the browser does not answer"
            got = os.read(self.read, 1 << 20)
            assert got, "the browser ended"
            self.buffer += got
        message, _, self.buffer = self.buffer.partition(b"\0")
        return json.loads(message)

    def call(
        self, method: str, parameters: dict[str, Any] | None = None, session: str | None = "own"
    ) -> dict[str, Any]:
        self.calls += 1
        sent = {"id": self.calls, "method": method, "params": parameters or {}}
        if session is not None and self.session is not None:
            sent["sessionId"] = self.session
        os.write(self.write, json.dumps(sent).encode() + b"\0")
        deadline = time.monotonic() + 90
        while True:
            message = self._next(deadline)
            if message.get("id") == self.calls:
                if "navigated" in message.get("error", {}).get("message", ""):
                    raise PageLeft(message)
                assert "error" not in message, message
                return message["result"]
            if message.get("method") == "Runtime.consoleAPICalled":
                self.console.append(json.dumps(message["params"]["args"]))
            elif message.get("method") == "Runtime.exceptionThrown":
                self.console.append(json.dumps(message["params"]["exceptionDetails"]))
            elif message.get("method") == "Log.entryAdded":
                self.console.append(message["params"]["entry"]["text"])

    def evaluated(self, expression: str) -> dict[str, Any]:
        return self.call("Runtime.evaluate", {"expression": expression, "returnByValue": True, "awaitPromise": True})

    def value(self, expression: str) -> Any:
        done = self.evaluated(expression)
        assert "exceptionDetails" not in done, done
        return done["result"].get("value")

    def wait(self, expression: str, seconds: float = 60) -> Any:
        """Until it is true; while a page is being left, what it asks for may not be there."""
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            done = {}
            with contextlib.suppress(PageLeft):
                done = self.evaluated(expression)
            if "exceptionDetails" not in done and (found := done.get("result", {}).get("value")):
                return found
            time.sleep(0.1)
        raise AssertionError(f"it did not come: {expression}\n{self.value('document.body.innerText')[:2000]}")

    def open(self, address: str, width: int = 1200, dark: bool = False) -> None:
        size = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": False}
        self.call("Emulation.setDeviceMetricsOverride", size)
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self.call("Emulation.setEmulatedMedia", {"features": [scheme]})
        self.console.clear()
        self.call("Page.navigate", {"url": address})
        self.wait("document.readyState === 'complete' && document.getElementById('page')?.childElementCount > 0")

    def text(self) -> str:
        return self.value("document.body.innerText")

    def picture(self, path: pathlib.Path) -> None:
        import base64

        taken = self.call("Page.captureScreenshot", {"captureBeyondViewport": True})
        path.write_bytes(base64.b64decode(taken["data"]))
