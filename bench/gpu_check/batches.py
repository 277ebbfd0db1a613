"""fullbore.data with device="cuda": the same pixels as on the host, and whether its copies hide behind the training.

batches.py PHOTOS    prints a JSON object; needs fullbore.data and torch
"""

from __future__ import annotations

import json
import sys
import time

import torch

BATCH, SIZE = 32, 224


def loader(device: str | None):
    from fullbore.data import ImageFolder, transforms

    how = {} if device is None else {"device": device}
    return ImageFolder(sys.argv[1], [transforms.Resize((SIZE, SIZE))], batch_size=BATCH, shuffle=False, **how)


def rate(device: str | None, work: torch.Tensor) -> float:
    """Samples a second while the device computes beside it; epochs until two seconds have passed."""
    batches, seen = loader(device), 0
    begin = time.monotonic()
    while time.monotonic() - begin < 3:
        for images, _ in batches:
            images = images.to("cuda")
            for _ in range(8):
                work = work @ work.mul(1e-3)
            seen += len(images)
    torch.cuda.synchronize()
    return seen / (time.monotonic() - begin)


def main() -> None:
    differ = 0
    for (ours, label), (host, wanted) in zip(loader("cuda"), loader(None)):
        assert ours.is_cuda and not host.is_cuda
        junk = torch.full_like(ours, 7)  # memory that a late copy would write into
        differ += int((ours.cpu() != host).sum()) + int((torch.as_tensor(label).cpu() != torch.as_tensor(wanted)).sum())
        del junk
    work = torch.randn(2048, 2048, device="cuda")
    rates = [(rate("cuda", work), rate(None, work)) for _ in range(2)]
    print(json.dumps({"differ": differ, "rates": rates}))


if __name__ == "__main__":
    main()
