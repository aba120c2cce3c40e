"""Arrays and dicts to and from an artifact's folder; knows no mechanism and no space."""

from hf_dxprivacy.hub.cache import cache_dir
from hf_dxprivacy.hub.folder import Artifact, read_artifact, update_config, write_artifact

__all__ = ["Artifact", "cache_dir", "read_artifact", "update_config", "write_artifact"]
