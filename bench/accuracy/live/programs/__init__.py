"""The generator: a seed gives a case, always the same one. Seeds 2k and 2k+1 plant the same thing in two programs."""

from __future__ import annotations

import random

from ..case import Case
from . import besides, feeding, loading, whole

BUILDERS = (
    loading.no_workers,
    loading.too_few_workers,
    loading.workers_fill_the_cores,
    loading.short_waits,
    loading.accumulated,
    loading.slow_reads,
    loading.narrow_link,
    loading.locked,
    loading.slow_collate,
    loading.blocked_collate,
    loading.slow_samples,
    loading.short_epochs,
    loading.many_workers,
    feeding.stream,
    feeding.generator,
    feeding.queue_thread,
    feeding.loader_process,
    feeding.image_folder,
    besides.logging,
    besides.rewriting,
    besides.checkpointing,
    besides.validating,
    besides.collecting,
    besides.measuring,
    besides.probing,
    besides.sleeping,
    besides.leaking,
    besides.computing,
    besides.well_fed,
    besides.among_others,
    whole.hogwild,
    whole.hogwild_single_threaded,
    whole.straggler,
    whole.two_ranks,
    whole.rollout,
    whole.evaluation_that_waits,
    whole.evaluation_that_computes,
    whole.manual_updates,
    whole.adversarial,
)


def generated(seed: int) -> Case:
    builder = BUILDERS[(seed // 2) % len(BUILDERS)]
    return builder(random.Random(f"fullbore-exam-{seed}"), str(seed))
