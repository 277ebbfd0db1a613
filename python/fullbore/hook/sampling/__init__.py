"""Where in the user's own code the training thread is, and what it does there.

lines        the line sampler: when it samples, and what it records
stacks       what one sample of a stack says: the line, what is done there, whether it feeds the loop
hooked       what is hooked into the passes: functions of the script or a tracker, stacks for anomaly detection
activities   the table by which that is told (activities.txt)
instructions what a frame is executing: which call, or the head of which loop
workers      the line sampler of a loader's worker
growth       what grows where memory grows
"""
