"""Artifacts in folders and on the Hub, and their cards; imports neither mechanisms nor spaces."""

from hf_dxprivacy._lazy import moved
from hf_dxprivacy.hub.artifact import cache_dir, read_artifact, update_config, write_artifact
from hf_dxprivacy.hub.atomic import atomic_write
from hf_dxprivacy.hub.download import (
    ArtifactSource,
    HubCommit,
    HubOptions,
    builtin_names,
    builtin_pools,
    fetch,
    is_builtin,
    resolve,
)
from hf_dxprivacy.hub.publish import Publishable

__all__ = [
    "ArtifactSource",
    "HubCommit",
    "HubOptions",
    "Publishable",
    "atomic_write",
    "builtin_names",
    "builtin_pools",
    "cache_dir",
    "fetch",
    "is_builtin",
    "read_artifact",
    "resolve",
    "update_config",
    "write_artifact",
]

__getattr__ = moved(__name__, {"ReleasedDataset": "hf_dxprivacy.publishing"})
