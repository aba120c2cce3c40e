"""The laws of peers, worked out anew, live beside the script that makes their table."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2] / "benchmarks"))
