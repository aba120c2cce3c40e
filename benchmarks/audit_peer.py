"""Hold the mechanisms of mldp-text 0.1.2 to the ε·d that they state, with our audit.

mldp-text lives in a virtual environment of its own, which is made on the first run, and is asked
for words by the line protocol. Words: twenty of GloVe and their nearest neighbours, on their first
principal components, scaled so that the median distance to the nearest is 1.

    python benchmarks/audit_peer.py
    python benchmarks/audit_peer.py --mechanism VickreyMechanism --draws 1000000
"""

import tempfile
from pathlib import Path

import numpy as np

import common
from hf_dxprivacy import EmbeddingSpace
from hf_dxprivacy.evaluation import mldp_text
from hf_dxprivacy.randomness import keyed_generator
from hf_dxprivacy.verify.check import GuaranteeCheck
from hf_dxprivacy.verify.laws import verify_guarantee

REQUIREMENT = "mldp-text==0.1.2"
SEEDS, NEIGHBOURS = 20, 9
UNKNOWN = ("firstunknownword", "secondunknownword")

# Its mechanisms and the ε of each: at one like the others, TEM raises an error as soon as γ covers
# all words and ⊥ wins. TruncatedGumbel calls what Python 3.11 has no more, and is left out.
MECHANISMS = {
    "MultivariateCalibrated": 1.0,
    "Mahalanobis": 1.0,
    "VickreyMechanism": 1.0,
    "TEM": 4.0,
}


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
    python = common.peer_python("mldp-text", REQUIREMENT)
    rows: list[dict[str, object]] = []
    print(f"{len(space)} words, {space.dim} dimensions")
    for name in options.mechanism:
        with (
            tempfile.TemporaryDirectory() as folder,
            mldp_text(python, name, MECHANISMS[name], space, folder) as peer,
        ):
            assert callable(peer.claim)
            for unknown in ((), UNKNOWN):
                words = [*space.words[: options.inputs], *unknown]
                found = verify_guarantee(
                    peer.privatize,
                    words,
                    peer.claim,
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
