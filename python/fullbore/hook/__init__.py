"""The hook: sees an unmodified PyTorch script from inside and writes what it does into the channel.

Loaded by site/sitecustomize.py as `_fullbore_hook` when the script imports torch, or fullbore to mark its loops; it
never imports torch itself.
The map, one idea a file:

    channel      the two files a process writes, as src/record/channel.h and docs/channel.md define them
    runtime      what all parts share: the channel, the threads, and what happens when the hook fails
    finder       patches a module right after the script has imported it
    waits        the script's loaders, of whatever library, and the waits in `next` of their iterators
    loader       torch's DataLoader: its arguments, and where it is waited for
    fast_data    `fullbore run --fast-data`: replaces the training DataLoader by fullbore.data
    stages       loaders of fullbore.data: what their threads did
    batch        how many samples and tokens a batch holds
    worker       what a batch costs where it is fetched, in a loader worker or inline
    steps        optimizers: where a step ends, and which loader feeds it
    marks        `fullbore.watch(loader)` and `fullbore.step()`, for loops that nothing else sees
    forward      outermost module calls
    backward     autograd.backward, and when this rank's own part of it is done
    collectives  torch.distributed
    others       checkpoints, garbage collections, and the end of the process
    device       CUDA: copies, synchronisation, device time, memory
    lines        the line sampler: when it samples, and what it records
    stacks       what one sample of a stack says: the line, what is done there, whether it feeds the loop
    activities   the table by which that is told
    instructions what a frame is executing: which call, or the head of which loop
    where        which lines of the user's code step, copy and save
    facts        versions, model, precision, arguments
    frames       which code, and which frame of a stack, is the user's own
    drain        iterates the training loader alone, for `fullbore loader bench --script`

Rules: what the script does and prints does not change; an exception of ours disables the hook, never the script;
nothing runs per operator; no locks and no system calls on the path of the training loop.
"""

from __future__ import annotations


def start():
    """Makes the finder that waits for torch. Called by sitecustomize, once."""
    from . import finder

    return finder.make()
