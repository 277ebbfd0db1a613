"""Runs in Python: what was recorded, as arrays and plain objects, and recording from within a script.

program    finds and calls the program `fullbore`, which alone reads run files
tables     its tables, as columns
reading    `fullbore.read`
recorder   the other process: `fullbore run` beside this one, and what the two tell each other
recording  `fullbore.record`
"""
