"""A tracker's hooks make histograms of all gradients and parameters too often.

Source: "Wandb Taking significantly long time to execute code", https://github.com/wandb/wandb/issues/2268
Cause: watch(model, log_freq=10) instead of the default of 1000: hooks read every tensor inside the backward pass.
Fix: the default, 1000. (The hooks here do what wandb's do: finite values, range, 64 bins, to the host, into a record.)
"""

import json

import torch
from clock import Clock, options

opts = options()
torch.manual_seed(0)
FREQUENCY = 1000 if opts.fixed else 10
model = torch.nn.Sequential(
    torch.nn.Linear(256, 1024),
    torch.nn.ReLU(),
    *[layer for _ in range(4) for layer in (torch.nn.Linear(1024, 1024), torch.nn.ReLU())],
    torch.nn.Linear(1024, 10),
)


class Watcher:
    def __init__(self, model, frequency):
        self.frequency, self.calls, self.record = frequency, 0, {}
        for name, parameter in model.named_parameters():
            parameter.register_hook(lambda gradient, name=name: self.gradient(name, gradient))
        model.register_forward_hook(lambda module, inputs, outputs: self.parameters(module))

    def histogram(self, name, tensor):
        flat = tensor.detach().reshape(-1)
        flat = flat[torch.isfinite(flat)]
        low, high = flat.min().item(), flat.max().item()
        self.record[name] = json.dumps([low, high, flat.histc(64, low, high).tolist()])

    def gradient(self, name, gradient):
        if self.calls % self.frequency == 0:
            self.histogram("gradients/" + name, gradient)

    def parameters(self, module):
        self.calls += 1
        if self.calls % self.frequency == 0:
            for name, parameter in module.named_parameters():
                self.histogram("parameters/" + name, parameter)


watcher = Watcher(model, FREQUENCY)
optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
noise = torch.Generator().manual_seed(1)
clock = Clock(opts.seconds)
while True:
    x = torch.randn(32, 256, generator=noise)
    optimizer.zero_grad()
    loss = torch.nn.functional.cross_entropy(model(x), x[:, :10].argmax(1))
    loss.backward()
    optimizer.step()
    if clock.done(len(x), loss):
        break
clock.rate()
