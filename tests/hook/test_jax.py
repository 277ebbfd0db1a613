"""Programs in the style of JAX's and Flax's own examples, unmodified: each counts its steps and samples itself."""

from __future__ import annotations

import os
import pathlib
import textwrap

import pytest
from channel_reader import COMPILATION, FORWARD, OPTIMIZER, OTHER, SYNC, Channel, Process

pytest.importorskip("jax")

EVALUATION, PART_OF_STEP, OTHER_CALL = 0, 2, 3  # what `a` of a compiled function's record says

DATA = """
    import numpy as np
    import jax, jax.numpy as jnp

    images = np.random.RandomState(0).randn(500, 64).astype("float32")
    labels = np.random.RandomState(1).randint(10, size=500)
    steps = samples = 0

    def batches(size=64):
        for begin in range(0, len(images), size):
            yield images[begin:begin + size], labels[begin:begin + size]

    def counted(batch):
        global steps, samples
        steps, samples = steps + 1, samples + len(batch[0])
"""

# After JAX's examples/mnist_classifier_fromscratch.py.
PLAIN = (
    DATA
    + """
    from jax import grad, jit, random

    def predict(params, inputs):
        for w, b in params[:-1]:
            inputs = jnp.tanh(inputs @ w + b)
        w, b = params[-1]
        return jax.nn.log_softmax(inputs @ w + b)

    def loss(params, batch):
        inputs, targets = batch
        return -jnp.mean(jnp.take_along_axis(predict(params, inputs), targets[:, None], axis=1))

    def accuracy(params, batch):
        inputs, targets = batch
        return jnp.mean(jnp.argmax(predict(params, inputs), axis=1) == targets)

    @jit
    def update(params, batch):
        grads = grad(loss)(params, batch)
        return [(w - 0.1 * dw, b - 0.1 * db) for (w, b), (dw, db) in zip(params, grads)]

    keys = random.split(random.key(0), 2)
    params = [(0.1 * random.normal(keys[0], (64, 32)), jnp.zeros(32)),
              (0.1 * random.normal(keys[1], (32, 10)), jnp.zeros(10))]
    for epoch in range(3):
        for batch in batches():
            params = update(params, batch)
            counted(batch)
        print(epoch, float(accuracy(params, (images, labels))))
    print(steps, samples)
"""
)

# After Flax's examples/mnist: a TrainState, apply_model and update_model compiled apart.
LINEN = (
    DATA
    + """
    from flax import linen as nn
    from flax.training import train_state
    import optax

    class MLP(nn.Module):
        @nn.compact
        def __call__(self, x):
            return nn.Dense(10)(nn.relu(nn.Dense(32)(x)))

    @jax.jit
    def apply_model(state, images, labels):
        def loss_fn(params):
            logits = state.apply_fn({"params": params}, images)
            return jnp.mean(optax.softmax_cross_entropy_with_integer_labels(logits, labels)), logits
        (loss, logits), grads = jax.value_and_grad(loss_fn, has_aux=True)(state.params)
        return grads, loss, jnp.mean(jnp.argmax(logits, -1) == labels)

    @jax.jit
    def update_model(state, grads):
        return state.apply_gradients(grads=grads)

    model = MLP()
    params = model.init(jax.random.key(0), jnp.ones((1, 64)))["params"]
    state = train_state.TrainState.create(apply_fn=model.apply, params=params, tx=optax.sgd(0.1, 0.9))
    for epoch in range(3):
        losses = []
        for batch in batches():
            grads, loss, accuracy = apply_model(state, *batch)
            state = update_model(state, grads)
            losses.append(loss)
            counted(batch)
        _, test_loss, _ = apply_model(state, images, labels)
        print(epoch, np.mean(losses), float(test_loss))
    print(steps, samples)
"""
)

# After Flax's NNX tutorial: modules with state, nnx.jit, an evaluation of several batches.
NNX = (
    DATA
    + """
    from flax import nnx
    import optax

    class MLP(nnx.Module):
        def __init__(self, rngs):
            self.first, self.second = nnx.Linear(64, 32, rngs=rngs), nnx.Linear(32, 10, rngs=rngs)

        def __call__(self, x):
            return self.second(nnx.relu(self.first(x)))

    def loss_fn(model, batch):
        logits = model(batch[0])
        return optax.softmax_cross_entropy_with_integer_labels(logits, batch[1]).mean()

    @nnx.jit
    def train_step(model, optimizer, batch):
        loss, grads = nnx.value_and_grad(loss_fn)(model, batch)
        optimizer.update(model, grads)
        return loss

    @nnx.jit
    def eval_step(model, batch):
        return loss_fn(model, batch)

    model = MLP(nnx.Rngs(0))
    optimizer = nnx.Optimizer(model, optax.adam(1e-3), wrt=nnx.Param)
    for epoch in range(3):
        for batch in batches():
            loss = train_step(model, optimizer, batch)
            counted(batch)
        print(epoch, float(loss), sum(float(eval_step(model, batch)) for batch in batches(100)))
    print(steps, samples)
"""
)

# Gradients are compiled, the optimizer is not.
GRADIENTS_ONLY = (
    DATA
    + """
    import optax

    @jax.jit
    def loss_and_gradient(params, batch):
        def loss(params):
            return jnp.mean(optax.softmax_cross_entropy_with_integer_labels(batch[0] @ params["w"], batch[1]))
        return jax.value_and_grad(loss)(params)

    params = {"w": jnp.zeros((64, 10))}
    optimizer = optax.sgd(0.1)
    state = optimizer.init(params)
    for batch in batches(20):
        loss, grads = loss_and_gradient(params, batch)
        updates, state = optimizer.update(grads, state)
        params = optax.apply_updates(params, updates)
        counted(batch)
    print(float(loss))
    print(steps, samples)
"""
)

# A loader of torch's feeds a compiled step with donated state, compiled ahead of time.
TORCH_LOADER = (
    DATA
    + """
    from torch.utils.data import DataLoader

    def collate(rows):
        return np.stack([row[0] for row in rows]), np.array([row[1] for row in rows])

    loader = DataLoader(list(zip(images, labels)), batch_size=50, collate_fn=collate)

    def step(params, images, labels):
        def loss(params):
            return jnp.mean((images @ params - jax.nn.one_hot(labels, 10)) ** 2)
        return params - 0.1 * jax.grad(loss)(params)

    params = jnp.zeros((64, 10))
    compiled = jax.jit(step, donate_argnums=0).lower(params, images[:50], labels[:50]).compile()
    for batch in loader:
        params = compiled(params, *batch)
        counted(batch)
    print(float(params.sum()))
    print(steps, samples)
"""
)

PROGRAMS = {
    "plain": PLAIN,
    "linen": LINEN,
    "nnx": NNX,
    "gradients-only": GRADIENTS_ONLY,
    "torch-loader": TORCH_LOADER,
}


def samples_of(process: Process) -> int:
    """Those that the training's loader gave, else those among the step's arguments."""
    if process.batches:
        return sum(wait.a for wait in process.batches)
    return sum(call.b for call in process.of(FORWARD) if call.a == PART_OF_STEP)


@pytest.mark.long
@pytest.mark.parametrize("name", PROGRAMS)
def test_steps_and_samples_are_those_that_the_program_counts_and_its_output_is_the_same(bare, name):
    channel, output = bare.run(PROGRAMS[name])
    (process,) = channel.trainers
    steps, samples = map(int, output.splitlines()[-1].split())
    assert (len(process.steps), samples_of(process)) == (steps, samples)
    assert process.one("bye")["steps"] == steps
    assert (process.facts["framework"], process.facts["device"]) == ("jax", "cpu")
    assert process.facts["parameter_dtype"] == "float32" and process.facts["jax_enable_x64"] is False
    without, _ = bare.start([bare.python, bare.script(PROGRAMS[name])], hooked=False)
    assert (without.stdout, without.returncode) == (output, 0)


def process_of(bare, text: str) -> Process:
    channel, _ = bare.run(DATA + text)
    (process,) = channel.trainers
    return process


@pytest.mark.long
def test_an_evaluation_is_told_from_the_training(bare):
    channel, _ = bare.run(NNX)
    (process,) = channel.trainers
    calls = process.of(FORWARD)
    assert len([call for call in calls if call.a == EVALUATION]) >= 3 * 5 - 2, "the first may be anything"
    assert len([call for call in calls if call.a == PART_OF_STEP and call.ns]) == len(process.steps)


LOOP = """
    @jax.jit
    def step(params, batch):
        return params - 0.1 * jax.grad(lambda p: jnp.mean((batch[0] @ p) ** 2))(params), batch[0].sum()

    params = jnp.zeros((64, 10))
"""


def test_waits_for_the_device_are_recorded_once_each(bare):
    process = process_of(
        bare,
        LOOP
        + """
    for batch in batches(50):
        params, loss = step(params, batch)
        float(loss)
    loss.block_until_ready(), jax.block_until_ready(params), jax.device_get({"a": params}), loss.item()
    print(f"{loss:.3f}")
""",
    )
    assert len(process.of(SYNC)) == 10 + 5
    calls = [call for call in process.of(FORWARD) if call.ns]
    assert not any(call.begin <= wait.begin < call.end for wait in process.of(SYNC) for call in calls)


def test_what_is_compiled_again_is_said_with_its_place_and_what_was_new(bare):
    process = process_of(
        bare,
        LOOP
        + """
    import functools

    @functools.partial(jax.jit, static_argnums=1)
    def scaled(params, rate):
        return params * rate

    for size in (10, 20, 30, 40):
        params, loss = step(params, (images[:size], labels[:size]))
        params = scaled(params, 1.0 - size / 1000)
        params = jax.jit(lambda params: params + 0.0)(params)
    """,
    )
    said = {each["function"]: each for each in process.facts["compilations"]}
    assert (said["step"]["count"], said["step"]["why"]) == (4, "shapes")
    assert said["step"]["example"] == "argument 2, array 1: float32[30,64], then float32[40,64]"
    assert said["step"]["file"].endswith("train.py") and said["step"]["line"] > 0
    assert (said["scaled"]["count"], said["scaled"]["why"]) == (4, "constants")
    assert (said["<lambda>"]["count"], said["<lambda>"]["why"]) == (4, "new-function")
    compiling = process.of(OTHER, COMPILATION)
    assert sum(record.ns for record in compiling) >= 0.9 * said["step"]["ns"]


def test_compiled_functions_stay_what_they_are(bare):
    script = """
    import functools, inspect, pickle, weakref
    import jax, jax.numpy as jnp

    def plus(x, y=1):
        "adds"
        return x + y

    class Model:
        @functools.partial(jax.jit, static_argnums=0)
        def scale(self, x):
            return twice(x)

    twice = jax.jit(lambda x: jnp.sum(x) * 2)
    compiled = jax.jit(plus)
    print(type(compiled).__name__, compiled.__name__, compiled.__doc__, inspect.signature(compiled))
    print(compiled.__wrapped__ is plus, compiled(jnp.ones(2)), compiled(x=1.0, y=2), Model().scale(jnp.ones(3)))
    print(compiled.lower(1.0).compile()(1.0), compiled.eval_shape(1.0).shape, weakref.ref(compiled)() is compiled)
    print(jax.make_jaxpr(compiled)(1.0), jax.grad(twice)(jnp.ones(3)), jax.vmap(twice)(jnp.ones((2, 3))))
    print({compiled: 1}[compiled], callable(compiled), isinstance(compiled, jax.stages.Wrapped))
    try:
        compiled(object())
    except TypeError as error:
        print(str(error)[:30])
    compiled.clear_cache()
    """
    channel, output = bare.run(script)
    without, _ = bare.start([bare.python, bare.script(script)], hooked=False)
    assert without.returncode == 0, without.stderr
    assert output == without.stdout
    (process,) = channel.trainers
    assert process.of(OPTIMIZER) == [], "nothing that was called is a step"


def test_an_exception_passes_through(bare):
    script = """
    import jax

    @jax.jit
    def wrong(x):
        return undefined + x

    wrong(1.0)
    """
    hooked, _ = bare.start([bare.python, bare.script(script)])
    without, _ = bare.start([bare.python, bare.script(script)], hooked=False)
    assert hooked.returncode == without.returncode == 1
    ours = [line for line in hooked.stderr.splitlines() if "hook/jax" in line]
    assert len(ours) == 1, "as any decorator's"
    assert hooked.stderr.splitlines()[-5:] == without.stderr.splitlines()[-5:]


def test_a_process_that_only_helps_opens_no_channel(bare):
    channel, _ = bare.run(
        """
    import multiprocessing

    def square(x):
        import jax.numpy as jnp
        return float(jnp.square(x))

    if __name__ == "__main__":
        with multiprocessing.get_context("spawn").Pool(1) as pool:
            print(pool.map(square, [2.0]))
        import jax
    """
    )
    assert len(channel.processes) == 1


def test_the_hook_imports_no_jax(bare):
    channel, output = bare.run("import sys\nimport json\nprint('jax' in sys.modules)\n")
    assert output == "False\n" and not Channel(bare.directory / "channel1").processes


def test_a_loop_that_marks_its_steps_counts_the_marks(bare):
    package = pathlib.Path(__file__).resolve().parents[2] / "python"
    search = os.pathsep.join([str(package / "fullbore" / "hook" / "site"), str(package)])
    script = (
        DATA
        + LOOP
        + """
    import fullbore
    for batch in batches(50):
        fullbore.step()
        params, loss = step(params, batch)
"""
    )
    channel, _ = bare.run(script, env={"PYTHONPATH": search})
    (process,) = channel.trainers
    assert [record.b for record in process.steps] == [1] * 10


def test_the_sampler_runs_from_the_first_step_on(bare):
    process = process_of(
        bare,
        LOOP
        + textwrap.dedent("""
    def slow(size):
        import time
        for batch in batches(size):
            time.sleep(0.05)
            yield batch

    for batch in slow(25):
        params, loss = step(params, batch)
    """).replace("\n", "\n    "),
    )
    assert any(line["function"] == "slow" for line in process.say("line"))
