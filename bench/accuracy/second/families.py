"""Families of models: each draws its shape, and builds itself for a batch size."""

import random

from second.devices import Hardware
from second.layers import Builder, Numerics
from second.ops import Model


def draw_cnn(draw: random.Random) -> dict:
    """A residual network: drawn between CIFAR-like and ResNet-50-like."""
    return {
        "width": draw.choice((16, 32, 64)),
        "blocks": [draw.randint(1, 3) for _ in range(draw.choice((3, 4)))],
        "bottleneck": draw.random() < 0.4,
        "side": draw.choice((32, 64, 128, 224)),
        "classes": draw.choice((10, 100, 1000)),
    }


def build_cnn(b: Builder, shape: dict, batch: int) -> Model:
    """Stem, stages of residual blocks, a classifier."""
    side, width = shape["side"], shape["width"]
    deep = side >= 128
    at = b.conv(batch, (3, width), side, 7 if deep else 3, 2 if deep else 1, first=True)
    b.batch_norm(batch, width, at * at)
    b.relu(batch * width * at * at, (batch, width, at, at))
    if deep:
        b.resample("max_pool2d", batch * width * at * at, batch * width * at * at / 4)
        at //= 2
    channels = width
    for stage, count in enumerate(shape["blocks"]):
        for index in range(count):
            stride = 2 if stage and not index else 1
            channels, at = residual_block(b, batch, channels, width << stage, at, stride, shape["bottleneck"])
    b.resample("adaptive_avg_pool2d", batch * channels * at * at, batch * channels)
    b.linear(batch, channels, shape["classes"])
    b.cross_entropy(batch, shape["classes"])
    return b.model((batch, 3, side, side), (batch,), True)


def residual_block(
    b: Builder, batch: int, channels: int, width: int, side: int, stride: int, bottleneck: bool
) -> tuple:
    """Basic or bottleneck block of ResNet; returns (channels, side)."""
    out = width * 4 if bottleneck else width
    plan = [(channels, width, 1, 1), (width, width, 3, stride), (width, out, 1, 1)]
    if not bottleneck:
        plan = [(channels, width, 3, stride), (width, width, 3, 1)]
    at = side
    for index, (before, after, kernel, step) in enumerate(plan):
        at = b.conv(batch, (before, after), at, kernel, step)
        b.batch_norm(batch, after, at * at)
        if index < len(plan) - 1:
            b.relu(batch * after * at * at, (batch, after, at, at))
    if stride > 1 or channels != out:
        b.conv(batch, (channels, out), side, 1, stride)
        b.batch_norm(batch, out, at * at)
    b.residual(batch * out * at * at)
    b.relu(batch * out * at * at, (batch, out, at, at))
    return out, at


def draw_transformer(draw: random.Random) -> dict:
    """A decoder such as GPT-2: drawn between a toy and GPT-2 medium."""
    heads = draw.choice((4, 8, 12, 16))
    return {
        "layers": draw.randint(2, 10),
        "heads": heads,
        "width": heads * draw.choice((32, 64)),
        "length": draw.choice((128, 256, 512)),
        "vocabulary": draw.choice((5000, 16384, 32000, 50257)),
        "flash": draw.random() < 0.5,
        "dropout": draw.random() < 0.6,
    }


def encoder_block(b: Builder, shape: dict, batch: int, length: int):
    """Pre-norm block: attention and a perceptron of four times the width, each with a residual."""
    width, heads, tokens = shape["width"], shape["heads"], batch * length
    b.layer_norm(tokens, width)
    b.linear(tokens, width, 3 * width)
    if shape["flash"]:
        b.flash(batch, heads, length, width // heads)
    else:
        b.eager_attention(batch, heads, length, width // heads)
    b.linear(tokens, width, width)
    if shape["dropout"]:
        b.dropout(tokens * width)
    b.residual(tokens * width, b.half)
    b.layer_norm(tokens, width)
    b.linear(tokens, width, 4 * width)
    b.gelu(tokens * 4 * width)
    b.linear(tokens, 4 * width, width)
    if shape["dropout"]:
        b.dropout(tokens * width)
    b.residual(tokens * width, b.half)


def build_transformer(b: Builder, shape: dict, batch: int) -> Model:
    """Embeddings, blocks, norm, the head over the vocabulary."""
    length, width = shape["length"], shape["width"]
    tokens = batch * length
    b.embedding(tokens, shape["vocabulary"], width)
    b.embedding(length, length, width)
    b.residual(tokens * width)
    for _ in range(shape["layers"]):
        encoder_block(b, shape, batch, length)
    b.layer_norm(tokens, width)
    b.linear(tokens, width, shape["vocabulary"], bias=False)
    b.cross_entropy(tokens, shape["vocabulary"])
    return b.model((batch, length), (batch, length), False)


def draw_vit(draw: random.Random) -> dict:
    """A vision transformer: drawn between tiny and base."""
    heads = draw.choice((3, 6, 12))
    return {
        "layers": draw.randint(3, 10),
        "heads": heads,
        "width": heads * 64,
        "side": draw.choice((112, 160, 224)),
        "classes": draw.choice((100, 1000)),
        "flash": draw.random() < 0.6,
        "dropout": draw.random() < 0.4,
    }


def build_vit(b: Builder, shape: dict, batch: int) -> Model:
    """Patches of 16 x 16, blocks, a classifier."""
    length = (shape["side"] // 16) ** 2 + 1
    width = shape["width"]
    b.conv(batch, (3, width), shape["side"], 16, 16, first=True)
    b.join(batch * length * width)
    b.residual(batch * length * width, b.half)
    for _ in range(shape["layers"]):
        encoder_block(b, shape, batch, length)
    b.layer_norm(batch, width)
    b.linear(batch, width, shape["classes"])
    b.cross_entropy(batch, shape["classes"])
    return b.model((batch, 3, shape["side"], shape["side"]), (batch,), True)


def draw_dlrm(draw: random.Random) -> dict:
    """A recommender: dense gradients for tables of moderate size."""
    return {
        "tables": draw.randint(6, 26),
        "rows": draw.choice((2000, 10000, 30000)),
        "width": draw.choice((16, 32, 64)),
        "bag": draw.choice((2, 4, 10)),
        "bottom": draw.randint(2, 4),
        "top": draw.randint(2, 5),
        "hidden": draw.choice((256, 512, 1024)),
        "dense": draw.choice((13, 200, 800)),
    }


def build_dlrm(b: Builder, shape: dict, batch: int) -> Model:
    """Bottom perceptron, embedding bags, pairwise interaction, top perceptron."""
    width, hidden = shape["width"], shape["hidden"]
    perceptron(b, batch, [shape["dense"], *[hidden] * shape["bottom"], width])
    for _ in range(shape["tables"]):
        b.embedding(batch, shape["rows"], width, shape["bag"])
    features = shape["tables"] + 1
    b.join(batch * features * width)
    b.bmm(batch, features, features, width)
    pairs = features * (features - 1) // 2
    b.join(batch * (pairs + width))
    perceptron(b, batch, [pairs + width, *[hidden] * shape["top"], 2])
    b.cross_entropy(batch, 2)
    return b.model((batch, shape["dense"] + shape["tables"] * shape["bag"]), (batch,), False)


def perceptron(b: Builder, batch: int, widths: list):
    """Linear layers with ReLU between them."""
    for index in range(len(widths) - 1):
        b.linear(batch, widths[index], widths[index + 1], first=not index)
        if index < len(widths) - 2:
            b.relu(batch * widths[index + 1], (batch, widths[index + 1]))


def draw_mlp(draw: random.Random) -> dict:
    """A perceptron over wide rows of features (tables, spectra)."""
    return {
        "features": draw.choice((512, 2048, 8192, 20000)),
        "layers": draw.randint(4, 20),
        "width": draw.choice((128, 256, 512, 1024, 2048)),
        "classes": draw.choice((2, 100, 1000)),
        "dropout": draw.random() < 0.5,
        "norm": draw.random() < 0.5,
    }


def build_mlp(b: Builder, shape: dict, batch: int) -> Model:
    """Linear, norm, activation and dropout, again and again."""
    width, before = shape["width"], shape["features"]
    for index in range(shape["layers"]):
        b.linear(batch, before, width, first=not index)
        if shape["norm"]:
            b.layer_norm(batch, width)
        b.gelu(batch * width)
        if shape["dropout"]:
            b.dropout(batch * width)
        before = width
    b.linear(batch, width, shape["classes"])
    b.cross_entropy(batch, shape["classes"])
    return b.model((batch, shape["features"]), (batch,), False)


def draw_unet(draw: random.Random) -> dict:
    """A U-Net for segmentation."""
    return {
        "width": draw.choice((16, 32, 48)),
        "depth": draw.randint(3, 4),
        "side": draw.choice((64, 128, 256)),
        "classes": draw.choice((2, 21)),
    }


def build_unet(b: Builder, shape: dict, batch: int) -> Model:
    """Convolutions in pairs down and up again, with skips."""
    side, channels = shape["side"], 3
    widths = [shape["width"] << level for level in range(shape["depth"] + 1)]
    for level, width in enumerate(widths):
        double_conv(b, batch, channels, width, side, first=not level)
        channels = width
        if level < shape["depth"]:
            b.resample("max_pool2d", batch * width * side * side, batch * width * side * side / 4)
            side //= 2
    for width in reversed(widths[:-1]):
        b.resample("upsample_bilinear2d", batch * channels * side * side, batch * channels * side * side * 4)
        side *= 2
        b.join(batch * (channels + width) * side * side)
        double_conv(b, batch, channels + width, width, side)
        channels = width
    b.conv(batch, (channels, shape["classes"]), side, 1)
    b.cross_entropy(batch * side * side, shape["classes"])
    return b.model((batch, 3, side, side), (batch, side, side), True)


def double_conv(b: Builder, batch: int, channels: int, width: int, side: int, first: bool = False):
    """Twice: convolution, norm, ReLU."""
    for index, before in enumerate((channels, width)):
        b.conv(batch, (before, width), side, 3, 1, first and not index)
        b.batch_norm(batch, width, side * side)
        b.relu(batch * width * side * side, (batch, width, side, side))


def draw_rnn(draw: random.Random) -> dict:
    """A hand-written recurrent cell, unrolled in Python."""
    return {
        "steps": draw.randint(12, 40),
        "width": draw.choice((128, 256, 512, 1024)),
        "vocabulary": draw.choice((1000, 10000)),
    }


def build_rnn(b: Builder, shape: dict, batch: int) -> Model:
    """Embedding, cells with gates out of elementwise operators, a head."""
    width, count = shape["width"], batch * shape["width"]
    b.embedding(batch * shape["steps"], shape["vocabulary"], width)
    for step in range(shape["steps"]):
        b.linear(batch, width, 4 * width, bias=not step)
        if step:  # the weight is the first step's: its gradients are summed there
            forward, backward, params = b.layers.pop()
            b.add(forward, backward)
            b.residual(batch * 4 * width)
        b.unary("aten::sigmoid", "sigmoid_kernel_cuda", 3 * count, "sigmoid_backward")
        b.unary("aten::tanh", "tanh_kernel_cuda", count, "tanh_backward")
        b.scale("mul", count)
        b.scale("mul", count)
        b.residual(count)
        b.unary("aten::tanh", "tanh_kernel_cuda", count, "tanh_backward")
        b.scale("mul", count)
    b.linear(batch, width, shape["vocabulary"])
    b.cross_entropy(batch, shape["vocabulary"])
    return b.model((batch, shape["steps"]), (batch,), False)


DRAW = {
    "cnn": draw_cnn,
    "transformer": draw_transformer,
    "vit": draw_vit,
    "dlrm": draw_dlrm,
    "mlp": draw_mlp,
    "unet": draw_unet,
    "rnn": draw_rnn,
}
BUILD = {
    "cnn": build_cnn,
    "transformer": build_transformer,
    "vit": build_vit,
    "dlrm": build_dlrm,
    "mlp": build_mlp,
    "unet": build_unet,
    "rnn": build_rnn,
}


def build(family: str, shape: dict, batch: int, hardware: Hardware, numerics: Numerics) -> Model:
    """A family's model at a batch size."""
    return BUILD[family](Builder(hardware, numerics), shape, batch)
