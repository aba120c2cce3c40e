"""Data sets that one machine does not hold: the same release through Ray Data or Spark."""
