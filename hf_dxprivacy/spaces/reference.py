"""References to stored spaces: name, commit and digest."""

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from hf_dxprivacy.errors import ArtifactError, InvalidValueError
from hf_dxprivacy.hub import HubOptions
from hf_dxprivacy.spaces.space import EmbeddingSpace


def refer(space: EmbeddingSpace) -> dict[str, Any]:
    """Return where a space is found again, and its digest, which has to be the same then.

    Returns:
        "name" of a built-in space, of a repository on the Hub, or path of a local folder;
        "commit", None but for a repository; "digest".

    Raises:
        InvalidValueError: If it is in memory only.
    """
    if space.commit is not None:
        name, commit = space.commit.repo_id, space.commit.sha
        return {"name": name, "commit": commit, "digest": space.digest}
    if space.location is None:
        raise InvalidValueError(
            "the space is in memory only, so nothing can refer to it; save it with "
            "space.save_pretrained or space.push_to_hub, load it from there with "
            "EmbeddingSpace.from_pretrained, and make the privatizer over that"
        )
    return {"name": space.location, "commit": None, "digest": space.digest}


def require_digest(reference: Mapping[str, Any], digest: str) -> None:
    """Require what was loaded to be what is referred to.

    Raises:
        ArtifactError: If it has changed.
    """
    if digest != reference["digest"]:
        raise ArtifactError(
            f"the space {reference['name']!r} has the digest {digest}, but the privatizer was "
            f"saved with {reference['digest']}: the space was changed since; its ε would be one of "
            "another metric, so make a new privatizer"
        )


def load(reference: Mapping[str, Any], access: HubOptions) -> EmbeddingSpace:
    """Load a space that is referred to; see `require_digest`."""
    space = EmbeddingSpace.from_pretrained(
        reference["name"], revision=reference["commit"], **asdict(access)
    )
    require_digest(reference, space.digest)
    return space
