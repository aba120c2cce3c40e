"""Render the cards in model_cards/ from what is stored with each space, and each pool of sentences.

python scripts/render_model_cards.py            render them, with their pictures
python scripts/render_model_cards.py --check    fail if a card or picture is not of what is stored
"""

import argparse
import shutil
import sys
import tempfile
from pathlib import Path
from typing import Any

from PIL import Image

from hf_dxprivacy import EmbeddingSpace, SentencePool
from hf_dxprivacy.hub.artifact import read_json
from hf_dxprivacy.hub.cards import draw_picture, figures_digest, space_card, stored_figures
from hf_dxprivacy.spaces.tree_text import branches

ROOT = Path(__file__).resolve().parents[1]
CARDS = ROOT / "model_cards"

# The config.json that a card is made from, by the name of the space.
CONFIGS = {
    name: ROOT / "hf_dxprivacy" / "builtin" / name / "config.json"
    for name in ("english", "wordnet-gloss", "wordnet-poincare")
}
POOLS = ("wordnet-sentences",)


def main() -> int:
    """Render or check the cards."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--check", action="store_true")
    arguments = parser.parse_args()
    stale = [
        name for name in (*CONFIGS, *POOLS) if not (check if arguments.check else render)(name)
    ]
    for name in stale:
        print(f"model_cards/{name}: run scripts/render_model_cards.py", file=sys.stderr)
    return int(bool(stale))


def render(name: str) -> bool:
    """Write a card and its picture."""
    CARDS.mkdir(exist_ok=True)
    if name in POOLS:
        (CARDS / f"{name}.md").write_text(pool_card(name), "utf-8")
        return True
    card, figures = rendered(name)
    (CARDS / f"{name}.md").write_text(card, "utf-8")
    (CARDS / f"{name}.png").write_bytes(draw_picture(figures))
    return True


def check(name: str) -> bool:
    """Tell whether a card is what would be rendered, and its picture of the same figures.

    The picture itself is another one with every version of the fonts.
    """
    if name in POOLS:
        return (CARDS / f"{name}.md").read_text("utf-8") == pool_card(name)
    card, figures = rendered(name)
    with Image.open(CARDS / f"{name}.png") as image:
        drawn_from = image.info.get("Figures")
    return (CARDS / f"{name}.md").read_text("utf-8") == card and drawn_from == figures_digest(
        figures
    )


def rendered(name: str) -> tuple[str, dict[str, Any]]:
    """Return the card of a space, and its figures."""
    config = read_json(CONFIGS[name], "expected the config of a space")
    space_digest = config["figures"]["digest"]
    figures = stored_figures(config["figures"], space_digest)
    if figures is None:
        raise SystemExit(f"{CONFIGS[name]}: the figures are damaged; measure them anew")
    space = EmbeddingSpace.from_pretrained(name)
    card = space_card(
        config,
        space_digest,
        license=None,
        name=name,
        picture=f"{name}.png",
        licence_file=config["provenance"].get("licence_file"),
        branches=None if space.hierarchy is None else branches(space.hierarchy, space.words),
    )
    return card, figures


def pool_card(name: str) -> str:
    """Return the card of a pool of sentences, which has no picture."""
    pool = SentencePool.from_pretrained(name)
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place) / name
        shutil.copytree(ROOT / "hf_dxprivacy" / "builtin" / name, folder)
        pool.write_card(folder)
        return (folder / "README.md").read_text("utf-8")


if __name__ == "__main__":
    raise SystemExit(main())
