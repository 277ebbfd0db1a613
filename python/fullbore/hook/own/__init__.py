"""What Fullbore itself offers to a script: marks for its loops, loaders of fullbore.data; and the run of a tracker that
it has open."""
