"""Fine-tuning the head alone is as slow as training everything.

Source: "Frozen Backbone Implementation", https://github.com/alexrich021/3dvnet/issues/11 (also BINE022/EEGPT #18)
Cause: the backbone is in eval() and not in the optimizer, but its gradients are still computed.
Fix: requires_grad_(False).
"""

import torch
from clock import Clock, options
from torch.utils.data import DataLoader, TensorDataset

opts = options()
torch.manual_seed(0)


def block(inside, outside, stride):
    return torch.nn.Sequential(
        torch.nn.Conv2d(inside, outside, 3, stride, 1, bias=False),
        torch.nn.BatchNorm2d(outside),
        torch.nn.ReLU(),
        torch.nn.Conv2d(outside, outside, 3, 1, 1, bias=False),
        torch.nn.BatchNorm2d(outside),
        torch.nn.ReLU(),
    )


backbone = torch.nn.Sequential(
    block(3, 24, 2), block(24, 48, 2), block(48, 96, 2), torch.nn.AdaptiveAvgPool2d(1), torch.nn.Flatten()
)
head = torch.nn.Sequential(torch.nn.Linear(96, 64), torch.nn.ReLU(), torch.nn.Linear(64, 10))
backbone.eval()
if opts.fixed:
    backbone.requires_grad_(False)
optimizer = torch.optim.Adam(head.parameters())
loader = DataLoader(TensorDataset(torch.randn(512, 3, 64, 64), torch.arange(512) % 10), batch_size=32)
clock = Clock(opts.seconds)
over = False
while not over:
    for images, labels in loader:
        optimizer.zero_grad()
        loss = torch.nn.functional.cross_entropy(head(backbone(images)), labels)
        loss.backward()
        optimizer.step()
        over = clock.done(len(labels), loss)
        if over:
            break
clock.rate()
