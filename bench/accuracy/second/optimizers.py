"""Optimizers: one kernel for each weight and operation, groups of them (foreach), or fused ones."""

from second.kernels import Kernel, pointwise
from second.ops import DISPATCH_NS, PYTHON_NS, Call, Op, Param, simple

# Operations of torch.optim for each weight: (operator, functor, tensors read, tensors written)
LOOP = {
    "SGD": (  # weight decay, momentum, the step (seen in shared/traces/resnet50)
        ("aten::add_", "CUDAFunctor_add<float>", 2, 1),
        ("aten::mul_", "AUnaryFunctor<float, float, float, at::native::binary_internal::MulFunctor<float> >", 1, 1),
        ("aten::add_", "CUDAFunctor_add<float>", 2, 1),
        ("aten::add_", "CUDAFunctor_add<float>", 2, 1),
    ),
    "Adam": (  # _single_tensor_adam
        ("aten::lerp_", "lerp_scalar_kernel", 2, 1),
        ("aten::mul_", "AUnaryFunctor<float, float, float, at::native::binary_internal::MulFunctor<float> >", 1, 1),
        ("aten::addcmul_", "addcmul_cuda_kernel", 3, 1),
        ("aten::sqrt", "sqrt_kernel_cuda", 1, 1),
        ("aten::div", "BUnaryFunctor<float, float, float, at::native::binary_internal::MulFunctor<float> >", 1, 1),
        ("aten::add_", "CUDAFunctorOnSelf_add<float>", 1, 1),
        ("aten::addcdiv_", "addcdiv_cuda_kernel", 3, 1),
    ),
}
LOOP["AdamW"] = (LOOP["Adam"][1], *LOOP["Adam"])  # decoupled weight decay: one more mul_
FUSED = {"SGD": (3, 2), "Adam": (4, 3), "AdamW": (4, 3)}  # tensors read and written by the fused kernels
CHUNK = 65536  # elements of a block in multi_tensor_apply (ATen/native/cuda/ForeachUtils)
BLOCKS = 320  # blocks of one launch
TENSORS = {1: 110, 2: 64, 3: 48, 4: 36, 5: 30}  # tensors of one launch for a number of lists
PREFIX = "void at::native::(anonymous namespace)::multi_tensor_apply_kernel<at::native::(anonymous namespace)::"


def loop_step(kind: str, params: list) -> list:
    """foreach=False: some kernels for each weight."""
    ops = []
    for param in params:
        size = param.count * 4.0
        for name, functor, reads, writes in LOOP[kind]:
            kernel = pointwise(functor, size * reads, size * writes, "float", reads + 1)
            ops.append(simple(name, (kernel,), (param.shape,) * reads + ((),)))
    return ops


def packs(params: list, lists: int) -> list:
    """Groups of weights that one launch takes: by tensors and by blocks, as multi_tensor_apply cuts them."""
    groups, blocks, tensors, elements = [], 0, 0, 0
    for param in params:
        left = param.count
        tensors += 1
        while left > 0:
            take = min(left, CHUNK * (BLOCKS - blocks))
            blocks += -(-take // CHUNK)
            elements += take
            left -= take
            if blocks >= BLOCKS or (tensors >= TENSORS[lists] and not left):
                groups.append((elements, blocks))
                blocks, tensors, elements = 0, int(left > 0), 0
    return groups + ([(elements, blocks)] if elements else [])


def multi_tensor(functor: str, params: list, lists: int, reads: int, writes: int) -> tuple:
    """Kernels of one foreach operation over all weights."""
    name = f"{PREFIX}TensorListMetadata<{lists}>, at::native::(anonymous namespace)::{functor}<float, {lists}, 1, 0>"
    return tuple(
        Kernel(name, "optimizer", 0.0, 4.0 * count * reads, 4.0 * count * writes, blocks, 512)
        for count, blocks in packs(params, lists)
    )


def foreach_step(kind: str, params: list) -> list:
    """foreach=True, torch.optim's default: each operation over all weights at once."""
    ops = []
    for name, _, reads, writes in LOOP[kind]:
        call = Call(
            name.replace("::", "::_foreach_"), multi_tensor("BinaryOpScalarFunctor", params, reads + 1, reads, writes)
        )
        # the host makes lists of tensors: some 100 ns for each weight and operation (drawn by hand)
        grouping = 0.0 if ops else 700.0 * len(params)  # drawn by hand: _group_tensors_by_device_and_dtype
        ops.append(Op((), (call,), PYTHON_NS + 120.0 * len(params) + grouping))
    return ops


def fused_step(kind: str, params: list) -> list:
    """fused=True: one operation over all weights."""
    reads, writes = FUSED[kind]
    call = Call(f"aten::_fused_{kind.lower()}_", multi_tensor(f"Fused{kind}MathFunctor", params, 4, reads, writes))
    counter = Call(
        "aten::_foreach_add_", multi_tensor("BinaryOpScalarFunctor", [Param((1,), 1)] * len(params), 1, 1, 1)
    )
    host = PYTHON_NS + 150.0 * len(params)
    return [Op((), (counter,), PYTHON_NS), Op((), (call,), host)] if kind != "SGD" else [Op((), (call,), host)]


STEPS = {"loop": loop_step, "foreach": foreach_step, "fused": fused_step}


def clip_ops(params: list) -> list:
    """clip_grad_norm_ with foreach: norms, their norm, a factor, a product over all gradients."""
    norm = Call("aten::_foreach_norm", multi_tensor("LpNormFunctor", params, 1, 1, 0))
    total = simple("aten::linalg_vector_norm", (pointwise("NormTwoOps", 4.0 * len(params), 4),))
    factor = simple("aten::clamp", (pointwise("clamp_scalar_kernel_impl", 4, 4),))
    scale = Call("aten::_foreach_mul_", multi_tensor("BinaryOpListAlphaFunctor", params, 1, 1, 1))
    return [Op((), (norm,), PYTHON_NS * 3), total, factor, Op((), (scale,), PYTHON_NS * 2)]


def unscale_ops(params: list) -> list:
    """GradScaler.unscale_: one foreach operation that also looks for infinities."""
    kernels = multi_tensor("NonFiniteCheckAndUnscale", params, 1, 1, 1)
    call = Call("aten::_amp_foreach_non_finite_check_and_unscale_", kernels)
    return [Op((), (call,), PYTHON_NS + 500.0 * len(params), inside=DISPATCH_NS)]


def update_scale_ops() -> list:
    """GradScaler.update."""
    return [simple("aten::_amp_update_scale_", (pointwise("amp_update_scale_cuda_kernel", 12, 8),))]
