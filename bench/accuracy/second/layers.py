"""Layers: the operators and kernels of their forward and backward passes, in fp32 or under autocast."""

from dataclasses import dataclass

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

    def linear(self, tokens: int, fan_in: int, fan_out: int, bias: bool = True, first: bool = False):
        """nn.Linear: addmm; backward: two products and the bias's sum."""
        weight = Param((fan_out, fan_in), fan_out * fan_in, "weight")
        params = [weight] + ([Param((fan_out,), fan_out, "bias")] if bias else [])
        cast, uncast = self.casts(tokens * fan_in, params)
        size, machine, math = self.size, self.machine, self.matmul_math
        name = "aten::addmm" if bias else "aten::mm"
        shapes = (((fan_out,),) if bias else ()) + ((tokens, fan_in), (fan_in, fan_out)) + ((), ()) * bias
        call = Call(name, (gemm(machine, tokens, fan_out, fan_in, size, math, 1, "tn"),), shapes, ("aten::t",))
        forward = [*cast, Op(("aten::linear",), (call,), MODULE_NS, "Linear", self.dtype)]
        calls = [
            Call(
                "aten::mm", (gemm(machine, fan_out, fan_in, tokens, size, math, 1, "nt"),), shapes[-2 - 2 * bias :][:2]
            )
        ]
        if not first:
            calls.insert(0, Call("aten::mm", (gemm(machine, tokens, fan_in, fan_out, size, math),), shapes[:2]))
        if bias:
            total = tokens * fan_out * size
            kernel = reduction(reduce_name(self.dtype), total, fan_out * size, fan_out // 32)
            calls.append(Call("aten::sum", (kernel,), ((tokens, fan_out), (), (), ())))
        self.add(
            forward, [node("AddmmBackward0" if bias else "MmBackward0", tuple(calls), self.dtype), *uncast], params
        )

    def bmm(self, batch: int, rows: int, columns: int, depth: int):
        """A batched product of activations."""
        size, machine, math = self.size, self.machine, self.matmul_math
        shapes = ((batch, rows, depth), (batch, depth, columns))
        call = Call("aten::bmm", (gemm(machine, rows, columns, depth, size, math, batch),), shapes)
        left = Call("aten::bmm", (gemm(machine, rows, depth, columns, size, math, batch, "nt"),), shapes)
        right = Call("aten::bmm", (gemm(machine, depth, columns, rows, size, math, batch, "tn"),), shapes)
        forward = [Op(("aten::matmul",), (call,), PYTHON_NS, "", self.dtype)]
        self.add(forward, [node("BmmBackward0", (left, right), self.dtype)])

    def conv(self, images: int, channels: tuple, side: int, kernel: int, stride: int = 1, first: bool = False) -> int:
        """nn.Conv2d without bias; returns the side of its output."""
        fan_in, fan_out = channels
        out = max(1, side // stride)
        weight = Param((fan_out, fan_in, kernel, kernel), fan_out * fan_in * kernel * kernel, "weight")
        cast, uncast = self.casts(images * fan_in * side * side, [weight])
        size, machine, math = self.size, self.machine, self.conv_math
        x, y, w = images * fan_in * side * side * size, images * fan_out * out * out * size, weight.count * size
        pixels, area = images * out * out, kernel * kernel
        shapes = ((images, fan_in, side, side), weight.shape, (), (), (), (), (), (), ())
        ahead = Call(
            "aten::cudnn_convolution", (conv(machine, "fprop", pixels, fan_in * area, fan_out, (x + w, y), math),)
        )
        ahead = Call(ahead.name, ahead.kernels, shapes)
        kernels = (conv(machine, "wgrad", fan_in * area, pixels, fan_out, (x + y, w), math),)
        if not first:
            kernels = (
                conv(machine, "dgrad", images * side * side, fan_out * area // stride**2, fan_in, (y + w, x), math),
                *kernels,
            )
        wrappers = ("aten::conv2d", "aten::convolution", "aten::_convolution")
        forward = [*cast, Op(wrappers, (ahead,), MODULE_NS, "Conv2d", self.dtype)]
        if self.half and not self.numerics.channels_last:
            ahead = Call(ahead.name, (turn(x), *ahead.kernels, turn(y)), shapes)
            kernels = (turn(y), *kernels, turn(x))
        back = Call("aten::convolution_backward", kernels, ((images, fan_out, out, out), *shapes[:2]))
        self.add(forward, [node("ConvolutionBackward0", (back,), self.dtype), *uncast], (weight,))
        return out

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
        ahead = Call("aten::cudnn_batch_norm", (reduction(name, 1.6 * total, total, channels * 4, "norm"),), shapes)
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
        self.add(forward, [node("CudnnBatchNormBackward0", (back,), self.dtype)], params)

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
        """scaled_dot_product_attention with the flash kernel: causal, so half of the products."""
        flops = 2.0 * batch * heads * length * length * width  # 4 L^2 d, half of it masked
        total = batch * heads * length * width * self.size
        math, blocks = ("half" if self.half else "fp32"), max(1, length // 128) * batch * heads
        name = "void pytorch_flash::flash_fwd_kernel<pytorch_flash::Flash_fwd_kernel_traits<64, 128, 128, 4> >"
        ahead = Kernel(name, "attention", flops, 3 * total, total, blocks, 128, math)
        name = "void pytorch_flash::flash_bwd_dq_dk_dv_loop_seqk_parallel_kernel<pytorch_flash::Flash_bwd_kernel>"
        behind = Kernel(name, "attention", 2.5 * flops, 6 * total, 3 * total, blocks, 256, math)
        shapes = ((batch, heads, length, width),) * 3
        call = Call("aten::_flash_attention_forward", (ahead,), shapes, ("aten::empty_like", "aten::empty"))
        wrappers = ("aten::scaled_dot_product_attention", "aten::_scaled_dot_product_flash_attention")
        back = Call("aten::_flash_attention_backward", (behind,), shapes)
        grad = node("ScaledDotProductFlashAttentionBackward0", (back,), self.dtype)
        self.add([Op(wrappers, (call,), PYTHON_NS, "", self.dtype)], [grad])

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
