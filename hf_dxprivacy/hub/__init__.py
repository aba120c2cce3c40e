"""Arrays and dicts to and from an artifact's folder and the Hub; knows no mechanism, no space."""

from hf_dxprivacy.hub.cache import cache_dir
from hf_dxprivacy.hub.folder import Artifact, read_artifact, update_config, write_artifact
from hf_dxprivacy.hub.publish import Publishable
from hf_dxprivacy.hub.snapshot import HubAccess, HubCommit, fetch

__all__ = [
    "Artifact",
    "HubAccess",
    "HubCommit",
    "Publishable",
    "cache_dir",
    "fetch",
    "read_artifact",
    "update_config",
    "write_artifact",
]
