"""What is reported once about the training: versions, model, precision, distribution."""

from __future__ import annotations

import functools
import os
import sys
from typing import Any, Callable

from ..core import steps
from ..core.frameworks import introduce
from ..core.interrupts import is_the_scripts
from ..core.runtime import Thread, guarded, hook
from . import backward, exchanges, forward

FRAMEWORKS = ("lightning", "pytorch_lightning", "transformers", "accelerate", "deepspeed", "fastai", "ignite")
OTHER_FRAMEWORKS = ("jax", "tensorflow")  # a model of torch's beside them need not be the one that is trained
# How many threads the OpenMP and MKL pools were asked for, and whether their idle threads spin.
THREAD_VARIABLES = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OMP_WAIT_POLICY", "GOMP_SPINCOUNT", "KMP_BLOCKTIME")
LOOKS_TO_JUDGE = 10  # of the first steps, and of two later ones
MAX_SETTING = 32  # characters: a number, or a number for each level


def at_import(torch: Any) -> None:
    """Reports what is known already; the rest follows once the first steps have shown it."""
    forward.at_forward.append(at_forward)
    forward.without_steps.append(without_steps)
    steps.after_first_steps.append(after_step)
    steps.now_and_then.append(now_and_then)
    hook.facts_of_a_child |= {"torch", "cuda_version"}
    hook.fact("torch", str(torch.__version__))
    hook.fact("cuda_version", getattr(torch.version, "cuda", None))


@guarded
def at_forward(module: Any) -> None:
    """Inside a training step, right before an outermost module is called."""
    torch = sys.modules["torch"]
    enabled = autocast(torch)
    if enabled is not None:
        hook.fact("autocast", enabled)


def autocast(torch: Any) -> str | None:
    """The dtype that autocast has switched on here."""
    for enabled, dtype in autocast_questions(torch):
        if enabled():
            return str(dtype()).replace("torch.", "")
    accelerate = sys.modules.get("accelerate.state")  # switches it on inside the model's forward
    if accelerate is not None:
        shared = getattr(accelerate.AcceleratorState, "_shared_state", {})
        mixed = str(shared.get("_mixed_precision", "no"))
        return {"fp16": "float16", "bf16": "bfloat16"}.get(mixed)
    return None


def autocast_questions(torch: Any) -> list[tuple[Callable[[], bool], Callable[[], Any]]]:
    """For each kind of device: whether autocast is on, and with which dtype. Never by a call that this torch has
    deprecated: the warning would be ours, and if warnings are errors, the answer would be lost."""
    if hasattr(torch, "get_autocast_dtype"):  # from 2.4 on
        return [
            (functools.partial(torch.is_autocast_enabled, kind), functools.partial(torch.get_autocast_dtype, kind))
            for kind in ("cuda", "cpu")
        ]
    return [
        (torch.is_autocast_enabled, torch.get_autocast_gpu_dtype),
        (torch.is_autocast_cpu_enabled, torch.get_autocast_cpu_dtype),
    ]


def after_step(optimizer: Any, thread: Thread, end: int) -> None:
    """After each of the first steps: some facts hold only after the very first."""
    if hasattr(optimizer, "param_groups"):  # else the step is Keras's, or the script's own word
        introduce("torch")
        hook.fact("optimizer", type(optimizer).__name__)
    about_process()
    model = forward.forward.main_model() if forward.forward is not None else None
    if model is not None:
        about_model(model)
        if backward.world_size() > 1:
            backward.last_gradient.watch(model)


@guarded
def without_steps(module: Any) -> None:
    """In an evaluation, or where weights are updated by hand, no optimizer's step tells when to ask."""
    if any(name in sys.modules for name in OTHER_FRAMEWORKS):
        return
    introduce("torch")
    about_process()
    about_model(module)
    loader = hook.here().fed_by
    if loader is not None:
        hook.fact("batch_shape", loader.counter.shape)


def now_and_then(optimizer: Any, thread: Thread, end: int) -> None:
    """What somebody has switched on to look for an error, and may have forgotten."""
    torch = sys.modules["torch"]
    if ask(lambda: torch.is_anomaly_enabled()) or "anomaly_detection" in hook.facts:
        hook.fact("anomaly_detection", bool(torch.is_anomaly_enabled()))
    watched.look(bool(ask(lambda: torch.autograd._profiler_enabled())))


class Watched:
    """Whether a profiler of the script's runs all the time, and not only in some of the steps."""

    def __init__(self) -> None:
        self.looks = 0
        self.always = True

    def look(self, profiled: bool) -> None:
        self.looks += 1
        self.always = self.always and profiled
        if self.always and self.looks >= LOOKS_TO_JUDGE or "profiler" in hook.facts:
            hook.fact("profiler", self.always)


watched = Watched()
hook.forget_in_child.append(lambda: watched.__init__())  # type: ignore[misc]


def about_process() -> None:
    torch = sys.modules["torch"]
    about_threads(torch)
    hook.fact("world_size", backward.world_size())
    hook.fact("cudnn_benchmark", bool(torch.backends.cudnn.benchmark))
    cudnn = torch.backends.cudnn
    hook.fact("tf32_matmul", ask(lambda: allows_tf32(torch.backends.cuda.matmul)))
    hook.fact("tf32_cudnn", ask(lambda: allows_tf32(getattr(cudnn, "conv", cudnn))))
    about_switches(torch)
    present = {name: version(name) for name in FRAMEWORKS if name in sys.modules}
    if present:
        hook.fact("frameworks", present)


def about_switches(torch: Any) -> None:
    """Those by which people look for an error, where they are on."""
    if os.environ.get("CUDA_LAUNCH_BLOCKING") == "1":
        hook.fact("launch_blocking", True)
    if ask(lambda: torch.are_deterministic_algorithms_enabled()):
        hook.fact("deterministic", True)
    if backward.world_size() > 1 and ask(lambda: torch.distributed.get_debug_level().name) == "DETAIL":
        hook.fact("distributed_debug", "DETAIL")


def about_threads(torch: Any) -> None:
    hook.fact("torch_threads", torch.get_num_threads())
    opencv = sys.modules.get("cv2")
    if opencv is not None:
        hook.fact("opencv_threads", ask(lambda: int(opencv.getNumThreads())))
    for name in THREAD_VARIABLES:
        value = os.environ.get(name)
        if value:
            hook.fact(name.lower(), value[:MAX_SETTING])


def version(name: str) -> str:
    return str(getattr(sys.modules[name], "__version__", "unknown"))


def allows_tf32(setting: Any) -> bool:
    precision = ask(lambda: setting.fp32_precision)  # from 2.9 on, where `allow_tf32` is on its way out
    return bool(setting.allow_tf32) if precision is None else precision == "tf32"


def ask(question: Callable[[], Any]) -> Any:
    """None where torch refuses to answer (newer ones do when old and new settings are mixed)."""
    try:
        return question()
    except Exception as error:
        if is_the_scripts(error):
            raise
        return None


def about_model(model: Any) -> None:
    wrapper = type(model).__name__
    inner = model.__dict__.get("_orig_mod") or model._modules.get("_orig_mod") or model
    if wrapper in ("DistributedDataParallel", "DataParallel", "FullyShardedDataParallel"):
        hook.fact("distributed", wrapper)
        inner = model._modules.get("module") or model._modules.get("_fsdp_wrapped_module") or model
    elif next(exchanges.sharded_groups(model), None) is not None:
        hook.fact("distributed", "fully_shard")
    hook.fact("model", own_class(inner).__name__)
    hook.fact("parameters", forward.parameter_count(model))
    first = next(iter(model.parameters()), None)
    if first is None:
        return
    dtype = str(first.dtype).replace("torch.", "")
    hook.fact("parameter_dtype", dtype)
    hook.fact("device", device_name(first.device))
    hook.fact("precision", hook.facts.get("autocast") or dtype)
    hook.fact("channels_last", is_channels_last(model))


def own_class(module: Any) -> type:
    """As the script has it: fully_shard puts one of its own over it."""
    cls = type(module)
    return cls.__bases__[-1] if cls.__bases__[0].__name__ == "FSDPModule" else cls


def device_name(device: Any) -> str:
    if device.type == "cuda":
        name = ask(lambda: sys.modules["torch"].cuda.get_device_name(device))
        return f"{device} ({name})" if name else str(device)
    return str(device)


def is_channels_last(model: Any) -> bool | None:
    """Of the first convolution's weight; None for a model without one."""
    torch = sys.modules["torch"]
    for parameter in model.parameters():
        if parameter.dim() == 4 and parameter.shape[1] > 1 and parameter.shape[2] * parameter.shape[3] > 1:
            return bool(parameter.is_contiguous(memory_format=torch.channels_last))
    return None
