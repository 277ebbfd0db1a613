"""Layers: the operators and kernels of their forward and backward passes, in fp32 or under autocast."""

from dataclasses import dataclass, replace
from math import prod

from second.devices import Hardware
from second.kernels import Kernel, conv, gemm, pointwise, reduction
from second.ops import MODULE_NS, PYTHON_NS, Call, Model, Op, Param, node

CAST = "bfloat16_copy_kernel_cuda(at::TensorIteratorBase&)::{lambda(float)#1}"


@dataclass(frozen=True)
class Numerics:
    """How a program computes: autocast ('' or the 16-bit type), and TF32 for products and convolutions."""

    autocast: str = ""  # "", "c10::Half", "c10::BFloat16"
    tf32_matmul: bool = False  # off by default since PyTorch 1.12
    tf32_conv: bool = True  # torch.backends.cudnn.allow_tf32 is on by default
    channels_last: bool = False  # else cuDNN's 16-bit convolutions turn their tensors around


class Builder:
    """Collects the layers of a model; backward operators are put in reverse order at the end."""

    def __init__(self, hardware: Hardware, numerics: Numerics):
        self.machine = hardware.spec
        self.numerics = numerics
        self.layers = []  # (forward, backward, params)
        self.buffers = []  # running statistics
        self.half = bool(numerics.autocast)
        self.size = 4  # bytes of an element of the current activation
        tf32 = self.machine.tf32 > 0 and self.machine.arch != "cdna"
        self.matmul_math = "half" if self.half else "tf32" if numerics.tf32_matmul and tf32 else "fp32"
        self.conv_math = "half" if self.half else "tf32" if numerics.tf32_conv and tf32 else "fp32"

    @property
    def dtype(self) -> str:
        """Type name of the current activation."""
        return self.numerics.autocast if self.size == 2 else "float"

    def add(self, forward: list, backward: list, params: tuple = ()):
        """One layer."""
        self.layers.append((forward, backward, params))

    def model(self, input_shape: tuple, target_shape: tuple, image: bool) -> Model:
        """The whole model."""
        forward = [op for layer in self.layers for op in layer[0]]
        backward = []
        for _, ops, params in reversed(self.layers):
            backward += ops
            backward += reversed(params)
        params = [param for layer in self.layers for param in layer[2]]
        sequence = {}
        for number, (ahead, behind, _) in enumerate(self.layers):
            sequence.update((op, number) for op in [*ahead[-1:], *(op for op in behind if op.names)])
        return Model(forward, backward, params, input_shape, target_shape, image, sequence, self.buffers)

    def library(self, name: str) -> str:
        """An operator of cuDNN, or of MIOpen."""
        return f"aten::{'miopen' if self.machine.arch == 'cdna' else 'cudnn'}_{name}"

    # Casts of autocast

    def cast(self, count: float, back: bool = False) -> Op:
        """A cast to 16 bit, or of a gradient back to 32 bit."""
        kernel = pointwise(CAST, count * (2 if back else 4), count * (4 if back else 2), self.numerics.autocast)
        call = Call("aten::copy_", (kernel,), ((int(count),), (int(count),), ()))
        if back:
            return node("ToCopyBackward0", (Call("aten::_to_copy"), call), "float")
        return Op(("aten::to", "aten::_to_copy"), (call,), 0.0, "", self.numerics.autocast)

    def casts(self, inputs: float, params: list) -> tuple:
        """Casts before a product under autocast, and those of the gradients after it."""
        if not self.half:
            return [], []
        forward = [self.cast(inputs)] if self.size == 4 else []
        forward += [self.cast(param.count) for param in params]
        backward = [self.cast(param.count, back=True) for param in params]
        backward += [self.cast(inputs, back=True)] if self.size == 4 else []
        self.size = 2
        return forward, backward

    # Products

    def product(self, name: str, rows: int, columns: int, depth: int, layout: str = "nn", batch: int = 0) -> Call:
        """A matrix product as ATen calls it: (rows x depth) by (depth x columns)."""
        kernel = gemm(self.machine, rows, columns, depth, self.size, self.matmul_math, max(batch, 1), layout)
        lead = (batch,) if batch else ()
        return Call(name, (kernel,), ((*lead, rows, depth), (*lead, depth, columns)))

    def linear(self, tokens: int, fan_in: int, fan_out: int, bias: bool = True, first: bool = False):
        """nn.Linear: addmm; backward: a product for the input, one for the weight, and the bias's sum."""
        weight = Param((fan_out, fan_in), fan_out * fan_in, "weight")
        params = [weight] + ([Param((fan_out,), fan_out, "bias")] if bias else [])
        cast, uncast = self.casts(tokens * fan_in, params)
        call = self.product("aten::addmm" if bias else "aten::mm", tokens, fan_out, fan_in, "tn")
        shapes = ((fan_out,), *call.shapes, (), ()) if bias else call.shapes
        call = replace(call, shapes=shapes, views=("aten::t",), viewed=weight.shape)
        calls = [] if first else [self.product("aten::mm", tokens, fan_in, fan_out)]
        calls.append(self.product("aten::mm", fan_out, fan_in, tokens, "nt"))
        if bias:
            total = tokens * fan_out * self.size
            kernel = reduction(reduce_name(self.dtype), total, fan_out * self.size, fan_out // 32)
            calls.append(Call("aten::sum", (kernel,), ((tokens, fan_out), (), (), ())))
        forward = [*cast, Op(("aten::linear",), (call,), MODULE_NS, "Linear", self.dtype)]
        behind = node("AddmmBackward0" if bias else "MmBackward0", tuple(calls), self.dtype)
        self.add(forward, [behind, *uncast], params)

    def bmm(self, batch: int, rows: int, columns: int, depth: int):
        """A batched product of activations."""
        call = self.product("aten::bmm", rows, columns, depth, batch=batch)
        left = self.product("aten::bmm", rows, depth, columns, "nt", batch)
        right = self.product("aten::bmm", depth, columns, rows, "tn", batch)
        forward = [Op(("aten::matmul",), (call,), PYTHON_NS, "", self.dtype)]
        self.add(forward, [node("BmmBackward0", (left, right), self.dtype)])

    def conv(self, images: int, channels: tuple, side: int, kernel: int, stride: int = 1, first: bool = False) -> int:
        """nn.Conv2d without bias; returns the side of its output."""
        fan_in, fan_out = channels
        out = max(1, side // stride)
        weight = Param((fan_out, fan_in, kernel, kernel), fan_out * fan_in * kernel * kernel, "weight")
        cast, uncast = self.casts(images * fan_in * side * side, [weight])
        x, y = (images, fan_in, side, side), (images, fan_out, out, out)
        ahead, behind = self.conv_kernels(x, y, weight, stride, first)
        call = Call(self.library("convolution"), ahead, (x, weight.shape, (), (), (), (), (), (), ()))
        wrappers = ("aten::conv2d", "aten::convolution", "aten::_convolution")
        forward = [*cast, Op(wrappers, (call,), MODULE_NS, "Conv2d", self.dtype)]
        back = Call("aten::convolution_backward", behind, (y, x, weight.shape))
        self.add(forward, [node("ConvolutionBackward0", (back,), self.dtype), *uncast], (weight,))
        return out

    def conv_kernels(self, x: tuple, y: tuple, weight: Param, stride: int, first: bool) -> tuple:
        """(forward, backward) kernels of a convolution from x to y."""
        machine, math, area = self.machine, self.conv_math, weight.shape[2] * weight.shape[3]
        before, after, size = prod(x) * self.size, prod(y) * self.size, weight.count * self.size
        inputs, outputs, fan_in, fan_out = x[0] * x[2] * x[3], y[0] * y[2] * y[3], x[1], y[1]
        ahead = [conv(machine, "fprop", outputs, fan_in * area, fan_out, (before + size, after), math)]
        behind = [conv(machine, "wgrad", fan_in * area, outputs, fan_out, (before + after, size), math)]
        if not first:
            depth = max(1, fan_out * area // stride**2)
            behind.insert(0, conv(machine, "dgrad", inputs, depth, fan_in, (after + size, before), math))
        if self.half and not self.numerics.channels_last:
            ahead = [turn(before), *ahead, turn(after)]
            behind = [turn(after), *behind, turn(before)]
        return tuple(ahead), tuple(behind)

    # Normalizations

    def batch_norm(self, images: int, channels: int, area: int):
        """nn.BatchNorm: two passes forward (statistics, then normalizing), three backward."""
        total = images * channels * area * self.size
        shapes = (
            (images, channels, int(area**0.5), int(area**0.5)),
            (channels,),
            (channels,),
            (channels,),
            (channels,),
        )
        amd = self.machine.arch == "cdna"
        name = "MIOpenBatchNormFwdTrainSpatial" if amd else "void cudnn::bn_fw_tr_1C11_kernel_NCHW<float, float, 512>"
        ahead = Call(self.library("batch_norm"), (reduction(name, 1.6 * total, total, channels * 4, "norm"),), shapes)
        name = "MIOpenBatchNormBwdSpatial" if amd else "void cudnn::bn_bw_1C11_kernel_new<float, float, float2, 512>"
        back = Call(
            "aten::cudnn_batch_norm_backward", (reduction(name, 3.0 * total, total, channels * 4, "norm"),), shapes
        )
        # num_batches_tracked += 1: a kernel of one thread (seen in shared/traces/resnet50)
        counter = Op(
            (), (Call("aten::add_", (pointwise("BUnaryFunctor<at::native::AddFunctor<long> >", 8, 8),)),), 1500
        )
        wrappers = ("aten::batch_norm", "aten::_batch_norm_impl_index")
        forward = [counter, Op(wrappers, (ahead,), MODULE_NS, "BatchNorm2d", self.dtype)]
        params = (Param((channels,), channels, "weight"), Param((channels,), channels, "bias"))
        self.buffers += [Param((channels,), channels, "running_mean"), Param((channels,), channels, "running_var")]
        self.add(forward, [node(f"{'Miopen' if amd else 'Cudnn'}BatchNormBackward0", (back,), self.dtype)], params)

    def layer_norm(self, tokens: int, width: int):
        """nn.LayerNorm: autocast runs it in 32 bit, so its output is 32 bit."""
        if self.half:
            self.size = 4
        total = tokens * width * self.size
        prefix = "void at::native::(anonymous namespace)::"
        name = f"{prefix}vectorized_layer_norm_kernel<float, float>(int, float, float const*, float const*)"
        ahead = Call("aten::native_layer_norm", (reduction(name, total, total, tokens, "norm"),), ((tokens, width), ()))
        grad = reduction(
            f"{prefix}layer_norm_grad_input_kernel_vectorized<float, float>", 2 * total, total, tokens, "norm"
        )
        name = f"{prefix}GammaBetaBackwardCUDAKernelTemplate<float, float, 64u, 1u, 32u, true, true, false>"
        weights = reduction(name, 2 * total, 8 * width, width // 32, "norm")
        back = Call("aten::native_layer_norm_backward", (grad, weights), ((tokens, width), (tokens, width)))
        params = (Param((width,), width, "weight"), Param((width,), width, "bias"))
        forward = [Op(("aten::layer_norm",), (ahead,), MODULE_NS, "LayerNorm")]
        self.add(forward, [node("NativeLayerNormBackward0", (back,))], params)

    def softmax(self, rows: int, width: int):
        """Softmax over the last dimension; autocast runs it in 32 bit."""
        if self.half:
            self.size = 4
        total = rows * width * self.size
        name = "void (anonymous namespace)::softmax_warp_forward<float, float, float, 10, false, false>(float*)"
        ahead = Call("aten::_softmax", (reduction(name, total, total, rows // 4, "norm"),), ((rows, width), (), ()))
        name = name.replace("forward", "backward")
        back = Call(
            "aten::_softmax_backward_data",
            (reduction(name, 2 * total, total, rows // 4, "norm"),),
            ((rows, width),) * 2,
        )
        self.add([Op(("aten::softmax",), (ahead,))], [node("SoftmaxBackward0", (back,))])

    # Pointwise

    def unary(self, name: str, functor: str, count: float, back: str, saved: int = 1, shape: tuple = ()):
        """An elementwise function of one tensor: backward reads the gradient and what was saved."""
        total, dtype, shapes = count * self.size, self.dtype, (shape or (int(count),),)
        ahead = Call(name, (pointwise(functor, total, total, dtype),), shapes)
        kernel = pointwise(f"{back}_kernel_cuda(at::TensorIteratorBase&)", total * (1 + saved), total, dtype, 3)
        grad = "".join(part.title() for part in name.split("::")[1].strip("_").split("_")) + "Backward0"
        behind = Call(f"aten::{back}", (kernel,), shapes * 2)
        self.add([Op((), (ahead,), MODULE_NS, grad[:-9], dtype)], [node(grad, (behind,), dtype)])

    def relu(self, count: float, shape: tuple = ()):
        """nn.ReLU."""
        self.unary(
            "aten::relu_", "(anonymous namespace)::clamp_min_scalar_kernel_impl", count, "threshold_backward", 1, shape
        )

    def gelu(self, count: float):
        """nn.GELU."""
        self.unary(
            "aten::gelu", "GeluCUDAKernelImpl(at::TensorIteratorBase&, at::native::GeluType)", count, "gelu_backward"
        )

    def dropout(self, count: float):
        """nn.Dropout in training: the output and a mask of one byte each."""
        total, dtype = count * self.size, self.dtype
        name = (
            "void at::native::(anonymous namespace)::fused_dropout_kernel_vec<float, float, unsigned int, 1, 4, bool>"
        )
        kernel = Kernel(name, "pointwise", 0.0, total, total + count, max(1, int(count / 1024)), 256)
        ahead = Op(("aten::dropout",), (Call("aten::native_dropout", (kernel,), ((int(count),), (), ())),), MODULE_NS)
        kernel = pointwise("masked_scale_kernel", total + count, total, dtype, 3)
        self.add(
            [ahead],
            [
                node(
                    "NativeDropoutBackward0",
                    (Call("aten::native_dropout_backward", (kernel,), ((int(count),),) * 2),),
                    dtype,
                )
            ],
        )

    def residual(self, count: float, wide: bool = False):
        """x + f(x): backward has no kernel but the sum of both gradients; wide: x is 32 bit under autocast."""
        if wide:
            self.size = 4
        total, dtype = count * self.size, self.dtype
        kernel = pointwise(f"CUDAFunctor_add<{dtype}>", 2 * total, total, dtype, 3)
        sums = pointwise(f"CUDAFunctor_add<{dtype}>", 2 * total, total, dtype, 3)
        shapes = ((int(count),), (int(count),), ())
        forward = [Op((), (Call("aten::add", (kernel,), shapes),), PYTHON_NS, "", dtype)]
        back = node("AddBackward0", (), dtype)
        self.add(forward, [back, Op((), (Call("aten::add", (sums,), shapes),), 1000.0, "", dtype)])

    def scale(self, name: str, count: float, python: float = PYTHON_NS):
        """A product or a masked fill, elementwise."""
        total, dtype = count * self.size, self.dtype
        functor = f"BinaryFunctor<{dtype}, {dtype}, {dtype}, at::native::binary_internal::MulFunctor<{dtype}> >"
        ahead = Call(
            f"aten::{name}", (pointwise(functor, 1.5 * total, total, dtype, 3),), ((int(count),), (int(count),))
        )
        back = Call("aten::mul", (pointwise(functor, 1.5 * total, total, dtype, 3),), ((int(count),), (int(count),)))
        self.add([Op((), (ahead,), python, "", dtype)], [node(f"{name.title()}Backward0", (back,), dtype)])

    def join(self, count: float):
        """torch.cat of two tensors; backward is two narrowing copies."""
        total, dtype = count * self.size, self.dtype
        name = "void at::native::(anonymous namespace)::CatArrayBatchedCopy<float, unsigned int, 4, 64, 64>"
        kernel = Kernel(name, "pointwise", 0.0, total, total, max(1, int(count / 2048)), 512)
        copies = tuple(pointwise("direct_copy_kernel_cuda", total / 2, total / 2, dtype) for _ in range(2))
        back = tuple(Call("aten::copy_", (copy,), ((int(count / 2),),) * 2) for copy in copies)
        self.add([Op((), (Call("aten::cat", (kernel,)),), PYTHON_NS, "", dtype)], [node("CatBackward0", back, dtype)])

    def resample(self, name: str, count_in: float, count_out: float):
        """Pooling or upsampling: reads one side, writes the other."""
        before, after, dtype = count_in * self.size, count_out * self.size, self.dtype
        blocks = max(1, int(max(count_in, count_out) / 512))
        prefix = "void at::native::(anonymous namespace)::"
        ahead = Kernel(f"{prefix}{name}_forward_nchw<float, float>", "reduce", 0.0, before, after, blocks, 256)
        behind = Kernel(f"{prefix}{name}_backward_nchw<float, float>", "reduce", 0.0, after * 2, before, blocks, 256)
        back = node(
            f"{name.title().replace('_', '')}Backward0",
            (Call(f"aten::{name}_backward", (behind,), ((int(count_out),), (int(count_in),))),),
            dtype,
        )
        self.add([Op((), (Call(f"aten::{name}", (ahead,), ((int(count_in),),)),), MODULE_NS, "Pool", dtype)], [back])

    # Attention, embeddings, losses

    def flash(self, batch: int, heads: int, length: int, width: int):
        """scaled_dot_product_attention with one kernel: causal, so half of the products."""
        flops = 2.0 * batch * heads * length * length * width  # 4 L^2 d, half of it masked
        total = batch * heads * length * width * self.size
        math, blocks = ("half" if self.half else "fp32"), max(1, length // 128) * batch * heads
        kind, ahead, behind = self.attention_names()
        ahead = Kernel(ahead, "attention", flops, 3 * total, total, blocks, 128, math)
        behind = Kernel(behind, "attention", 2.5 * flops, 6 * total, 3 * total, blocks, 256, math)
        shapes = ((batch, heads, length, width),) * 3
        views = ("aten::empty_like", "aten::empty")
        call = Call(f"aten::_{kind}_attention_forward", (ahead,), shapes, views, viewed=shapes[0])
        wrappers = ("aten::scaled_dot_product_attention", f"aten::_scaled_dot_product_{kind}_attention")
        back = Call(f"aten::_{kind}_attention_backward", (behind,), shapes)
        grad = node(f"ScaledDotProduct{kind.title()}AttentionBackward0", (back,), self.dtype)
        self.add([Op(wrappers, (call,), PYTHON_NS, "", self.dtype)], [grad])

    def attention_names(self) -> tuple:
        """(kind, forward kernel, backward kernel): flash needs 16 bit and an Ampere; ROCm's come from AOTriton."""
        if self.machine.arch == "cdna":
            return "flash", "attn_fwd.kd", "bwd_kernel_dk_dv.kd"
        if not self.half or self.machine.arch == "volta":
            suffix = f"{'f16' if self.half else 'f32'}_aligned_64x64"
            return "efficient", f"fmha_cutlassF_{suffix}_rf_sm80(Params)", f"fmha_cutlassB_{suffix}_k64_sm80(Params)"
        prefix = "void pytorch_flash::flash_"
        ahead = f"{prefix}fwd_kernel<pytorch_flash::Flash_fwd_kernel_traits<64, 128, 128, 4> >"
        return "flash", ahead, f"{prefix}bwd_dq_dk_dv_loop_seqk_parallel_kernel<pytorch_flash::Flash_bwd_kernel>"

    def contiguous(self, count: float):
        """A transposed tensor written in order."""
        total, dtype = count * self.size, self.dtype
        inner = "at::native::gpu_kernel_impl_nocast<at::native::direct_copy_kernel_cuda(at::TensorIteratorBase&)>"
        name = f"void at::native::elementwise_kernel<128, 4, {inner} >(int, {inner})"
        kernels = [Kernel(name, "pointwise", 0.0, total, total, max(1, int(count / 512)), 128) for _ in range(2)]
        calls = [Call("aten::copy_", (kernel,), ((int(count),), (int(count),), ())) for kernel in kernels]
        forward = [Op(("aten::contiguous", "aten::clone"), (calls[0],), PYTHON_NS, "", dtype)]
        self.add(forward, [node("CloneBackward0", (calls[1],), dtype)])

    def eager_attention(self, batch: int, heads: int, length: int, width: int):
        """Attention out of its parts: product, scale, mask, softmax, dropout, product."""
        square = float(batch * heads * length * length)
        self.bmm(batch * heads, length, length, width)
        self.scale("div", square)
        self.scale("masked_fill", square)
        self.softmax(batch * heads * length, length)
        self.dropout(square)
        if self.half:
            self.layers[-1][0].append(self.cast(square))
            self.size = 2
        self.bmm(batch * heads, length, width, length)
        self.contiguous(batch * heads * length * width)

    def embedding(self, tokens: int, rows: int, width: int, bag: int = 1):
        """nn.Embedding(Bag) with dense gradients: zeros for all rows, then a scatter."""
        self.size = 4
        reads, out, table = tokens * bag * width * 4, tokens * width * 4, rows * width * 4
        name = (
            "void at::native::(anonymous namespace)::indexSelectLargeIndex<float, long, unsigned int, 2, 2, -2, true>"
        )
        if bag > 1:
            name = "void at::native::(anonymous namespace)::EmbeddingBag_updateOutputKernel_sum_mean<float, long>"
        gather = Kernel(name, "gather", 0.0, reads, out, max(1, tokens * width // 512), 128)
        zeros = pointwise("FillFunctor<float>", 0, table, "float", 1)
        name = "void at::native::(anonymous namespace)::embedding_backward_feature_kernel<float, float, long>"
        scatter = Kernel(name, "gather", 0.0, out + reads, reads, max(1, tokens // 32), 1024)
        ahead = Call("aten::embedding_bag" if bag > 1 else "aten::embedding", (gather,), ((rows, width), (tokens,)))
        back = (Call("aten::zeros", (zeros,)), Call("aten::embedding_dense_backward", (scatter,), ((tokens, width),)))
        forward = [Op((), (ahead,), MODULE_NS, "Embedding")]
        param = Param((rows, width), rows * width, "weight")
        self.add(forward, [node("EmbeddingBackward0", back)], (param,))

    def cross_entropy(self, rows: int, classes: int):
        """log_softmax and nll_loss, in 32 bit."""
        total = rows * classes * 4
        cast = [self.cast(rows * classes, back=True)] if self.size == 2 else []
        self.size = 4
        name = "void at::native::(anonymous namespace)::cunn_SoftMaxForward<4, float, float, float>"
        ahead = Call(
            "aten::_log_softmax", (reduction(name, 2 * total, total, rows, "norm"),), ((rows, classes), (), ())
        )
        loss = reduction(
            "void at::native::(anonymous namespace)::nll_loss_forward_reduce_cuda_kernel_2d", rows * 8, 4, 1
        )
        calls = (ahead, Call("aten::nll_loss_forward", (loss,), ((rows, classes), (rows,))))
        forward = [*cast, Op(("aten::cross_entropy_loss",), calls, MODULE_NS, "CrossEntropyLoss")]
        ones = Call("aten::ones_like", (pointwise("FillFunctor<float>", 0, 4, "float", 1),))
        back = reduction(name.replace("Forward", "Backward"), 2 * total, total, rows, "norm")
        nll = pointwise("nll_loss_backward", rows * 8, total)
        calls = (
            Call("aten::nll_loss_backward", (nll,), ((), (rows, classes), (rows,))),
            Call("aten::_log_softmax_backward_data", (back,), ((rows, classes),) * 2),
        )
        self.add(forward, [Op((), (ones,), 1000.0), node("NllLossBackward0", calls)])


def reduce_name(dtype: str) -> str:
    """PyTorch's reduction kernel, summing."""
    inner = f"at::native::func_wrapper_t<{dtype}, at::native::sum_functor<{dtype}, float, {dtype}>::operator()>"
    return f"void at::native::reduce_kernel<128, 4, at::native::ReduceOp<{dtype}, {inner}, unsigned int, {dtype}, 4> >"


def turn(size: float) -> Kernel:
    """cuDNN's change between NCHW and NHWC of a 16-bit tensor."""
    name = "void cudnn::ops::nchwToNhwcKernel<__half, __half, float, false, true, (cudnnKernelDataType_t)0>"
    return Kernel(name, "pointwise", 0.0, size, size, max(1, int(size / 4096)), 256)
