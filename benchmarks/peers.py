"""Words a second beside mldp-text and dp-diffractor, on the same words in one run.

Both peers (MIT licence) live in virtual environments of their own, made on the first run. The words
are those of the movie reviews (MR) that GloVe 840B 300-d (33,860 words) has, so that nobody is paid
for words that a peer returns as they are. Ours go through `Dataset.map` as texts, exponential
mechanisms with no row computed before; a peer gets a list of words. What is done once is not
counted: loading, training of an index, certification.

mldp-text gets the same vectors, and of its settings (faiss or not, one thread or all) the one that
is fastest here for a mechanism. Its faiss index is approximate, our search is exact. dp-diffractor
moves words within a list instead of a space, so its ε is another one; it gets the same words as its
only list, in the order of the file, and the reviews split into words already. It has a process for
each list.

    python benchmarks/peers.py
"""

import json
import os
import subprocess
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType
from typing import Any, NamedTuple

import datasets
import numpy as np

import common
from hf_dxprivacy import DxPrivatizer, EmbeddingSpace
from map_speed import Reviews

MLDP = """
import json, sys, time
import numpy as np
from gensim.models import KeyedVectors
from threadpoolctl import threadpool_limits
import mldp_text
stored = np.load(sys.argv[1])
words, vectors = stored["words"].tolist(), stored["vectors"]
table = KeyedVectors(vectors.shape[1])
table.add_vectors(words, vectors)
made = {}
print("ready", flush=True)
for line in sys.stdin:
    name, epsilon, use_faiss, threads, tokens = json.loads(line)
    if (name, epsilon, use_faiss) not in made:
        made[name, epsilon, use_faiss] = mldp_text.get_mechanism(
            name, epsilon=epsilon, embedding_matrix=table, dim=vectors.shape[1],
            use_faiss=use_faiss, vocab=set(words),
        )
    mechanism = made[name, epsilon, use_faiss]
    with threadpool_limits(threads):
        mechanism.replace_word(tokens[0])
        start = time.perf_counter()
        for token in tokens:
            mechanism.replace_word(token)
        print(time.perf_counter() - start, flush=True)
"""

# Its tokenizer and its stop words are downloads that this comparison does not need; sorting the
# list, which takes minutes, has no part in how fast it is used.
DIFFRACTOR = """
import json, sys, time
import nltk
nltk.word_tokenize = str.split
from diffractor import Diffractor, DiffractorConfig
from diffractor.utils import EmbeddingManager
EmbeddingManager.create_sorted_list = staticmethod(lambda vectors, words: list(words))
config = DiffractorConfig(
    method=sys.argv[1], epsilon=float(sys.argv[2]), replace_stopwords=True, verbose=False
)
with Diffractor(config, ["glove-commoncrawl-30"]) as mechanism:
    mechanism.rewrite("warm up")
    print("ready", flush=True)
    for line in sys.stdin:
        text = " ".join(json.loads(line))
        start = time.perf_counter()
        mechanism.rewrite(text)
        print(time.perf_counter() - start, flush=True)
"""


class Pair(NamedTuple):
    """A mechanism of a peer beside one of ours, and how many words the peer gets in a round."""

    peer: str
    ours: str
    epsilon: float
    words: int


MLDP_TEXT, DP_DIFFRACTOR = "mldp-text==0.1.2", "dp-diffractor==0.2.1"
PAIRS = {
    MLDP_TEXT: (
        Pair("multivariate_calibrated", "laplace", 10.0, 100),
        Pair("mahalanobis", "mahalanobis", 10.0, 30),
        Pair("tem", "tem", 2.0, 30),
        Pair("tem", "calibrated", 2.0, 30),
    ),
    DP_DIFFRACTOR: (
        Pair("geometric", "laplace", 10.0, 1_000),
        Pair("TEM", "tem", 2.0, 1_000),
    ),
}
# Reviews that ours get in a round; exponential mechanisms get all.
ROWS = {"laplace": 1_000, "mahalanobis": 1_000}


class PeerProcess:
    """A program that says "ready" and then answers each line of JSON with one.

    Args:
        requirement: What to install, as "name==version".
        code: The program.
        *arguments: Its arguments.
        env: Environment variables besides those of this process.
    """

    def __init__(
        self,
        requirement: str,
        code: str,
        *arguments: object,
        env: Mapping[str, str] | None = None,
    ) -> None:
        python = common.peer_python(requirement.partition("==")[0], requirement)
        self._process = subprocess.Popen(
            [python, "-W", "ignore", "-c", code, *map(str, arguments)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env=os.environ | (env or {}),
        )
        while self._line() != "ready":
            pass

    def ask(self, request: object) -> Any:
        """Return the answer to a request."""
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps(request) + "\n")
        self._process.stdin.flush()
        return json.loads(self._line())

    def __enter__(self) -> "PeerProcess":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: object, trace: TracebackType | None
    ) -> None:
        # It ends by itself when there are no more requests, and takes its own processes with it.
        self._process.communicate()

    def _line(self) -> str:
        assert self._process.stdout is not None
        if not (line := self._process.stdout.readline()):
            raise RuntimeError("the peer has ended; its error is above")
        return line.strip()


Speeds = Callable[[Pair], float]


@contextmanager
def mldp_text(space: EmbeddingSpace, words: list[str], folder: Path) -> Iterator[Speeds]:
    """Give its words a second by pair, in its fastest setting."""
    archive = folder / "space.npz"
    np.savez(archive, words=np.array(space.words), vectors=space.vectors)
    fastest: dict[str, tuple[bool, int | None]] = {}

    with PeerProcess(MLDP_TEXT, MLDP, archive) as peer:

        def took(pair: Pair, setting: tuple[bool, int | None], size: int) -> float:
            seconds: float = peer.ask([pair.peer, pair.epsilon, *setting, words[:size]])
            return seconds

        def speed(pair: Pair) -> float:
            if pair.peer not in fastest:
                settings = [(faiss, threads) for faiss in (True, False) for threads in (1, None)]
                fastest[pair.peer] = min(settings, key=lambda setting: took(pair, setting, 10))
            return pair.words / took(pair, fastest[pair.peer], pair.words)

        yield speed


@contextmanager
def dp_diffractor(space: EmbeddingSpace, words: list[str], folder: Path) -> Iterator[Speeds]:
    """Give its words a second by pair."""
    models, stop_words = folder / ".cache" / "diffractor", folder / "corpora" / "stopwords"
    for each in (models, stop_words):
        each.mkdir(parents=True)
    (stop_words / "english").write_text("the\n", "utf-8")
    lines = (f"{word} {place}\n" for place, word in enumerate(space.words))
    model = models / "glove-commoncrawl-30.txt"
    model.write_text(f"{len(space)} 1\n{''.join(lines)}", "utf-8")
    home = {"HOME": str(folder), "USERPROFILE": str(folder), "NLTK_DATA": str(folder)}

    def speed(pair: Pair) -> float:
        arguments = (pair.peer, pair.epsilon)
        with PeerProcess(DP_DIFFRACTOR, DIFFRACTOR, *arguments, env=home) as peer:
            seconds: float = peer.ask(words[: pair.words])
        return pair.words / seconds

    yield speed


START = {MLDP_TEXT: mldp_text, DP_DIFFRACTOR: dp_diffractor}


def known(reviews: Reviews, space: EmbeddingSpace) -> list[str]:
    """Return the reviews without the words that the space lacks."""
    vocabulary = set(space.words)
    kept = (
        " ".join(word for word in text.split() if word in vocabulary and word.isalpha())
        for text in reviews.texts
    )
    return [text for text in kept if text]


def compare(
    pair: Pair, theirs: Speeds, space: EmbeddingSpace, reviews: Reviews, rounds: int
) -> dict[str, Any]:
    """Measure a peer and us in turn, because the speed of a machine drifts."""
    found = []
    for _ in range(rounds):
        privatizer = DxPrivatizer(space, pair.ours, pair.epsilon)
        found.append((theirs(pair), reviews.speed(privatizer, ROWS.get(pair.ours))))
    peer, ours = np.median(found, axis=0)
    return {
        "its mechanism": pair.peer,
        "our mechanism": pair.ours,
        "ε": pair.epsilon,
        "its words/s": float(peer),
        "our words/s": float(ours),
        "times the peer": float(np.median([fast / slow for slow, fast in found])),
    }


def main() -> None:
    """Run everything and print the table."""
    arguments = common.parser(__doc__)
    arguments.add_argument("--rounds", type=int, default=3, help="of a peer and us in turn")
    options = arguments.parse_args()
    datasets.disable_caching()
    datasets.disable_progress_bars()
    space = common.glove(options.data)
    reviews = Reviews(known(Reviews.of(options.data, "mr"), space))
    words = np.random.default_rng(0).permutation(" ".join(reviews.texts).split()).tolist()
    DxPrivatizer(space, "calibrated", PAIRS[MLDP_TEXT][-1].epsilon)
    rows = []
    for requirement, pairs in PAIRS.items():
        with (
            tempfile.TemporaryDirectory() as folder,
            START[requirement](space, words, Path(folder)) as speed,
        ):
            for pair in pairs:
                row = compare(pair, speed, space, reviews, options.rounds)
                rows.append({"peer": requirement} | row)
    common.report("Beside other packages", rows, options.json)


if __name__ == "__main__":
    main()
