"""What attackers get from releases of whole sentences, and how these read, beside words.

    python benchmarks/sentence_attacks.py --cache benchmarks/out/sentences --page

PAN11, C50  e-mails, of 998, and news, of 500, whose author is found by one who knows others as they
            were written / and by one who privatizes these first
form        e-mails whose author is found by one who reads their form only, in the second way:
            the number of words and characters, of each punctuation mark, digit and capital letter
length      rank correlation between the number of words of a mail and of its release
AUC         of telling which reviews (MR) a classifier of released ones was trained on
target      accuracy of that classifier on reviews that it was not trained on
b1 / b10    success of the Bayes adversary who knows the mechanism and how often each entry is that
            of a review (MR; of the 3,000 most frequent ones), with one guess and with ten; for
            words he guesses the word
reads       perplexity of released reviews (MR) over that of the reviews, under the n-gram model of
            English that ships, which is trained from WordNet's texts: 1 reads as well

"mixed up" are e-mails in another order, where nothing but chance is left. Figures are means over
releases with 95 % Student t intervals.
"""

import argparse
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from functools import cached_property
from pathlib import Path

import numpy as np
import scipy.stats

import common
from hf_dxprivacy import DxPrivatizer
from hf_dxprivacy.evaluation import membership_inference, readability, reconstruction
from hf_dxprivacy.mechanisms import Mechanism, create_mechanism
from released_words import SEED, Authors
from sentence_library import BUILT_IN, ENGLISH, GLOVE, LookedUp, Recipe
from sentences import PAGE, REVIEWS, Bench, Row, Values, interval

BOUNDS = (8.0, 12.0, 15.0)
WORDS = (("hierarchical", 0.5), ("hierarchical", 1.5), ("calibrated", 7.0))
MEMBERS, SPLITS, GUESSED = 2000, 3, 3000
# News are long: attacked at one bound, and in words at the ε that keep as much.
NEWS = (12.0, 1.5, 7.0)
PARTS = ("PAN11", "C50", "members", "guesses", "reads")
CORPORA = {
    "PAN11": ("pan11_enron_small.jsonl.gz", ("validation", "test"), 1),
    "C50": ("reuters_c50.jsonl.gz", ("test",), 5),
}

# Releases texts, all of a call by fresh draws.
Release = Callable[[Sequence[str]], list[str]]


class Attacks:
    """The attacked texts, and what has been measured."""

    def __init__(self, options: argparse.Namespace) -> None:
        self.bench = Bench(options)
        self._data: Path = options.data
        self._looked_up: dict[tuple[Recipe, int], LookedUp] = {}

    @cached_property
    def authors(self) -> dict[str, Authors]:
        """The datasets with authors."""
        folder = self._data / "authorship"
        return {k: Authors(folder / f, asked, every) for k, (f, asked, every) in CORPORA.items()}

    @cached_property
    def reviews(self) -> tuple[list[str], list[str]]:
        """Reviews and their labels, some of which a classifier is trained on."""
        task = self.bench.library.task("MR", False)
        chosen = np.random.default_rng(SEED).permutation(len(task.texts))[:MEMBERS]
        return [task.texts[at] for at in chosen], [str(task.labels[at]) for at in chosen]

    def of_sentences(self, recipe: Recipe, epsilon: float) -> Release:
        """Return what releases texts as entries of a pool."""
        law: list[Mechanism | None] = []

        def release(texts: Sequence[str]) -> list[str]:
            key = recipe, id(texts)
            if key not in self._looked_up:
                self._looked_up[key] = LookedUp(self.bench.library.pool(recipe), texts)
            law[:] = law or [self.bench.law(recipe, 1.0, epsilon)]
            found = self._looked_up[key]
            return found.texts(found.draw(law[0]))

        return release

    def of_words(self, name: str, epsilon: float) -> Release:
        """Return what releases words."""
        privatizer = DxPrivatizer(self.bench.english, name, epsilon)
        return lambda texts: [str(text) for text in privatizer.privatize(list(texts))]

    def measure(self, part: str, release: Release) -> Values:
        """Release the texts of an attack once, and attack them."""
        if part == "members":
            texts, labels = self.reviews
            rng = np.random.default_rng(SEED)
            found = membership_inference(texts, release(texts), labels, repeats=SPLITS, rng=rng)
            return {result.metric: result.value for result in found}
        if part == "reads":
            texts = self.bench.library.task("MR", False).texts
            return {"reads": readability(texts, release(texts))}
        authors = self.authors[part]
        texts, known = release(authors.texts), release(authors.known)
        values = {part: float(authors.found(texts)), "adaptive": float(authors.found(texts, known))}
        if part == "PAN11":
            lengths = [[len(text.split()) for text in rows] for rows in (authors.texts, texts)]
            values["form"] = float(authors.by_form(texts, known))
            values["length"] = float(scipy.stats.spearmanr(*lengths).statistic)
        return values

    def guesses(self, mechanism: Mechanism, names: Sequence[str]) -> Values:
        """Return the success of the Bayes adversary."""
        prior = {name: float(n) for name, n in Counter(names).most_common(GUESSED)}
        found = {r.metric: r.value for r in reconstruction(mechanism, prior).results}
        return {"b1": found["top-1"], "b10": found["top-10"]}

    def guessed(self, line: "Line", epsilon: float) -> Values:
        """Return the same for entries of a pool, or for words."""
        task = self.bench.library.task("MR", False)
        if isinstance(line, Recipe):
            pool = self.bench.library.pool(line)
            entries = pool.look_up(task.texts)
            law = self.bench.law(line, 1.0, epsilon)
            assert law is not None
            return self.guesses(law, [pool.sentences[at] for at in entries if at >= 0])
        words = [word for row in task.lowered for word in row if word in self.bench.english]
        return self.guesses(create_mechanism(line, self.bench.english, epsilon), words)

    def row(self, line: "Line", epsilon: float, key: str, parts: Sequence[str], n: int) -> Row:
        """Return the figures of a row, by name those of each release."""
        if isinstance(line, Recipe):
            release = self.of_sentences(line, epsilon)
        else:
            release = self.of_words(line, epsilon)
        row: Row = {}
        for part in parts:
            if part == "guesses":
                found = self.bench.once(f"{key}; guesses", lambda: self.guessed(line, epsilon))
                row |= {name: [value] for name, value in found.items()}
                continue
            runs = [
                self.bench.once(f"{key}; {part} {k}", lambda p=part: self.measure(p, release))
                for k in range(1 if part == "members" else n)
            ]
            row |= by_part(part, runs)
        return row


def by_part(part: str, runs: Sequence[Values]) -> dict[str, list[float]]:
    """Return the figures of some releases by name; those of the adaptive attacker by part."""
    names = {"adaptive": f"{part} adaptive"}
    return {names.get(name, name): [run[name] for run in runs] for name in runs[0]}


Line = Recipe | str


def shown(head: Row, row: Row) -> Row:
    """Return a row as the page has it."""

    def count(name: str) -> str:
        values = row.get(name)
        if values is None:
            return ""
        cell = interval(values).split()
        return " ".join([f"{np.mean(values):.0f}", *(f"±{float(c[1:]):.0f}" for c in cell[1:])])

    def share(name: str) -> str:
        return f"{np.mean(row[name]):.3f}" if name in row else ""

    def pair(first: str, second: str) -> str:
        return " / ".join(filter(None, (first, second)))

    return head | {
        "PAN11": pair(count("PAN11"), count("PAN11 adaptive")),
        "form": count("form"),
        "length": share("length"),
        "C50": pair(count("C50"), count("C50 adaptive")),
        "AUC": share("AUC"),
        "target": share("target accuracy"),
        "b1 / b10": pair(share("b1"), share("b10")),
        "reads": share("reads"),
    }


def rows(
    attacks: Attacks, recipes: Sequence[Recipe], parts: Sequence[str], repeats: int
) -> Iterator[Row]:
    """Return all rows."""
    bench, texts = attacks.bench, [part for part in parts if part != "guesses"]

    def mixed(texts: Sequence[str]) -> list[str]:
        # The attacker's own mails stay in order: only those he is asked about are mixed up.
        if any(texts is authors.known for authors in attacks.authors.values()):
            return list(texts)
        order = np.random.default_rng(SEED).permutation(len(texts))
        return [texts[at] for at in order]

    for name, release in (("none", list), ("none, mixed up", mixed)):
        row: Row = {}
        for part in texts:
            found = bench.once(
                f"attack; {name}; {part}", lambda p=part, r=release: attacks.measure(p, r)
            )
            row |= by_part(part, [found])
        yield shown({"release": name, "bound": ""}, row)
    for recipe in recipes:
        for bound in BOUNDS:
            epsilon = bench.epsilon(recipe, bound)
            key = f"attack; {recipe.key}; {bound:g}"
            head = {"release": f"sentence, {recipe.name}", "bound": f"{bound:g} a text"}
            asked = [part for part in parts if part != "C50" or bound in NEWS]
            yield shown(head, attacks.row(recipe, epsilon, key, asked, repeats))
    for name, epsilon in WORDS:
        law = create_mechanism(name, bench.english, epsilon)
        bound = f"{law.guarantee.ldp_epsilon:.3g} a word"
        key = f"attack; words; {name} {epsilon:g}"
        head = {"release": f"words, `{name}`, ε = {epsilon:g}", "bound": bound}
        asked = [part for part in parts if part != "C50" or epsilon in NEWS]
        yield shown(head, attacks.row(name, epsilon, key, asked, repeats))


def main() -> None:
    """Measure all rows, print them, and write them into the page if asked to."""
    parser = common.parser(__doc__)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--cache", type=Path, default=common.HERE / "out" / "sentences")
    parser.add_argument("--model", type=Path, help="folder of MiniLM, if not a package")
    parser.add_argument("--parts", nargs="*", choices=PARTS, default=PARTS)
    parser.add_argument("--page", action="store_true", help="write the table into docs")
    options = parser.parse_args()
    options.measured = False
    attacks = Attacks(options)
    recipes = [
        Recipe(REVIEWS, ENGLISH),
        Recipe(REVIEWS, GLOVE, 16, "texts"),
        Recipe(BUILT_IN, f"`{BUILT_IN}`"),
    ]
    table: list[Row] = []
    for repeats in dict.fromkeys((1, options.repeats)):
        table = list(rows(attacks, recipes, options.parts, repeats))
    common.report("Attacks", table, options.json)
    if options.page:
        common.write_into(PAGE, "attacks", common.markdown(table))


if __name__ == "__main__":
    main()
