"""What Fullbore itself offers to a script: marks for its loops, and loaders of fullbore.data."""
