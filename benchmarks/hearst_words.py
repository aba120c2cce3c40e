"""hearst-poincare beside wordnet-poincare: coverage, slots, replacements and entailment.

    python benchmarks/hearst_words.py
    python benchmarks/hearst_words.py --spaces artifacts/hearst-poincare out/other
    python benchmarks/hearst_words.py --graphs

Needs the development data, the WordNet 3.0 database (Debian: wordnet-base) and the extra ``train``.
All draws are seeded. What a word is a kind of is taken from two sources: all senses of WordNet, on
which wordnet-poincare was trained, and all Hearst pairs, of which hearst-poincare was trained on
about half; neither is neutral. SICK and the tags of SNIPS and CoNLL-2003 are.
"""

import gzip
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Any

import datasets
import numpy as np
from datasets import Dataset
from numpy.typing import NDArray

import common
from hf_dxprivacy import EmbeddingSpace, SlotPrivatizer
from hf_dxprivacy.mechanisms import Hierarchical
from hf_dxprivacy.randomness import keyed_generator
from hf_dxprivacy.slots import TagColumnSelector
from hf_dxprivacy.spaces.lookup import look_up_rows
from hf_dxprivacy.text import RowReader, stop_words
from hf_dxprivacy.training import Relations, depth_correlation, read_webisadb, read_wordnet
from hf_dxprivacy.training.wordnet import DEFAULT_PATH, is_word, read_morphology

SPACES = (str(common.HERE.parent / "artifacts" / "hearst-poincare"), "wordnet-poincare")
TEXTS = ("mr", "sst5", "sms_spam", "disaster_tweets", "trec6")
TAGGED = {
    "SNIPS": ("slots/snips.jsonl.gz", "slot_tags"),
    "CoNLL-2003": ("ner/conll2003.jsonl.gz", "ner_tags"),
}
ROWS, WORDS, DRAWS = 2_000, 1_000, 50
EPSILONS = (1.5, 2.0, 2.5)
# How much the depth counts in the score of Nickel & Kiela (NIPS 2017), section 4.3: theirs is 1000.
DEPTHS = (0.0, 1.0, 1000.0)

SHOWN = (
    "london uganda toyota microsoft mozart merkel guitar soup cheese dogs teachers lawyer nurse "
    "car hospital money bank newspaper cancer football"
).split()

Names = dict[str, set[str]]
Table = list[dict[str, Any]]


def main() -> None:
    """Print the tables."""
    parser = common.parser(__doc__)
    parser.add_argument("--spaces", nargs="+", default=SPACES, help="names or folders")
    parser.add_argument("--graphs", action="store_true", help="what the filters do, no spaces")
    parser.add_argument("--wordnet", default=DEFAULT_PATH, help="folder of the database files")
    options = parser.parse_args()
    datasets.disable_progress_bars()
    wordnet = read_wordnet(options.wordnet, nodes="words")
    report = partial(common.report, target=None)
    if options.graphs:
        report("Pairs by filters", graphs(options.data, by_name(wordnet)))
        return
    spaces = {Path(name).name: EmbeddingSpace.from_pretrained(name) for name in options.spaces}
    report("Nearest words", nearest(spaces))
    report("Content words that a space has", coverage(spaces, options.data))
    report("Slots and entities", slots(spaces, options.data))
    truths = {
        "WordNet": by_name(wordnet),
        "Hearst pairs": hearst_pairs(options.data / "hypernyms" / "hearst_counts.txt.gz"),
    }
    report("What words become", replacements(spaces, truths))
    report("SICK", sick(spaces, options.data, read_morphology(options.wordnet)))
    report("Depth", directions(spaces, truths, wordnet))


def graphs(data: Path, truth: Names) -> Table:
    """Read the pairs with several filters, and hold them against WordNet."""
    hearst = common.existing(data / "hypernyms" / "hearst_counts.txt.gz")
    sample = common.existing(data / "webisadb" / "tuplesdb_sample.csv.gz")
    with gzip.open(hearst, "rt", encoding="utf-8") as lines:
        names = {line.lower().rpartition("\t")[0].replace("\t", "_") for line in lines}
    words = set(filter(is_word, chain.from_iterable(name.split("_") for name in names)))
    settings: list[tuple[str, int | None, bool, int]] = [
        *((phrases, None, False, 2) for phrases in ("whole", "class", "head")),
        *(("head", None, acyclic, count) for acyclic, count in ((True, 2), (False, 10))),
        *(("head", most, True, 2) for most in (10, 5, 3)),
    ]
    table = []
    for files, (phrases, most, acyclic, count) in (
        *(([hearst], setting) for setting in settings),
        ([hearst, sample], ("head", 5, True, 2)),
    ):
        found = read_webisadb(
            files,
            vocabulary=words,
            min_frequency=count,
            min_links=1,
            phrases=phrases,
            max_classes=most,
            acyclic=acyclic,
            connected=True,
            progress=False,
        )
        known = [
            (node, top)
            for node, tops in by_name(found).items()
            for top in tops
            if node in truth and top in truth
        ]
        right = np.mean([top in truth[node] for node, top in known])
        reverse = np.mean([node in truth.get(top, ()) for node, top in known])
        table.append(
            {
                "files": " and ".join(file.name.partition(".")[0] for file in files),
                "phrases": phrases,
                "least count": count,
                "classes": most or "all",
                "acyclic": acyclic,
                "pairs": len(found),
                "words": len(found.nodes),
                "opposite": found.summary.opposite,
                "cyclic": found.summary.cyclic,
                "right by WordNet": f"{right:.1%}",
                "the other way round": f"{reverse:.1%}",
            }
        )
    return table


def nearest(spaces: dict[str, EmbeddingSpace]) -> Table:
    """Return the nearest words of some words."""
    return [
        {"word": word}
        | {
            name: ", ".join(f"{near} {far:.2f}" for near, far in space.neighbours(word, 5))
            if word in space
            else "–"
            for name, space in spaces.items()
        }
        for word in SHOWN
    ]


def coverage(spaces: dict[str, EmbeddingSpace], data: Path) -> Table:
    """Return the shares of words, but stop words, that the spaces have."""
    reader, stop = RowReader(), stop_words("english")
    texts: dict[str, list[Any]] = {
        name: [row["text"] for row in common.jsonl(data / "utility" / f"{name}.jsonl.gz")[:ROWS]]
        for name in TEXTS
    }
    for name, (path, tags) in TAGGED.items():
        rows = common.jsonl(data / path)[:ROWS]
        texts[name] = [row["tokens"] for row in rows]
        texts[f"{name}, tagged"] = [
            [token for token, tag in zip(row["tokens"], row[tags], strict=True) if tag != "O"]
            for row in rows
        ]
    table = []
    for name, cells in texts.items():
        read = [reader.read(cell) for cell in cells]
        words = [word for row in read if row is not None for word in row.words]
        counted = np.array([word.lower() not in stop for word in words])
        shares = {
            space: f"{(look_up_rows(read, spaces[space]) >= 0)[counted].mean():.1%}"
            for space in spaces
        }
        table.append({"text": name, "words": int(counted.sum()), **shares})
    return table


def slots(spaces: dict[str, EmbeddingSpace], data: Path) -> Table:
    """Release tagged words, and see whether what they become has the same tag elsewhere."""
    table = []
    for name, (path, column) in TAGGED.items():
        rows = common.jsonl(data / path)
        kinds = tag_of_words(rows, column)
        some = Dataset.from_dict(
            {"tokens": [r["tokens"] for r in rows[:ROWS]], "tags": [r[column] for r in rows[:ROWS]]}
        )
        for space, epsilon in ((space, epsilon) for space in spaces for epsilon in EPSILONS):
            privatizer = SlotPrivatizer(
                *(spaces[space], "hierarchical", epsilon),
                selector=TagColumnSelector("tags"),
                text_column="tokens",
                seed=1,
            )
            new = some.map(privatizer, batched=True)["tokens"][:]
            parts = (some["tags"][:], some["tokens"][:], new)
            words = [
                (old.lower(), now.lower())
                for tag, old, now in zip(*map(chain.from_iterable, parts), strict=True)
                if tag != "O"
            ]
            known = [pair for pair in words if pair[0] in spaces[space]]
            changed = [(old, now) for old, now in words if old != now]
            tagged = [kinds.get(old) == kinds[now] for old, now in changed if now in kinds]
            rng = keyed_generator(0, "chance")
            drawn = rng.integers(0, len(spaces[space]), size=len(changed)).tolist()
            chance = [
                kinds.get(old) == kinds[now]
                for (old, _), row in zip(changed, drawn, strict=True)
                if (now := spaces[space].words[row]) in kinds
            ]
            table.append(
                {
                    "data": name,
                    "space": space,
                    "ε": epsilon,
                    "tagged words known": f"{len(known) / len(words):.1%}",
                    "changed": f"{len(changed) / len(words):.1%}",
                    "become tagged words": f"{len(tagged) / len(changed):.1%}",
                    "of the same tag": f"{np.mean(tagged):.1%}",
                    "same tag, of all changed": f"{sum(tagged) / len(changed):.1%}",
                    "at random": f"{sum(chance) / len(changed):.1%}",
                }
            )
    return table


def tag_of_words(rows: Iterable[dict[str, Any]], column: str) -> dict[str, str]:
    """Return the most frequent tag of each word that is tagged more often than not."""
    counts: dict[str, Counter[str]] = defaultdict(Counter)
    for row in rows:
        for token, tag in zip(row["tokens"], row[column], strict=True):
            counts[token.lower()][tag.partition("-")[2]] += 1
    likeliest = {word: tags.most_common(1)[0][0] for word, tags in counts.items()}
    return {word: tag for word, tag in likeliest.items() if tag}


def by_name(relations: Relations) -> Names:
    """Return the classes of each node."""
    above: Names = defaultdict(set)
    for node, top in relations.pairs.tolist():
        above[relations.nodes[node]].add(relations.nodes[top])
    return above


def hearst_pairs(path: Path) -> Names:
    """Return the classes of each word in all pairs, the heads of phrases."""
    above: Names = defaultdict(set)
    with gzip.open(common.existing(path), "rt", encoding="utf-8") as lines:
        for line in lines:
            node, top = (
                name.partition("_of_")[0].rpartition("_")[2] for name in line.split("\t")[:2]
            )
            if node != top:
                above[node].add(top)
    return above


def replacements(spaces: dict[str, EmbeddingSpace], truths: dict[str, Names]) -> Table:
    """Draw for words that all spaces have, and count hypernyms and siblings among the outputs."""
    words = common_words(spaces)
    table = []
    for name, space in spaces.items():
        rows = np.repeat(space.ids(words), DRAWS)
        rng = keyed_generator(0, "chance")
        random = (rows + rng.integers(1, len(space), size=len(rows))) % len(space)
        drawn = {"at random": random} | {
            f"ε = {epsilon:g}": Hierarchical(space, epsilon).sample(
                rows, keyed_generator(0, "draws", repr(epsilon))
            )
            for epsilon in EPSILONS
        }
        for what, outputs in drawn.items():
            changed = rows != outputs
            pairs = [
                (space.words[old], space.words[new])
                for old, new in zip(rows[changed].tolist(), outputs[changed].tolist(), strict=True)
            ]
            found = {"space": name, "law": what, "changed": f"{changed.mean():.1%}"}
            for truth, above in truths.items():
                hypernyms, siblings = related(pairs, above)
                found |= {
                    f"hypernyms by {truth}": f"{hypernyms:.2%}",
                    f"siblings by {truth}": f"{siblings:.2%}",
                }
            table.append(found)
    return table


def common_words(spaces: dict[str, EmbeddingSpace]) -> list[str]:
    """Return words that all spaces have, evenly spaced among the frequent half of English."""
    english = EmbeddingSpace.from_pretrained("english").words
    shared = [word for word in english if all(word in space for space in spaces.values())]
    places = np.linspace(0, len(shared) // 2, WORDS).round().astype(int)
    return [shared[place] for place in places]


def related(pairs: Sequence[tuple[str, str]], above: Names) -> tuple[float, float]:
    """Return the shares of hypernyms, and of words that share a class and are none.

    Classes with more than a hundredth of all words, such as "entity", make no siblings.
    """
    sizes = Counter(chain.from_iterable(above.values()))
    wide = {top for top, size in sizes.items() if size > len(above) / 100}
    nothing: set[str] = set()
    hypernyms = siblings = 0
    for old, new in pairs:
        classes = above.get(old, nothing)
        hypernyms += new in classes
        siblings += new not in classes and bool((classes & above.get(new, nothing)) - wide)
    return hypernyms / len(pairs), siblings / len(pairs)


def sick(spaces: dict[str, EmbeddingSpace], data: Path, morphology: Any) -> Table:
    """Rank pairs of words by which sentences of SICK differ, entailed ones first."""
    pairs: dict[tuple[str, str], list[bool]] = defaultdict(list)
    for row in common.jsonl(data / "utility" / "sick_e.jsonl.gz"):
        old, new = row["text1"].lower().split(), row["text2"].lower().split()
        differing = [pair for pair in zip(old, new, strict=False) if pair[0] != pair[1]]
        if len(old) == len(new) and len(differing) == 1:
            pairs[differing[0]].append(row["label"] == "ENTAILMENT")
    stop = stop_words("english")

    def row_of(word: str, space: EmbeddingSpace) -> int:
        forms = [form for form in (word, *morphology.bases(word)) if form in space]
        return int(space.ids(forms[:1])[0]) if forms and word not in stop else -1

    # In all spaces, and not two forms of one word.
    rows = {
        name: np.array([[row_of(word, space) for word in pair] for pair in pairs])
        for name, space in spaces.items()
    }
    usable = np.all([(r >= 0).all(1) & (r[:, 0] != r[:, 1]) for r in rows.values()], axis=0)
    truth = np.array([np.mean(found) > 0.5 for found in pairs.values()])[usable]
    table = []
    for name, space in spaces.items():
        near, far = rows[name][usable].T
        for depth in DEPTHS:
            table.append(
                {
                    "space": name,
                    "α": depth,
                    "pairs": int(usable.sum()),
                    "entailed": f"{truth.mean():.1%}",
                    "average precision": average_precision(score(space, near, far, depth), truth),
                }
            )
    return table


def score(
    space: EmbeddingSpace, low: NDArray[np.int64], high: NDArray[np.int64], depth: float
) -> NDArray[np.float64]:
    """Return how likely each word is a kind of another one: −(1 + α(‖v‖ − ‖u‖))·d(u, v)."""
    norms = np.linalg.norm(space.vectors.astype(np.float64), axis=1)
    lengths: NDArray[np.float64] = space.pair_distances(low, high)
    return -(1.0 + depth * (norms[high] - norms[low])) * lengths


def average_precision(scores: NDArray[np.float64], truth: NDArray[np.bool_]) -> float:
    """Return the mean precision at the places of what is true."""
    found = truth[np.argsort(-scores, kind="stable")]
    precision = np.cumsum(found) / np.arange(1, len(found) + 1)
    return float(precision[found].mean())


def directions(
    spaces: dict[str, EmbeddingSpace], truths: dict[str, Names], wordnet: Relations
) -> Table:
    """Return how often the class of two words is nearer to the centre, and depth by WordNet."""
    table = []
    for name, space in spaces.items():
        rng = keyed_generator(0, "radii")
        radii = space.pair_distances(np.arange(len(space)), np.full(len(space), -1))
        entry: dict[str, Any] = {"space": name}
        for truth, above in truths.items():
            pairs = np.array(list(in_space(above, space)))
            some = pairs[rng.choice(len(pairs), min(len(pairs), 50_000), replace=False)]
            low, high = some.T
            others = rng.permutation(high)
            entry[f"class nearer to the centre, {truth}"] = (
                f"{(radii[high] < radii[low]).mean():.1%}"
            )
            gap = [space.pair_distances(low, ends) for ends in (high, others)]
            entry[f"nearer than a random class, {truth}"] = f"{(gap[0] < gap[1]).mean():.1%}"
        entry["depth"] = depth_correlation(space, wordnet.among(space.words))
        table.append(entry)
    return table


def in_space(above: Names, space: EmbeddingSpace) -> Iterator[tuple[int, int]]:
    """Yield the rows of the pairs that a space has both words of."""
    rows = {word: row for row, word in enumerate(space.words)}
    for node in sorted(above):
        if node in rows:
            yield from ((rows[node], rows[top]) for top in sorted(above[node]) if top in rows)


if __name__ == "__main__":
    main()
