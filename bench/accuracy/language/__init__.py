"""`exam.py language`: programs that train language models as people write them, with one planted cause each."""
