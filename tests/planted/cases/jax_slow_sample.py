"""
NAME     JAX: one photo in fifty is eighty times as large
PLANTED  a camera's full picture of 15 megapixels among thumbnails holds up its whole batch
EXPECT   input-bound slow-sample
TRUTH    wait
NEEDS    jax
"""

from jax_training import network, stacked, step
from slow_sample import MixedPhotos, huge_photo
from torch.utils.data import DataLoader
from training import SIZE, StepClock, arguments


def main() -> None:
    args = arguments()
    clock = StepClock()
    weights = network(3 * SIZE * SIZE, 384)
    photos = MixedPhotos(args.photos, 8 * args.steps, huge_photo(args.photos, args.scratch))
    loader = DataLoader(photos, batch_size=8, num_workers=1, collate_fn=stacked, multiprocessing_context="spawn")
    for images, labels in clock.waits(loader):
        weights, loss = step(weights, images, labels)
        clock.step_done()
    print(float(loss))
    clock.write(args.truth)


if __name__ == "__main__":
    main()
