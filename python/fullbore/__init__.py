"""Fullbore finds the narrowest pipe of a training run; `fullbore.data` is the cure for the commonest.

The program itself is `fullbore` on the command line. `fullbore.watch(loader)` and `fullbore.step()` mark loops that it
cannot see by itself. `fullbore.hook` is what it puts into a training process, and is never imported by the name of this
package.
"""

from .loops import step, watch

__all__ = ["step", "watch"]
