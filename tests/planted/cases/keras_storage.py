"""
NAME     A Keras training whose files come from slow storage
PLANTED  each batch is read by the map in 25 ms, most of it waiting; nothing is read ahead
EXPECT   input-bound serial-map
TRUTH    wait
NEEDS    python-keras python-tensorflow
"""

import time

import numpy as np
from keras_clock import KerasClock, arguments, compiled, prepared, rows


def main() -> None:
    args = arguments()
    clock = KerasClock()

    def read(inputs: np.ndarray) -> np.ndarray:
        time.sleep(0.025)
        return inputs

    compiled(clock).fit(prepared(rows(args.steps), read, clock), verbose=0, callbacks=[clock])
    clock.write(args.truth)


if __name__ == "__main__":
    main()
