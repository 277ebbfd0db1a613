"""The simulated exam: training programs on simulated devices, what fullbore says of their recordings, and what is true.

It shares nothing with the code that it examines, and is written from what CUDA, PyTorch and NCCL do.

engine.py                    simulated time: actions, processes, signals
hardware.py                  devices, their links and their launches, in figures
gpu.py                       streams, the launch queue, the link, collectives, what runs beside each other
host.py                      the training thread and autograd's: launches, copies, synchronisations, events
noise.py                     what makes two runs differ
names.py silicon.py ops.py   kernels: what they are called and how long they take; operators around them
layers.py models.py          layers and model families as operators
optimizer.py compiler.py     optimizer steps; what torch.compile makes of operators
program.py training.py       a program's settings, and its training loop; loaders.py: where batches come from
simulate.py truth.py         runs a program; what its step time and the shares of it truly are
trace.py                     writes what happened as the PyTorch profiler would
draw.py                      a healthy program, drawn at random
causes.py plants.py pair.py  what may be planted, how, and what is true of the pair; plant.py: from a seed to a pair
advice.py                    what a program becomes if a finding's advice is taken
examine.py score.py          a pair from start to end; what it says of the verdict
run.py summary.py            many pairs; tables
"""
