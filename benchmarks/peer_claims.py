"""Make the table of docs/peers.md: what papers claim, and what holds over all pairs of 300 words.

python benchmarks/peer_claims.py            print it
python benchmarks/peer_claims.py --write    put it into the page
"""

import math
from pathlib import Path

import numpy as np

from common import print_or_write
from faulty_mechanisms import clusters
from hf_dxprivacy.evaluation.peer_candidates import CusText, SynTF, TruncatedGumbel
from hf_dxprivacy.evaluation.peers import Diffractor, SanText, Vickrey
from hf_dxprivacy.mechanisms import Mechanism, RandomizedResponse
from hf_dxprivacy.spaces import EmbeddingSpace
from peer_laws import Array, gumbel_logs, largest_log_ratios, vickrey_on_a_line, worst_share

PAGE = Path(__file__).resolve().parents[1] / "docs" / "peers.md"
WORDS = np.arange(300)


def main() -> None:
    """Print the table, or write it into the page."""
    print_or_write(__doc__, PAGE, Path(__file__).name, table)


def table() -> str:
    """Return the table in Markdown."""
    space = clusters().build_hierarchy(progress=False)
    distances = space.distances(WORDS)
    everywhere = np.ones((300, 300))
    head = ["mechanism", "paper", "ε", "claimed", "largest log-ratio / claim", "holds, stated here"]
    rows = [
        [*head, "largest log-ratio / stated"],
        ["---"] * 3 + ["---", "---:", "---", "---:"],
        _exact(SanText(space, 2.0), "ε·d", 2.0 * distances, "ε·d"),
        _vickrey(0.5),
        _exact(Diffractor(space, 0.05, 1), "ε per place of a list", None, "ε per place"),
        _exact(Diffractor(space, 0.05), "the same", None, "ε per place of the farthest list"),
        _exact(
            *(CusText(space, 4.0), "ε for any two words", 4.0 * everywhere),
            "ε inside a cluster; ∞ between clusters",
        ),
        _exact(
            *(SynTF(space, 4.0), "ε for any two words (public code)", 4.0 * everywhere),
            "ε for equal candidates; ∞ for others",
        ),
        _gumbel(space, distances),
        _exact(
            *(RandomizedResponse(space, 4.0), "ε for any two words", 4.0 * everywhere),
            "ε for any two words",
        ),
    ]
    return "".join(f"| {' | '.join(row)} |\n" for row in rows)


def _exact(mechanism: Mechanism, claim: str, claimed: Array | None, holds: str) -> list[str]:
    ratios = largest_log_ratios(mechanism.probabilities(WORDS))  # type: ignore[attr-defined]
    return _row(mechanism, claim, ratios, claimed, holds)


def _vickrey(epsilon: float) -> list[str]:
    """Return the row of 300 words on a line, where the law is an integral."""
    places = np.random.default_rng(3).normal(size=300).cumsum()
    line = EmbeddingSpace.from_vectors(clusters().words, places[:, None])
    ratios = largest_log_ratios(vickrey_on_a_line(places, places, epsilon, 0.5))
    allowed = epsilon * np.abs(places - places[:, None])
    return _row(Vickrey(line, epsilon), "ε·d", ratios, allowed, "ε·d")


def _gumbel(space: EmbeddingSpace, distances: Array) -> list[str]:
    """Return the row of the law in exact arithmetic, whose least probabilities are e^(−1000)."""
    epsilon = float(np.ceil(1.2 * (5.0 + 2.0 * math.log(300)) / distances[distances > 0].min()))
    logs = gumbel_logs(distances, epsilon)
    ratios = np.stack([np.abs(logs - row).max(axis=1) for row in logs])
    mechanism = TruncatedGumbel(space, epsilon)
    return _row(mechanism, "ε·d", ratios, epsilon * distances, "∞ between any two words")


def _stated(mechanism: Mechanism) -> Array:
    pairs = np.meshgrid(WORDS, WORDS)
    away = mechanism.pair_distances(pairs[0].ravel(), pairs[1].ravel()).reshape(300, 300)
    return mechanism.certified_epsilon * away


def _row(
    mechanism: Mechanism, claim: str, ratios: Array, claimed: Array | None, holds: str
) -> list[str]:
    stated = _stated(mechanism)
    over = worst_share(ratios, stated if claimed is None else claimed)
    nothing = bool(np.isinf(stated[~np.eye(300, dtype=bool)]).all())
    paper = mechanism.paper or "Warner 1965"
    lists = mechanism.parameters.get("lists")
    name = f"`{mechanism.name}`" + (f", {lists} list{'s' * (lists != 1)}" if lists else "")
    return [
        *(name, paper, f"{mechanism.epsilon:g}", claim),
        "∞" if math.isinf(over) else f"{over:.3f}",
        holds,
        "–" if nothing else f"{worst_share(ratios, stated):.3f}",
    ]


if __name__ == "__main__":
    main()
