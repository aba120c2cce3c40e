"""Data sets that one machine does not hold: the same release through Ray Data or Spark."""

from hf_dxprivacy.distributed.ray import privatize_ray
from hf_dxprivacy.distributed.spark import privatize_spark

__all__ = ["privatize_ray", "privatize_spark"]
