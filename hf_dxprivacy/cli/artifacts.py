"""What a folder holds that was saved."""

from pathlib import Path
from typing import TYPE_CHECKING

from hf_dxprivacy.errors import ArtifactError

if TYPE_CHECKING:
    from hf_dxprivacy.hub import Publishable


def load(folder: str, *, whole: bool) -> "Publishable":
    """Load a space, a privatizer or a selector from a folder.

    Args:
        folder: The folder.
        whole: Whether to load the index and the lists of a space too, if it has them.

    Raises:
        ArtifactError: If the folder holds none of them, or is damaged.
    """
    # Late, because they take a while to load, which help should not.
    from hf_dxprivacy import settings
    from hf_dxprivacy.hub.folder import read_config
    from hf_dxprivacy.privatizer import DxPrivatizer
    from hf_dxprivacy.slot_privatizer import SlotPrivatizer
    from hf_dxprivacy.slots import LowTransitionSelector, stored
    from hf_dxprivacy.spaces import EmbeddingSpace, indexing, listing

    path = Path(folder)
    if (path / settings.FILE).is_file():
        privatizers = {kind.__name__: kind for kind in (DxPrivatizer, SlotPrivatizer)}
        return privatizers[settings.owner_in(path)].from_pretrained(path)
    if (path / stored.SETTINGS).is_file():
        return LowTransitionSelector.from_pretrained(path)
    if not path.is_dir():
        raise ArtifactError(f"{folder}: expected a folder that save_pretrained has written")
    if not whole:
        return EmbeddingSpace.from_pretrained(path)
    kind, lists = indexing.kind_in(path), listing.are_in(read_config(path))
    return EmbeddingSpace.from_pretrained(path, index=kind, neighbour_lists=lists)
