"""How many operations a step takes, by the modules: against what PyTorch counts by its operators."""

from __future__ import annotations

import re

import pytest
from channel_reader import Channel
from test_distributed import two_ranks

SCRIPT = """
    import contextlib, torch
    from torch import nn
    from torch.nn import functional
    from torch.nn.attention import SDPBackend, sdpa_kernel
    from torch.utils.checkpoint import checkpoint
    from torch.utils.flop_counter import FlopCounterMode
    torch.manual_seed(1)
    ROWS, LENGTH, WIDTH, WORDS = 4, 48, 32, 100
    ids = torch.randint(1, WORDS, (ROWS, LENGTH))

    class Attention(nn.Module):
        def __init__(self, heads=4, causal=False):
            super().__init__()
            self.is_causal = causal
            self.heads, self.qkv, self.out = heads, nn.Linear(WIDTH, 3 * WIDTH), nn.Linear(WIDTH, WIDTH)
        def forward(self, x):
            q, k, v = (each.view(*x.shape[:2], self.heads, -1).transpose(1, 2) for each in self.qkv(x).chunk(3, -1))
            y = functional.scaled_dot_product_attention(q, k, v, is_causal=self.is_causal)
            return self.out(y.transpose(1, 2).reshape(x.shape))

    class Head(nn.Module):
        def __init__(self):
            super().__init__()
            self.key, self.query, self.value = (nn.Linear(WIDTH, WIDTH, bias=False) for _ in range(3))
        def forward(self, x):
            k, q, v = self.key(x), self.query(x), self.value(x)
            return torch.softmax(q @ k.transpose(1, 2) / WIDTH**0.5, -1) @ v

    class Block(nn.Module):
        def __init__(self, attention=Attention):
            super().__init__()
            self.attention = attention()
            self.up, self.down = nn.Linear(WIDTH, 4 * WIDTH), nn.Linear(4 * WIDTH, WIDTH)
        def forward(self, x):
            x = x + self.attention(x)
            return x + self.down(functional.gelu(self.up(x)))

    class Model(nn.Module):
        def __init__(self, block=Block, again=None):
            super().__init__()
            self.words, self.blocks = nn.Embedding(WORDS, WIDTH), nn.ModuleList(block() for _ in range(3))
            self.head, self.again = nn.Linear(WIDTH, WORDS), again
        def forward(self, ids):
            x = self.words(ids)
            for block in self.blocks:
                x = block(x) if self.again is None else checkpoint(block, x, use_reentrant=self.again)
            return self.head(x)

    def train(model, *given, call=lambda model, *given: model(*given).square().mean(), micro=1, oracle=True):
        optimizer = torch.optim.SGD([each for each in model.parameters() if each.requires_grad], lr=1e-4)
        def step():
            for _ in range(micro):
                call(model, *given).backward()
            optimizer.step()
            optimizer.zero_grad()
        with sdpa_kernel(SDPBackend.MATH):
            for _ in range(5):
                step()
            counter = FlopCounterMode(display=False) if oracle else contextlib.nullcontext()
            with counter:
                step()
        print("COUNTED", counter.get_total_flops() if oracle else 0)
"""
HEAD = "train(Model(lambda: Block(Head)), ids)"
TORCHS_OWN = "train(nn.TransformerEncoderLayer(WIDTH, 4, 64, batch_first=True), torch.randn(ROWS, LENGTH, WIDTH))"
CONVOLUTIONS = """train(nn.Sequential(nn.Conv2d(3, 16, 3, padding=1), nn.ReLU(), nn.Conv2d(16, 32, 3, stride=2),
    nn.ConvTranspose2d(32, 8, 2, stride=2), nn.Flatten(), nn.LazyLinear(10)), torch.randn(ROWS, 3, 32, 32))"""
LORA = """model = Model()
model.requires_grad_(False)
for block in model.blocks:
    block.up.requires_grad_(True)
train(model, ids)"""
TEACHER = """teacher = Model()
def call(model, ids):
    with torch.no_grad():
        told = teacher(ids)
    return functional.mse_loss(model(ids), told)
train(Model(), ids, call=call)"""
ADAPTERS = """class Adapted(nn.Module):
    def __init__(self, base):
        super().__init__()
        self.base, self.a, self.b = base, nn.Linear(WIDTH, 2, bias=False), nn.Linear(2, base.out_features, bias=False)
    def forward(self, x):
        return self.base(x) + self.b(self.a(x))
model = Model()
model.requires_grad_(False)
for block in model.blocks:
    block.attention.qkv, block.attention.out = Adapted(block.attention.qkv), Adapted(block.attention.out)
train(model, ids)"""
LEARNT_INPUT = """class Prompts(nn.Module):
    def __init__(self):
        super().__init__()
        self.prompts, self.layer = nn.Parameter(torch.randn(64)), nn.Linear(64, 64)
    def forward(self, x):
        return self.layer(self.prompts) + x
train(Prompts(), torch.randn(16, 64))"""
FLAT = """import os, torch.distributed as dist
from torch.distributed.fsdp import FullyShardedDataParallel
os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT="0", RANK="0", WORLD_SIZE="1")
dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
train(FullyShardedDataParallel(Model(), device_id=torch.device("cpu")), ids)"""
TRANSFORMERS = """from transformers import LlamaConfig, LlamaForCausalLM
config = LlamaConfig(hidden_size=64, intermediate_size=128, num_hidden_layers=2, num_attention_heads=4,
    num_key_value_heads=2, vocab_size=WORDS, attn_implementation="eager")
train(LlamaForCausalLM(config), ids, call=lambda model, ids: model(input_ids=ids, labels=ids).loss)"""
BERT = """from transformers import BertConfig, BertForSequenceClassification
config = BertConfig(hidden_size=64, intermediate_size=128, num_hidden_layers=2, num_attention_heads=4, vocab_size=WORDS)
train(BertForSequenceClassification(config), ids, call=lambda model, ids: model(input_ids=ids,
    labels=torch.zeros(ROWS, dtype=torch.long)).loss)"""
GPT2 = """from transformers import GPT2Config, GPT2LMHeadModel
config = GPT2Config(n_embd=64, n_layer=2, n_head=4, vocab_size=WORDS, attn_implementation="eager")
train(GPT2LMHeadModel(config), ids, call=lambda model, ids: model(input_ids=ids, labels=ids).loss)"""


def said_of(runner, lines: str) -> tuple[dict | None, int]:
    channel, output = runner.run(SCRIPT + "".join(f"    {line}\n" for line in lines.splitlines()))
    return channel.trainer.facts.get("flops"), int(re.search(r"COUNTED (\d+)", output).group(1))


@pytest.mark.long
@pytest.mark.parametrize(
    "lines",
    [
        "train(Model(), ids)",
        "train(Model(), ids, micro=3)",
        "train(Model(again=False), ids)",
        "train(Model(again=True), ids)",
        "train(nn.Sequential(nn.Linear(64, 128), nn.ReLU(), nn.Linear(128, 8)), torch.randn(16, 64))",
        *(HEAD, TORCHS_OWN, CONVOLUTIONS, LORA, TEACHER, ADAPTERS, LEARNT_INPUT, FLAT),
        *(BERT, GPT2, TRANSFORMERS),
    ],
    ids=[
        *("attention", "micro-batches", "recomputed", "recomputed-reentrant", "mlp"),
        *("heads", "torchs-own", "convolutions", "lora", "teacher"),
        *("adapters", "learnt-input", "fsdp", "bert", "gpt2", "llama"),
    ],
)
def test_the_modules_say_what_the_operators_do(newest, lines):
    if "transformers" in lines:
        pytest.importorskip("transformers")
    said, counted = said_of(newest, lines)
    assert said is not None
    assert said["step"] == pytest.approx(counted, rel=0.03)
    assert said["unknown"] == []


@pytest.mark.long
def test_what_follows_the_tokens_is_told_apart(newest):
    said, _ = said_of(newest, "train(Model(), ids)")
    assert said["width"] == 48
    assert said["of_squares"] == 3 * 3 * 4 * 4 * 48 * 48 * 32
    assert said["of_tokens"] + said["of_squares"] == said["step"]


@pytest.mark.long
@pytest.mark.parametrize("again", ["False", "True"])
def test_what_the_backward_pass_computes_again_is_told_apart(newest, again):
    """All blocks but not the head: a forward pass of theirs, whichever way they are checkpointed."""
    said, _ = said_of(newest, f"train(Model(again={again}), ids)")
    blocks = 3 * (2 * 4 * 48 * 12 * 32 * 32 + 4 * 4 * 48 * 48 * 32)
    assert said["again"] == pytest.approx(blocks, rel=0.35), "what nothing is kept of is not computed again"
    assert said["again"] <= blocks
    assert said["backward"] == pytest.approx(2 * (blocks + 2 * 4 * 48 * 32 * 100), rel=0.03)
    assert "in_vain" not in said


@pytest.mark.long
def test_gradients_that_no_optimizer_uses_are_told_apart(newest):
    lines = """class Head(nn.Module):
    def __init__(self):
        super().__init__()
        self.body, self.out = Model(), nn.Linear(WORDS, 8)
    def forward(self, ids):
        return self.out(self.body(ids).mean(1))
model = Head()
optimizer = torch.optim.SGD(model.out.parameters(), lr=1e-4)
for step in range(12):
    optimizer.zero_grad(); model(ids).square().mean().backward(); optimizer.step()
print("COUNTED 0")"""
    said, _ = said_of(newest, lines)
    head = 2 * 4 * 100 * 8
    assert said["backward"] - said["in_vain"] == head, "of the head itself the gradient of its weights is left"


@pytest.mark.long
@pytest.mark.parametrize("beside", ["nn.Conv1d(8, 64, 9, padding=4)", "Own()"])
def test_of_what_is_no_product_it_is_not_told_what_is_in_vain(newest, beside):
    lines = f"""class Own(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(64, 8) / 8)
    def forward(self, x):
        return self.weight @ x
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.body, self.out, self.aside = {beside}, nn.Linear(64, 4), nn.Linear(64, 4)
    def forward(self, x):
        x = self.body(x).mean(2)
        return self.out(x) + self.aside(x)
model = Net()
optimizer = torch.optim.SGD([*model.body.parameters(), *model.out.parameters()], lr=1e-4)
x = torch.randn(4, 8, 128)
for step in range(12):
    optimizer.zero_grad(); model(x).square().mean().backward(); optimizer.step()
print("COUNTED 0")"""
    said, _ = said_of(newest, lines)
    assert "in_vain" not in said and said["unknown"] == (["Own"] if beside == "Own()" else [])


@pytest.mark.long
def test_groups_of_channels_are_convolved_apart(newest):
    """By hand: PyTorch counts the gradients of such weights as if there were no groups."""
    said, _ = said_of(newest, "train(nn.Conv2d(16, 32, 3, padding=1, groups=4), torch.randn(ROWS, 16, 8, 8))")
    assert said["step"] == 2 * (2 * 4 * 32 * 8 * 8 * (16 / 4) * 9), "forward, and the gradients of the weights"


@pytest.mark.long
def test_weights_of_a_kind_that_is_not_known_are_named(newest):
    lines = """class Experts(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(4, WIDTH, WIDTH))
    def forward(self, x):
        return torch.einsum("blw,ewv->blv", x, self.weight)
model = Model()
model.blocks.append(Experts())
train(model, ids)"""
    said, _ = said_of(newest, lines)
    assert said["unknown"] == ["Experts"]


@pytest.mark.long
def test_of_a_causal_attention_half_the_scores_are_computed(newest):
    """PyTorch counts the whole square of it: what the halves differ by is known from the lengths."""
    said, counted = said_of(newest, "train(Model(lambda: Block(lambda: Attention(causal=True))), ids)")
    whole = 3 * 3 * 4 * 4 * 48 * 48 * 32
    assert said["of_squares"] == whole * (48 + 1) / 2 / 48
    assert said["step"] == pytest.approx(counted - whole + said["of_squares"], rel=0.001)


@pytest.mark.long
def test_a_scripted_part_is_not_taken_for_no_part(newest):
    lines = """class Both(nn.Module):
    def __init__(self):
        super().__init__()
        self.inner, self.head = torch.jit.script(nn.Sequential(nn.Linear(64, 64), nn.ReLU())), nn.Linear(64, 8)
    def forward(self, x):
        return self.head(self.inner(x))
import warnings; train(Both(), torch.randn(16, 64), oracle=False)"""
    said, _ = said_of(newest, lines)
    assert said["unknown"] == ["RecursiveScriptModule"]


@pytest.mark.long
def test_a_layer_that_gets_a_tensor_of_another_kind_is_named(newest):
    lines = """class Another(torch.Tensor):
    pass
model = nn.Sequential(nn.Linear(64, 64), nn.Linear(64, 8))
train(model, torch.randn(16, 64), call=lambda model, x: model[1](model[0](x).as_subclass(Another)).square().mean())"""
    said, _ = said_of(newest, lines)
    assert said["unknown"] == ["Linear"]


FACTS = ("step", "type", "unknown", "of_tokens", "of_squares", "width")
COMPILED = """model = torch.compile(model, backend="eager")"""
RUN = "\ntrain(model, ids, oracle=False)"


def compared(runner, lines: str, compiled: str = COMPILED, run: str = RUN) -> tuple[dict, dict]:
    """What is said of a compiled model, and of the same as it is."""
    said, _ = said_of(runner, f"{lines}\n{compiled}{run}")
    plain, _ = said_of(runner, f"{lines}{run}")
    return {name: said.get(name) for name in FACTS}, plain


def of_model(plain: dict) -> int:
    """Without what is computed again."""
    return plain["step"] - plain.get("again", 0)


MODEL = "model = Model()"
HALF = """model = Model()
model.blocks[0].requires_grad_(False)
for each in model.blocks:
    each.compile(backend="eager")"""
BRANCH = """class Branch(nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.b = nn.Linear(WIDTH, WIDTH), nn.Linear(WIDTH, 8 * WIDTH)
    def forward(self, x):
        return self.b(x)[..., :WIDTH] if x.isnan().any() else self.a(x)
model = Model()
model.blocks.append(Branch())"""
SPARSE = """class Experts(nn.Module):
    def __init__(self):
        super().__init__()
        self.each = nn.ModuleList(nn.Linear(WIDTH, WIDTH) for _ in range(4))
    def forward(self, x):
        flat, which = x.reshape(-1, WIDTH), torch.arange(x.numel() // WIDTH) % 3
        out = torch.zeros_like(flat)
        for i, expert in enumerate(self.each):
            at = (which == i).nonzero()[:, 0]
            out = out.index_add(0, at, expert(flat[at]))
        return out.view(x.shape)
model = Model()
model.blocks.append(Experts())"""
RECURRENT = """class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.words, self.rnn = nn.Embedding(WORDS, WIDTH), nn.LSTM(WIDTH, WIDTH, batch_first=True)
        self.out = nn.Linear(WIDTH, WORDS)
    def forward(self, x):
        return self.out(self.rnn(self.words(x))[0])
model = Net()"""


@pytest.mark.long
@pytest.mark.parametrize(
    "lines",
    [
        *(MODEL, "model = Model(lambda: Block(Head))", "model = Model(lambda: Block(lambda: Attention(causal=True)))"),
        *("model = Model(again=False)", "model = Model(again=True)", BRANCH, SPARSE, RECURRENT),
        LORA.rsplit("\n", 1)[0],
        TRANSFORMERS.rsplit("\n", 1)[0] + "\nmodel = LlamaForCausalLM(config)",
    ],
    ids=[
        *("attention", "heads", "causal", "recomputed", "recomputed-reentrant", "branch-by-data", "sparse"),
        *("recurrent", "lora", "llama"),
    ],
)
def test_compiled_modules_say_what_they_say_as_they_are(newest, lines):
    run = RUN
    if "transformers" in lines:
        pytest.importorskip("transformers")
        run = RUN.replace("ids,", "ids, call=lambda model, ids: model(input_ids=ids, labels=ids).loss,")
    said, plain = compared(newest, lines, run=run)
    assert said["step"] == of_model(plain)
    assert said["unknown"] == [] and said["type"] == "float32"
    if "again" not in plain:
        assert said == {name: plain[name] for name in FACTS}


@pytest.mark.long
@pytest.mark.parametrize("compiled", ["model.compile(backend='aot_eager')", "model = torch.compile(model)", HALF])
def test_it_does_not_matter_who_compiles_and_how_much_of_the_model(newest, compiled):
    said, plain = compared(newest, HALF.split("for")[0], compiled.removeprefix("model = Model()"))
    assert said == {name: plain[name] for name in FACTS}


@pytest.mark.long
@pytest.mark.parametrize("lines", [HALF, f"{RECURRENT}\n{COMPILED}"])
def test_that_calls_are_counted_makes_dynamo_compile_nothing_more(newest, lines):
    lines = f"{lines}{RUN}\nprint('GRAPHS', sorted(torch._dynamo.utils.counters['stats'].items()))"
    script = newest.script(SCRIPT + "".join(f"    {line}\n" for line in lines.splitlines()))
    results = [newest.start([newest.python, script], hooked=hooked)[0] for hooked in (True, False)]
    hooked, bare = (re.findall("GRAPHS.*", result.stdout) for result in results)
    assert hooked == bare and len(bare) == 1


@pytest.mark.long
def test_each_micro_batch_of_a_compiled_model_counts(newest):
    said, plain = compared(newest, MODEL, run=RUN.replace("ids,", "ids, micro=3,"))
    assert said["step"] == plain["step"] == 3 * 56770560


@pytest.mark.long
def test_a_graph_for_lengths_of_any_kind_is_counted_by_those_of_the_call(newest):
    said, plain = compared(newest, MODEL, 'model = torch.compile(model, backend="eager", dynamic=True)')
    assert said == {name: plain[name] for name in FACTS}


@pytest.mark.long
def test_products_in_16_bits_are_of_that_type_whatever_the_weights_have(newest):
    cast = """
def call(model, ids):
    with torch.autocast("cpu", torch.bfloat16):
        return model(ids).square().mean()"""
    said, plain = compared(newest, MODEL, run=cast + RUN.replace("ids,", "ids, call=call,"))
    assert said == {name: plain[name] for name in FACTS}
    assert said["type"] == "bfloat16"


@pytest.mark.long
def test_images_and_torchs_own_attention_are_counted_in_graphs_too(newest):
    lines = CONVOLUTIONS.removeprefix("train(").rsplit(", torch.randn", 1)[0]
    run = RUN.replace("ids,", "images,")
    lines = f"model = {lines}\nimages = torch.randn(ROWS, 3, 32, 32)\nmodel(images)"
    said, plain = compared(newest, lines, run=run)
    assert said["step"] == plain["step"] and said["unknown"] == []
    lines = "model = nn.TransformerEncoderLayer(WIDTH, 4, 64, batch_first=True)\nx = torch.randn(ROWS, LENGTH, WIDTH)"
    said, plain = compared(newest, lines, run=RUN.replace("ids,", "x,"))
    assert said["step"] == plain["step"] and said["unknown"] == []


@pytest.mark.long
def test_operators_of_another_library_are_named(newest):
    lines = """@torch.library.custom_op("mine::mix", mutates_args=())
def mix(x: torch.Tensor) -> torch.Tensor:
    return x * 2
mix.register_fake(torch.empty_like)
mix.register_autograd(lambda ctx, gradient: gradient * 2)
class Mine(nn.Module):
    def forward(self, x):
        return torch.ops.mine.mix(x)
model = Model()
model.blocks.append(Mine())"""
    said, plain = compared(newest, lines)
    assert said["unknown"] == ["mix"] and said["step"] == plain["step"]


TWO_RANKS = """import os
from torch.distributed.fsdp import FullyShardedDataParallel, MixedPrecisionPolicy, fully_shard
torch.distributed.init_process_group("gloo")
mesh = torch.distributed.device_mesh.init_device_mesh("cpu", (2,))
half = MixedPrecisionPolicy(param_dtype=torch.bfloat16)
ids = ids[: 2 + 2 * torch.distributed.get_rank()]
model = Model()
{wrap}
train(model, ids, oracle=False)
torch.distributed.destroy_process_group()
os._exit(0)  # torch 2.13's gloo threads sometimes abort a regular exit, also without a hook"""
SHARD = """for each in (*model.blocks, model):
    fully_shard(each, mesh=mesh, mp_policy=half)"""
DATA_PARALLEL = "model = nn.parallel.DistributedDataParallel(model)"


@pytest.mark.long
@pytest.mark.parametrize(
    "wrap",
    [
        *(DATA_PARALLEL, f"{DATA_PARALLEL}\n{COMPILED}", f"{COMPILED}\n{DATA_PARALLEL}"),
        *(SHARD, f"{SHARD}\n{COMPILED}", HALF.split("\n", 2)[2] + f"\n{SHARD}"),
        "model = FullyShardedDataParallel(model, device_id=torch.device('cpu'))",
    ],
    ids=["ddp", "ddp-compiled", "compiled-ddp", "fully-shard", "fully-shard-compiled", "blocks-compiled", "fsdp"],
)
def test_each_rank_counts_its_own_batch_however_the_model_is_distributed(newest, wrap):
    lines = TWO_RANKS.format(wrap=wrap)
    script = newest.script(SCRIPT + "".join(f"    {line}\n" for line in lines.splitlines()))
    result, directory = newest.start(two_ranks(newest, script))
    assert result.returncode == 0, result.stderr
    ranks = {process.rank: process.facts["flops"] for process in Channel(directory).trainers if process.steps}
    a_row = 3 * (3 * (2 * 48 * 12 * 32 * 32 + 4 * 48 * 48 * 32) + 2 * 48 * 32 * 100)
    assert {rank: said["step"] for rank, said in ranks.items()} == {0: 2 * a_row, 1: 4 * a_row}
    for said in ranks.values():
        assert said["unknown"] == [] and "in_vain" not in said, "all of its weights are trained"
        assert said["type"] == ("bfloat16" if "fully_shard" in wrap else "float32")
