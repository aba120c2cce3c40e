"""What releases of whole sentences keep, at a bound for the whole text, beside words.

    python benchmarks/sentences.py --cache benchmarks/out/sentences --page

Texts are film reviews (MR, SST-5: sentences; IMDB: whole reviews), questions (TREC), product
reviews (CR) and spoken commands (SNIPS). Pools are of film reviews, or of a half of the training
texts of a dataset whose other half is released ("own"); see `sentence_library.py`. Columns:

local DP        bound of the log-ratio of any two texts, of any length; with unit "sentence" of any
                two sentences
cosine          between a text and what is released, by the pool's encoder / by MiniLM
MR, …           accuracy of averaged GloVe vectors and logistic regression, trained on the
                release and tested on plain text / trained on plain text and tested on the release

Figures are means over releases with 95 % Student t intervals over them. With --cache a run that was
interrupted goes on where it was. Attacks and perplexities are in `sentence_attacks.py`.
"""

import argparse
from collections.abc import Callable, Iterator, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

import common
from hf_dxprivacy import DxPrivatizer, EmbeddingSpace, SentencePool, SentencePrivatizer
from hf_dxprivacy.calibration import epsilon_for_local_bound
from hf_dxprivacy.mechanisms import Mechanism, create_mechanism
from hf_dxprivacy.results import mean_interval
from sentence_library import (
    BUILT_IN,
    ENGLISH,
    GLOVE,
    MINILM,
    Library,
    LookedUp,
    Recipe,
    entry_sums,
)

DOCS = common.HERE.parent / "docs"
PAGE, SHORT = DOCS / "results" / "sentences.md", DOCS / "sentences.md"
PICTURE = DOCS / "results" / "sentences.png"
HIERARCHICAL, LAWS = "hierarchical", ("hierarchical", "krr", "calibrated")
BOUNDS = (8.0, 10.0, 12.0, 15.0)
NEAREST = "∞, nearest"
TASKS = ("MR", "SST-5", "TREC", "CR", "SNIPS")
TABLES = ("words", "film", "laws", "own", "tried")
# With MiniLM, which takes its time, only these.
ENCODED = ("MR", "TREC", "CR")
KINDS = ("MR", "CR", "TREC", "IMDB", "SNIPS")
WORDS = {
    "hierarchical": (0.25, 0.5, 0.75, 1.0, 1.25, 1.5, 2.0),
    "calibrated": (2.0, 3.0, 4.0, 5.0, 6.0, 7.0),
}
REVIEWS = "IMDB reviews"
FILM = (
    Recipe(REVIEWS, ENGLISH),
    Recipe(REVIEWS, GLOVE),
    Recipe(REVIEWS, GLOVE, 16, "texts"),
    Recipe(BUILT_IN, f"`{BUILT_IN}`"),
    Recipe(REVIEWS, MINILM, 64),
    Recipe(REVIEWS, MINILM, 384),
    Recipe(REVIEWS, MINILM, 32),
    Recipe(REVIEWS, MINILM, 16, "sentences"),
)
# What was tried for cosines and accuracy, one thing at a time.
TRIED = (
    *(Recipe(REVIEWS, GLOVE, 16, "texts", size=size) for size in (5_000, 10_000)),
    Recipe(REVIEWS, GLOVE, 16, "sentences"),
    *(Recipe(REVIEWS, MINILM, 64, size=size) for size in (1_000, 5_000, 10_000)),
    Recipe(REVIEWS, MINILM, 64, method="average"),
    Recipe(REVIEWS, MINILM, 16),
    Recipe(REVIEWS, GLOVE, 16, "texts", method="average"),
    Recipe(REVIEWS, GLOVE, 4, "texts"),
    Recipe(REVIEWS, GLOVE, 64, "texts"),
    Recipe(REVIEWS, GLOVE, 16, "texts", size=40_000),
)

Row = dict[str, Any]
Values = dict[str, float]


class Bench:
    """The library of pools, and what has been measured."""

    def __init__(self, options: argparse.Namespace) -> None:
        self.library = Library(options.data, options.cache, options.model)
        self._measured: bool = options.measured
        self._done = common.Measured(options.cache / "sentences.jsonl")
        self.once = self._done.once
        # Of the pool that was asked last.
        self._of: SentencePool | None = None
        self._looked_up: dict[str, LookedUp] = {}

    @cached_property
    def english(self) -> EmbeddingSpace:
        """The space of the words."""
        return EmbeddingSpace.from_pretrained("english")

    def wanted(self, key: str, repeat: int) -> bool:
        """Tell whether a repeat is to be measured, or has been."""
        return not repeat or not self._measured or key in self._done

    def law(
        self, recipe: Recipe, bound: float | None, epsilon: float, name: str = HIERARCHICAL
    ) -> Mechanism | None:
        """Return the mechanism of a privatizer over a pool; None without a bound."""
        if bound is None:
            return None
        return SentencePrivatizer(self.library.pool(recipe), name, epsilon).mechanism

    def looked_up(self, recipe: Recipe, task: str, half: bool, by_sentence: bool) -> LookedUp:
        """Look up the texts of a dataset."""
        pool = self.library.pool(recipe)
        if self._of is not pool:
            self._of, self._looked_up = pool, {}
        key = f"{task} {half} {by_sentence}"
        if key not in self._looked_up:
            texts = self.library.task(task, half).texts
            self._looked_up[key] = LookedUp(pool, texts, by_sentence)
        return self._looked_up[key]

    def release(
        self,
        recipe: Recipe,
        task: str,
        half: bool,
        bound: float | None,
        epsilon: float,
        by_sentence: bool = False,
        name: str = HIERARCHICAL,
    ) -> Values:
        """Release a dataset once, and measure."""
        texts = self.looked_up(recipe, task, half, by_sentence)
        pool = self.library.pool(recipe)
        drawn = texts.draw(self.law(recipe, bound, epsilon, name))
        sums = self._sums(recipe)
        values = self.library.task(task, half).scores_of(texts.features(drawn, sums))
        if task == "MR" or half:
            values["cosine"] = texts.cosine(drawn, pool.encoder)
            if task in ENCODED:
                values["MiniLM"] = texts.cosine(drawn, self.library.minilm)
            values["stays"] = float((drawn == texts.entries).mean())
        return {k: round(v, 5) for k, v in values.items()}

    def _sums(self, recipe: Recipe) -> Any:
        if getattr(self, "_summed", (None, None))[0] != recipe:
            pool = self.library.pool(recipe)
            self._summed = recipe, entry_sums(pool, self.library.vectors)
        return self._summed[1]

    def epsilon(self, recipe: Recipe, bound: float | None) -> float:
        """Return the ε of a bound."""
        if bound is None:
            return 0.0

        def find() -> Values:
            pool = self.library.pool(recipe)
            return {"ε": epsilon_for_local_bound(pool, HIERARCHICAL, bound)}

        return self.once(f"{recipe.key}; ε for {bound:g}", find)["ε"]

    def means(
        self, recipe: Recipe, task: str, bound: float | None, repeats: int, **how: Any
    ) -> dict[str, str]:
        """Return the figures of some releases as cells."""
        half, by_sentence = how.get("half", False), how.get("by_sentence", False)
        epsilon = self.epsilon(recipe, bound)
        unit = ", by sentence" if by_sentence else ""
        head = f"{recipe.key}; {bound or NEAREST}; {task}{' half' if half else ''}{unit}"
        runs = [
            self.once(
                f"{head}; {k}",
                lambda: self.release(recipe, task, half, bound, epsilon, by_sentence),
            )
            for k in range(repeats if bound else 1)
            if self.wanted(f"{head}; {k}", k)
        ]
        return {name: interval([run[name] for run in runs]) for name in runs[0]}

    def plain(self, task: str, half: bool) -> str:
        """Return the accuracy without a release."""
        key = f"plain; {task} {half}"
        found = self.once(key, lambda: {"plain": self.library.task(task, half).plain})
        return f"{found['plain']:.3f}"

    def words(self, name: str, epsilon: float) -> Values:
        """Release the words of MR once, and measure."""
        task = self.library.task("MR", False)
        words = DxPrivatizer(self.english, name, epsilon).privatize(task.words)
        return task.kept(words) | task.scores(words)


def interval(values: Sequence[float]) -> str:
    """Return a mean with half the width of its interval."""
    mean, low, _ = mean_interval(values)
    return f"{mean:.3f}" + (f" ±{mean - low:.3f}" if len(values) > 1 else "")


def pair(cells: dict[str, str], first: str = "trained on", second: str = "read") -> str:
    """Return two figures of a dataset as one cell, or the one that there is."""
    return " / ".join(cells[name] for name in (first, second) if name in cells)


def film_rows(
    bench: Bench, recipes: Sequence[Recipe], tasks: Sequence[str], repeats: int
) -> Iterator[Row]:
    """Return rows of pools that all datasets are released from."""
    for recipe in recipes:
        for bound in (*BOUNDS, None):
            epsilon = bench.epsilon(recipe, bound)
            row = {"pool and encoder": recipe.name, "local DP": bound or NEAREST}
            row |= {"ε": f"{epsilon:.4g}" if bound else ""}
            for task in tasks:
                if recipe.encoder == MINILM and task not in ENCODED:
                    continue
                cells = bench.means(recipe, task, bound, repeats)
                if task == "MR":
                    row["cosine"] = pair(cells, "cosine", "MiniLM")
                row[task] = pair(cells)
            yield row
    plain = {task: bench.plain(task, False) for task in tasks}
    yield {"pool and encoder": "plain text", **plain}


def own_rows(bench: Bench, repeats: int) -> Iterator[Row]:
    """Return rows of pools that are made of a half of a dataset."""
    for task in KINDS:
        recipes = [Recipe(task, ENGLISH), Recipe(task, GLOVE, 16, "texts")]
        recipes += [Recipe(task, MINILM, dimensions) for dimensions in (64, 384)]
        for by_sentence in (False, True) if task == "IMDB" else (False,):
            for recipe in recipes:
                if recipe.encoder == MINILM and (by_sentence or task not in ENCODED):
                    continue
                for bound in (8.0, 12.0, 15.0, None):
                    how = {"half": True, "by_sentence": by_sentence}
                    cells = bench.means(recipe, task, bound, repeats, **how)
                    yield {
                        "texts": f"{task}, by sentence" if by_sentence else task,
                        "encoder": recipe.name,
                        "local DP": bound or NEAREST,
                        "cosine": pair(cells, "cosine", "MiniLM"),
                        "accuracy": pair(cells),
                    }
        yield {"texts": task, "encoder": "plain text", "accuracy": bench.plain(task, True)}


def law_rows(bench: Bench, repeats: int) -> Iterator[Row]:
    """Return rows of other mechanisms at the same bounds, on MR."""
    for recipe in (FILM[0], Recipe(REVIEWS, MINILM, 384)):
        # Levels of "calibrated" take a while, and keep nothing here.
        for name in LAWS[: 2 if recipe.encoder == MINILM else None]:
            for bound in BOUNDS:
                head = f"{recipe.key}; {name} {bound:g}; MR"

                def find(name: str = name, bound: float = bound, recipe: Recipe = recipe) -> Values:
                    pool = bench.library.pool(recipe)
                    epsilon = epsilon_for_local_bound(pool, name, bound)
                    law = bench.law(recipe, bound, epsilon, name)
                    assert law is not None
                    return {"ε": epsilon, "near": near_bound(pool, law)}

                found = bench.once(f"{head}; near", find)
                runs = [
                    bench.once(
                        f"{head}; {k}",
                        lambda r=recipe, b=bound, e=found["ε"], n=name: bench.release(
                            r, "MR", False, b, e, name=n
                        ),
                    )
                    for k in range(repeats)
                    if bench.wanted(f"{head}; {k}", k)
                ]
                cells = {key: interval([run[key] for run in runs]) for key in runs[0]}
                yield {
                    "encoder": recipe.name,
                    "mechanism": name,
                    "local DP": bound,
                    "ε": f"{found['ε']:.4g}",
                    "near texts": f"{found['near']:.3g}",
                    "entry stays": strip(cells["stays"]),
                    "cosine": pair(cells, "cosine", "MiniLM"),
                    "MR": pair(cells),
                }


def near_bound(pool: SentencePool, law: Mechanism) -> float:
    """Return the median bound of two texts whose entries are tenth neighbours by cosine."""
    points = pool.space.vectors
    some = np.arange(0, len(points), max(1, len(points) // 500))
    tenth = np.argsort(-(points[some] @ points.T), axis=1)[:, 10]
    bounds = law.certified_epsilon * law.pair_distances(some, tenth)
    return float(np.median(np.minimum(bounds, law.guarantee.ldp_epsilon)))


def tried_rows(bench: Bench, recipes: Sequence[Recipe], bound: float = 12.0) -> Iterator[Row]:
    """Return rows of what else was tried, at one bound on MR."""
    for recipe in recipes:
        cells = bench.means(recipe, "MR", bound, 2)
        near = bench.means(recipe, "MR", None, 1)
        size = bench.once(
            f"{recipe.key}; entries", lambda r=recipe: {"N": len(bench.library.pool(r))}
        )
        yield {
            "pool": recipe.source.replace(REVIEWS, "IMDB"),
            "entries": int(size["N"]),
            "encoder": recipe.name,
            "tree": recipe.method,
            "cosine": strip(pair(cells, "cosine", "MiniLM")),
            "MR": strip(pair(cells)),
            "MiniLM, nearest": near["MiniLM"],
            "MR, nearest": pair(near),
        }


def word_rows(bench: Bench, repeats: int) -> Iterator[Row]:
    """Return rows of words on MR: at the bounds of a text, and at an ε that keeps something."""
    space = bench.english
    words = bench.once(
        "MR; words",
        lambda: {"mean": float(np.mean([*map(len, bench.library.task("MR", False).words)]))},
    )["mean"]
    for name, epsilons in WORDS.items():
        levels = list(epsilons)
        if name == "hierarchical":
            key = f"words; {name} ε for 12"
            found = bench.once(
                key, lambda n=name: {"ε": epsilon_for_local_bound(space, n, 12 / words)}
            )
            levels.insert(0, found["ε"])
        for epsilon in levels:
            head = f"words; {name} {epsilon:.6g}"
            local = bench.once(
                f"{head}; local",
                lambda n=name, e=epsilon: {
                    "local": float(create_mechanism(n, space, e).guarantee.ldp_epsilon)
                },
            )["local"]
            runs = [
                bench.once(f"{head}; {k}", lambda n=name, e=epsilon: bench.words(n, e))
                for k in range(repeats)
                if bench.wanted(f"{head}; {k}", k)
            ]
            cells = {k: interval([run[k] for run in runs]) for k in ("trained on", "read")}
            yield {
                "mechanism": name,
                "ε": f"{epsilon:.3g}",
                "local DP of a word": f"{local:.3g}",
                f"of a text of {words:.1f} words": f"{local * words:.3g}",
                "stays": f"{np.mean([run['stays'] for run in runs]):.3f}",
                "MR": pair(cells),
            }


def picture(film: Sequence[Row], words: Sequence[Row], plain: str) -> None:
    """Draw accuracy against the local DP of a whole text."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(6.4, 4.0), layout="constrained")
    axes = figure.subplots()
    lines: dict[str, list[tuple[float, float]]] = {}
    for row in film:
        if isinstance(row.get("local DP"), float):
            value = float(row["MR"].split()[0])
            line = lines.setdefault(f"sentences: {row['pool and encoder'].replace('`', '')}", [])
            line.append((row["local DP"], value))
    for row in words:
        bound = next(float(v) for k, v in row.items() if k.startswith("of a text"))
        value = float(row["MR"].split()[0])
        lines.setdefault(f"words: {row['mechanism']}", []).append((bound, value))
    for name, points in lines.items():
        style = "s--" if name.startswith("words") else "o-"
        axes.plot(*zip(*points, strict=True), style, label=name, markersize=4)
    axes.axhline(float(plain), color="grey", linewidth=1, label="plain text")
    axes.axhline(0.5, color="grey", linewidth=1, linestyle=":", label="chance")
    axes.set(xscale="log", xlabel="local DP of a whole text (log)")
    axes.set(ylabel="accuracy on plain MR, trained on the release")
    axes.legend(fontsize=7, loc="center left", bbox_to_anchor=(1.0, 0.5))
    figure.savefig(PICTURE, dpi=110)


def short(film: Sequence[Row]) -> list[Row]:
    """Return the rows of the page of the feature, without intervals."""
    chosen = {FILM[at].name for at in (0, 2, 3, 4)}
    rows = [row for row in film if row["pool and encoder"] in (*chosen, "plain text")]
    rows = [row for row in rows if row.get("local DP") not in (10.0, NEAREST)]
    return [{k: strip(v) for k, v in row.items() if k != "ε"} for row in rows]


def strip(cell: Any) -> Any:
    """Return a cell without its intervals."""
    if not isinstance(cell, str) or "±" not in cell:
        return cell
    return " ".join(word for word in cell.split() if not word.startswith("±"))


def main() -> None:
    """Measure all rows, print them, and write them into the pages if asked to."""
    parser = common.parser(__doc__)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--cache", type=Path, default=common.HERE / "out" / "sentences")
    parser.add_argument("--model", type=Path, help="folder of MiniLM, if not a package")
    parser.add_argument("--tasks", nargs="*", choices=TASKS, default=TASKS)
    parser.add_argument("--tables", nargs="*", choices=TABLES, default=TABLES)
    parser.add_argument(
        "--measured", action="store_true", help="of repeats take those that the cache has"
    )
    parser.add_argument("--page", action="store_true", help="write the tables into docs")
    options = parser.parse_args()
    bench = Bench(options)
    made: dict[str, Callable[[int], Iterator[Row]]] = {
        "words": lambda repeats: word_rows(bench, repeats),
        "film": lambda repeats: film_rows(bench, FILM, options.tasks, repeats),
        "laws": lambda repeats: law_rows(bench, repeats),
        "own": lambda repeats: own_rows(bench, repeats),
        "tried": lambda repeats: tried_rows(bench, TRIED),
    }
    tables: dict[str, list[Row]] = {}
    # All rows with one release first: a run may be stopped at any time.
    for repeats in dict.fromkeys((1, options.repeats)):
        tables |= {name: list(made[name](repeats)) for name in options.tables}
    for name, rows in tables.items():
        common.report(name, rows, None)
        if options.page:
            common.write_into(PAGE, name, common.markdown(rows))
    if options.page and {"film", "words"} <= tables.keys():
        common.write_into(SHORT, "table", common.markdown(short(tables["film"])))
        picture(tables["film"], tables["words"], bench.plain("MR", False))


if __name__ == "__main__":
    main()
