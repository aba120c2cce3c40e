"""From relations to a space that can be shared: trained, scaled, measured, with its origin."""

from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

from hf_dxprivacy.spaces.space import EmbeddingSpace
from hf_dxprivacy.training.evaluation import reconstruction
from hf_dxprivacy.training.poincare import train_poincare
from hf_dxprivacy.training.recipe import PoincareRecipe
from hf_dxprivacy.training.relations import Relations
from hf_dxprivacy.training.webisadb import WebIsADB
from hf_dxprivacy.training.wordnet import read_licence

# Nodes whose reconstruction stands for that of all.
SAMPLE = 2000

WORDNET_LICENCE_FILE = "LICENSE-WordNet.txt"

WEBISADB = {
    "source": "WebIsADB (Seitner et al., LREC 2016), extracted from the Common Crawl",
    "licence": "cc-by-nc-sa-3.0",
    "language": "en",
}


def webisadb_origin(relations: WebIsADB, filters: Mapping[str, Any]) -> dict[str, Any]:
    """Return the provenance of relations of WebIsADB: licence, filters and what they removed.

    Args:
        relations: The relations.
        filters: The settings of `read_webisadb` that they were chosen by.
    """
    counts = asdict(relations.summary)
    # Two runs over the same files have the same provenance.
    del counts["seconds"]
    return {**WEBISADB, "filters": dict(filters), "counts": counts}


def wordnet_origin(path: str | Path) -> dict[str, Any]:
    """Return the provenance of relations of WordNet, with the licence that every copy has to bear.

    Args:
        path: Folder of the database files.

    Raises:
        ArtifactError: If they are missing.
    """
    return {
        "source": "WordNet 3.0 (Princeton University)",
        "licence": "WordNet",
        "licence_file": WORDNET_LICENCE_FILE,
        "licence_text": read_licence(path),
        "language": "en",
    }


def train_space(
    relations: Relations,
    dim: int = 10,
    recipe: PoincareRecipe | None = None,
    *,
    provenance: Mapping[str, Any],
    unit_step: bool = True,
    threads: int | None = None,
    device: str | None = None,
    checkpoint: str | Path | None = None,
    progress: bool = True,
) -> EmbeddingSpace:
    """Train a space and describe it.

    Args:
        relations: Pairs of a node and a class of it.
        dim: Number of dimensions n of the ball.
        recipe: Settings of the training.
        provenance: Where the relations come from. Recipe and reconstruction are added.
        unit_step: Scale so that the median distance to the nearest neighbour is 1, and ε counts
            such steps, as in the built-in spaces.
        threads: As for `train_poincare`.
        device: As for `train_poincare`.
        checkpoint: As for `train_poincare`.
        progress: Show progress bars.

    Raises:
        InvalidValueError: As `train_poincare` does.
        ArtifactError: If the checkpoint is damaged.
        MissingExtraError: As `train_poincare` does.
    """
    space = train_poincare(
        relations,
        dim,
        recipe,
        threads=threads,
        device=device,
        checkpoint=checkpoint,
        progress=progress,
    )
    found = reconstruction(space, relations, sample=SAMPLE)
    described = {
        **provenance,
        **space.provenance,
        "relations": len(relations),
        "reconstruction": asdict(found),
    }
    step = space.neighbour_distances((1,))[1] if unit_step else 1.0
    scale = 1.0 / step if step > 0 else 1.0
    return EmbeddingSpace(space.words, space.vectors, "poincare", scale, described)
