"""PyTorch: introduces the process and patches torch's modules as they are imported.

loader       DataLoader: its arguments, and where it is waited for
worker       what a batch costs where it is fetched, in a loader worker or inline
readings     what is read meanwhile, and the stand-ins that read it
fast_data    `fullbore run --fast-data`: replaces the training DataLoader by fullbore.data
fast_cost    what fullbore.data would cost in the training loader's place
drain        iterates the training loader alone, for `fullbore loader bench --script`
optimizer    optimizers: their steps, and zero_grad
forward      outermost module calls
tokens       how many of the tokens that the model computes are padding
padding      which elements of a matrix are
flops        how many floating-point operations a step takes
graphs       what the graphs multiply that torch.compile makes
graph_calls  how often a step calls them
held         which modules the optimizers train, and gradients that nobody uses
kept         outputs of the model that an evaluation keeps
backward     autograd.backward, and when this rank's own part of it is done
collectives  torch.distributed
device       CUDA: copies, synchronisation, device time, memory
memory       what holds the device's memory, and how high batches of different sizes raise it
windows      a few steps now and then under torch's own profiler
window_plan  when these windows begin
checkpoints  torch.save and safetensors
facts        versions, model, precision, arguments
compiling    whether dynamo is tracing
dynamo       what it compiles, and how often
"""

from __future__ import annotations

import os
import sys
from typing import Any, Callable

from ..core import frames
from ..core.library import standard_library
from ..core.runtime import hook, is_helper_process
from ..own import stages
from . import (
    backward,
    checkpoints,
    collectives,
    device,
    dynamo,
    facts,
    fast_cost,
    flops,
    forward,
    graph_calls,
    held,
    kept,
    loader,
    optimizer,
    tokens,
    windows,
    worker,
)


def worker_number() -> int:
    data = sys.modules.get("torch.utils.data")
    worker = data.get_worker_info() if data is not None else None
    return -1 if worker is None else worker.id


def attach(torch: Any, when_imported: Callable[[str, Callable[[Any], None]], None]) -> None:
    frames.is_library(torch)
    hook.worker_number = worker_number
    if not is_helper_process():
        hook.open()
    facts.at_import(torch)
    fast_cost.attach()
    held.attach()
    kept.attach()
    tokens.attach()
    flops.attach()
    for name, patch in (
        ("torch.utils.data.dataloader", loader.attach),
        ("torch.utils.data._utils.fetch", worker.attach),
        ("fullbore.data.loader", stages.attach),
        ("torch.optim.optimizer", optimizer.attach),
        ("torch.nn", forward.attach),
        ("torch.autograd", backward.attach),
        ("torch.autograd.profiler", windows.attach),
        ("torch.distributed", collectives.attach),
        ("torch.nn.parallel.distributed", collectives.attach_data_parallel),
        ("torch.cuda", device.attach),
        ("torch._dynamo.callback", dynamo.attach),
        ("torch._dynamo.output_graph", graph_calls.attach),
        ("torch.serialization", checkpoints.attach),
        ("safetensors.torch", checkpoints.attach_safetensors),
    ):
        when_imported(name, patch)
    if os.environ.get("FULLBORE_DRAIN"):
        with standard_library:
            from . import drain

        drain.attach()
