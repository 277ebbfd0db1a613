"""What the live and the simulated part of the exam share: reading verdicts, and tables over many cases."""
