"""Programs by chance, for the device of device.c: sizes, lifetimes, streams and pools of requests are drawn, and the
settings of the allocator.

    chance.py SEED COUNT --into FOLDER

Leaves FOLDER/chance-SEED.pickle and prints a line of JSON for each: its traits, and what PyTorch counts at the end. The
same seed draws the same program. Each runs in a fork of this process, so that PyTorch is imported once.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import pathlib
import random
import sys
from typing import Callable

import torch

MIB = 1 << 20
GIB = 1 << 30


class Program:
    """What is drawn before the first request."""

    def __init__(self, seed: int) -> None:
        chance = self.chance = random.Random(f"chance {seed}")
        self.settings = {}
        if chance.random() < 0.3:
            self.settings["max_split_size_mb"] = chance.choice([21, 32, 64, 128, 200, 512])
        if chance.random() < 0.35:
            divisions = [str(chance.choice([1, 2, 4, 8, 16])), "[256:1,512:2,1024:4,>:8]", "[64:8,>:2]"]
            self.settings["roundup_power2_divisions"] = chance.choice(divisions)
        self.fraction = chance.choice([0.05, 0.1, 0.3]) if chance.random() < 0.25 else 0.0
        if self.fraction and chance.random() < 0.7:
            self.settings["garbage_collection_threshold"] = chance.choice([0.3, 0.6, 0.8])
        if chance.random() < 0.3:
            self.settings["expandable_segments"] = True
        self.device_bytes = chance.choice([80 * GIB, 80 * GIB, 8 * GIB, 3 * GIB])
        self.streams = chance.choice([1, 1, 2, 4])
        self.pools = chance.choice([1, 2]) if chance.random() < 0.15 else 0
        self.empties = chance.choice([0, 0, 0.002, 0.02])
        self.requests = chance.randint(150, 1500)
        self.order = chance.choice(["last", "first", "any", "layers"])
        self.size = self.sizes()

    def sizes(self) -> Callable[[], int]:
        """As one program asks: of any size, of a few, of small ones with large ones between, of growing ones."""
        chance = self.chance
        low, high = chance.choice([(3, 20), (8, 24), (16, 28), (20, 30)])
        few = [int(2 ** chance.uniform(low, high)) for _ in range(chance.randint(2, 12))]
        grown = [int(2 ** chance.uniform(low, high - 3))]

        def growing() -> int:
            grown[0] = max(1, int(grown[0] * chance.uniform(0.99, 1.03))) % (1 << high) or 512
            return grown[0]

        kinds = {
            "any": lambda: int(2 ** chance.uniform(low, high)),
            "few": lambda: chance.choice(few),
            "both": lambda: int(
                2 ** (chance.uniform(20, high + 1) if chance.random() < 0.1 else chance.uniform(2, 18))
            ),
            "growing": growing,
        }
        self.of_size = chance.choice(list(kinds))
        return kinds[self.of_size]

    def run(self) -> int:
        """How many requests were refused: the program goes on with less."""
        chance, refused = self.chance, 0
        streams = [torch.cuda.current_stream(), *(torch.cuda.Stream() for _ in range(self.streams - 1))]
        pools = [torch.cuda.MemPool() for _ in range(self.pools)]
        held: list[torch.Tensor] = []
        most = chance.choice([10, 40, 200])
        for _ in range(self.requests):
            if held and (len(held) >= most or chance.random() < 0.45):
                self.let_go(held)
                continue
            if chance.random() < self.empties:
                torch.cuda.empty_cache()
            stream = streams[0] if chance.random() < 0.7 else chance.choice(streams)
            pool = chance.choice(pools) if pools and chance.random() < 0.3 else None
            try:
                with torch.cuda.stream(stream), torch.cuda.use_mem_pool(pool) if pool else contextlib.nullcontext():
                    held.append(torch.empty(self.size(), dtype=torch.uint8, device="cuda"))
            except torch.OutOfMemoryError:
                refused += 1
                del held[: len(held) // 2]
            else:
                if chance.random() < 0.05:
                    held[-1].record_stream(chance.choice(streams))
        return refused

    def let_go(self, held: list[torch.Tensor]) -> None:
        if self.order == "layers" and self.chance.random() < 0.1:
            del held[len(held) // 3 :]
        else:
            at = {"last": len(held) - 1, "first": 0}.get(self.order, self.chance.randrange(len(held)))
            held.pop(at)

    def traits(self) -> dict:
        names = ("settings", "fraction", "device_bytes", "streams", "pools", "empties", "requests", "order", "of_size")
        return {name: getattr(self, name) for name in names}


def run(seed: int, into: pathlib.Path) -> None:
    program = Program(seed)
    os.environ["FULLBORE_DEVICE_BYTES"] = str(program.device_bytes)
    os.environ["PYTORCH_CUDA_ALLOC_CONF"] = ",".join(f"{name}:{value}" for name, value in program.settings.items())
    torch.cuda.init()
    if program.fraction:
        torch.cuda.set_per_process_memory_fraction(program.fraction)
    torch.cuda.memory._record_memory_history(max_entries=1 << 20, stacks="python")
    refused = program.run()
    torch.cuda.memory._dump_snapshot(str(into / f"chance-{seed}.pickle"))
    row = {"kind": "chance", "seed": seed, **program.traits(), "refused": refused}
    row["peak_reserved"] = torch.cuda.max_memory_reserved()
    print(json.dumps(row), flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("seed", type=int, help="of the first")
    parser.add_argument("count", type=int)
    parser.add_argument("--into", required=True, type=pathlib.Path)
    given = parser.parse_args()
    for seed in range(given.seed, given.seed + given.count):
        child = os.fork()
        if child == 0:
            run(seed, given.into)
            os._exit(0)
        if os.waitpid(child, 0)[1] != 0:
            sys.exit(f"chance.py: program {seed} failed")


if __name__ == "__main__":
    main()
