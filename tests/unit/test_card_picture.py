"""The picture of a card: a PNG that shows every mechanism, made without the state of pyplot."""

import io
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

from hf_dxprivacy.hub.cards import COLOURS, draw_picture, figures_digest


def point(
    epsilon: float, kept: list[float], support: list[float] | None, distinct: list[float]
) -> dict[str, Any]:
    return {"epsilon": epsilon, "kept": kept, "support": support, "distinct": distinct}


FIGURES: dict[str, Any] = {
    "unit": 2.0,
    "words": 50,
    "neighbour_words": 1000,
    "distances": {},
    "mechanisms": {
        "tem": [
            point(1.0, [0.1, 0.2], [40.0, 30.0], [90.0, 80.0]),
            point(2.0, [0.6, 0.7], [4.0, 3.0], [20.0, 10.0]),
        ],
        "laplace": [point(8.0, [0.5, 0.9], None, [50.0, 10.0])],
    },
    "settings": {"percentiles": [50], "pairs": 0, "runs": 100, "eta": 0.05},
}


def has_colour(png: bytes, colour: str) -> bool:
    with Image.open(io.BytesIO(png)) as image:
        pixels = np.asarray(image.convert("RGB"))
    wanted = [int(colour[place : place + 2], 16) for place in (1, 3, 5)]
    return bool((pixels == wanted).all(axis=2).any())


def test_it_is_a_png_of_its_size_that_names_its_figures() -> None:
    with Image.open(io.BytesIO(draw_picture(FIGURES))) as image:
        image.load()
        assert (image.format, image.size) == ("PNG", (1000, 420))
        assert image.info["Figures"] == figures_digest(FIGURES)


def test_every_mechanism_is_drawn_in_its_colour() -> None:
    drawn = draw_picture(FIGURES)
    assert len(drawn) < 100_000
    assert has_colour(drawn, COLOURS["tem"])
    assert has_colour(drawn, COLOURS["laplace"])
    assert not has_colour(drawn, COLOURS["calibrated"])


def test_other_figures_make_another_picture() -> None:
    changed = [point(1.0, [0.1, 0.3], [40.0, 30.0], [90.0, 80.0]), FIGURES["mechanisms"]["tem"][1]]
    other = {**FIGURES, "mechanisms": {**FIGURES["mechanisms"], "tem": changed}}
    assert figures_digest(other) != figures_digest(FIGURES)
    assert draw_picture(other) != draw_picture(FIGURES)
    assert draw_picture(FIGURES) == draw_picture(FIGURES)


def test_neither_windows_nor_their_state_are_touched() -> None:
    code = (
        "import sys; sys.path.insert(0, sys.argv[1])\n"
        "from hf_dxprivacy.hub.cards import draw_picture\n"
        "from test_card_picture import FIGURES\n"
        "draw_picture(FIGURES)\n"
        "print('matplotlib' in sys.modules, 'matplotlib.pyplot' in sys.modules)"
    )
    folder = str(Path(__file__).parent)
    done = subprocess.run(
        [sys.executable, "-c", code, folder], capture_output=True, text=True, check=True
    )
    assert done.stdout.split() == ["True", "False"]
