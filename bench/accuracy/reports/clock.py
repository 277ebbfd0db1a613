"""The clock that all reproductions share: options, and steps or samples per second after a warm-up. Where CLOCK_STEPS
names a file, each step is a line in it, with its time and its count (both/turns.py)."""

import argparse
import os
import time


def options(seconds=10.0):
    parser = argparse.ArgumentParser()
    parser.add_argument("--fixed", action="store_true", help="apply what the thread found to be the fix")
    parser.add_argument("--seconds", type=float, default=seconds)
    return parser.parse_args()


class Clock:
    def __init__(self, seconds, warm=2.0):
        self.seconds, self.warm = seconds, warm
        self.begin = self.mark = self.last = None
        self.steps = self.count = 0
        self.lines = open(os.environ["CLOCK_STEPS"], "a", 1) if os.environ.get("CLOCK_STEPS") else None

    def done(self, count, loss=None):
        """Called after each step; True once the time is over."""
        now = time.perf_counter()
        if self.begin is None:
            self.begin = now
        self.steps += 1
        if self.lines:
            self.lines.write(f"{now} {count}\n")
        if self.steps == 20 and loss is not None:
            print(f"loss at step 20: {float(loss.detach()):.5f}", flush=True)
        if self.mark is None:
            if now - self.begin >= self.warm:
                self.mark = now
        else:
            self.count += count
            self.last = now
        return now - self.begin >= self.seconds

    def rate(self):
        print(f"RATE {self.count / (self.last - self.mark):.3f}" if self.last else "RATE 0", flush=True)
