"""
NAME     A Keras training whose pipeline computes in a map, one batch after the other, without prefetch
PLANTED  the function of the map sorts numbers for each batch while the training waits
EXPECT   input-bound serial-map
TRUTH    wait
NEEDS    python-keras python-tensorflow
"""

import numpy as np
from keras_clock import KerasClock, arguments, compiled, prepared, rows


def main() -> None:
    args = arguments()
    clock = KerasClock()

    def augment(inputs: np.ndarray) -> np.ndarray:
        noise = np.sort(np.random.rand(900_000)).astype("float32")
        return inputs + noise[:1]

    compiled(clock).fit(prepared(rows(args.steps), augment, clock), verbose=0, callbacks=[clock])
    clock.write(args.truth)


if __name__ == "__main__":
    main()
