#!/usr/bin/env python3
"""Optuna chooses the settings, `fullbore measure` says what they bring; the training script stays as it is.

pip install optuna
python with_optuna.py --trials 8 -- python train.py --data photos
"""

from __future__ import annotations

import argparse
import json
import subprocess

import optuna


def measured(settings: dict[str, object], command: list[str]) -> dict:
    """What one trial brought: its outcome, its rate with an interval, memory, the run. See docs/tuning.md."""
    words = ["fullbore", "measure", "--json", "-", "--precision", "5%"]
    for name, value in settings.items():
        words += ["--set", f"{name}={value}"]
    said = subprocess.run([*words, "--", *command], stdout=subprocess.PIPE, check=True, text=True).stdout
    return json.loads(said)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--trials", type=int, default=8)
    parser.add_argument("--most-workers", type=int, default=4)
    parser.add_argument("command", nargs="+")
    arguments = parser.parse_args()

    def objective(trial: optuna.Trial) -> float:
        settings = {"num_workers": trial.suggest_int("num_workers", 0, arguments.most_workers)}
        said = measured(settings, arguments.command)
        trial.set_user_attr("run", said["run"])
        if said["outcome"] != "ok":  # out of memory, crashed, hung: a result, too
            raise optuna.TrialPruned(said["outcome"])
        trial.set_user_attr("unit", said["unit"])
        return said["steps_per_s" if said["unit"] == "steps/s" else "samples_per_s"]

    study = optuna.create_study(direction="maximize", sampler=optuna.samplers.TPESampler(seed=0))
    study.optimize(objective, n_trials=arguments.trials)
    best = study.best_trial
    kept = best.user_attrs
    print(f"best: {best.params}, {best.value:.1f} {kept['unit']}; fullbore explain {kept['run']}")


if __name__ == "__main__":
    main()
