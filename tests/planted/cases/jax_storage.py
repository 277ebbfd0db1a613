"""
NAME     JAX: photos on a storage server that lets only 12 MB/s through
PLANTED  a DataLoader of torch's feeds the step; its worker blocks in read()
EXPECT   input-bound blocked
TRUTH    wait
NEEDS    jax
"""

import multiprocessing
import os

from jax_training import network, stacked, step
from storage import RemotePhotos, serve
from torch.utils.data import DataLoader
from training import SIZE, StepClock, arguments


def main() -> None:
    args = arguments()
    clock = StepClock()
    spawn = multiprocessing.get_context("spawn")  # JAX has threads: it must not be forked
    address = str(args.scratch / f"server-{os.getpid()}")
    ready = spawn.Event()
    spawn.Process(target=serve, args=(address, ready), daemon=True).start()
    ready.wait()
    photos = RemotePhotos(args.photos, 4 * args.steps, address)
    weights = network(3 * SIZE * SIZE, 256)
    loader = DataLoader(photos, batch_size=8, num_workers=1, collate_fn=stacked, multiprocessing_context=spawn)
    for images, labels in clock.waits(loader):
        weights, loss = step(weights, images, labels)
        clock.step_done()
    print(float(loss))
    clock.write(args.truth)


if __name__ == "__main__":
    main()
