"""What Fullbore itself offers to a script: marks for its loops, loaders of fullbore.data; the run of a tracker that it
has open, and the metrics that it logs."""
