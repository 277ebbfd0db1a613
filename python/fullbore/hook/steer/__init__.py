"""Applies settings to an unmodified script: what `fullbore tune` tries, and what `run --autopilot` changes.

settings come from core/settings.py, which says what became of each.

    torch     which module's import applies which settings
    loaders   what a DataLoader is made with
    threads   threads and CPUs of the training process
    outputs   in a trial: what the script would write goes to a scratch directory, from Python's start on
    writers   the same for libraries that write files by other ways than Python's
    guard     the same for all else, by the kernel

Nothing here is imported unless it was asked for by $FULLBORE_SETTINGS or $FULLBORE_TRIAL.
"""
