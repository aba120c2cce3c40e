"""Artifacts in folders and on the Hub, and their cards; knows no mechanism and no space."""

from hf_dxprivacy.hub.artifact import (
    Artifact,
    cache_dir,
    read_artifact,
    update_config,
    write_artifact,
)
from hf_dxprivacy.hub.atomic import atomic_folder, atomic_write, current_folder
from hf_dxprivacy.hub.download import (
    ArtifactSource,
    HubCommit,
    HubOptions,
    builtin_names,
    fetch,
    resolve,
)
from hf_dxprivacy.hub.publish import Publishable

__all__ = [
    "Artifact",
    "ArtifactSource",
    "HubCommit",
    "HubOptions",
    "Publishable",
    "atomic_folder",
    "atomic_write",
    "builtin_names",
    "cache_dir",
    "current_folder",
    "fetch",
    "read_artifact",
    "resolve",
    "update_config",
    "write_artifact",
]
