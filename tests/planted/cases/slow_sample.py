"""
NAME     One photo in fifty is eighty times as large
PLANTED  a camera's full picture of 15 megapixels among thumbnails holds up its whole batch
EXPECT   input-bound slow-sample
TRUTH    wait
FIX      repair
"""

from __future__ import annotations

from pathlib import Path

from PIL import Image
from torch.utils.data import DataLoader
from training import Network, Photos, StepClock, Trainer, arguments


class MixedPhotos(Photos):
    def __init__(self, folder: Path, length: int, huge: Path) -> None:
        super().__init__(folder, length)
        self.huge = huge

    def open(self, index: int) -> Image.Image:
        return Image.open(self.huge) if index % 50 == 7 else super().open(index)


def huge_photo(photos: Path, scratch: Path) -> Path:
    path = scratch / "huge.jpg"
    first = Image.open(min(photos.rglob("*.jpg")))
    first.resize((4500, 3375), Image.BILINEAR).save(path, quality=90)
    return path


def main() -> None:
    args = arguments(lambda parser: parser.add_argument("--repair", action="store_true", help="large ones scaled down"))
    clock = StepClock()
    trainer = Trainer(Network(width=48), clock)
    photos = Photos(args.photos, length=8 * args.steps)
    if not args.repair:
        photos = MixedPhotos(args.photos, 8 * args.steps, huge_photo(args.photos, args.scratch))
    loader = DataLoader(photos, batch_size=8, num_workers=1)
    for images, labels in clock.waits(loader, epochs=args.epochs):
        trainer.step(images, labels)
    clock.write(args.truth)


if __name__ == "__main__":
    main()
