"""
NAME     Photos on a storage server that lets only 12 MB/s through
PLANTED  the files come over a socket from a process that throttles itself; the worker blocks in read()
EXPECT   input-bound blocked
TRUTH    wait
FIX      local
"""

from __future__ import annotations

import contextlib
import io
import multiprocessing
import os
import socket
import threading
import time
from pathlib import Path

from PIL import Image
from torch.utils.data import DataLoader
from training import Network, Photos, StepClock, Trainer, arguments

BYTES_PER_S = 12e6


class Link:
    """Lets BYTES_PER_S through, for all clients together."""

    def __init__(self) -> None:
        self.free_at = time.monotonic()
        self.lock = threading.Lock()

    def send(self, client: socket.socket, data: bytes) -> None:
        with self.lock:
            self.free_at = max(self.free_at, time.monotonic()) + len(data) / BYTES_PER_S
            sent_at = self.free_at
        time.sleep(max(0.0, sent_at - time.monotonic()))
        client.sendall(len(data).to_bytes(8, "little") + data)


def answer(client: socket.socket, link: Link) -> None:
    """A path with the file's bytes."""
    with client, contextlib.suppress(OSError):  # a worker that ended meanwhile
        for line in client.makefile("r"):
            link.send(client, Path(line.strip()).read_bytes())


def serve(address: str, ready) -> None:
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(address)
        listener.listen()
        ready.set()
        link = Link()
        while True:
            threading.Thread(target=answer, args=(listener.accept()[0], link), daemon=True).start()


class RemotePhotos(Photos):
    """Photos that are fetched from the server one by one as they are needed."""

    def __init__(self, folder: Path, length: int, address: str) -> None:
        super().__init__(folder, length)
        self.address = address
        self.server = None

    def open(self, index: int) -> Image.Image:
        if self.server is None:
            connection = socket.socket(socket.AF_UNIX)
            connection.connect(self.address)
            self.server = connection.makefile("rwb")
        self.server.write(f"{self.files[index % len(self.files)]}\n".encode())
        self.server.flush()
        size = int.from_bytes(self.server.read(8), "little")
        return Image.open(io.BytesIO(self.server.read(size)))


def main() -> None:
    args = arguments(lambda parser: parser.add_argument("--local", action="store_true", help="a copy on this disk"))
    clock = StepClock()
    trainer = Trainer(Network(width=64), clock)
    photos = Photos(args.photos, length=8 * args.steps)
    if not args.local:
        address = str(args.scratch / f"server-{os.getpid()}")
        ready = multiprocessing.Event()
        multiprocessing.Process(target=serve, args=(address, ready), daemon=True).start()
        ready.wait()
        photos = RemotePhotos(args.photos, 8 * args.steps, address)
    loader = DataLoader(photos, batch_size=8, num_workers=1)
    for images, labels in clock.waits(loader, epochs=args.epochs):
        trainer.step(images, labels)
    clock.write(args.truth)


if __name__ == "__main__":
    main()
