"""The hook: sees an unmodified training script from inside and writes what it does into the channel.

Loaded by site/sitecustomize.py as `_fullbore_hook` when the script imports a framework, or fullbore to mark its loops;
it never imports a framework itself.
The map:

    finder       patches a module right after the script has imported it; which import attaches which part
    late         runs that are a part of a process, begun while it runs
    core         what every framework's folder builds on, and nothing that knows one
    torch        PyTorch
    tensorflow   TensorFlow: tf.data, tf.function, eager loops
    keras        Keras 3 on TensorFlow, JAX and PyTorch
    jax          JAX, with Flax, Optax and whatever is built on jax.jit
    own          `fullbore.watch` and `fullbore.step`, loaders of fullbore.data, the run that MLflow has open, and what
                 the script logs itself or prints
    steer        settings asked for from outside, and a script's outputs kept away from their places
    sampling     where in the user's own code the training thread is

Rules: what the script does and prints does not change, unless a setting asks for it; an exception of ours disables the
hook, never the script; nothing runs per operator; no locks and no system calls on the path of the training loop. What
is imported while the script runs is imported within `standard_library`: beside the script may be a file of that name.
"""

from .core.library import standard_library


def start():
    """Makes the finder that waits for frameworks. Called by sitecustomize, once."""
    with standard_library:
        from . import finder

    return finder.make()


def of_parts():
    """What begins and ends runs that are a part of this process, for `fullbore.record`."""
    with standard_library:
        from . import late

    return late
