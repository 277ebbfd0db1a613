"""Graphs, games and clicks: little arithmetic, and much around it."""

from __future__ import annotations

import copy
from collections import deque
from dataclasses import dataclass

import numpy as np
import torch
from programs import WAYS, Training
from torch import nn
from torch.nn import functional

from strangers.batches import forever


class Gnn(Training):
    """Classes of molecules by a graph isomorphism network, after torch_geometric's example. Batches are put together
    by the loader; how many graphs are in one is read back from the device, in the library."""

    @dataclass(frozen=True)
    class Options:
        batch: int = 128
        precision: str = "fp32"
        workers: int = 0
        validate_every: int = 10  # steps; 0: never
        validated: int = 20  # batches each time

    def __init__(self, options: Options, device: str) -> None:
        from torch_geometric.data import Data
        from torch_geometric.loader import DataLoader as GraphLoader
        from torch_geometric.nn import MLP, GINConv, global_add_pool

        super().__init__(options, device)
        real = device == "cuda"
        width, batch = (128, options.batch) if real else (16, 8)
        generator = np.random.default_rng(0)

        def molecule() -> Data:
            atoms = int(generator.integers(12, 36))
            edges = torch.from_numpy(generator.integers(0, atoms, (2, 2 * atoms)))
            features = torch.from_numpy(generator.standard_normal((atoms, 16), dtype=np.float32))
            return Data(x=features, edge_index=edges, y=torch.tensor([atoms % 2]))

        class Gin(nn.Module):
            def __init__(self) -> None:
                super().__init__()
                sizes = [16, *[width] * 5]
                self.layers = nn.ModuleList([GINConv(MLP([a, width, width])) for a in sizes[:-1]])
                self.head = MLP([width, width, 2], norm=None, dropout=0.5)

            def forward(self, x: torch.Tensor, edges: torch.Tensor, graph: torch.Tensor) -> torch.Tensor:
                for layer in self.layers:
                    x = layer(x, edges).relu()
                return self.head(global_add_pool(x, graph))

        molecules = [molecule() for _ in range(512 if real else 64)]
        self.model = Gin().to(device)
        self.optimizer = torch.optim.Adam(self.model.parameters(), lr=1e-3)
        how = {"num_workers": options.workers, "persistent_workers": options.workers > 0}
        self.batches = forever(GraphLoader(molecules * 100, batch, shuffle=True, drop_last=True, **how))
        validated = options.validated if real else 2
        self.held_out = GraphLoader((molecules * 10)[: validated * batch], batch)
        self.total, self.accuracy = 0.0, 0.0

    def step(self) -> None:
        batch = next(self.batches).to(self.device)
        self.optimizer.zero_grad()
        with self.autocast():
            self.loss = functional.cross_entropy(self.model(batch.x, batch.edge_index, batch.batch), batch.y)
        self.loss.backward()
        self.optimizer.step()
        self.total += self.loss.item() * batch.num_graphs
        self.steps += 1
        if self.options.validate_every and self.steps % self.options.validate_every == 0:
            self.validate()

    @torch.no_grad()
    def validate(self) -> None:
        self.model.eval()
        right, of = 0, 0
        for batch in self.held_out:
            batch = batch.to(self.device)
            guess = self.model(batch.x, batch.edge_index, batch.batch).argmax(-1)
            right, of = right + int((guess == batch.y).sum()), of + batch.num_graphs
        self.accuracy = right / of
        self.model.train()


class Replay:
    """Transitions of an Atari game in numpy, drawn by priority."""

    def __init__(self, capacity: int, side: int) -> None:
        self.generator = np.random.default_rng(0)
        self.frames = self.generator.integers(0, 256, (capacity, side, side), dtype=np.uint8)
        self.actions = self.generator.integers(0, 6, capacity)
        self.rewards = self.generator.standard_normal(capacity).astype(np.float32)
        self.priorities = np.ones(capacity - 5)

    def drawn(self, batch: int) -> tuple[np.ndarray, ...]:
        chances = self.priorities**0.6
        at = self.generator.choice(len(chances), batch, p=chances / chances.sum())
        stack = at[:, None] + np.arange(4)
        return at, self.frames[stack], self.frames[stack + 1], self.actions[at + 3], self.rewards[at + 3]


class Dqn(Training):
    """The learner of a double deep Q-network."""

    @dataclass(frozen=True)
    class Options:
        batch: int = 128
        precision: str = "fp32"
        as_bytes: bool = False  # else the host makes floats of the frames
        read_errors: bool = True  # for the priorities
        compiled: bool = False

    def __init__(self, options: Options, device: str) -> None:
        super().__init__(options, device)
        capacity, self.batch = (20_000, options.batch) if device == "cuda" else (200, 4)
        self.replay = Replay(capacity, 84)
        self.online = nn.Sequential(
            *(nn.Conv2d(4, 32, 8, 4), nn.ReLU(), nn.Conv2d(32, 64, 4, 2), nn.ReLU(), nn.Conv2d(64, 64, 3, 1)),
            *(nn.ReLU(), nn.Flatten(), nn.Linear(3136, 512), nn.ReLU(), nn.Linear(512, 6)),
        ).to(device)
        self.target = copy.deepcopy(self.online)
        self.optimizer = torch.optim.Adam(self.online.parameters(), lr=1e-4)
        self.values, self.later = self.online, self.target
        if options.compiled:
            self.values, self.later = torch.compile(self.online), torch.compile(self.target)

    def frames(self, pixels: np.ndarray) -> torch.Tensor:
        if self.options.as_bytes:
            return torch.as_tensor(pixels).to(self.device).float() / 255
        return torch.as_tensor(pixels.astype(np.float32) / 255).to(self.device)

    def step(self) -> None:
        at, before, after, actions, rewards = self.replay.drawn(self.batch)
        before, after = self.frames(before), self.frames(after)
        actions, rewards = (torch.as_tensor(part).to(self.device) for part in (actions, rewards))
        with self.autocast():
            with torch.no_grad():
                best = self.values(after).argmax(1, keepdim=True)
                wanted = rewards + 0.99 * self.later(after).gather(1, best).squeeze(1)
            found = self.values(before).gather(1, actions[:, None]).squeeze(1)
            self.loss = functional.smooth_l1_loss(found, wanted)
        self.optimizer.zero_grad()
        self.loss.backward()
        self.optimizer.step()
        if self.options.read_errors:
            self.replay.priorities[at] = (found - wanted).detach().abs().float().cpu().numpy() + 1e-3
        self.steps += 1
        if self.steps % 1000 == 0:
            self.target.load_state_dict(self.online.state_dict())


class ClickModel(nn.Module):
    """DLRM: a table for each categorical feature, products of all pairs, and a network on top."""

    def __init__(self, tables: int, rows: int, width: int) -> None:
        super().__init__()
        self.tables = nn.ModuleList([nn.EmbeddingBag(rows, width, mode="sum") for _ in range(tables)])
        self.bottom = nn.Sequential(
            *(nn.Linear(13, 512), nn.ReLU(), nn.Linear(512, 256), nn.ReLU(), nn.Linear(256, width), nn.ReLU())
        )
        pairs = torch.tril_indices(tables + 1, tables + 1, -1)
        self.register_buffer("pairs", pairs)
        self.top = nn.Sequential(
            *(nn.Linear(width + pairs.shape[1], 1024), nn.ReLU(), nn.Linear(1024, 512), nn.ReLU(), nn.Linear(512, 1))
        )

    def forward(self, dense: torch.Tensor, words: torch.Tensor) -> torch.Tensor:
        low = self.bottom(dense)
        rows = [table(words[:, at : at + 1]) for at, table in enumerate(self.tables)]
        every = torch.stack([low, *(row.to(low.dtype) for row in rows)], 1)
        products = torch.bmm(every, every.transpose(1, 2))[:, self.pairs[0], self.pairs[1]]
        return self.top(torch.cat([low, products], 1)).squeeze(1)


class Dlrm(Training):
    """Predicts clicks. The gradients of its tables are dense, so that the optimizer goes through all rows."""

    @dataclass(frozen=True)
    class Options:
        batch: int = 2048
        precision: str = "fp32"
        optimizer: str = "foreach"
        keep_scores: bool = True  # on the host, for a metric

    def __init__(self, options: Options, device: str) -> None:
        super().__init__(options, device)
        tables, rows, self.batch = (26, 100_000, options.batch) if device == "cuda" else (3, 50, 8)
        self.model = ClickModel(tables, rows, 64 if device == "cuda" else 8).to(device)
        self.optimizer = torch.optim.Adam(self.model.parameters(), lr=1e-3, **WAYS[options.optimizer])
        generator = np.random.default_rng(0)
        self.dense = generator.standard_normal((16 * self.batch, 13), dtype=np.float32)
        self.words = generator.integers(0, rows, (16 * self.batch, tables))
        self.clicks = generator.integers(0, 2, 16 * self.batch).astype(np.float32)
        self.scores: deque[torch.Tensor] = deque(maxlen=100)

    def step(self) -> None:
        begin = self.steps % 16 * self.batch
        self.steps += 1
        here = slice(begin, begin + self.batch)
        dense, words, clicks = (
            torch.from_numpy(part[here]).to(self.device) for part in (self.dense, self.words, self.clicks)
        )
        self.optimizer.zero_grad()
        with self.autocast():
            out = self.model(dense, words)
        self.loss = functional.binary_cross_entropy_with_logits(out.float(), clicks)
        self.loss.backward()
        self.optimizer.step()
        if self.options.keep_scores:
            self.scores.append(torch.sigmoid(out.detach()).cpu())
