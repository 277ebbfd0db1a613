"""Fullbore finds the narrowest pipe of a training run; `fullbore.data` is the cure for the commonest.

The program itself is `fullbore` on the command line. `fullbore.hook` is what it puts into a training process, and is
never imported by the name of this package.
"""
