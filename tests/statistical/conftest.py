"""The faulty mechanisms that audits have to catch live beside the scripts that show them."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2] / "benchmarks"))
