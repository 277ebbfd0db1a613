"""
NAME     Generations that a server makes while the training waits
PLANTED  each step asks a server on this machine by HTTP, which takes 25 ms; only then it trains
EXPECT   input-bound rollout-elsewhere
TRUTH    wait
LINE     getresponse
NEEDS    two-cores
"""

import argparse
import http.client
import http.server
import json
import multiprocessing
import time

import torch
from torch import nn
from training import StepClock, arguments

SIDE, GENERATION_S = 256, 0.025


class Engine(http.server.BaseHTTPRequestHandler):
    """Waits for a device of its own, and needs no core."""

    def do_POST(self) -> None:
        prompts = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        time.sleep(GENERATION_S)
        self.send_response(200)
        self.end_headers()
        self.wfile.write(json.dumps([0.5 for _ in prompts]).encode())

    def log_message(self, *_: object) -> None: ...


def serve(port: "multiprocessing.connection.Connection") -> None:
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Engine) as server:
        port.send(server.server_port)
        server.serve_forever()


def ask(port: int) -> http.client.HTTPConnection:
    """Sends the question; the engine begins."""
    connection = http.client.HTTPConnection("127.0.0.1", port)
    connection.request("POST", "/generate", json.dumps(list(range(32))))
    return connection


def answer(connection: http.client.HTTPConnection) -> torch.Tensor:
    rewards = torch.tensor(json.load(connection.getresponse()))
    return torch.randn(32, SIDE) * rewards[:, None]


def more(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--ahead", action="store_true", help="ask for the next batch before training on this one")


def main() -> None:
    args = arguments(more)
    clock = StepClock()
    here, there = multiprocessing.Pipe()
    multiprocessing.Process(target=serve, args=[there], daemon=True).start()
    port = here.recv()
    policy = nn.Sequential(*[nn.Linear(SIDE, SIDE) for _ in range(24)])
    optimizer = torch.optim.Adam(policy.parameters())
    coming = ask(port) if args.ahead else None
    for _ in range(4 * args.steps):
        with clock.timed("wait"):
            batch = answer(coming or ask(port))
        coming = ask(port) if args.ahead else None
        loss = policy(batch).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        clock.step_done()
    if coming:
        answer(coming)
    clock.write(args.truth)


if __name__ == "__main__":
    main()
