"""Optuna on the surfaces of search_bench, with as many trials as our search took on each.

python3 -m venv /some/where && /some/where/bin/pip install optuna torch scipy
build/release/bench/search_bench --surfaces 200 | /some/where/bin/python bench/tune/optuna_peer.py tpe gp
"""

from __future__ import annotations

import json
import random
import statistics
import sys
import warnings

import optuna

optuna.logging.set_verbosity(optuna.logging.ERROR)
warnings.filterwarnings("ignore")

SAMPLERS = {
    "tpe": lambda seed: optuna.samplers.TPESampler(seed=seed, multivariate=True, n_startup_trials=4),
    "gp": lambda seed: optuna.samplers.GPSampler(seed=seed, n_startup_trials=4),
    "random": lambda seed: optuna.samplers.RandomSampler(seed=seed),
}


def rate(surface: dict, workers: int, batch: int) -> float:
    """As Surface::RateOf in src/tune/testing/surface.h."""
    device = batch / (surface["a"] + surface["b"] * batch)
    if workers == 0:
        return 1 / (1 / device + surface["fetch_s"])
    return min(device, min(workers, surface["cores"]) / surface["fetch_s"])


def regret(surface: dict, sampler: str, seed: int) -> float:
    noise = random.Random(seed)
    most = max(surface["workers"], 4 * surface["cores"])
    sizes = [1 << power for power in range(32) if 1 << power <= 64 * surface["batch"]]

    def objective(trial: optuna.Trial) -> float:
        workers = trial.suggest_int("workers", 0, most)
        batch = sizes[trial.suggest_int("size", 0, len(sizes) - 1)]
        if batch > surface["cliff"]:
            return 0.0
        return rate(surface, workers, batch) * noise.gauss(1, surface["noise"])

    study = optuna.create_study(direction="maximize", sampler=SAMPLERS[sampler](seed))
    study.enqueue_trial({"workers": surface["workers"], "size": sizes.index(surface["batch"])})  # the script as it is
    study.optimize(objective, n_trials=surface["trials"])
    chosen = study.best_params
    return 1 - rate(surface, chosen["workers"], sizes[chosen["size"]]) / surface["best"]


def say(who: str, regrets: list[float]) -> None:
    ordered = sorted(max(0.0, each) for each in regrets)
    near = sum(each <= 0.05 for each in ordered) / len(ordered)
    last = ordered[int(0.95 * (len(ordered) - 1))]
    print(f"{who:<16} {statistics.median(ordered):>14.1%} {last:>8.1%} {near:>12.0%}", flush=True)


def main() -> None:
    surfaces = [json.loads(line) for line in sys.stdin]
    trials = statistics.median(surface["trials"] for surface in surfaces)
    print(f"{len(surfaces)} surfaces, {trials:.0f} trials (median)\n")
    print(f"{'':<16} {'from the best':>14} {'95 %':>8} {'within 5 %':>12}")
    say("fullbore tune", [1 - surface["rate"] / surface["best"] for surface in surfaces])
    for sampler in sys.argv[1:] or ["tpe"]:
        say(sampler, [regret(surface, sampler, seed) for seed, surface in enumerate(surfaces)])


if __name__ == "__main__":
    main()
