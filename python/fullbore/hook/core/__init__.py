"""What every framework's folder builds on. It knows five things: a loader was asked for a batch and gave it; a step
ended; a phase began or ended; a batch had so many samples; a fact.

    library      the standard library, where a file of the script's may have the same name
    files        files of ours inside the script's process, and descriptors that are known to be ours
    native       the extension that takes the hot path, where this Python can load it
    channel      the two files a process writes, as src/record/channel.h and docs/channel.md define them
    runtime      what all parts share: the channel, the threads, phases, and what happens when the hook fails
    waits        the script's loaders, of whatever library, and the waits in `next` of their iterators
    batch        how many samples a batch holds, and how large it is
    steps        where a step ends, which optimizer counts, and which loader feeds it
    checkpoints  functions that write the state of the training
    frames       which code, and which frame of a stack, is the user's own, and what variables a frame has
    interrupts   exceptions that are caught in the hook and are the script's
    where        which lines of the user's code step, copy and save
    leaving      what the last process of a killed recorder's run takes away
    process      garbage collections, and the end of the process
"""
