"""Two ranks on one machine, started by torchrun."""

from __future__ import annotations

import pytest
from channel_reader import BACKWARD, COLLECTIVE, FORWARD, Channel

TWO_RANKS = """
    import io, os, time
    import torch
    import torch.distributed as dist
    from torch import nn
    from torch.nn.parallel import DistributedDataParallel
    from torch.utils.data import DataLoader, TensorDataset
    from torch.utils.data.distributed import DistributedSampler

    class Slow(torch.autograd.Function):
        # Keeps rank 1's backward busy, so that rank 0 has to wait for it.
        @staticmethod
        def forward(ctx, x):
            return x.clone()
        @staticmethod
        def backward(ctx, gradient):
            if dist.get_rank() == 1:
                time.sleep(0.3)
            return gradient

    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.first, self.last = nn.Linear(6, 6), nn.Linear(6, 1)
        def forward(self, x):
            return self.last(Slow.apply(self.first(x)))

    meet = os.environ.get("MEET")
    where = {"init_method": meet, "rank": int(os.environ["RANK"]), "world_size": 2} if meet else {}
    dist.init_process_group("gloo", **where)
    model = DistributedDataParallel(Net())
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    data = TensorDataset(torch.randn(40, 6))
    loader = DataLoader(data, batch_size=4, sampler=DistributedSampler(data, shuffle=True))
    for x, in loader:
        optimizer.zero_grad()
        model(x).sum().backward()
        optimizer.step()
    loss = torch.ones(1000)
    dist.all_reduce(loss)
    gathered = [None, None]
    dist.all_gather_object(gathered, dist.get_rank())
    assert gathered == [0, 1] and loss[0] == 2
    torch.save(model.module, io.BytesIO())
    dist.barrier()
    dist.destroy_process_group()
    os._exit(0)  # torch 2.13's gloo threads sometimes abort a regular exit, also without a hook
"""


def two_ranks(runner, script):
    if runner.torch >= (2, 0):
        return [runner.python, "-m", "torch.distributed.run", "--standalone", "--nproc_per_node=2", script]
    # torch 1.13's torchrun fails on Python 3.11 (its enum's `all` became None); this is what it would start. The ranks
    # meet at a file, because a port that is free now may be taken when they start.
    meet = f"file://{runner.directory}/meet"
    rank = f"env MEET={meet} WORLD_SIZE=2 LOCAL_RANK=%d RANK=%d {runner.python} {script}"
    return ["bash", "-c", f"{rank % (0, 0)} & {rank % (1, 1)} && wait $!"]


@pytest.mark.long
def test_every_rank_is_seen_and_waiting_for_the_other_is_separated_from_its_own_backward(runner):
    result, directory = runner.start(two_ranks(runner, runner.script(TWO_RANKS)))
    assert result.returncode == 0, result.stderr
    channel = Channel(directory)
    ranks = sorted((p for p in channel.trainers if p.steps), key=lambda p: p.rank)
    assert [p.rank for p in ranks] == [0, 1]
    for process in channel.processes:
        assert process.say("message") == []
    waits = []
    for process in ranks:
        hello = process.one("hello")
        assert (hello["rank"], hello["local_rank"], hello["world_size"]) == (process.rank, process.rank, 2)
        assert process.facts["world_size"] == 2 and process.facts["distributed"] == "DistributedDataParallel"
        assert process.facts["model"] == "Net" and len(process.steps) == 5
        assert process.say("loader")[0]["args"]["shuffle"] is True
        assert len(process.of(FORWARD)) == 5
        reduce, gather, barrier = process.of(COLLECTIVE)
        assert reduce.a == 4000 and barrier.a == 0
        steady = process.of(BACKWARD)[2:]
        assert all(r.begin < r.a <= r.end for r in steady)
        waits.append(sorted(r.end - r.a for r in steady)[1])
    assert waits[0] > 150_000_000 > waits[1]


ACCUMULATES = """
    import contextlib, os, sys
    import torch
    from torch.distributed.fsdp import FullyShardedDataParallel, fully_shard
    torch.distributed.init_process_group("gloo", init_method=os.environ.get("MEET", "env://"))
    model, wrapper = torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.Linear(4, 2)), os.environ["WRAPPER"]
    if wrapper == "fully_shard":
        mesh = torch.distributed.device_mesh.init_device_mesh("cpu", (2,))
        for module in (*model, model):
            fully_shard(module, mesh=mesh)
    elif wrapper == "FullyShardedDataParallel":
        model = FullyShardedDataParallel(model, device_id=torch.device("cpu"))
    else:
        model = torch.nn.parallel.DistributedDataParallel(model)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for i in range(16):
        last = i % 4 == 3
        exchanges = last or "each" in os.environ["EXCHANGE"]
        if wrapper == "fully_shard":
            model.set_requires_gradient_sync(exchanges)
        with contextlib.nullcontext() if exchanges or wrapper == "fully_shard" else model.no_sync():
            model(torch.ones(1, 4)).sum().backward()
        if last:
            optimizer.step()
            optimizer.zero_grad()
    torch.distributed.destroy_process_group()
    os._exit(0)  # torch 2.13's gloo threads sometimes abort a regular exit, also without a hook
"""


@pytest.mark.long
@pytest.mark.parametrize("wrapper", ["DistributedDataParallel", "FullyShardedDataParallel", "fully_shard"])
@pytest.mark.parametrize("exchange, said", [("each", [1, 1, 1, 1]), ("last", [2, 2, 2, 1])])
def test_it_is_told_which_backward_passes_exchange_gradients(newest, wrapper, exchange, said):
    given = {"EXCHANGE": exchange, "WRAPPER": wrapper}
    result, directory = newest.start(two_ranks(newest, newest.script(ACCUMULATES)), given)
    assert result.returncode == 0, result.stderr
    for process in (p for p in Channel(directory).trainers if p.steps):
        assert [r.b for r in process.of(BACKWARD)][-8:] == 2 * said
        assert (process.facts["distributed"], process.facts["model"]) == (wrapper, "Sequential")


@pytest.mark.long
def test_without_other_ranks_gradients_are_not_watched(newest):
    channel, _ = newest.run(
        """
        import torch
        model = torch.nn.Linear(2, 1)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        for _ in range(4):
            model(torch.ones(1, 2)).sum().backward()
            optimizer.step()
        """
    )
    assert [r.a for r in channel.trainer.of(BACKWARD)] == [0] * 4
