"""The arrays among the leaves of a tree of arguments or results, and whether they are met again."""

from __future__ import annotations

import sys
import weakref
from collections.abc import Iterable
from typing import Any

from ..core.interrupts import is_the_scripts

References = dict  # id of an array: weak reference to it, because an id is given again


def arrays_in(tree: Any) -> list[Any]:
    """Those of JAX and of NumPy; not those that stand for values while a function is traced."""
    jax = sys.modules["jax"]
    kinds, Tracer = (jax.Array, sys.modules["numpy"].ndarray), jax.core.Tracer
    leaves = sys.modules["jax.tree_util"].tree_leaves(tree)
    return [leaf for leaf in leaves if isinstance(leaf, kinds) and not isinstance(leaf, Tracer)]


def bytes_of(arrays: Iterable[Any]) -> int:
    total = 0
    for array in arrays:
        try:
            total += int(array.nbytes)
        except (AttributeError, TypeError, NotImplementedError) as error:  # keys of random numbers do not say
            if is_the_scripts(error):
                raise
    return total


def kind_of(array: Any) -> Any:
    """What two arrays have in common that could stand for each other."""
    return array.shape, str(array.dtype)


def references(arrays: Iterable[Any]) -> References:
    return {id(array): weakref.ref(array) for array in arrays}


def again(known: References, tree: Any) -> list[Any]:
    """The arrays in the tree that are known."""
    found = []
    for array in arrays_in(tree) if known else ():
        reference = known.get(id(array))
        if reference is not None and reference() is array:
            found.append(array)
    return found
