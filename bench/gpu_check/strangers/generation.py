"""Pictures that are made: by diffusion, and by a pair of networks against each other."""

from __future__ import annotations

import copy
import itertools
import math
from collections import deque
from dataclasses import dataclass

import torch
from programs import WAYS, Training
from torch import nn
from torch.nn import functional


class ResidualBlock(nn.Module):
    def __init__(self, inner: int, outer: int, time: int) -> None:
        super().__init__()
        self.norm1, self.norm2 = nn.GroupNorm(8, inner), nn.GroupNorm(8, outer)
        self.conv1, self.conv2 = nn.Conv2d(inner, outer, 3, 1, 1), nn.Conv2d(outer, outer, 3, 1, 1)
        self.time = nn.Linear(time, outer)
        self.skip = nn.Conv2d(inner, outer, 1) if inner != outer else nn.Identity()

    def forward(self, x: torch.Tensor, time: torch.Tensor) -> torch.Tensor:
        y = self.conv1(functional.silu(self.norm1(x))) + self.time(functional.silu(time))[:, :, None, None]
        return self.conv2(functional.silu(self.norm2(y))) + self.skip(x)


class PixelAttention(nn.Module):
    def __init__(self, width: int) -> None:
        super().__init__()
        self.norm = nn.GroupNorm(8, width)
        self.to_all, self.out = nn.Conv2d(width, 3 * width, 1), nn.Conv2d(width, width, 1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        q, k, v = self.to_all(self.norm(x)).flatten(2).transpose(1, 2).unsqueeze(1).chunk(3, -1)
        y = functional.scaled_dot_product_attention(q, k, v)
        return x + self.out(y.squeeze(1).transpose(1, 2).reshape(x.shape))


class Unet(nn.Module):
    """As DDPM's for 32 by 32 pixels: three resolutions, two blocks at each, attention at the lower two."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.width, time = width, 4 * width
        widths = (width, 2 * width, 2 * width)
        self.time = nn.Sequential(nn.Linear(width, time), nn.SiLU(), nn.Linear(time, time))
        self.first, self.last = nn.Conv2d(3, width, 3, 1, 1), nn.Conv2d(width, 3, 3, 1, 1)
        self.norm = nn.GroupNorm(8, width)
        self.down, self.up, self.attentions = nn.ModuleList(), nn.ModuleList(), nn.ModuleList()
        self.shrink, self.grow = nn.ModuleList(), nn.ModuleList()
        inner, kept = width, [width]
        for level, outer in enumerate(widths):
            for _ in range(2):
                self.down.append(ResidualBlock(inner, outer, time))
                self.attentions.append(PixelAttention(outer) if level else nn.Identity())
                inner = outer
                kept.append(inner)
            self.shrink.append(nn.Conv2d(inner, inner, 3, 2, 1) if level < 2 else nn.Identity())
        self.middle = ResidualBlock(inner, inner, time)
        for level, outer in reversed(list(enumerate(widths))):
            for _ in range(2):
                self.up.append(ResidualBlock(inner + kept.pop(), outer, time))
                inner = outer
            self.grow.append(nn.Conv2d(inner, inner, 3, 1, 1) if level else nn.Identity())

    def forward(self, x: torch.Tensor, when: torch.Tensor) -> torch.Tensor:
        half = self.width // 2
        rates = torch.exp(torch.arange(half, device=x.device) * (-math.log(10_000) / half))
        angles = when[:, None].float() * rates
        time = self.time(torch.cat([angles.sin(), angles.cos()], 1))
        x = self.first(x)
        kept = []
        for at, (block, attention) in enumerate(zip(self.down, self.attentions)):
            x = attention(block(x, time))
            kept.append(x)
            if at % 2:
                x = self.shrink[at // 2](x)
        x = self.middle(x, time)
        for at, block in enumerate(self.up):
            x = block(torch.cat([x, kept.pop()], 1), time)
            if at in (1, 3):
                x = self.grow[at // 2](functional.interpolate(x, scale_factor=2.0))
        return self.last(functional.silu(self.norm(x)))


class Diffusion(Training):
    """Denoises small images, and keeps a moving mean of the weights, parameter by parameter."""

    @dataclass(frozen=True)
    class Options:
        batch: int = 32
        precision: str = "fp32"
        optimizer: str = "foreach"
        graphed: bool = False
        read_loss: bool = True  # for the progress bar

    def __init__(self, options: Options, device: str) -> None:
        super().__init__(options, device)
        real = device == "cuda"
        size, width, batch = (32, 128, options.batch) if real else (8, 8, 2)
        self.model = Unet(width).to(device)
        self.mean = copy.deepcopy(self.model).requires_grad_(False)
        self.optimizer = torch.optim.AdamW(self.model.parameters(), lr=2e-4, **WAYS[options.optimizer])
        self.kept = torch.cumprod(1 - torch.linspace(1e-4, 0.02, 1000, device=device), 0)
        self.images = torch.rand(64, batch, 3, size, size, device=device) * 2 - 1
        self.denoise = self.model
        if options.graphed and real:
            example = torch.randn_like(self.images[0]), torch.zeros(batch, dtype=torch.long, device=device)
            self.denoise = torch.cuda.make_graphed_callables(self.model, example)

    def step(self) -> None:
        images = self.images[self.steps % len(self.images)]
        self.steps += 1
        when = torch.randint(0, 1000, (len(images),), device=self.device)
        noise = torch.randn_like(images)
        kept = self.kept[when][:, None, None, None]
        noisy = kept.sqrt() * images + (1 - kept).sqrt() * noise
        self.optimizer.zero_grad()
        with self.autocast():
            self.loss = functional.mse_loss(self.denoise(noisy, when).float(), noise)
        self.loss.backward()
        self.optimizer.step()
        with torch.no_grad():
            for mean, now in zip(self.mean.parameters(), self.model.parameters()):
                mean.mul_(0.9999).add_(now, alpha=1e-4)
        if self.options.read_loss:
            self.loss.item()


def upward(inner: int, outer: int, stride: int, padding: int) -> list[nn.Module]:
    return [nn.ConvTranspose2d(inner, outer, 4, stride, padding, bias=False), nn.BatchNorm2d(outer), nn.ReLU(True)]


def downward(inner: int, outer: int) -> list[nn.Module]:
    return [nn.Conv2d(inner, outer, 4, 2, 1, bias=False), nn.BatchNorm2d(outer), nn.LeakyReLU(0.2, inplace=True)]


class Gan(Training):
    """torch's example of a DCGAN: two networks with an optimizer each, and the figures of its log are read at once."""

    @dataclass(frozen=True)
    class Options:
        batch: int = 64
        precision: str = "fp32"
        optimizer: str = "foreach"
        read_losses: bool = True

    def __init__(self, options: Options, device: str) -> None:
        super().__init__(options, device)
        real = device == "cuda"
        width, batch = (64, options.batch) if real else (4, 2)
        self.generator = nn.Sequential(
            *upward(100, 8 * width, 1, 0),
            *(part for scale in (8, 4, 2) for part in upward(scale * width, scale * width // 2, 2, 1)),
            *(nn.ConvTranspose2d(width, 3, 4, 2, 1, bias=False), nn.Tanh()),
        ).to(device)
        self.critic = nn.Sequential(
            *(nn.Conv2d(3, width, 4, 2, 1, bias=False), nn.LeakyReLU(0.2, inplace=True)),
            *(part for scale in (1, 2, 4) for part in downward(scale * width, 2 * scale * width)),
            *(nn.Conv2d(8 * width, 1, 4, 1, 0, bias=False), nn.Sigmoid()),
        ).to(device)
        way = {"lr": 2e-4, "betas": (0.5, 0.999), **WAYS[options.optimizer]}
        self.of_critic = torch.optim.Adam(self.critic.parameters(), **way)
        self.of_generator = torch.optim.Adam(self.generator.parameters(), **way)
        images = [torch.rand(batch, 3, 64, 64) * 2 - 1 for _ in range(8)]
        self.batches = itertools.cycle([batch.pin_memory() for batch in images] if real else images)
        self.log: deque[float] = deque(maxlen=500)

    def read(self, value: torch.Tensor) -> None:
        if self.options.read_losses:
            self.log.append(value.mean().item())

    def step(self) -> None:
        judged = nn.BCELoss()
        images = next(self.batches).to(self.device, non_blocking=True)
        label = torch.full((len(images),), 1.0, device=self.device)

        self.critic.zero_grad()
        out = self.critic(images).view(-1)
        loss_real = judged(out, label)
        loss_real.backward()
        self.read(out)
        fake = self.generator(torch.randn(len(images), 100, 1, 1, device=self.device))
        label.fill_(0.0)
        out = self.critic(fake.detach()).view(-1)
        loss_fake = judged(out, label)
        loss_fake.backward()
        self.read(out)
        self.of_critic.step()

        self.generator.zero_grad()
        label.fill_(1.0)
        out = self.critic(fake).view(-1)
        loss = judged(out, label)
        loss.backward()
        self.read(out)
        self.of_generator.step()
        self.loss = (loss_real + loss_fake + loss).detach()
        self.read(loss_real + loss_fake)
        self.read(loss)
