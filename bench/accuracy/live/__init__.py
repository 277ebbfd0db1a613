"""The live exam: random training programs, what fullbore says of them, and what its advice then brings.

case.py          a program, what is planted in it, and the changes it can take
programs/        the generator: a seed gives a case
conditions.py    the machine's condition: fewer cores, a quota, foreign load
laboratory.py    runs a program, recorded with its own clock, or in turns with a changed one
advice.py        which of the program's changes a finding recommends
examine.py       one case from start to end: recorded, then each change in turns with the program as it is
score.py         what a finished case says of the verdict
summary.py       tables over many finished cases
"""
