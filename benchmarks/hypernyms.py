"""What nouns become in a contracted ball, by WordNet's relations, as tables of docs/hyperbolic.md.

    python benchmarks/hypernyms.py --json hypernyms.json     measure
    python benchmarks/hypernyms.py --page hypernyms.json     put the tables on the page

Inputs are 1,000 of the 5,000 most frequent words of `wordnet-poincare`, without stop words. The
kind of an output follows from the first senses of both words in WordNet 3.0 (Debian: wordnet-base):
a synonym shares the synset, a hypernym or hyponym is at most three steps away, a sibling shares a
direct class, a cousin one two steps up. All draws are seeded. The attacker knows the mechanism,
that the word is one of the 500 most frequent ones, and how frequent each is (Zipf's law).
`authors` needs the development data, `additions` those and the extra ``train``.
"""

import json
from collections.abc import Callable, Iterable, Sequence
from functools import cache, partial
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

import common
from calibration_tables import flat_add
from hf_dxprivacy import EmbeddingSpace
from hf_dxprivacy.evaluation import reconstruction
from hf_dxprivacy.mechanisms import Mechanism, create_mechanism
from hf_dxprivacy.noise import ball_points, lebesgue_radius, riemannian_laplace_radius
from hf_dxprivacy.randomness import keyed_generator
from hf_dxprivacy.search import nearest_poincare
from hf_dxprivacy.spaces.metrics import boundary_gap, mobius_add
from hf_dxprivacy.text import RowReader, stop_words
from hf_dxprivacy.training import PoincareConfig, read_wordnet, train_poincare
from hf_dxprivacy.training.wordnet import DEFAULT_PATH, read_senses, read_synsets
from released_words import Authors

PAGE = common.HERE.parent / "docs" / "hyperbolic.md"
KINDS = ("stays", "synonym", "hypernym", "hyponym", "sibling", "cousin", "other")
STEPS = 3
FREQUENT, INPUTS, CANDIDATES = 5_000, 1_000, 500
DRAWS, GUESSES = 10, 200
# How far ε is above its floor of (n−1)/scale.
ABOVE = 1.01
FACTORS = (0.6, 0.5, 0.4, 0.3)
# Of the experiment with 100 dimensions.
ROUNDS = 1_000
FAR_FACTORS = (0.3, 0.15)
NEAR_FACTORS = {"10-d": (1.0, 0.5, 0.4, 0.3), "100-d": (1.0, 0.2, 0.15)}
SENTENCES = (
    "the waiter spilled soup on my jacket",
    "my lawyer met the nurse in a hospital",
    "she plays guitar and piano in a church",
    "the dog chased a rabbit through the forest",
    "he bought cheese and wine for his uncle",
    "the patient has pneumonia and takes aspirin",
    "our train to london left the station late",
    "the thief stole a bicycle and a camera",
)

Ids = NDArray[np.int64]
Key = tuple[str, int]
Table = list[dict[str, Any]]


class Kinship:
    """How the first senses of two nouns are related in WordNet."""

    def __init__(self, wordnet: str) -> None:
        self._above = {s.key: tuple(s.hypernyms()) for s in read_synsets(wordnet, ("noun",))}
        senses = read_senses(wordnet, "noun")
        self._first = {word: ("n", offsets[0]) for word, offsets in senses.items()}
        self._heights: dict[Key, dict[Key, int]] = {}

    def heights(self, key: Key) -> dict[Key, int]:
        """Return how many steps above a synset its classes are, itself at 0."""
        if key not in self._heights:
            found, layer = {key: 0}, [key]
            while layer:
                layer = [up for low in layer for up in self._above[low] if up not in found]
                for up in layer:
                    found.setdefault(up, 1 + min(found[k] for k in found if up in self._above[k]))
            self._heights[key] = found
        return self._heights[key]

    def kind(self, word: str, output: str) -> str:
        """Return what an output is to a word."""
        if word == output:
            return "stays"
        a, b = self._first.get(word), self._first.get(output)
        if a is None or b is None:
            return "other"
        up, down = self.heights(a), self.heights(b)
        if a == b:
            return "synonym"
        if b in up or a in down:
            near = min(up.get(b, 99), down.get(a, 99)) <= STEPS
            return ("hypernym" if b in up else "hyponym") if near else "other"
        for steps, name in ((1, "sibling"), (2, "cousin")):
            classes = [{k for k, height in of.items() if 0 < height <= steps} for of in (up, down)]
            if classes[0] & classes[1]:
                return name
        return "other"

    def shares(self, words: Sequence[str], outputs: Sequence[str]) -> dict[str, float]:
        """Return the share of each kind, and that of relatives among the words that change."""
        kind = cache(self.kind)
        kinds = [kind(a, b) for a, b in zip(words, outputs, strict=True)]
        found = {name: kinds.count(name) / len(kinds) for name in KINDS}
        related = sum(found[name] for name in KINDS[1:5])
        return found | {"relatives of the changed": related / max(1e-9, 1.0 - found["stays"])}


def frequent(ball: EmbeddingSpace) -> list[str]:
    """Return words of a space that `english` has too, the most frequent first, no stop words."""
    stop = stop_words("english")
    english = EmbeddingSpace.from_pretrained("english")
    return [word for word in english.words if word in ball and word not in stop]


def floor(ball: EmbeddingSpace) -> float:
    """Return an ε just above the least one of the Riemannian noise."""
    return ABOVE * (ball.dim - 1) / ball.scale


def fates(options: Any) -> dict[str, Table]:
    """What the words become by setting."""
    del options
    kin, ball = Kinship(DEFAULT_PATH), EmbeddingSpace.from_pretrained("wordnet-poincare")
    words = frequent(ball)
    inputs = words[: FREQUENT : FREQUENT // INPUTS]
    rows: Table = []

    def add(title: str, mechanism: Mechanism) -> dict[str, float]:
        row, shares = fate(title, mechanism, inputs, words[:CANDIDATES], kin)
        rows.append(row)
        print(row, flush=True)
        return shares

    lebesgue = create_mechanism("hyperbolic", ball, 1.0, noise="lebesgue")
    add("`hyperbolic`, noise of [H], ε = 1", lebesgue)
    add("`hyperbolic`", create_mechanism("hyperbolic", ball, floor(ball)))
    stays = 0.5
    for factor in FACTORS:
        near = ball.contract(factor)
        name = f"`hyperbolic`, `contract({factor:g})`"
        shares = add(name, create_mechanism("hyperbolic", near, floor(near)))
        stays = shares["stays"] if factor == 0.5 else stays
    half = ball.contract(0.5)
    for title, space, mechanism in (
        ("`tem`, `contract(0.5)`", half, "tem"),
        ("`tem`", ball, "tem"),
        ("`hierarchical`, tree of the ball", ball, "hierarchical"),
        ("`hierarchical` over the classes of WordNet", by_classes(ball), "hierarchical"),
        ("`hierarchical`, `english`", EmbeddingSpace.from_pretrained("english"), "hierarchical"),
    ):
        made = at_kept(mechanism, space, inputs[::10], stays)
        add(f"{title}, ε = {made.epsilon:.3g}", made)
    return {"fates": rows, "examples": examples(half, ball)}


def fate(
    title: str, mechanism: Mechanism, inputs: Sequence[str], known: Sequence[str], kin: Kinship
) -> tuple[dict[str, Any], dict[str, float]]:
    """Return the row of a mechanism, and its shares."""
    space = mechanism.space
    drawn = mechanism.sample(np.repeat(space.ids(inputs), DRAWS), keyed_generator(0, title))
    shares = kin.shares(
        [word for word in inputs for _ in range(DRAWS)], [space.words[i] for i in drawn.tolist()]
    )
    prior = {word: 1.0 / (rank + 2.7) for rank, word in enumerate(known)}
    guessed = reconstruction(
        *(mechanism, prior), tops=(1,), bands=(), draws=GUESSES, rng=keyed_generator(1, title)
    )
    near = mechanism.guarantee.neighbour_epsilon
    row = {"setting": title} | {name: f"{share:.1%}" for name, share in shares.items()}
    row["guessed"] = f"{float(guessed.prior @ guessed.success[:, 0]):.2f}"
    row["ε·d to neighbour 1 / 10 / 100"] = " / ".join(f"{near[k]:.1f}" for k in (1, 10, 100))
    return row | {"any two words": f"{mechanism.local_epsilon:.1f}"}, shares


def by_classes(ball: EmbeddingSpace) -> EmbeddingSpace:
    """Return the ball with WordNet's own classes as its tree."""
    direct = read_wordnet(nodes="words", max_senses=1, closure=False)
    names = [(direct.nodes[node], direct.nodes[top]) for node, top in direct.pairs.tolist()]
    return ball.build_hierarchy(relations=names)


def at_kept(name: str, space: EmbeddingSpace, words: Sequence[str], stays: float) -> Mechanism:
    """Return the mechanism of the ε at which words stay as often as asked for."""
    low, high, rows = 0.2, 40.0 / space.neighbour_distances()[1], space.ids(words)
    for _ in range(12):
        middle = float(np.sqrt(low * high))
        found = create_mechanism(name, space, middle)
        kept = found.probabilities(rows)[np.arange(len(rows)), rows].mean()  # type: ignore[attr-defined]
        low, high = (middle, high) if kept < stays else (low, middle)
    return create_mechanism(name, space, high)


def examples(half: EmbeddingSpace, ball: EmbeddingSpace) -> Table:
    """Release the nouns of some sentences, one draw each; the words of the ball are the nouns."""
    stop, settings = stop_words("english"), {
        "`hyperbolic`, `contract(0.5)`": create_mechanism("hyperbolic", half, floor(half)),
        "`hyperbolic`, `contract(0.4)`": create_mechanism(
            "hyperbolic", ball.contract(0.4), floor(ball)
        ),
        "`hierarchical`, ε = 1.75": create_mechanism("hierarchical", ball, 1.75),
    }  # fmt: skip
    verbs = {"spilled", "met", "plays", "chased", "bought", "takes", "left", "late", "stole", "has"}
    rows: Table = []
    for sentence in SENTENCES:
        row: dict[str, Any] = {"original": sentence}
        for name, mechanism in settings.items():
            words = sentence.split()
            nouns = [i for i, w in enumerate(words) if w in ball and w not in stop | verbs]
            ids = ball.ids([words[i] for i in nouns])
            rng = keyed_generator(2, name, sentence)
            for i, output in zip(nouns, mechanism.sample(ids, rng).tolist(), strict=True):
                new = ball.words[output]
                words[i] = new if new == words[i] else f"**{new}**"
            row[name] = " ".join(words)
        rows.append(row)
    return rows


@cache
def hundred(data: Path) -> EmbeddingSpace:
    """Train a ball of 100 dimensions on the nouns that GloVe has too."""
    shared = EmbeddingSpace.from_pretrained("wordnet-poincare").words
    glove = common.glove(data)
    relations = read_wordnet(DEFAULT_PATH, nodes="words", max_senses=1)
    relations = relations.among({word for word in shared if word in glove})
    config = PoincareConfig(epochs=40, burn_in=10)
    return train_poincare(relations, 100, config, threads=1, progress=False)


def released(
    ball: EmbeddingSpace, ids: Ids, rng: np.random.Generator, by: str, epsilon: float
) -> Ids:
    """Return outputs under noise that is moved by Möbius addition, certified, or added as in [H].

    Args:
        ball: The space.
        ids: (m,) rows, −1 for unknown words.
        rng: Of the noise.
        by: "⊕", with the Riemannian noise; or "+", with that of Eq. 7.
        epsilon: ε by the distance of the ball.
    """
    radius = riemannian_laplace_radius if by == "⊕" else lebesgue_radius
    radii = radius(rng, len(ids), ball.dim, epsilon * ball.scale)
    add = mobius_add if by == "⊕" else flat_add
    noisy = add(ball.points(ids), ball_points(rng, radii, ball.dim))
    return nearest_poincare(noisy, ball.vectors, boundary_gap(ball.vectors))


def additions(options: Any) -> dict[str, Table]:
    """N_w in 100 dimensions by contraction and by addition, 500 words, 1,000 draws each."""
    kin, ball = Kinship(DEFAULT_PATH), options.ball or hundred(options.data)
    words = frequent(ball)
    inputs = words[:: len(words) // 500][:500]
    ids, rows = ball.ids(inputs), []
    for factor in FAR_FACTORS:
        near = ball if factor == 1.0 else ball.contract(factor)
        row: dict[str, Any] = {"contract": f"{factor:g}"}
        distance = near.neighbour_distances()[1] * floor(near)
        row["ε·d to neighbour 1, by ⊕"] = f"{distance:.1f}"
        for by, epsilon in (("⊕", floor(near)), ("+", 1.0)):
            rng = keyed_generator(0, "additions", by, repr(factor))
            found = np.concatenate(
                [
                    released(near, np.repeat(part, ROUNDS), rng, by, epsilon)
                    for part in np.array_split(ids, 25)
                ]
            ).reshape(len(ids), ROUNDS)
            kept = (found == ids[:, None]).mean(axis=1)
            some = found[:, : ROUNDS // 20]
            shares = kin.shares(
                [word for word in inputs for _ in range(some.shape[1])],
                [ball.words[i] for i in some.ravel().tolist()],
            )
            row |= {f"w {by} z, mean N_w": f"{kept.mean():.3f}"}
            row |= {f"{by}, largest": f"{kept.max():.3f}", f"{by}, least": f"{kept.min():.3f}"}
            row[f"{by}, relatives of the changed"] = f"{shares['relatives of the changed']:.0%}"
        rows.append(row)
        print(row, flush=True)
    return {"additions": rows}


def authors(options: Any) -> dict[str, Table]:
    """E-mails (PAN11, Enron small) whose author is found, as in table III of [H]."""
    mails = Authors(options.data / "authorship" / "pan11_enron_small.jsonl.gz", ("test",))
    ball = EmbeddingSpace.from_pretrained("wordnet-poincare")
    large = options.ball or hundred(options.data)
    rows: Table = []

    def add(title: str, space: EmbeddingSpace, draw: Callable[[Ids], Ids]) -> None:
        texts, kept = replaced(mails.texts, space, draw)
        found = mails.found(texts)
        rows.append({"release": title, "known words that stay": f"{kept:.0%}", "found": found})
        print(rows[-1], flush=True)

    add("none", ball, lambda ids: ids)
    for name, space in (("10-d", ball), ("100-d", large)):
        for by, factor in product(("⊕", "+"), NEAR_FACTORS[name]):
            near = space if factor == 1.0 else space.contract(factor)
            epsilon = floor(near) if by == "⊕" else 1.0
            rng = keyed_generator(3, name, by, repr(factor))
            draw = partial(released, near, rng=rng, by=by, epsilon=epsilon)
            add(f"{name}, w {by} z, contract({factor:g})", near, draw)
    for level in (1.25, 1.5, 1.75):
        tree = create_mechanism("hierarchical", ball, level)
        draw = partial(tree.sample, rng=keyed_generator(3, "tree", repr(level)))
        add(f"10-d, tree, ε = {level:g}", ball, draw)
    return {"authors": rows}


def replaced(
    texts: Iterable[str], space: EmbeddingSpace, draw: Callable[[Ids], Ids]
) -> tuple[list[str], float]:
    """Return texts with drawn words, and the share of the words of the space that stay."""
    reader = RowReader()
    rows = [reader.read_text(text) for text in texts]
    words = [word.lower() for row in rows for word in row.words]
    ids = space.ids(words)
    outputs, known = draw(ids), ids >= 0
    # Where nothing is drawn, unknown words are as they were.
    new = iter(
        space.words[o] if o >= 0 else w for o, w in zip(outputs.tolist(), words, strict=True)
    )
    made = [row.detokenize([next(new) for _ in row.words]) for row in rows]
    return made, float((outputs == ids)[known].mean())


PARTS: dict[str, Callable[[Any], dict[str, Table]]] = {
    function.__name__: function for function in (fates, additions, authors)
}


def main() -> None:
    """Measure, or render."""
    arguments = common.parser(__doc__)
    arguments.add_argument("--parts", nargs="+", choices=PARTS, default=list(PARTS))
    arguments.add_argument("--page", type=Path, help="JSON of an earlier run to render")
    arguments.add_argument(
        "--ball", type=EmbeddingSpace.from_pretrained, help="folder of a trained 100-d ball"
    )
    options = arguments.parse_args()
    if options.page is not None:
        for name, rows in json.loads(options.page.read_text("utf-8"))["tables"].items():
            common.write_into(
                PAGE, f"{name}: made by benchmarks/hypernyms.py", common.markdown(rows)
            )
        return
    found: dict[str, Table] = {}
    if options.json is not None and options.json.exists():
        found = json.loads(options.json.read_text("utf-8"))["tables"]
    for part in options.parts:
        found |= PARTS[part](options)
        for title, rows in found.items():
            print(f"\n## {title}\n\n{common.markdown(rows)}", flush=True)
        if options.json is not None:
            content = {"machine": common.machine(), "tables": found}
            options.json.write_text(json.dumps(content, indent=1, ensure_ascii=False), "utf-8")


if __name__ == "__main__":
    main()
