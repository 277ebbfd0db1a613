"""What is reported once about the training: versions, device, precision."""

from __future__ import annotations

import sys
from typing import Any

from ..core.frameworks import introduce
from ..core.runtime import guarded, hook

LIBRARIES = ("flax", "optax", "haiku", "equinox", "grain", "chex", "orbax.checkpoint")
PLATFORM_NAMES = {"gpu": "cuda"}  # as torch calls it


def at_import(jax: Any) -> None:
    hook.facts_of_a_child |= {"jax"}
    hook.fact("jax", str(jax.__version__))


@guarded
def at_first_step(returned: dict[int, Any]) -> None:
    """Once JAX has chosen its devices: asking before would choose them."""
    jax = sys.modules["jax"]
    introduce("jax")
    present = {name: version(name) for name in LIBRARIES if name in sys.modules}
    if present:
        hook.fact("frameworks", {**hook.facts.get("frameworks", {}), **present})
    device = jax.local_devices()[0]
    if device.platform == "cpu":
        hook.fact("device", "cpu")
    else:
        platform = PLATFORM_NAMES.get(device.platform, device.platform)
        hook.fact("device", f"{platform}:{device.id} ({device.device_kind})")
    hook.fact("jax_devices", jax.device_count())
    if jax.process_count() > 1:
        hook.fact("world_size", jax.process_count())
    hook.fact("jax_enable_x64", bool(jax.config.jax_enable_x64))
    precision = jax.config.jax_default_matmul_precision
    hook.fact("jax_default_matmul_precision", None if precision is None else str(precision))
    arrays = [array for array in (known() for known in returned.values()) if array is not None]
    largest = max(arrays, key=lambda array: array.size, default=None)
    if largest is not None:
        hook.fact("parameter_dtype", str(largest.dtype))


def version(name: str) -> str:
    return str(getattr(sys.modules[name], "__version__", "unknown"))
