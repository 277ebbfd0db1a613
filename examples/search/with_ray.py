#!/usr/bin/env python3
"""Ray Tune chooses the settings, `fullbore measure` says what they bring; the training script stays as it is.

    pip install "ray[tune]"
    python with_ray.py -- python train.py --data photos

Trials run one after the other: two that share a machine would measure each other.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess

import ray
from ray import tune


def measured(settings: dict[str, object], command: list[str], directory: str) -> dict:
    """What one trial brought: its outcome, its rate with an interval, memory, the run. See docs/tuning.md."""
    words = ["fullbore", "measure", "--json", "-", "--precision", "5%"]
    for name, value in settings.items():
        words += ["--set", f"{name}={value}"]
    done = subprocess.run([*words, "--", *command], cwd=directory, stdout=subprocess.PIPE, check=True, text=True)
    return json.loads(done.stdout)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--workers", type=int, nargs="+", default=[0, 1, 2, 4])
    parser.add_argument("command", nargs="+")
    arguments = parser.parse_args()
    directory = os.getcwd()  # Ray starts its workers elsewhere

    def objective(settings: dict[str, object]) -> dict[str, object]:
        said = measured(settings, arguments.command, directory)
        rate = said["steps_per_s" if said["unit"] == "steps/s" else "samples_per_s"]
        return {"rate": rate or 0.0, "unit": said["unit"], "run": said["run"]}

    ray.init(log_to_driver=False, include_dashboard=False)
    one_at_a_time = tune.with_resources(objective, {"cpu": ray.cluster_resources()["CPU"]})
    space = {"num_workers": tune.grid_search(arguments.workers)}
    results = tune.Tuner(one_at_a_time, param_space=space).fit()
    best = results.get_best_result(metric="rate", mode="max")
    said = best.metrics
    print(f"best: {best.config}, {said['rate']:.1f} {said['unit']}; fullbore explain {said['run']}")


if __name__ == "__main__":
    main()
