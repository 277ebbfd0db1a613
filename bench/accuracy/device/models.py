"""The model families: what a step of each computes, from a few sizes.

Each function writes a model into Layers; sizes are those that people train with.
"""

from __future__ import annotations

import random
from dataclasses import dataclass, field

from .layers import Layers

FAMILIES = ("convnet", "transformer", "recommender", "mlp", "diffusion")


@dataclass(frozen=True)
class Shape:
    """The sizes of a model; the batch is a setting of the program."""

    family: str
    sizes: dict[str, int] = field(default_factory=dict, hash=False)
    fused_attention: bool = True
    by_hand: bool = False  # activations and norms written out in elementary operations


def draw_shape(family: str, rng: random.Random, size: str) -> Shape:
    """`size`: small, medium or large."""
    grade = {"small": 0, "medium": 1, "large": 2}[size]

    def of(*choices: tuple[int, ...]) -> int:
        return rng.choice(choices[grade])

    if family == "convnet":
        sizes = {
            "blocks": of((2, 3), (3, 4, 5), (5, 6)),
            "width": of((32, 48), (64,), (64, 80)),
            "side": of((32, 64), (128, 160, 224), (224, 256)),
            "classes": of((10, 100), (1000,), (1000,)),
        }
    elif family == "transformer":
        sizes = {
            "layers": of((2, 4), (6, 8), (8, 12)),
            "width": of((256, 384), (512, 768), (1024, 2048)),
            "seq": of((64, 128), (256, 512), (512, 1024)),
            "vocabulary": of((8192,), (32000,), (32000, 50304)),
        }
    elif family == "recommender":
        sizes = {
            "tables": of((6, 8), (12, 16), (20, 26)),
            "width": of((32, 64), (64, 128), (128,)),
            "dense": of((13, 32), (64, 128), (256, 512)),
            "hidden": of((128, 256), (512, 1024), (1024, 2048)),
            "pooling": of((1, 2), (4, 8), (8, 16)),
        }
    elif family == "mlp":
        sizes = {
            "layers": of((3, 4), (5, 6), (6, 8)),
            "width": of((128, 256, 512), (1024, 2048), (4096,)),
            "features": of((64, 256), (512, 2048), (4096, 8192)),
        }
    else:
        sizes = {
            "blocks": of((1, 2), (2, 3), (3, 4)),
            "width": of((64, 96), (128, 192), (256, 320)),
            "side": of((16, 32), (32,), (32, 64)),
        }
    return Shape(family, sizes, by_hand=False)


def input_bytes(shape: Shape, batch: int) -> int:
    """Of a batch as it comes from the loader: floats for pictures and features, 64-bit numbers for tokens."""
    s = shape.sizes
    if shape.family == "convnet":
        return batch * (3 * s["side"] ** 2 * 4 + 8)
    if shape.family == "transformer":
        return batch * s["seq"] * 16
    if shape.family == "recommender":
        return batch * (s["tables"] * s["pooling"] * 8 + s["dense"] * 4 + 4)
    if shape.family == "mlp":
        return batch * (s["features"] * 4 + 8)
    return batch * (4 * s["side"] ** 2 * 4 + 77 * 768 * 4)


def write(shape: Shape, batch: int, layers: Layers) -> None:
    WRITERS[shape.family](shape, batch, layers)


def _convnet(shape: Shape, batch: int, layers: Layers) -> None:
    """Residual blocks of two convolutions in four stages, each with half the side of the one before."""
    s = shape.sizes
    c, side = s["width"], s["side"]
    side = layers.conv(batch, 3, side, c, 7, 2)
    _conv_tail(layers, batch, c, side)
    for stage in range(4):
        out = s["width"] << stage
        for block in range(s["blocks"]):
            stride = 2 if block == 0 and stage > 0 else 1
            layers.block()
            after = layers.conv(batch, c, side, out, 3, stride)
            _conv_tail(layers, batch, out, after)
            layers.conv(batch, out, after, out, 3)
            layers.batch_norm(batch, out, after)
            layers.add(batch * out * after * after)
            layers.relu(batch * out * after * after)
            c, side = out, after
    layers.block()
    layers.pointwise("aten::mean", "MeanOps", batch * c * side * side, 1, ("MulFunctor", 1))
    layers.linear(batch, c, s["classes"])
    layers.loss(batch, s["classes"])


def _conv_tail(layers: Layers, batch: int, c: int, side: int) -> None:
    layers.batch_norm(batch, c, side)
    layers.relu(batch * c * side * side)


def _transformer(shape: Shape, batch: int, layers: Layers) -> None:
    s = shape.sizes
    rows, d = batch * s["seq"], s["width"]
    layers.embedding(s["vocabulary"], d, rows)
    layers.embedding(s["seq"], d, rows)
    layers.add(rows * d)
    for _ in range(s["layers"]):
        layers.block()
        _norm(shape, layers, rows, d)
        layers.linear(rows, d, 3 * d)
        layers.attention(batch, max(1, d // 64), s["seq"], 64, shape.fused_attention)
        layers.linear(rows, d, d)
        layers.dropout(rows * d)
        layers.add(rows * d)
        _norm(shape, layers, rows, d)
        layers.linear(rows, d, 4 * d)
        _activation(shape, layers, rows * 4 * d)
        layers.linear(rows, 4 * d, d)
        layers.dropout(rows * d)
        layers.add(rows * d)
    layers.block()
    layers.layer_norm(rows, d)
    layers.linear(rows, d, s["vocabulary"], bias=False)
    layers.loss(rows, s["vocabulary"], upcast=True)


def _norm(shape: Shape, layers: Layers, rows: int, d: int) -> None:
    layers.layer_norm(rows, d)
    if shape.by_hand:  # a scale and a rotary-like mix, written out
        layers.pointwise("aten::mul", "MulFunctor", rows * d, 1, ("MulFunctor", 2))
        layers.pointwise("aten::add", "CUDAFunctor_add", rows * d, 1, ("CUDAFunctor_add", 1))
        layers.pointwise("aten::mul", "MulFunctor", rows * d, 2, ("MulFunctor", 2))


def _activation(shape: Shape, layers: Layers, numel: int) -> None:
    """GELU; by hand: 0.5 * x * (1 + tanh(c * (x + 0.044715 * x^3))), one kernel for each operation."""
    if not shape.by_hand:
        layers.gelu(numel)
        return
    for name, functor, reads, back in (
        ("aten::pow", "pow_tensor_scalar_kernel_impl", 1, 2),
        ("aten::mul", "MulFunctor", 1, 1),
        ("aten::add", "CUDAFunctor_add", 2, 1),
        ("aten::mul", "MulFunctor", 1, 1),
        ("aten::tanh", "tanh_kernel_cuda", 1, 2),
        ("aten::add", "CUDAFunctorOnSelf_add", 1, 1),
        ("aten::mul", "MulFunctor", 2, 2),
        ("aten::mul", "MulFunctor", 1, 1),
    ):
        layers.pointwise(name, functor, numel, reads, (functor, back))


def _recommender(shape: Shape, batch: int, layers: Layers) -> None:
    s = shape.sizes
    for _ in range(s["tables"]):
        layers.embedding(1_000_000, s["width"], batch * s["pooling"], sparse=True)
    _dense(layers, batch, (s["dense"], s["hidden"], s["hidden"] // 2, s["width"]))
    features = s["tables"] + 1
    layers.pointwise("aten::cat", "CatArrayBatchedCopy", batch * features * s["width"], 1, ("CUDAFunctor_add", 1))
    _dense(layers, batch, (features * s["width"], s["hidden"], s["hidden"] // 2, 256))
    layers.linear(batch, 256, 1)
    layers.loss(batch, 2)


def _dense(layers: Layers, batch: int, widths: tuple[int, ...]) -> None:
    for k, n in zip(widths, widths[1:]):
        layers.linear(batch, k, n)
        layers.relu(batch * n)


def _mlp(shape: Shape, batch: int, layers: Layers) -> None:
    s = shape.sizes
    _dense(layers, batch, (s["features"], *[s["width"]] * s["layers"]))
    layers.linear(batch, s["width"], 16)
    layers.loss(batch, 16)


def _diffusion(shape: Shape, batch: int, layers: Layers) -> None:
    """A U-Net over latents: residual blocks with a time embedding, attention where the picture is small."""
    s = shape.sizes
    d = s["width"]
    layers.linear(batch, d, 4 * d)
    layers.silu(batch * 4 * d)
    side = layers.conv(batch, 4, s["side"], d, 3)
    c = d
    for stage in range(3):
        out = d * (1, 2, 4)[stage]
        for _ in range(s["blocks"]):
            _residual(layers, batch, c, out, side, d)
            c = out
            if stage > 0:
                _spatial_attention(shape, layers, batch, c, side)
        side = layers.conv(batch, c, side, c, 3, 2) if stage < 2 else side
    for stage in (1, 0):
        out, side = d * (1, 2, 4)[stage], side * 2
        for _ in range(s["blocks"]):
            _residual(layers, batch, c, out, side, d)
            c = out
    layers.conv(batch, c, side, 4, 3)
    layers.pointwise("aten::mse_loss", "mse_kernel", batch * 4 * side * side, 2, ("mse_backward", 2))


def _residual(layers: Layers, batch: int, c: int, out: int, side: int, embedding: int) -> None:
    numel = batch * out * side * side
    layers.group_norm(batch, c, side)
    layers.silu(batch * c * side * side)
    layers.conv(batch, c, side, out, 3)
    layers.linear(batch, 4 * embedding, out)
    layers.add(numel)
    layers.group_norm(batch, out, side)
    layers.silu(numel)
    layers.conv(batch, out, side, out, 3)
    layers.add(numel)


def _spatial_attention(shape: Shape, layers: Layers, batch: int, c: int, side: int) -> None:
    rows = batch * side * side
    layers.layer_norm(rows, c)
    layers.linear(rows, c, 3 * c)
    layers.attention(batch, max(1, c // 64), side * side, 64, shape.fused_attention)
    layers.linear(rows, c, c)
    layers.add(rows * c)


WRITERS = {
    "convnet": _convnet,
    "transformer": _transformer,
    "recommender": _recommender,
    "mlp": _mlp,
    "diffusion": _diffusion,
}
