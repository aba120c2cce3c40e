"""Artifacts in folders and on the Hub, and their cards; imports neither mechanisms nor spaces."""

from typing import TYPE_CHECKING

from hf_dxprivacy._lazy import lazy, moved
from hf_dxprivacy.hub.artifact import cache_dir, read_artifact
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

if TYPE_CHECKING:
    from hf_dxprivacy.hub.atomic import atomic_write
    from hf_dxprivacy.hub.writing import update_config, write_artifact

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

# What writes is not needed to load.
__getattr__ = lazy(
    __name__,
    {
        "atomic_write": "hf_dxprivacy.hub.atomic",
        "update_config": "hf_dxprivacy.hub.writing",
        "write_artifact": "hf_dxprivacy.hub.writing",
    },
    moved(__name__, {"ReleasedDataset": "hf_dxprivacy.publishing"}),
)
