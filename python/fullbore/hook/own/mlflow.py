"""Which run of MLflow the script has open, so that `fullbore run --log mlflow` adds to it. Looks once for each run that
is opened, and calls nothing of MLflow's that could ask a server."""

from __future__ import annotations

import functools
import re
from typing import Any

from ..core.runtime import guarded, hook

USER_IN_URI = re.compile(r"(?<=://)[^/@]*@")  # a password has no place in a run file


@guarded
def saw(run: Any, uri: Any) -> None:
    hook.fact("mlflow_run", {"id": str(run.info.run_id), "uri": USER_IN_URI.sub("", str(uri))})


def attach(mlflow: Any) -> None:
    if not hasattr(mlflow, "start_run"):  # it is being imported, and has imported the framework
        return
    if mlflow.active_run() is not None:  # on this thread, which imports the framework
        saw(mlflow.active_run(), mlflow.get_tracking_uri())
    start_run, create_run = mlflow.start_run, mlflow.MlflowClient.create_run

    @functools.wraps(start_run)
    def seen_start_run(*args: Any, **kwargs: Any) -> Any:
        run = start_run(*args, **kwargs)
        saw(run, mlflow.get_tracking_uri())
        return run

    @functools.wraps(create_run)
    def seen_create_run(client: Any, *args: Any, **kwargs: Any) -> Any:  # as Lightning's logger does
        run = create_run(client, *args, **kwargs)
        saw(run, getattr(client, "tracking_uri", None) or mlflow.get_tracking_uri())
        return run

    mlflow.start_run, mlflow.MlflowClient.create_run = seen_start_run, seen_create_run
