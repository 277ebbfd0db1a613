"""Programs with a shape of their own: several processes, rollouts, evaluation, training without an optimizer object."""

from __future__ import annotations

import random

from ..case import Case
from ..settings import STYLES, Settings
from . import data, models
from .compose import SECONDS, merged
from .pieces import assembled

BASIC = ("import json", "import time", "import torch", "from torch import nn", "import torch.nn.functional as F")
COMMON = {"seconds": SECONDS, "times": "step_times.json", "warmup": 5}


def whole(
    rng: random.Random, name: str, cause: str, about: str, text: str, *, imports: tuple[str, ...] = (), **how
) -> Case:
    settings = Settings(rng.choice(STYLES), {**COMMON, **how.pop("settings", {})})
    parts = [*how.pop("parts", ()), text]
    script = assembled(merged({*BASIC, *imports}), settings, parts, how.pop("docstring", ""))
    return Case(name=name, cause=cause, about=about, script=script, settings=settings, **how)


HOGWILD = """
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1 = nn.Conv2d(1, $WIDTH, 5)
        self.conv2 = nn.Conv2d($WIDTH, 20, 5)
        self.fc1 = nn.Linear(320, 50)
        self.fc2 = nn.Linear(50, 10)

    def forward(self, x):
        x = F.relu(F.max_pool2d(self.conv1(x), 2))
        x = F.relu(F.max_pool2d(self.conv2(x), 2))
        return F.log_softmax(self.fc2(F.relu(self.fc1(x.flatten(1)))), dim=1)


def train(rank, model):
    torch.manual_seed(rank)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.5)
    data = TensorDataset(torch.rand(2048, 1, 28, 28), torch.randint(0, 10, (2048,)))
    loader = DataLoader(data, batch_size=$batch_size, shuffle=True)
    times = []
    begin = last = time.perf_counter()
    while last - begin < $seconds:
        for images, labels in loader:
            optimizer.zero_grad()
            F.nll_loss(model(images), labels).backward()
            optimizer.step()
            now = time.perf_counter()
            times.append(now - last)
            last = now
            if last - begin > $seconds:
                break
    if rank == 0:
        with open($times, "w") as f:
            json.dump(times[$warmup:], f)


if __name__ == "__main__":
    mp.set_start_method("spawn")  # a forked OpenMP pool would hang
    model = Net()
    model.share_memory()
    processes = [mp.Process(target=train, args=(rank, model)) for rank in range($processes)]
    for process in processes:
        process.start()
    for process in processes:
        process.join()
"""
HOGWILD_IMPORTS = ("import torch.multiprocessing as mp", "from torch.utils.data import DataLoader, TensorDataset")


def hogwild(rng: random.Random, name: str) -> Case:
    """Shared weights and several processes, each with as many intra-op threads as somebody asked for."""
    processes = rng.choice([2, 4])
    return whole(
        rng,
        name,
        "thread-oversubscription",
        f"{processes} processes share the weights, each with several intra-op threads: more threads than cores",
        HOGWILD.replace("$WIDTH", str(rng.choice([10, 16]))),
        imports=HOGWILD_IMPORTS,
        settings={"processes": processes, "batch_size": rng.choice([32, 64])},
        base={"env:OMP_NUM_THREADS": rng.choice([2, 4])},
        cure={"env:OMP_NUM_THREADS": 1},
    )


def hogwild_single_threaded(rng: random.Random, name: str) -> Case:
    return whole(
        rng,
        name,
        "healthy",
        "two processes share the weights with one thread each: the cores are full",
        HOGWILD.replace("$WIDTH", str(rng.choice([10, 16]))),
        imports=HOGWILD_IMPORTS,
        settings={"processes": 2, "batch_size": rng.choice([32, 64])},
        base={"env:OMP_NUM_THREADS": 1},
    )


RANKS = """
def worker(rank, world):
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=str($port), RANK=str(rank), WORLD_SIZE=str(world))
    dist.init_process_group("gloo", rank=rank, world_size=world)
    torch.manual_seed(rank)
    torch.set_num_threads(1)
    model = DistributedDataParallel($MODEL)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    durations = []
    over = torch.zeros(1)
    start = last = time.perf_counter()
    inputs, targets = $INPUTS
    while not over.item():
        if rank == 1 and $late > 0:
            time.sleep($late)  # this node's storage is slower
        x, y = inputs, targets
        exchange = (len(durations) + 1) % $accumulate == 0
        with contextlib.nullcontext() if exchange else model.no_sync():
$STATEMENTS
            loss.backward()
        if exchange:
            optimizer.step()
            optimizer.zero_grad()
        now = time.perf_counter()
        durations.append(now - last)
        last = now
        if len(durations) % 10 == 0:
            over[0] = float(last - start > $seconds)
            dist.all_reduce(over, dist.ReduceOp.MAX)
    if rank == 0:
        json.dump(durations[$warmup:], open($times, "w"))
    dist.destroy_process_group()


if __name__ == "__main__":
    torch.multiprocessing.spawn(worker, args=(2,), nprocs=2)
"""


def ranks(rng: random.Random, name: str, late: float, cause: str, about: str) -> Case:
    model = models.mlp(rng, 0.7)
    text = RANKS.replace("$MODEL", model.make)
    text = text.replace("$INPUTS", "torch.rand(64, 784), torch.randint(0, 10, (64,))")
    text = text.replace("$STATEMENTS", "\n".join("            " + line for line in model.piece.use.splitlines()))
    imports = ("import contextlib", "import os", "import torch.distributed as dist")
    change = {"late": 0.0}
    return whole(
        rng,
        name,
        cause,
        about,
        text,
        imports=(*imports, "from torch.nn.parallel import DistributedDataParallel"),
        parts=(model.piece.text,),
        settings={"late": late, "accumulate": 1, "port": rng.randrange(20000, 30000)},
        changes={"accumulate": {"accumulate": 10}, **({"straggler": change} if late else {})},
        cure=change if late else {},
    )


def straggler(rng: random.Random, name: str) -> Case:
    return ranks(rng, name, rng.choice([0.015, 0.03]), "straggler", "two ranks, of which the second is late each step")


def two_ranks(rng: random.Random, name: str) -> Case:
    return ranks(rng, name, 0.0, "healthy", "two ranks that share the cores evenly")


ROLLOUT = '''
class CartPole:
    """The usual pole on a cart, by Euler steps, in plain Python."""

    def __init__(self, seed):
        self.rng = random.Random(seed)

    def reset(self):
        self.state = [self.rng.uniform(-0.05, 0.05) for _ in range(4)]
        return self.state

    def step(self, action):
        x, v, angle, spin = self.state
        for _ in range($substeps):
            force = 10.0 if action else -10.0
            cos, sin = math.cos(angle), math.sin(angle)
            push = (force + 0.05 * spin * spin * sin) / 1.1
            turn = (9.8 * sin - cos * push) / (0.5 * (4 / 3 - 0.1 * cos * cos / 1.1))
            pull = push - 0.05 * turn * cos / 1.1
            dt = 0.02 / $substeps
            x, v, angle, spin = x + dt * v, v + dt * pull, angle + dt * spin, spin + dt * turn
        self.state = [x, v, angle, spin]
        return self.state, 1.0, abs(x) > 2.4 or abs(angle) > 0.21


policy = nn.Sequential(nn.Linear(4, 128), nn.Dropout(0.6), nn.ReLU(), nn.Linear(128, 2))
optimizer = torch.optim.Adam(policy.parameters(), lr=1e-2)
env = CartPole(543)


def play_episode():
    state, log_probs, rewards = env.reset(), [], []
    for _ in range(200):
        probabilities = F.softmax(policy(torch.tensor(state).unsqueeze(0)), dim=1)
        choice = torch.distributions.Categorical(probabilities)
        action = choice.sample()
        log_probs.append(choice.log_prob(action))
        state, reward, done = env.step(action.item())
        rewards.append(reward)
        if done:
            break
    return log_probs, rewards


def discounted(rewards, gamma=0.99):
    total, returns = 0.0, []
    for reward in reversed(rewards):
        total = reward + gamma * total
        returns.append(total)
    values = torch.tensor(returns[::-1])
    return (values - values.mean()) / (values.std() + 1e-6)


if __name__ == "__main__":
    episodes = []
    begin = mark = time.perf_counter()
    while mark - begin < $seconds:
        log_probs, rewards = play_episode()
        loss = -(torch.cat(log_probs) * discounted(rewards)).sum()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        now = time.perf_counter()
        episodes.append(now - mark)
        mark = now
    with open($times, "w") as f:
        json.dump(episodes[$warmup:], f)
'''


def rollout(rng: random.Random, name: str) -> Case:
    return whole(
        rng,
        name,
        "rollout",
        "policy gradients: each step plays an episode in a simulator written in Python",
        ROLLOUT,
        imports=("import math", "import random"),
        settings={"substeps": rng.choice([5, 20])},
    )


EVALUATION = """
def evaluate():
    model = $MODEL
    model.eval()
    loader = DataLoader($DATASET, batch_size=$batch_size, num_workers=$num_workers)
    times, hits = [], 0
    begin = last = time.perf_counter()
    with $NO_GRAD:
        while last - begin < $seconds:
            for x, y in loader:
                prediction = model(x)
                prediction = prediction[0] if isinstance(prediction, tuple) else prediction
                hits += int((prediction.flatten(1).argmax(1) == y).sum())
                now = time.perf_counter()
                times.append(now - last)
                last = now
                if last - begin > $seconds:
                    break
    print("hits", hits)
    return times


if __name__ == "__main__":
    seconds_per_batch = evaluate()
    with open($times, "w") as f:
        json.dump(seconds_per_batch[$warmup:], f)
"""


def evaluation_that_waits(rng: random.Random, name: str) -> Case:
    return evaluation(rng, name, waits=True)


def evaluation_that_computes(rng: random.Random, name: str) -> Case:
    return evaluation(rng, name, waits=False)


def evaluation(rng: random.Random, name: str, waits: bool) -> Case:
    kind = rng.choice(("image", "tokens", "series"))
    model = models.any_model(rng, kind, 1.0 if waits else 3.0)
    source = data.costly(rng, kind) if waits else data.in_memory(rng, kind)
    text = EVALUATION.replace("$MODEL", model.make).replace("$DATASET", source.use)
    text = text.replace("$NO_GRAD", rng.choice(["torch.no_grad()", "torch.inference_mode()"]))
    settings = {"batch_size": 16, "num_workers": 0}
    if "$data" in source.use:
        settings["data"] = "photos"
    if "$length" in source.use:
        settings["length"] = 20000
    return whole(
        rng,
        name,
        "no-workers" if waits else "healthy",
        "evaluates only: a step is a batch" + (", decoded in the main thread" if waits else ", from memory"),
        text,
        imports=(*model.piece.imports, *source.imports, "from torch.utils.data import DataLoader"),
        parts=(source.text, model.piece.text),
        settings=settings,
        cure={"num_workers": 2} if waits else {},
    )


MANUAL = """
torch.manual_seed(0)
W1 = (0.05 * torch.randn(784, $HIDDEN)).requires_grad_()
W2 = (0.05 * torch.randn($HIDDEN, 10)).requires_grad_()
xs, ys = torch.rand(8192, 784), torch.randint(0, 10, (8192,))

step_times = []
start = time.perf_counter()
while time.perf_counter() - start < $seconds:
    begin = time.perf_counter()
    pick = torch.randint(0, 8192, ($batch_size,))
    hidden = torch.tanh(xs[pick] @ W1)
    loss = F.cross_entropy(hidden @ W2, ys[pick])
    loss.backward()
    with torch.no_grad():
        for w in (W1, W2):
            w -= 0.1 * w.grad
            w.grad = None
    step_times.append(time.perf_counter() - begin)

json.dump(step_times[$warmup:], open($times, "w"))
"""


def manual_updates(rng: random.Random, name: str) -> Case:
    return whole(
        rng,
        name,
        "healthy",
        "no torch.optim: the weights are updated by hand after backward()",
        MANUAL.replace("$HIDDEN", str(rng.choice([512, 1024]))),
        settings={"batch_size": rng.choice([128, 256])},
    )


ADVERSARIAL = """
generator = nn.Sequential(nn.Linear(32, $HIDDEN), nn.ReLU(), nn.Linear($HIDDEN, 784), nn.Sigmoid())
critic = nn.Sequential(nn.Linear(784, $HIDDEN), nn.LeakyReLU(0.2), nn.Linear($HIDDEN, 1))
g_optimizer = torch.optim.Adam(generator.parameters(), lr=2e-4, betas=(0.5, 0.999))
d_optimizer = torch.optim.Adam(critic.parameters(), lr=2e-4, betas=(0.5, 0.999))
real_images = torch.rand(4096, 784)
loader = DataLoader(TensorDataset(real_images), batch_size=$batch_size, shuffle=True, drop_last=True)

stamps = [time.perf_counter()]
while stamps[-1] - stamps[0] < $seconds:
    for (real,) in loader:
        fake = generator(torch.randn(len(real), 32))
        d_loss = F.softplus(-critic(real)).mean() + F.softplus(critic(fake.detach())).mean()
        d_optimizer.zero_grad()
        d_loss.backward()
        d_optimizer.step()
        g_loss = F.softplus(-critic(fake)).mean()
        g_optimizer.zero_grad()
        g_loss.backward()
        g_optimizer.step()
        stamps.append(time.perf_counter())
        if stamps[-1] - stamps[0] > $seconds:
            break

with open($times, "w") as f:
    json.dump([b - a for a, b in zip(stamps, stamps[1:])][$warmup:], f)
"""


def adversarial(rng: random.Random, name: str) -> Case:
    return whole(
        rng,
        name,
        "healthy",
        "a generator and a critic with an optimizer each: two optimizer steps per step",
        ADVERSARIAL.replace("$HIDDEN", str(rng.choice([256, 512]))),
        imports=("from torch.utils.data import DataLoader, TensorDataset",),
        settings={"batch_size": 64},
    )
