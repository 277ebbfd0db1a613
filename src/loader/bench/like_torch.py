"""What PyTorch's DataLoader makes of the same data: Pillow, RandomResizedCrop, flip, normalise, batches.

Run by `fullbore loader bench --like torch` in the user's Python; prints one JSON object a line: versions, then a rate
for each number of workers, or an error. torchvision's transforms where it is installed, else the same operations on
Pillow and torch.
"""

import argparse
import glob
import io
import json
import math
import os
import random
import sys
import tarfile
import time

ENDINGS = (".jpg", ".jpeg", ".png", ".webp", ".bmp", ".gif", ".ppm", ".pgm", ".tif", ".tiff")
MEAN, STD = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)


def say(**values):
    print(json.dumps(values), flush=True)


def give_up(error, hint=""):
    say(error=error, hint=hint)
    sys.exit(1)


try:
    import torch
    from torch.utils.data import DataLoader, Dataset
except ImportError:
    give_up(f"this Python has no torch ({sys.executable})", "activate the environment that the training uses")
try:
    import PIL
    from PIL import Image
except ImportError:
    give_up(f"this Python has no Pillow ({sys.executable})", "pip install pillow")
try:
    import torchvision
    from torchvision import transforms
except (ImportError, RuntimeError):  # absent, or built for another torch
    torchvision = None


def samples_of(paths):
    """(file, offset, bytes) of every image; bytes 0: the whole file."""
    return [sample for path in paths for sample in samples_below(path)]


def samples_below(path):
    found = []
    archives = sorted(glob.glob(path)) if any(c in path for c in "*?[") else []
    if os.path.isdir(path):
        for folder, _, names in sorted(os.walk(path, followlinks=True)):
            for name in sorted(names):
                if name.lower().endswith(ENDINGS):
                    found.append((os.path.join(folder, name), 0, 0))
                elif name.endswith(".tar"):
                    archives.append(os.path.join(folder, name))
    elif path.endswith(".tar"):
        archives.append(path)
    for archive in archives:
        with tarfile.open(archive) as members:
            for member in members:
                if member.isfile() and member.name.lower().endswith(ENDINGS):
                    found.append((archive, member.offset_data, member.size))
    return found


def random_box(width, height):
    for _ in range(10):
        area = width * height * random.uniform(0.08, 1)
        ratio = math.exp(random.uniform(math.log(3 / 4), math.log(4 / 3)))
        w, h = round(math.sqrt(area * ratio)), round(math.sqrt(area / ratio))
        if 0 < w <= width and 0 < h <= height:
            x, y = random.randint(0, width - w), random.randint(0, height - h)
            return x, y, x + w, y + h
    return 0, 0, width, height


class PlainTransforms:
    def __init__(self, side):
        self.side = side
        self.mean, self.std = torch.tensor(MEAN).view(3, 1, 1), torch.tensor(STD).view(3, 1, 1)

    def __call__(self, image):
        image = image.crop(random_box(*image.size)).resize((self.side, self.side), Image.BILINEAR)
        if random.random() < 0.5:
            image = image.transpose(Image.FLIP_LEFT_RIGHT)
        raw = torch.frombuffer(bytearray(image.tobytes()), dtype=torch.uint8).view(self.side, self.side, 3)
        return raw.permute(2, 0, 1).contiguous().to(torch.float32).div_(255).sub_(self.mean).div_(self.std)


class Images(Dataset):
    def __init__(self, samples, side):
        self.samples = samples
        if torchvision is None:
            self.transform = PlainTransforms(side)
        else:
            self.transform = transforms.Compose(
                [
                    transforms.RandomResizedCrop(side),
                    transforms.RandomHorizontalFlip(),
                    transforms.ToTensor(),
                    transforms.Normalize(MEAN, STD),
                ]
            )

    def __len__(self):
        return len(self.samples)

    def __getitem__(self, index):
        path, offset, size = self.samples[index]
        with open(path, "rb") as file:
            file.seek(offset)
            encoded = file.read(size or -1)
        return self.transform(Image.open(io.BytesIO(encoded)).convert("RGB")), 0


def measure(dataset, batch_size, workers, seconds):
    loader = DataLoader(
        dataset, batch_size=batch_size, shuffle=True, num_workers=workers, persistent_workers=workers > 0
    )

    def batches():
        while True:
            yield from loader

    stream, begin = batches(), time.perf_counter()
    next(stream)
    while time.perf_counter() - begin < seconds / 4:  # as for our loader: a quarter of the time to warm up
        next(stream)
    count, since = 0, time.perf_counter()
    while time.perf_counter() - since < seconds:
        count += len(next(stream)[0])
    return count / (time.perf_counter() - since)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("paths", nargs="+")
    parser.add_argument("--image-size", type=int, required=True)
    parser.add_argument("--batch-size", type=int, required=True)
    parser.add_argument("--seconds", type=float, required=True)
    parser.add_argument("--workers", type=lambda text: [int(one) for one in text.split(",")], required=True)
    parser.add_argument("--limit", type=int, required=True, help="how many samples to use, evenly spaced")
    args = parser.parse_args()
    samples = samples_of(args.paths)
    if not samples:
        give_up(
            f"no images in '{args.paths[0]}'", "--like torch knows directories of images and tar shards with images"
        )
    samples = samples[:: max(1, len(samples) // max(args.limit, 1))]
    with_vision = f"torchvision {torchvision.__version__}" if torchvision else "no torchvision"
    say(versions=f"torch {torch.__version__}, Pillow {PIL.__version__}, {with_vision}")
    dataset = Images(samples, args.image_size)
    for workers in args.workers:
        say(workers=workers, samples_per_s=measure(dataset, args.batch_size, workers, args.seconds))


if __name__ == "__main__":
    try:
        main()
    except KeyboardInterrupt:
        sys.exit(130)
    except Exception as error:
        give_up(f"{type(error).__name__}: {error}")
