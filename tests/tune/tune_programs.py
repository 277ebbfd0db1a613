"""Programs by others, as `fullbore tune` gets them: unmodified, and each keeps its own count of what it trains."""

from __future__ import annotations

import pathlib
import socket
import statistics
import threading

# What all have in common: samples that sleep, so that workers help on any machine, and a count. The sample brings with
# it how many workers there were, so that the count tells the trials apart without asking us. It is told to a socket,
# since nothing that a trial writes is left.
COUNTS = """
import os, pathlib, socket, time, warnings
import torch
from torch.utils.data import DataLoader, Dataset, DistributedSampler, get_worker_info

warnings.simplefilter("ignore")
torch.set_num_threads(1)

class Photos(Dataset):
    def __len__(self):
        return 100_000

    def __getitem__(self, index):
        time.sleep(0.004)
        worker = get_worker_info()
        return torch.full((8,), index % 7 / 7), index % 2, worker.num_workers if worker else 0

_told = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)

def count(workers, samples):
    run = os.environ.get("TORCHELASTIC_RUN_ID", os.getpid())
    said = f"{workers}.{run}.{os.getpid()} {time.monotonic()} {samples}"
    _told.sendto(said.encode(), b"\\0" + os.environ["COUNTS"].encode())
"""

LIGHTNING = """
import lightning

class Module(lightning.LightningModule):
    def __init__(self):
        super().__init__()
        self.net = torch.nn.Linear(8, 2)

    def training_step(self, batch, index):
        x, y, workers = batch
        count(int(workers[0]), len(x))
        return torch.nn.functional.cross_entropy(self.net(x), y)

    def configure_optimizers(self):
        return torch.optim.Adam(self.parameters())

if __name__ == "__main__":
    trainer = lightning.Trainer(max_epochs=1, accelerator="cpu", default_root_dir="logs",
                                enable_progress_bar=False)
    trainer.fit(Module(), DataLoader(Photos(), batch_size=4))
"""

HF_TRAINER = """
from transformers import Trainer, TrainingArguments, TrainerCallback

class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.net = torch.nn.Linear(8, 2)

    def forward(self, x, labels, workers):
        count(int(workers[0]), len(x))
        return {"loss": torch.nn.functional.cross_entropy(self.net(x), labels)}

class Rows(Photos):
    def __getitem__(self, index):
        x, y, workers = super().__getitem__(index)
        return {"x": x, "labels": y, "workers": workers}

if __name__ == "__main__":
    arguments = TrainingArguments("out", num_train_epochs=1, per_device_train_batch_size=4, report_to=[], use_cpu=True,
                                  save_steps=10, logging_steps=10, disable_tqdm=True)
    Trainer(Model(), arguments, train_dataset=Rows()).train()
"""

RANKS = """
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

if __name__ == "__main__":
    dist.init_process_group("gloo")
    data = Photos()
    loader = DataLoader(data, batch_size=4, sampler=DistributedSampler(data))
    model = DistributedDataParallel(torch.nn.Linear(8, 2))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    for step, (x, y, workers) in enumerate(loader):
        optimizer.zero_grad()
        torch.nn.functional.cross_entropy(model(x), y).backward()
        optimizer.step()
        count(int(workers[0]), len(x))
        if step % 10 == 0 and dist.get_rank() == 0:
            torch.save(model.state_dict(), "ranks.pt")
"""

# As timm trains: a loader that wraps DataLoader and stays one batch ahead, accumulation, smoothed weights.
TIMM = """
from torch.optim.swa_utils import AveragedModel, get_ema_multi_avg_fn

class PrefetchLoader:
    def __init__(self, loader):
        self.loader = loader

    def __iter__(self):
        ahead = None
        for batch in self.loader:
            if ahead is not None:
                yield ahead
            ahead = batch[0].sub(0.45).div(0.22), *batch[1:]
        yield ahead

if __name__ == "__main__":
    model = torch.nn.Linear(8, 2)
    optimizer = torch.optim.AdamW(model.parameters())
    smoothed = AveragedModel(model, multi_avg_fn=get_ema_multi_avg_fn(0.99))
    for index, (x, y, workers) in enumerate(PrefetchLoader(DataLoader(Photos(), 4, shuffle=True))):
        (torch.nn.functional.cross_entropy(model(x), y) / 2).backward()
        count(int(workers[0]), len(x))
        if index % 2 == 0:
            continue
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad()
        smoothed.update_parameters(model)
        if index % 20 == 1:
            torch.save(smoothed.state_dict(), "last.pth.tar")
"""

BATCH_SAMPLER = """
from torch.utils.data import BatchSampler, RandomSampler

if __name__ == "__main__":
    data = Photos()
    loader = DataLoader(data, batch_sampler=BatchSampler(RandomSampler(data), 4, drop_last=True))
    model = torch.nn.Linear(8, 2)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    for x, y, workers in loader:
        optimizer.zero_grad()
        torch.nn.functional.cross_entropy(model(x), y).backward()
        optimizer.step()
        count(int(workers[0]), len(x))
"""

# Prints the rate that its sleeps should give, because the real one varies with the tests that run at the same time.
# Keeps a checkpoint among the temporary files.
CPLUSPLUS = """
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <thread>

int main(int argc, char** argv) {
  if (argc != 3) return 2;
  const int batch = std::atoi(argv[1]), threads = std::min(std::atoi(argv[2]), 3);
  const std::string weights = "weights.bin";
  const auto step = std::chrono::microseconds(10'000 + 1'000 * batch / threads);
  for (long samples = batch;; samples += batch) {
    std::this_thread::sleep_for(step);
    if (std::FILE* checkpoint = std::fopen(weights.c_str(), "w")) {
      std::fprintf(checkpoint, "%ld", samples);
      std::fclose(checkpoint);
    }
    std::printf("%.1f img/s\\n", batch / std::chrono::duration<double>(step).count());
    std::fflush(stdout);
  }
}
"""

STOOD = 0.5  # seconds between two steps: far more than any of these takes


def own_rates(counts: pathlib.Path) -> dict[int, float]:
    """Samples a second by the programs' own count, by the number of workers: of all ranks together, the mean of all
    trials, without the beginning, and without the time in which a trial stood while another one ran."""
    rates: dict[tuple[int, str], float] = {}
    for path in counts.iterdir():
        workers, run, _ = path.name.rsplit(".", 2)
        lines = [line.split() for line in path.read_text().splitlines() if line.count(" ") == 1]
        steps = [(float(at), int(samples)) for at, samples in lines][10:]
        if len(steps) < 2:
            continue
        ran = [(after[0] - before[0], after[1]) for before, after in zip(steps, steps[1:])]
        ran = [(seconds, samples) for seconds, samples in ran if seconds < STOOD]
        if not ran:
            continue
        rate = sum(samples for _, samples in ran) / sum(seconds for seconds, _ in ran)
        rates[int(workers), run] = rates.get((int(workers), run), 0) + rate
    return {
        workers: statistics.mean(rate for (count, _), rate in rates.items() if count == workers)
        for workers in {count for count, _ in rates}
    }


class Listener:
    """Takes down what programs count, each in a file of its own in this directory."""

    def __init__(self, directory: pathlib.Path) -> None:
        self.directory = directory
        directory.mkdir()
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.socket.bind("")  # a name that the kernel chooses
        self.name = self.socket.getsockname()[1:].decode()
        self.thread = threading.Thread(target=self.listen)
        self.thread.start()

    def listen(self) -> None:
        while heard := self.socket.recv(4096).decode():
            name, _, line = heard.partition(" ")
            with (self.directory / name).open("a") as file:
                file.write(line + "\n")

    def close(self) -> None:
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as last:
            last.sendto(b"", b"\0" + self.name.encode())
        self.thread.join()
        self.socket.close()
