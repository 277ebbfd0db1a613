"""
NAME     Uploads of the weights, each answered by the store
PLANTED  after every fourth step the weights go to a server on this machine by HTTP, which takes 60 ms
EXPECT   host-other network
TRUTH    upload
LINE     urlopen
NEEDS    two-cores
"""

import http.server
import io
import multiprocessing
import time
import urllib.request

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset
from training import StepClock, arguments

SIDE, STORING_S = 128, 0.06


class Store(http.server.BaseHTTPRequestHandler):
    def do_PUT(self) -> None:
        self.rfile.read(int(self.headers["Content-Length"]))
        time.sleep(STORING_S)
        self.send_response(200)
        self.end_headers()

    def log_message(self, *_: object) -> None: ...


def serve(port: "multiprocessing.connection.Connection") -> None:
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Store) as server:
        port.send(server.server_port)
        server.serve_forever()


def upload(model: nn.Module, port: int) -> None:
    weights = io.BytesIO()
    torch.save(model.state_dict(), weights)
    put = urllib.request.Request(f"http://127.0.0.1:{port}/weights", weights.getvalue(), method="PUT")
    urllib.request.urlopen(put).close()


def main() -> None:
    args = arguments()
    clock = StepClock()
    here, there = multiprocessing.Pipe()
    multiprocessing.Process(target=serve, args=[there], daemon=True).start()
    port = here.recv()
    model = nn.Sequential(*[nn.Linear(SIDE, SIDE) for _ in range(24)])
    optimizer = torch.optim.SGD(model.parameters(), lr=0.001)
    rows = TensorDataset(torch.randn(32 * 4 * args.steps, SIDE))
    loader = DataLoader(rows, batch_size=None, sampler=torch.arange(32 * 4 * args.steps).split(32))
    for step, (batch,) in enumerate(loader):
        loss = model(batch).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        with clock.timed("upload"):
            if step % 4 == 0:
                upload(model, port)
        clock.step_done()
    clock.write(args.truth)


if __name__ == "__main__":
    main()
