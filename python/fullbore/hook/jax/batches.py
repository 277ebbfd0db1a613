"""How many samples a compiled step is given.

Where the script feeds its steps from a generator of its own, no loader says it. The batch is the argument that is new
at each call: neither given before, nor returned by a compiled function, nor of the shapes of what was returned
(gradients, parameters that were updated outside). Of several, it is the largest.
"""

from __future__ import annotations

from typing import Any, Union

from ..core.batch import BatchCounter, known_sizes
from ..core.interrupts import is_the_scripts
from .arrays import References, again, arrays_in, bytes_of, kind_of, references

Place = Union[int, str]  # of an argument, or its name


class Batch:
    """The argument of one function that holds the batch, once that is known."""

    __slots__ = ("place", "counter", "given", "counts", "missed")

    def __init__(self) -> None:
        self.place: Place | None = None
        self.counter: BatchCounter | None = None
        self.given: dict[Place, References] = {}  # in the call before
        self.counts: dict[Place, int] = {}  # samples, if that is the place
        self.missed = 0  # samples of the calls before it was known

    def learn(self, returned: References, kinds: set[Any], args: Any, kwargs: Any) -> None:
        """From the first calls, before each: with what compiled functions returned, and the kinds of arrays that this
        one did."""
        if self.counter is not None:
            return
        places: dict[Place, Any] = {**dict(enumerate(args)), **kwargs}
        new = {
            place: bytes_of(arrays_in(argument))
            for place, argument in places.items()
            if place in self.given and not again(self.given[place], argument) and not again(returned, argument)
        }
        new = {place: size for place, size in new.items() if holds_samples(places[place], kinds)}
        if new:
            self.place, self.counter = max(new, key=lambda place: new[place]), BatchCounter(None)
            self.missed = self.counts.get(self.place, 0)
            self.given, self.counts = {}, {}
            return
        for place, argument in places.items():
            self.given[place] = references(arrays_in(argument))
            samples = BatchCounter(None).count(argument)[0] if holds_samples(argument, kinds) else 0
            self.counts[place] = self.counts.get(place, 0) + max(0, samples)

    def samples(self, args: Any, kwargs: Any) -> int:
        """In this call; 0 if unknown."""
        if self.counter is None:
            return 0
        try:
            argument = kwargs[self.place] if isinstance(self.place, str) else args[self.place]
        except (KeyError, IndexError, TypeError) as error:
            if is_the_scripts(error):
                raise
            return 0
        return max(0, self.counter.count(argument)[0])


def holds_samples(argument: Any, kinds: set[Any]) -> bool:
    if all(kind_of(array) in kinds for array in arrays_in(argument)):
        return False
    return any(size > 1 and is_leading for size, _, is_leading in known_sizes(argument))
