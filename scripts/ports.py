"""Ports of this machine that nobody listens on: for servers that the tests and the demo of a fleet start."""

import contextlib
import socket


def free_ports(count: int) -> list[int]:
    """All different: each is held until the last is known."""
    with contextlib.ExitStack() as stack:
        sockets = [stack.enter_context(socket.socket()) for _ in range(count)]
        for each in sockets:
            each.bind(("127.0.0.1", 0))
        return [each.getsockname()[1] for each in sockets]


def free_port() -> int:
    return free_ports(1)[0]
