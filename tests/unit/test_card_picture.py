"""The picture of a card: a PNG that shows every mechanism, made without the state of pyplot."""

import io
import subprocess
import sys
from pathlib import Path

import numpy as np
from PIL import Image

from hf_dxprivacy.cards.figures import Figures, Point
from hf_dxprivacy.cards.picture import COLOURS, digest, picture

FIGURES = Figures(
    unit=2.0,
    words=50,
    neighbour_words=1000,
    distances={},
    mechanisms={
        "tem": (
            Point(1.0, (0.1, 0.2), (40.0, 30.0), (90.0, 80.0)),
            Point(2.0, (0.6, 0.7), (4.0, 3.0), (20.0, 10.0)),
        ),
        "laplace": (Point(8.0, (0.5, 0.9), None, (50.0, 10.0)),),
    },
)


def has_colour(png: bytes, colour: str) -> bool:
    with Image.open(io.BytesIO(png)) as image:
        pixels = np.asarray(image.convert("RGB"))
    wanted = [int(colour[place : place + 2], 16) for place in (1, 3, 5)]
    return bool((pixels == wanted).all(axis=2).any())


def test_it_is_a_png_of_its_size_that_names_its_figures() -> None:
    with Image.open(io.BytesIO(picture(FIGURES))) as image:
        image.load()
        assert (image.format, image.size) == ("PNG", (1000, 420))
        assert image.info["Figures"] == digest(FIGURES)


def test_every_mechanism_is_drawn_in_its_colour() -> None:
    drawn = picture(FIGURES)
    assert len(drawn) < 100_000
    assert has_colour(drawn, COLOURS["tem"])
    assert has_colour(drawn, COLOURS["laplace"])
    assert not has_colour(drawn, COLOURS["calibrated"])


def test_other_figures_make_another_picture() -> None:
    point = Point(1.0, (0.1, 0.3), (40.0, 30.0), (90.0, 80.0))
    mechanisms = {**FIGURES.mechanisms, "tem": (point, FIGURES.mechanisms["tem"][1])}
    other = Figures(2.0, 50, 1000, {}, mechanisms)
    assert digest(other) != digest(FIGURES)
    assert picture(other) != picture(FIGURES)
    assert picture(FIGURES) == picture(FIGURES)


def test_neither_windows_nor_their_state_are_touched() -> None:
    code = (
        "import sys; sys.path.insert(0, sys.argv[1])\n"
        "from hf_dxprivacy.cards.picture import picture\n"
        "from test_card_picture import FIGURES\n"
        "picture(FIGURES); print('matplotlib' in sys.modules, 'matplotlib.pyplot' in sys.modules)"
    )
    folder = str(Path(__file__).parent)
    done = subprocess.run(
        [sys.executable, "-c", code, folder], capture_output=True, text=True, check=True
    )
    assert done.stdout.split() == ["True", "False"]
