"""What a release says of its originals: doubtful words, weights for a classifier, and an attack.

    python examples/posterior.py --data mr.jsonl.gz trec6.jsonl.gz --epsilon 1.25 1.5

The data have columns "text" and "label" (see `hf_dxprivacy.evaluation.read_task`). Printed is, for
each file and ε: how well a low posterior finds the words that were changed; how accurate a linear
classifier of averaged word vectors is when it is trained on plain texts and reads released ones,
and the other way round, with the words as they are, weighted by their posteriors, and with the mean
of the likeliest originals in place of each; and how many words an adversary guesses who knows word
frequencies, or word pairs too. Seeds are fixed, so that the tables
are the same each time; never do that with private text.
"""

import argparse
import random
from collections import Counter
from typing import Any

import numpy as np
from sklearn.linear_model import LogisticRegression

from hf_dxprivacy import DxPrivatizer, EmbeddingSpace
from hf_dxprivacy.evaluation import (
    BayesAdversary,
    BigramModel,
    averaged_vectors,
    read_task,
    reconstruct_texts,
)
from hf_dxprivacy.spaces.lookup import look_up_rows
from hf_dxprivacy.text import RowReader

READER = RowReader()
ATTACKED, CANDIDATES = 400, 5000
ORIGINALS = 20
Texts = list[str]


def features_of(released: Texts, privatizer: DxPrivatizer) -> tuple[Any, Any]:
    """Return the mean vector of each text's words, in two ways that know which to trust.

    Words weighted by their posterior; and, for each word, the mean of its likeliest originals.
    """
    rows = [[*map(str, READER.read_text(text))] for text in released]
    # What a word says does not depend on its place.
    words = sorted({word for row in rows for word in row})
    found = {each.word: each for each in privatizer.posterior([words], k=ORIGINALS)[0]}
    space = privatizer.space
    weighted, expected = np.zeros((2, len(rows), space.dim))
    for at, row in enumerate(rows):
        known = [found[word] for word in row if word in found and word in space]
        weights = [each.probability for each in known]
        if known and sum(weights):
            ids = space.ids([each.word for each in known])
            weighted[at] = np.average(space.vectors[ids], 0, weights)
        pairs = [pair for word in row if word in found for pair in found[word].originals]
        if pairs:
            ids = space.ids([word for word, _ in pairs])
            expected[at] = np.average(space.vectors[ids], 0, [share for _, share in pairs])
    return weighted, expected


def aligned(plain: Texts, released: Texts, privatizer: DxPrivatizer) -> tuple[Any, Any]:
    """Return for each word of the space its posterior, and whether it was changed."""
    stated, changed = [], []
    for text, release, words in zip(plain, released, privatizer.posterior(released), strict=True):
        row = READER.read_text(text)
        before, after = look_up_rows([row], privatizer.space), [each.word for each in words]
        if row.separators == READER.read_text(release).separators:
            now = privatizer.space.ids(after)
            known = np.flatnonzero(now >= 0)
            stated += [words[at].probability for at in known.tolist()]
            changed += (before != now)[known].tolist()
    return np.array(stated), np.array(changed)


def detection(plain: Texts, released: Texts, privatizer: DxPrivatizer, below: float) -> str:
    """Say how well a low posterior finds changed words, and how well posteriors are calibrated."""
    stated, changed = aligned(plain, released, privatizer)
    low = stated < below
    at = np.digitize(stated, np.linspace(0.1, 0.9, 9))
    gaps = [abs((1 - changed[at == b]).mean() - stated[at == b].mean()) for b in np.unique(at)]
    error = float(np.average(gaps, weights=np.bincount(at)[np.unique(at)]))
    found = (low & changed).sum()
    return (
        f"{changed.mean():.2f} | {found / max(1, low.sum()):.2f} | {found / changed.sum():.2f} | "
        f"{error:.3f}"
    )


def accuracies(task: Any, plain: Any, released: Texts, privatizer: DxPrivatizer, at: int) -> Any:
    """Return (2, 3) accuracies: reading a release and training on it; unweighted, and both ways."""
    train, test = task.parts(at)
    kinds = (averaged_vectors(released, privatizer.space), *features_of(released, privatizer))
    scores = np.zeros((2, len(kinds)))
    for column, private in enumerate(kinds):
        for row, (learned, read) in enumerate(((plain, private), (private, plain))):
            model = LogisticRegression(max_iter=2000, C=10.0)
            model.fit(learned[train], task.targets[train])
            scores[row, column] = model.score(read[test], task.targets[test])
    return scores


def attack(plain: Texts, released: Texts, privatizer: DxPrivatizer) -> str:
    """Return the share of words guessed by frequency, and by word pairs too."""
    same = [
        at
        for at, pair in enumerate(zip(plain, released, strict=True))
        if len({len(READER.read_text(text)) for text in pair}) == 1
    ]
    random.Random(0).shuffle(same)
    attacked = set(same[:ATTACKED])
    known = [text for at, text in enumerate(plain) if at not in attacked]
    space = privatizer.space
    ids = look_up_rows([READER.read_text(text) for text in known], space)
    usual = Counter(space.words[row] for row in ids[ids >= 0].tolist()).most_common(CANDIDATES)
    adversary = BayesAdversary(privatizer.mechanism, dict(usual))
    shares = [
        reconstruct_texts(
            adversary,
            [plain[at] for at in sorted(attacked)],
            [released[at] for at in sorted(attacked)],
            tops=(1,),
            language_model=model,
        )[0].value
        for model in (None, BigramModel(known, adversary))
    ]
    return f"{shares[0]:.3f} → {shares[1]:.3f}"


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    add = parser.add_argument
    add("--data", nargs="+", required=True, help="files, or datasets on the Hub")
    add("--space", default="english", help="see EmbeddingSpace.from_pretrained")
    add("--mechanism", default="hierarchical")
    add("--epsilon", type=float, nargs="+", default=[1.25, 1.5])
    add("--below", type=float, default=0.2, help="words with a lower posterior are doubtful")
    add("--releases", type=int, default=3, help="of which accuracies are means")
    add("--rows", type=int, help="of each file, evenly spread")
    options = parser.parse_args()
    space = EmbeddingSpace.from_pretrained(options.space)
    print(f"{options.mechanism} in {options.space}; doubtful below {options.below:g}\n")
    print("| data | ε | changed | precision | recall | calibration error | ", end="")
    print("read: as it is, weighted, originals | trained on: the same | guessed, by pairs |")
    print("| --- |" + " ---: |" * 8)
    for data in options.data:
        task = read_task(data, rows=options.rows)
        texts = list(task.rows["text"])
        plain = averaged_vectors(texts, space)
        for epsilon in options.epsilon:
            scores = []
            for at in range(options.releases):
                privatizer = DxPrivatizer(space, options.mechanism, epsilon, seed=2**64 + at)
                released = privatizer.privatize(texts)
                scores.append(accuracies(task, plain, released, privatizer, at))
            means = [" → ".join(f"{score:.3f}" for score in row) for row in np.mean(scores, 0)]
            cells = (
                detection(texts, released, privatizer, options.below),
                *means,
                attack(texts, released, privatizer),
            )
            print(f"| {task.name} | {epsilon:g} | {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    main()
