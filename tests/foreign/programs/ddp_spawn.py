"""Distributed training as PyTorch's tutorials start it: a process a rank by torch.multiprocessing.spawn."""

import os

import torch
import torch.distributed as dist
import torch.multiprocessing as mp
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset


def demo(rank, world_size, meeting_point):
    dist.init_process_group("gloo", init_method=f"file://{meeting_point}", rank=rank, world_size=world_size)
    dataset = TensorDataset(torch.randn(400, 10), torch.randn(400, 5))
    loader = DataLoader(dataset, batch_size=8, sampler=DistributedSampler(dataset))
    model = DDP(torch.nn.Linear(10, 5))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.001)
    steps = samples = 0
    for _ in range(2):
        for inputs, labels in loader:
            optimizer.zero_grad()
            torch.nn.functional.mse_loss(model(inputs), labels).backward()
            optimizer.step()
            steps += 1
            samples += len(inputs)
    if rank == 0:
        print("steps", steps, "samples", samples, flush=True)
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    world_size = 2
    mp.spawn(demo, args=(world_size, os.path.abspath(f"meet{os.getpid()}")), nprocs=world_size, join=True)
