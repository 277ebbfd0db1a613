"""Callbacks that put what `fullbore run` sees into a trainer's own logger: `lightning`, `transformers`.

Without `fullbore run` they do nothing; with it, they only read what is recorded, and raise nothing.
"""
