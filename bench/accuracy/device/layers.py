"""Layers as operators: each adds what it runs forward, and before what is there already, what it runs backward."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

from . import names
from .ops import Chain, Kernel, Op, OpCall, accumulate, backward_of, shapes
from .silicon import SIZE, Silicon


class Layers:
    """A model while it is written down. `precision` is fp32, tf32, amp-bf16, amp-fp16 or bf16; with `fp8`, those linear
    layers multiply in it whose dimensions are multiples of 16."""

    def __init__(self, silicon: Silicon, precision: str, fp8: bool = False) -> None:
        self.fp8 = fp8
        self.silicon, self.device, self.precision = silicon, silicon.device, precision
        self.forward: list[Op] = []
        self._backward: list[list[Op]] = []
        self._blocks: list[tuple[int, int]] = []  # begin of each, in `forward` and in `_backward`
        self.parameters: list[int] = []
        self.amp = precision.startswith("amp-")
        self.low = precision.split("-")[-1]  # of matrix products, and of what they write
        self.rest = "fp32" if self.amp or self.low in ("fp32", "tf32") else self.low  # of parameters and norms
        self.between = self.low if self.low != "tf32" else "fp32"  # of what flows from layer to layer
        tf32 = self.low == "fp32" and "tf32" in self.device.peak and self.device.vendor == "nvidia"
        self.conv_format = "tf32" if tf32 else self.low  # cuDNN may use TF32 by default, cuBLAS may not

    @property
    def backward(self) -> list[Op]:
        return [op for ops in reversed(self._backward) for op in ops]

    def block(self) -> None:
        """What follows may be computed again as one, up to the next block; after the last one, `block` ends it."""
        self._blocks.append((len(self.forward), len(self._backward)))

    def recomputing(self) -> list[Op]:
        """The backward pass under torch.utils.checkpoint: the first node of each block runs its forward pass again."""
        groups = [list(ops) for ops in self._backward]
        for (begin, _), (end, behind) in pairwise(self._blocks):
            again = tuple(replace(op, differentiated=True) for op in self.forward[begin:end])
            groups[behind - 1][0] = replace(groups[behind - 1][0], again=again)
        return [op for ops in reversed(groups) for op in ops]

    def _parameter(self, numel: int) -> Op:
        self.parameters.append(numel)
        return accumulate(numel)

    def _cast(self, numel: int) -> None:
        """Autocast converts a parameter for each forward pass, and its gradient in the backward pass."""
        if not self.amp:
            return
        kernel = self.silicon.pointwise("bfloat16_copy_kernel_cuda", numel, 6.0 * numel, self.low)
        call = OpCall("aten::copy_", (kernel,), shapes([[numel], [numel]], "fp32"))
        chain = Chain(numel, 4.0 * numel, 0, 2.0 * numel)
        self.forward.append(Op(("aten::to", "aten::_to_copy"), (call,), before_ns=2_000, chain=chain))
        self._backward.append([backward_of("ToCopyBackward0", (call,), chain=chain)])

    def linear(self, m: int, k: int, n: int, bias: bool = True) -> None:
        if self.fp8 and m % 16 == k % 16 == n % 16 == 0:
            self._scaled_linear(m, k, n)
            return
        dtype, gemm = self.low, self.silicon.gemm
        self._cast(k * n)
        name = "aten::addmm" if bias else "aten::mm"
        dims = [[n], [m, k], [k, n], [], []] if bias else [[m, k], [k, n]]
        call = OpCall(name, (gemm(m, n, k, dtype),), shapes(dims, dtype))
        self.forward.append(Op(("aten::linear",), (call,), shapes([[m, k], [n, k], [n]], dtype)))
        inward = OpCall("aten::mm", (gemm(m, k, n, dtype, layout="nn"),), shapes([[m, n], [n, k]], dtype))
        weight = OpCall("aten::mm", (gemm(n, k, m, dtype, layout="nt"),), shapes([[n, m], [m, k]], dtype))
        calls = [inward, weight]
        if bias:
            size = SIZE[dtype] * (m * n + n)
            total = self.silicon.memory_bound("reduction", names.reduction(self.between), size, m * n)
            calls.append(OpCall("aten::sum", (total,), shapes([[m, n], [], [], []], dtype)))
        ops = [backward_of("AddmmBackward0" if bias else "MmBackward0", tuple(calls))]
        ops.append(self._parameter(k * n))
        if bias:
            ops.append(self._parameter(n))
        self._backward.append(ops)

    def _scaled_linear(self, m: int, k: int, n: int) -> None:
        """Both operands are scaled and cast first; in the backward pass, so is the gradient."""

        def product(*sides: int) -> OpCall:
            rows, depth, columns = sides
            dims = [[rows, depth], [depth, columns], [1], [1], [], [], []]
            return OpCall("aten::_scaled_mm", (self.silicon.gemm(rows, columns, depth, "fp8"),), shapes(dims, "fp8"))

        self.forward += [*self._scaled(m * k), *self._scaled(k * n), Op((), (product(m, k, n),))]
        back = backward_of("matmul_with_hp_or_float8_argsBackward", (product(m, n, k), product(n, m, k)))
        self._backward.append([*self._scaled(m * n), back, self._parameter(k * n)])

    def _scaled(self, numel: int) -> list[Op]:
        """Searches a tensor for its largest element, scales it and casts it, an operator after the other."""
        e, of = SIZE[self.low], self.low

        def step(name: str, functor: str, size: float) -> OpCall:
            return OpCall(name, (self.silicon.pointwise(functor, numel, size, of),), shapes([[numel]], of))

        largest = self.silicon.memory_bound("reduction", names.largest(of), e * numel, numel)
        calls = (
            step("aten::abs", "AbsFunctor", 2 * e * numel),
            OpCall("aten::max", (largest,), shapes([[numel]], of)),
            step("aten::mul", "MulFunctor", 2 * e * numel),
            step("aten::clamp", "clamp_scalar_kernel_impl", 2 * e * numel),
            step("aten::copy_", "float8_copy_kernel_cuda", (e + 1) * numel),
        )
        return [Op((), (call,), before_ns=4_000) for call in calls]

    def conv(self, batch: int, c: int, side: int, out: int, r: int, stride: int = 1) -> int:
        """Returns the side of the result."""
        dtype = self.conv_format
        after = max(1, side // stride)
        pixels, depth = batch * after * after, c * r * r
        size = SIZE[dtype] * (batch * c * side * side + pixels * out + depth * out)
        self._cast(depth * out)
        dims = shapes([[batch, c, side, side], [out, c, r, r], [], [], [], [], [], [], []], self.between)
        kernel = self.silicon.conv(pixels, out, depth, dtype, "fprop", size)
        call = OpCall("aten::cudnn_convolution", (kernel,), dims)
        self.forward.append(Op(("aten::conv2d", "aten::convolution", "aten::_convolution"), (call,), dims))
        back = tuple(self.silicon.conv(pixels, out, depth, dtype, way, size) for way in ("dgrad", "wgrad"))
        dims = [[batch, out, after, after], [batch, c, side, side], [out, c, r, r], [], [], [], [], [], [], [], []]
        call = OpCall("aten::convolution_backward", back, shapes(dims, self.between))
        self._backward.append([backward_of("ConvolutionBackward0", (call,)), self._parameter(depth * out)])
        return after

    def pointwise(
        self,
        name: str,
        functor: str,
        numel: int,
        reads: int = 1,
        back: tuple[str, int] = ("", 0),
        before: float = 5_000,
    ) -> None:
        """One tensor of results; `back` is the functor of its backward pass and how many tensors that reads."""
        e = SIZE[self.between]
        kernel = self.silicon.pointwise(functor, numel, e * numel * (reads + 1), self.between)
        chain = Chain(numel, e * numel, e * numel * (reads - 1), e * numel)
        call = OpCall(name, (kernel,), shapes([[numel]] * reads, self.between))
        self.forward.append(Op((), (call,), before_ns=before, chain=chain))
        if back[0]:
            kernel = self.silicon.pointwise(back[0], numel, e * numel * (back[1] + 1), self.between)
            chain = Chain(numel, e * numel, e * numel * (back[1] - 1), e * numel)
            call = OpCall(f"{name}_backward", (kernel,), shapes([[numel]] * back[1], self.between))
            node = "".join(word.capitalize() for word in name.split("::")[-1].strip("_").split("_")) + "Backward0"
            self._backward.append([backward_of(node, (call,), chain=chain)])

    def relu(self, numel: int) -> None:
        self.pointwise("aten::relu_", "clamp_min_scalar_kernel_impl", numel, 1, ("threshold_kernel_impl", 2))

    def gelu(self, numel: int) -> None:
        self.pointwise("aten::gelu", "GeluCUDAKernelImpl", numel, 1, ("GeluBackwardCUDAKernelImpl", 2), 9_000)

    def silu(self, numel: int) -> None:
        self.pointwise("aten::silu", "silu_kernel", numel, 1, ("silu_backward_kernel", 2), 8_000)

    def dropout(self, numel: int) -> None:
        self.pointwise("aten::native_dropout", "fused_dropout_kernel_vec", numel, 1, ("MulFunctor", 2), 9_000)

    def add(self, numel: int) -> None:
        """A residual connection: backward, the two gradients that meet are added."""
        self.pointwise("aten::add", "CUDAFunctor_add", numel, 2, ("CUDAFunctor_add", 2))

    def batch_norm(self, batch: int, c: int, side: int) -> None:
        numel, e = batch * c * side * side, SIZE[self.between]
        dims = shapes([[batch, c, side, side], [c], [c], [c], [c]], self.between)
        forward = self._norm(names.batch_norm(self.device, self.between, False), 3 * e * numel)
        call = OpCall("aten::cudnn_batch_norm", (forward,), dims)
        self.forward.append(Op(("aten::batch_norm", "aten::_batch_norm_impl_index"), (call,), dims, before_ns=12_000))
        back = self._norm(names.batch_norm(self.device, self.between, True), 5 * e * numel)
        call = OpCall("aten::cudnn_batch_norm_backward", (back,), dims)
        ops = [backward_of("CudnnBatchNormBackward0", (call,)), self._parameter(c), self._parameter(c)]
        self._backward.append(ops)

    def _norm(self, name: str, size: float) -> Kernel:
        return self.silicon.memory_bound("norm", name, size)

    def layer_norm(self, rows: int, width: int) -> None:
        numel, e = rows * width, SIZE[self.rest]
        dims = shapes([[rows, width], [], [width], [width], []], self.rest)
        call = OpCall("aten::native_layer_norm", (self._norm(names.layer_norm(self.rest), 2 * e * numel),), dims)
        chain = Chain(numel, e * numel, 0, e * numel, ends=True)
        self.forward.append(Op(("aten::layer_norm",), (call,), dims, chain=chain))
        inward, weight = names.layer_norm_backward(self.rest)
        kernels = (self._norm(inward, 3 * e * numel), self._norm(weight, 2 * e * numel))
        call = OpCall("aten::native_layer_norm_backward", kernels, dims)
        ops = [backward_of("NativeLayerNormBackward0", (call,)), self._parameter(width), self._parameter(width)]
        self._backward.append(ops)

    def group_norm(self, batch: int, c: int, side: int) -> None:
        numel, e = batch * c * side * side, SIZE[self.rest]
        dims = shapes([[batch, c, side, side], [c], [c]], self.rest)
        apply = self.silicon.pointwise("group_norm_apply", numel, 2 * e * numel, self.rest)
        kernels = (self._norm(names.group_norm(self.rest, False), e * numel), apply)
        call = OpCall("aten::native_group_norm", kernels, dims)
        self.forward.append(Op(("aten::group_norm",), (call,), dims, before_ns=12_000))
        apply = self.silicon.pointwise("group_norm_backward_apply", numel, 3 * e * numel, self.rest)
        kernels = (self._norm(names.group_norm(self.rest, True), 2 * e * numel), apply)
        call = OpCall("aten::native_group_norm_backward", kernels, dims)
        ops = [backward_of("NativeGroupNormBackward0", (call,)), self._parameter(c), self._parameter(c)]
        self._backward.append(ops)

    def attention(self, batch: int, heads: int, seq: int, width: int, fused: bool = True) -> None:
        if not fused:
            self._plain_attention(batch, heads, seq, width)
            return
        shape = [batch, heads, seq, width]
        dtype = "fp32" if self.low == "tf32" else self.low
        short = "efficient" if dtype == "fp32" or self.device.capability < (8, 0) else "flash"
        kernel = self.silicon.attention(*shape, dtype, False)
        call = OpCall(f"aten::_scaled_dot_product_{short}_attention", (kernel,), shapes([shape] * 3, dtype))
        names_ = ("aten::scaled_dot_product_attention",)
        self.forward.append(Op(names_, (call,), shapes([shape] * 3, dtype), before_ns=14_000, enter_ns=9_000))
        kernel = self.silicon.attention(*shape, dtype, True)
        back = OpCall(f"{call.name}_backward", (kernel,), shapes([shape] * 5, dtype))
        self._backward.append([backward_of("ScaledDotProductAttentionBackward0", (back,))])

    def _plain_attention(self, batch: int, heads: int, seq: int, width: int) -> None:
        """softmax(q k) v in pieces: the seq x seq matrix goes through memory several times."""
        b, dtype, e = batch * heads, self.low, SIZE[self.between]
        squares = b * seq * seq

        def product(m: int, n: int, k: int) -> OpCall:
            kernel = self.silicon.gemm(m, n, k, dtype, batch=b)
            return OpCall("aten::bmm", (kernel,), shapes([[b, m, k], [b, k, n]], dtype))

        def softmax(back: bool) -> OpCall:
            name = f"aten::_softmax{'_backward_data' if back else ''}"
            kernel = self._norm(names.softmax(self.between, back), (3 if back else 2) * e * squares)
            return OpCall(name, (kernel,), shapes([[batch, heads, seq, seq], [], []], self.between))

        self.forward.append(Op(("aten::matmul",), (product(seq, seq, width),)))
        calls = (product(seq, width, seq), product(width, seq, seq))
        self._backward.append([backward_of("BmmBackward0", calls)])
        self.pointwise("aten::div", "DivFunctor", squares, 1, ("MulFunctor", 1))
        chain = Chain(squares, e * squares, 0, e * squares, ends=True)
        self.forward.append(Op(("aten::softmax",), (softmax(False),), chain=chain))
        self._backward.append([backward_of("SoftmaxBackward0", (softmax(True),), chain=chain)])
        self.forward.append(Op(("aten::matmul",), (product(seq, width, seq),)))
        calls = (product(seq, seq, width), product(seq, width, seq))
        self._backward.append([backward_of("BmmBackward0", calls)])

    def embedding(self, rows: int, width: int, lookups: int, sparse: bool = False) -> None:
        e = SIZE[self.rest]
        size = 8 * lookups + 2.0 * e * lookups * width
        kernel = self.silicon.memory_bound("embedding", names.embedding(self.rest, False), size, reach=0.7)
        call = OpCall("aten::index_select", (kernel,), shapes([[rows, width], [], [lookups]], self.rest))
        self.forward.append(Op(("aten::embedding",), (call,), shapes([[rows, width], [lookups]], self.rest)))
        gathered = self.silicon.memory_bound("embedding", names.embedding(self.rest, True), size, reach=0.5)
        kernels = [gathered]
        if not sparse:
            zeroed = self.silicon.pointwise("FillFunctor", rows * width, e * rows * width, self.rest)
            kernels.insert(0, zeroed)
        dims = shapes([[lookups, width], [lookups]], self.rest)
        call = OpCall("aten::embedding_dense_backward", tuple(kernels), dims)
        touched = min(lookups, rows) if sparse else rows
        self._backward.append([backward_of("EmbeddingBackward0", (call,)), self._parameter(touched * width)])

    def loss(self, rows: int, classes: int, upcast: bool = False) -> None:
        """Cross entropy; `upcast` converts the logits to float32 first, as language models do."""
        numel = rows * classes
        if upcast and SIZE[self.between] == 2:
            chain = Chain(numel, 2.0 * numel, 0, 4.0 * numel)
            kernel = self.silicon.pointwise("bfloat16_copy_kernel_cuda", numel, 6.0 * numel, "fp32")
            call = OpCall("aten::copy_", (kernel,), shapes([[rows, classes]], "fp32"))
            self.forward.append(Op(("aten::to", "aten::_to_copy"), (call,), chain=chain))
            self._backward.append([backward_of("ToCopyBackward0", (call,), chain=chain)])
        of = "fp32"  # autocast and most models compute losses in it
        dims = shapes([[rows, classes], [], []], of)
        chain = Chain(numel, 4.0 * numel, 0, 4.0 * numel, ends=True)
        call = OpCall("aten::_log_softmax", (self._norm(names.softmax(of, False), 8.0 * numel),), dims)
        self.forward.append(Op(("aten::cross_entropy_loss", "aten::log_softmax"), (call,), chain=chain))
        small = self.silicon.memory_bound("reduction", names.reduction(of), 8.0 * rows)
        call = OpCall("aten::nll_loss_forward", (small,), shapes([[rows, classes], [rows]], of))
        self.forward.append(Op(("aten::nll_loss_nd", "aten::nll_loss"), (call,)))
        zeroed = self.silicon.pointwise("FillFunctor", numel, 4.0 * numel, of)
        call = OpCall("aten::nll_loss_backward", (zeroed, small), shapes([[rows, classes]], of))
        ops = [backward_of("NllLossBackward0", (call,))]
        kernel = self._norm(names.softmax(of, True), 12.0 * numel)
        call = OpCall("aten::_log_softmax_backward_data", (kernel,), dims)
        ops.append(backward_of("LogSoftmaxBackward0", (call,), chain=chain))
        self._backward.append(ops)
