"""How many operations a step takes, by the modules: against what PyTorch counts by its operators."""

from __future__ import annotations

import re

import pytest

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


@pytest.mark.long
def test_a_compiled_model_says_nothing(newest):
    said, _ = said_of(newest, 'train(torch.compile(Model(), backend="eager"), ids, oracle=False)')
    assert said is None
