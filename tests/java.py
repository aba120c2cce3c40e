"""The Java that Spark needs."""

import os
import re
import shutil
import subprocess
from pathlib import Path


def java_version() -> int:
    """Return the major version of the Java that Spark would start; 0 without any."""
    home = os.environ.get("JAVA_HOME")
    java = shutil.which("java" if home is None else str(Path(home, "bin", "java")))
    if java is None:
        return 0
    shown = subprocess.run([java, "-version"], capture_output=True, text=True).stderr
    found = re.search(r'version "(\d+)', shown)
    return 0 if found is None else int(found[1])
