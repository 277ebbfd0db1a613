"""Applies settings to an unmodified script: what `fullbore tune` tries, and what `run --autopilot` changes.

settings come from core/settings.py, which says what became of each.

    torch       which module's import applies which settings
    loaders     what a DataLoader is made with
    models      channels_last, compile, the switches of the libraries, and DDP's arguments
    precision   autocast around the model
    optimizers  which implementation they use
    accumulate  gradients of several batches for one step
    losses      those of the first steps, stated for comparison
    keras       model.fit(batch_size=)
    threads     threads and CPUs of the training process
    trackers    experiment trackers are off in a trial
    outputs     in a trial without a view of its own: what the script would write goes to a scratch directory, from
                Python's start on
    view        which file a path of the script's stands for there
    listing     what its directories hold
    writers     the same for libraries that write files by other ways than Python's

    autopilot   other numbers of workers while the script trains
    freezing    cheaper garbage collections
    period      what both judge a change by
    randomness  whether these give the same batches
    rescue      an epoch that goes on without the workers that it was given

Nothing here is imported unless it was asked for by $FULLBORE_SETTINGS, $FULLBORE_TRIAL or $FULLBORE_AUTOPILOT.
"""
