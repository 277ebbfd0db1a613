"""The live exam: random training programs, what fullbore says of them, and what its advice then brings.

case.py          a program, what is planted in it, and the changes it can take
programs/        the generator: a seed gives a case
conditions.py    the machine's condition: fewer cores, a quota, foreign load
laboratory.py    runs a program, recorded or not, and reads the program's own clock
advice.py        which of the program's changes a finding recommends
exam.py          one case from start to end: recorded half, then A B A B
score.py         what a finished case says of the verdict
summary.py       tables over many finished cases
"""
