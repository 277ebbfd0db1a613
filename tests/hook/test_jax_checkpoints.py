"""Checkpoints of JAX programs are told from the rest of the loop."""

from __future__ import annotations

import pytest
from channel_reader import CHECKPOINT, OTHER

pytest.importorskip("orbax.checkpoint")

TRAINING = """
    import jax, jax.numpy as jnp
    step = jax.jit(lambda weights, batch: weights - 0.1 * batch.mean())
    def train(save):
        weights = jnp.ones(64)
        for number in range(12):
            weights = step(weights, jnp.ones((8, 64)))
            if number % 4 == 3:
                save(number, weights)
"""

SAVES = {
    "a manager of Orbax": """
    import os, orbax.checkpoint as orbax
    manager = orbax.CheckpointManager(os.path.abspath("kept"))
    train(lambda number, weights: manager.save(number, args=orbax.args.StandardSave({"weights": weights})))
    manager.wait_until_finished()
""",
    "a checkpointer of Orbax": """
    import os, orbax.checkpoint as orbax
    checkpointer = orbax.PyTreeCheckpointer()
    train(lambda number, weights: checkpointer.save(os.path.abspath(f"kept{number}"), {"weights": weights}))
""",
    "Flax": """
    import os
    from flax.training import checkpoints
    train(lambda number, weights: checkpoints.save_checkpoint(os.path.abspath("kept"), {"weights": weights}, number))
""",
}


@pytest.mark.parametrize("how", SAVES)
def test_each_save_is_a_checkpoint_once(bare, how):
    channel, _ = bare.run(TRAINING + SAVES[how])
    assert len(channel.trainer.of(OTHER, CHECKPOINT)) == 3
