"""Where this package keeps what it can compute again."""

import os
from pathlib import Path


def cache_dir() -> Path:
    """Return the user's cache folder for this package; it need not exist yet.

    The first of: ``$HF_DXPRIVACY_CACHE``, ``$HF_HOME/dxprivacy``,
    ``$XDG_CACHE_HOME/huggingface/dxprivacy``, ``~/.cache/huggingface/dxprivacy``. The variables are
    read at each call.
    """
    if own := os.environ.get("HF_DXPRIVACY_CACHE"):
        return Path(own).expanduser()
    if home := os.environ.get("HF_HOME"):
        return Path(home).expanduser() / "dxprivacy"
    base = os.environ.get("XDG_CACHE_HOME") or "~/.cache"
    return Path(base).expanduser() / "huggingface" / "dxprivacy"
