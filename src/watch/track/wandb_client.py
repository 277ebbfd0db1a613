"""Tells the wandb of this Python what a recorded run is like. The program starts it (wandb.cc) and writes messages to
its standard input, a line of JSON each; each is answered by a line."""

import json
import os
import sys


def answers():
    """Where answers go; whatever wandb prints goes nowhere."""
    kept = os.fdopen(os.dup(1), "w")
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, 1)
    os.dup2(nowhere, 2)
    return kept


class Final(Exception):
    """What would fail again."""


class Client:
    run = None

    def begin(self, about):
        if about["directory"] and os.path.isdir(about["directory"]):
            os.chdir(about["directory"])
        try:
            import wandb
        except ImportError as error:
            raise Final(f"{sys.executable} has no wandb ({error}): {sys.executable} -m pip install wandb") from error
        self.run = wandb.init(
            project=about["project"] or None,
            id=about["id"],
            name=about["name"],
            resume="allow",
            config={"fullbore": about["config"]},
            job_type="fullbore",
            settings=wandb.Settings(
                console="off", silent=True, x_disable_stats=True, disable_git=True, disable_code=True
            ),
        )
        self.run.define_metric("fullbore/step")
        self.run.define_metric("*", step_metric="fullbore/step")

    def samples(self, samples):
        for values in samples:
            self.run.log(values)

    def end(self, end):
        self.run.summary.update(end["summary"])
        self.run.finish(exit_code=1 if end["failed"] else 0)


def main():
    sys.path[:] = [place for place in sys.path if place]  # in the directory may be a wandb that is not the client
    said = answers()
    client = Client()
    for line in sys.stdin:
        ((kind, what),) = json.loads(line).items()
        try:
            getattr(client, kind)(what)
            answer = {"ok": True}
        except Exception as error:
            answer = {"problem": f"{error}"[:300], "final": isinstance(error, Final)}
        print(json.dumps(answer), file=said, flush=True)


main()
