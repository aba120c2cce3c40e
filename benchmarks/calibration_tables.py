"""Tables of docs/results/calibration.md: N_w and S_w by mechanism, space and ε.

    python benchmarks/calibration_tables.py --json calibration.json    measure
    python benchmarks/calibration_tables.py --page calibration.json    put the tables on the page

Development data: GloVe 840B 300-d (33,860 words), the SMS spam collection, the disaster tweets.
"""

import json
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

import common
from hf_dxprivacy import EmbeddingSpace
from hf_dxprivacy.calibration import privacy_statistics, sample_words, suggest_epsilon
from hf_dxprivacy.evaluation import suggest_lambda
from hf_dxprivacy.mechanisms import Mahalanobis, MultivariateLaplace, create_mechanism
from hf_dxprivacy.mechanisms.mahalanobis import regularized_mahalanobis
from hf_dxprivacy.noise import ball_points, lebesgue_radius
from hf_dxprivacy.randomness import keyed_generator
from hf_dxprivacy.search import nearest_poincare
from hf_dxprivacy.spaces.metrics import boundary_gap, mobius_add
from hf_dxprivacy.text import RowReader
from hf_dxprivacy.training import PoincareConfig, read_wordnet, train_poincare
from hf_dxprivacy.training.wordnet import DEFAULT_PATH

PAGE = common.HERE.parent / "docs" / "results" / "calibration.md"
START, END = "<!-- {}: made by benchmarks/calibration_tables.py -->\n", "<!-- end of {} -->"

Table = list[dict[str, Any]]
Array = NDArray[np.float64]
Addition = Callable[[Array, Array], Array]

LAMBDAS = (0.0, 0.25, 0.5, 0.75, 1.0)
MAHALANOBIS_EPSILONS = (5.0, 10.0, 15.0, 20.0, 40.0)
LAPLACE_EPSILONS = (5.0, 10.0, 15.0, 20.0, 25.0, 30.0, 40.0)
ADDITION_EPSILONS = (0.125, 1.0, 100.0, 200.0)
WORST = (0.3, 0.5, 0.7, 0.9)
# By space: ε of noise, and of "tem".
INPUT_EPSILONS = {
    "wordnet-gloss": ((16.0, 24.0, 32.0, 48.0), (5.0, 6.5, 8.0, 10.0)),
    "GloVe": ((5.0, 10.0, 15.0, 20.0), (1.0, 1.5, 2.0, 2.5)),
}
NOISE_LENGTHS = (3.0, 4.0, 5.0, 6.0, 8.0, 12.0)


def short_texts(data: Path) -> EmbeddingSpace:
    """Return GloVe over the words of SMS spam and disaster tweets."""
    glove, reader = common.glove(data), RowReader()
    names = ("sms_spam", "disaster_tweets")
    texts = [e["text"] for n in names for e in common.jsonl(data / "utility" / f"{n}.jsonl.gz")]
    used = {word.lower() for text in texts for word in reader.read_text(text).words}
    return within(glove, [word for word in glove.words if word in used])


def within(space: EmbeddingSpace, words: Sequence[str]) -> EmbeddingSpace:
    """Return a space cut down to some of its words, with its distances."""
    vectors = space.vectors[space.ids(words)]
    return EmbeddingSpace.from_vectors(words, vectors, space.metric, space.scale)


def mahalanobis(data: Path) -> dict[str, Table]:
    """N_w and S_w of 100 draws, mean ± standard deviation over 2,000 words, by λ and ε."""
    space = short_texts(data)
    words = sample_words(space, 2000, rng=keyed_generator(0, "mahalanobis"))
    kept: Table = [{"ε": epsilon} for epsilon in MAHALANOBIS_EPSILONS]
    spread: Table = [{"ε": epsilon} for epsilon in MAHALANOBIS_EPSILONS]
    for lam in LAMBDAS:
        for row, epsilon in enumerate(MAHALANOBIS_EPSILONS):
            mechanism = Mahalanobis(space, epsilon, lam)
            rng = keyed_generator(0, repr(lam), row)
            found = privacy_statistics(mechanism, words, 100, rng=rng)
            name = f"λ = {lam:g}"
            kept[row][name] = f"{100 * found.kept.mean():.1f} ± {100 * found.kept.std():.1f}"
            spread[row][name] = f"{found.distinct.mean():.1f} ± {found.distinct.std():.1f}"
    return {
        "N_w": kept,
        "S_w": spread,
        "vocabulary": [{"vocabulary": len(space), "words": len(words)}],
    }


def hierarchy(data: Path) -> dict[str, Table]:
    """Average N_w where the largest of 500 words is at most a bound, in three spaces."""
    ball, gloss = (EmbeddingSpace.from_pretrained(f"wordnet-{n}") for n in ("poincare", "gloss"))
    glove = common.glove(data)
    shared = [word for word in ball.words if word in gloss and word in glove]
    spaces = {"wordnet-poincare": ball, "wordnet-gloss": gloss, "GloVe": glove}
    spaces = {name: within(space, shared) for name, space in spaces.items()}
    words = sample_words(spaces["wordnet-poincare"], 500, rng=keyed_generator(0, "hierarchy"))
    noise = [equal_worst(spaces[name], name, "laplace", words) for name in list(spaces)[1:]]
    tem = [equal_worst(space, name, "tem", words) for name, space in spaces.items()]
    print(f"{len(shared):,} words in all three spaces, {len(words):,} looked at")
    return {
        "ball": least_noise(spaces["wordnet-poincare"], words),
        "noise": noise,
        "tem": tem,
    }


def least_noise(ball: EmbeddingSpace, words: Sequence[str]) -> Table:
    """Return N_w under as much hyperbolic noise as there can be."""
    floor = 1.0001 * (ball.dim - 1) / ball.scale
    rows: Table = []
    for title, epsilon, noise in (("Eq. 7", 0.01, "lebesgue"), ("certified", floor, "riemannian")):
        mechanism = create_mechanism("hyperbolic", ball, epsilon, noise=noise)
        found = privacy_statistics(mechanism, words, 200, rng=keyed_generator(0, noise))
        rows.append(
            {"noise": title, "ε": f"{epsilon:.4g}", "certified ε": f"{mechanism.space_epsilon:.4g}"}
            | {"mean N_w": f"{found.kept.mean():.3f}", "least N_w": f"{found.kept.min():.3f}"}
        )
    return rows


def additions(data: Path) -> dict[str, Table]:
    """N_w under the noise of Eq. 7 in 100 dimensions, by the addition that moves it to a word."""
    shared = EmbeddingSpace.from_pretrained("wordnet-poincare").words
    glove = common.glove(data)
    relations = read_wordnet(DEFAULT_PATH, nodes="words", max_senses=1)
    relations = relations.among({word for word in shared if word in glove})
    config = PoincareConfig(epochs=40, burn_in=10)
    ball = train_poincare(relations, 100, config, threads=1, progress=False)
    words = sample_words(ball, 500, rng=keyed_generator(0, "additions"))
    starts, gaps = ball.points(ball.ids(words)), boundary_gap(ball.vectors)
    rows: Table = []
    for epsilon in ADDITION_EPSILONS:
        row: dict[str, Any] = {"ε": f"{epsilon:g}"}
        for title, add in (("w ⊕ z", mobius_add), ("w + z", flat_add)):
            rng = keyed_generator(0, "additions", title, repr(epsilon))
            kept = np.array([stays(ball, gaps, add, start, epsilon, rng) for start in starts])
            row |= {f"{title}, mean N_w": f"{kept.mean():.3f}"}
            row |= {f"{title}, largest": f"{kept.max():.3f}"}
            row |= {f"{title}, least": f"{kept.min():.3f}"}
        rows.append(row)
        print(row, flush=True)
    lengths = np.linalg.norm(ball.vectors, axis=1)
    about = {"words": len(ball), "relations": len(relations), "looked at": len(words)}
    about |= {"median length of a vector": f"{np.median(lengths):.4f}"}
    return {"N_w": rows, "ball": [about]}


def stays(
    ball: EmbeddingSpace, gaps: Array, add: Addition, start: Array, epsilon: float, rng: Generator
) -> float:
    """Return the share of 1,000 draws in which the nearest word is the one at the start."""
    radii = lebesgue_radius(rng, 1000, ball.dim, epsilon * ball.scale)
    noisy = add(start[None], ball_points(rng, radii, ball.dim))
    found = nearest_poincare(noisy, ball.vectors, gaps)
    return float((ball.vectors[found] == start).all(axis=1).mean())


def flat_add(points: Array, noise: Array) -> Array:
    """Add as printed in [H], and put what leaves the ball back into it."""
    noisy = points + noise
    lengths = np.linalg.norm(noisy, axis=1, keepdims=True)
    result: Array = noisy / np.maximum(1.0, lengths / (1.0 - 1e-5))
    return result


def equal_worst(
    space: EmbeddingSpace, name: str, mechanism: str, words: Sequence[str]
) -> dict[str, Any]:
    """Return a row: for each bound the ε, and the average N_w of the words."""
    row: dict[str, Any] = {"space": name, "mechanism": mechanism}
    steps = (16.0, 160.0) if mechanism == "laplace" else (2.0, 32.0)
    grid = np.geomspace(*steps, 41) / space.neighbour_distances()[1]
    for bound in WORST:
        answer = suggest_epsilon(
            space,
            mechanism,
            max_nw=bound,
            words=words,
            epsilons=grid,
            runs=500,
            rng=keyed_generator(0, name, mechanism, repr(bound)),
        )
        found = privacy_statistics(
            create_mechanism(mechanism, space, answer.epsilon),
            words,
            500,
            rng=keyed_generator(1, name, mechanism, repr(bound)),
        )
        row[f"N_w ≤ {bound:g}"] = f"{found.kept.mean():.3f} (ε = {answer.epsilon:.3g})"
    return row


def lonely_and_not(data: Path) -> tuple[EmbeddingSpace, tuple[str, ...]]:
    """Return GloVe and 500 of its words, by how sparse their neighbourhoods are."""
    space = common.glove(data)
    return space, sample_words(space, 500, "sparsity", keyed_generator(0, "laplace"))


def laplace(data: Path) -> dict[str, Table]:
    """Percentiles of N_w and S_w over 500 words of GloVe by ε."""
    space, words = lonely_and_not(data)
    rows: Table = []
    for epsilon in LAPLACE_EPSILONS:
        mechanism = MultivariateLaplace(space, epsilon)
        found = privacy_statistics(mechanism, words, rng=keyed_generator(0, repr(epsilon)))
        kept = np.percentile(found.kept, (5, 50, 95, 100))
        spread = np.percentile(found.distinct, (0, 5, 50, 95))
        kept_names = ("N_w 5 %", "N_w 50 %", "N_w 95 %", "largest N_w")
        spread_names = ("least S_w", "S_w 5 %", "S_w 50 %", "S_w 95 %")
        rows.append(
            {"ε": epsilon}
            | {name: f"{value:.3f}" for name, value in zip(kept_names, kept, strict=True)}
            | {name: f"{value:.0f}" for name, value in zip(spread_names, spread, strict=True)}
        )
    return {"percentiles": rows}


def suggestions(data: Path) -> dict[str, Table]:
    """Laplace noise by the worst of the same words."""
    space, words = lonely_and_not(data)
    rows: Table = []
    for target in ({"max_nw": 0.5}, {"min_sw": 100}):
        answer = suggest_epsilon(
            space,
            "laplace",
            words=words,
            epsilons=np.geomspace(5.0, 20.0, 17),
            rng=keyed_generator(0, *target),
            **target,  # type: ignore[arg-type]
        )
        rows.append(
            {
                "target": str(answer.targets),
                "ε": f"{answer.epsilon:.3g}",
                "not at": f"{answer.next_epsilon or np.nan:.3g}",
                "worst N_w": f"{answer.worst.kept:.3f}",
                "worst S_w": answer.worst.support,
                "other words that may miss it": f"{answer.unseen:.1%}",
            }
        )
    return {"targets": rows}


def inputs(data: Path) -> dict[str, Table]:
    """N_w, S_w and K_w of all words in two spaces of 3,000."""
    spaces = {"wordnet-gloss": EmbeddingSpace.from_pretrained("wordnet-gloss")}
    spaces["GloVe"] = common.glove(data)
    rows: Table = []
    for title, whole in spaces.items():
        space = within(whole, whole.words[:3000])
        noise, tem = INPUT_EPSILONS[title]
        cases = [("laplace", {}, noise), ("mahalanobis", {"lam": 1.0}, noise), ("tem", {}, tem)]
        for name, own, epsilons in cases:
            for epsilon in epsilons:
                mechanism = create_mechanism(name, space, epsilon, **own)
                rng = keyed_generator(0, title, name, repr(epsilon))
                found = privacy_statistics(mechanism, runs=500, rng=rng, count_inputs=True)
                low, middle, high = np.percentile(found.inputs, (5, 50, 95))
                rows.append(
                    {"space": title, "mechanism": name + ", λ = 1" * bool(own), "ε": epsilon}
                    | {"mean N_w": f"{found.kept.mean():.3f}"}
                    | {"median S_w": f"{np.median(found.distinct):.0f}"}
                    | {"least K_w": int(found.inputs.min()), "K_w 5 %": f"{low:.0f}"}
                    | {"K_w 50 %": f"{middle:.0f}", "K_w 95 %": f"{high:.0f}"}
                )
    return {"K_w": rows}


def density(data: Path) -> dict[str, Table]:
    """Distances to neighbours, and words within a radius, of 1,000 words of each space."""
    names = ("english", "wordnet-gloss", "wordnet-poincare")
    spaces = {f"`{name}`": EmbeddingSpace.from_pretrained(name) for name in names}
    spaces["GloVe"] = glove = common.glove(data)
    spaces["GloVe of short texts"] = short_texts(data)
    stretched = regularized_mahalanobis(glove.vectors, 1.0).inverse_root
    points = glove.vectors.astype(np.float64) @ stretched
    spaces["GloVe, Mahalanobis norm, λ = 1"] = EmbeddingSpace.from_vectors(glove.words, points)
    distances: Table = []
    within_radius: Table = []
    for title, space in spaces.items():
        ids = space.ids(sample_words(space, 1000, rng=keyed_generator(0, "density")))
        found = [np.sort(space.distances(block), axis=1)[:, 1:] for block in np.split(ids, 10)]
        near = np.concatenate(found)
        unit = np.median(near[:, 0])
        about = {"space": title, "words": len(space)}
        ranks = {rank: np.percentile(near[:, rank - 1], (5, 50, 95)) for rank in (1, 5, 10, 100)}
        distances.append(
            about
            | {
                f"neighbour {k}": " / ".join(f"{v:.3g}" for v in found)
                for k, found in ranks.items()
            }
            | {"95 % to 5 %, 10th": f"{ranks[10][2] / ranks[10][0]:.2f}"}
        )
        radii = {factor: (near <= factor * unit).sum(axis=1) for factor in (1.0, 1.25, 1.5, 2.0)}
        within_radius.append(
            about
            | {
                f"{k:g} × {unit:.3g}" if k == 1 else f"{k:g} ×": quantiles(v)
                for k, v in radii.items()
            }
        )
    return {"distances": distances, "radii": within_radius}


def quantiles(values: NDArray[np.int64]) -> str:
    """Return three percentiles and the mean."""
    found = np.percentile(values, (5, 50, 95))
    return " / ".join(f"{v:,.0f}" for v in found) + f" ({values.mean():,.1f})"


def lambdas(data: Path) -> dict[str, Table]:
    """What λ does to the lonely words where as many stay on average."""
    texts, gloss = short_texts(data), EmbeddingSpace.from_pretrained("wordnet-gloss")
    rows: Table = []
    for title, space, epsilon in (("GloVe", texts, 10.0), ("wordnet-gloss", gloss, 24.0)):
        words = sample_words(space, 500, "sparsity", keyed_generator(0, "lambdas"))
        lams = LAMBDAS if title == "GloVe" else LAMBDAS[::2]
        rng = keyed_generator(0, "lambdas", title, repr(epsilon))
        found = suggest_lambda(space, epsilon, lams=lams, words=words, runs=400, rng=rng)
        print(found, flush=True)
        for (lam, figure), step in zip(found.figures.items(), found.steps, strict=True):
            kept, made = step.statistics.kept, step.mechanism
            rows.append(
                {"space": title, "λ": f"**{lam:g}**" if lam == found.lam else f"{lam:g}"}
                | {"ε": f"{made.epsilon:.4g}", "Euclidean ε": f"{made.space_epsilon:.4g}"}
                | {"mean N_w": f"{kept.mean():.3f}", "densest tenth": f"{kept[:50].mean():.3f}"}
                | {"loneliest tenth": f"{kept[-50:].mean():.3f}", "worst 5 %": f"{figure:.3f}"}
                | {"largest N_w": f"{kept.max():.3f}"}
                | {"median S_w": f"{np.median(step.statistics.distinct):.0f}"}
            )
    return {"grid": rows}


def dimensions(data: Path) -> dict[str, Table]:
    """N_w and S_w of GloVe and its first 50 principal components, under noise of equal lengths."""
    glove, words = lonely_and_not(data)
    centred = glove.vectors - glove.vectors.mean(axis=0, dtype=np.float64)
    values, basis = np.linalg.eigh(centred.T @ centred)
    flat = EmbeddingSpace.from_vectors(glove.words, centred @ basis[:, -50:])
    about = {"variance kept": f"{values[-50:].sum() / values.sum():.0%}"}
    rows: Table = [{"noise": f"{length:g}"} for length in NOISE_LENGTHS]
    for space in (glove, flat):
        unit, n = space.neighbour_distances()[1], space.dim
        about[f"median distance to the nearest word, {n}"] = f"{unit:.3g}"
        for row in rows:
            epsilon = n / (float(row["noise"]) * unit)
            found = privacy_statistics(
                MultivariateLaplace(space, epsilon),
                *(words, 500),
                rng=keyed_generator(0, "dimensions", n, row["noise"]),
            )
            kept = np.percentile(found.kept, (5, 50, 95))
            row |= {f"{n}-d: ε": f"{epsilon:.3g}"}
            row |= {"N_w 5 / 50 / 95 %" + " " * (n == 50): " / ".join(f"{v:.3f}" for v in kept)}
            row |= {"S_w 50 %" + " " * (n == 50): f"{np.median(found.distinct):.0f}"}
    return {"N_w": rows, "space": [about]}


def speed(data: Path) -> dict[str, Table]:
    """What a draw costs on GloVe, by statistics and by a search for each draw."""
    space = common.glove(data)
    words = sample_words(space, 1000, rng=keyed_generator(0, "speed"))
    mechanism = MultivariateLaplace(space, 15.0)
    few = np.repeat(space.ids(words[:10]), 1000)
    rows: Table = []
    for title, draws, work in (
        ("`privacy_statistics`", 1000 * len(words), lambda: privacy_statistics(mechanism, words)),
        ("a search for each draw", len(few), lambda: mechanism.sample(few, keyed_generator(0))),
    ):
        used = time.process_time()
        work()
        seconds = time.process_time() - used
        rows.append({"way": title, "draws": draws, "draws a CPU second": round(draws / seconds)})
    return {"draws": rows}


PARTS: dict[str, Callable[[Path], dict[str, Table]]] = {
    function.__name__: function
    for function in (
        *(mahalanobis, inputs, density, lambdas, dimensions),
        *(hierarchy, additions, laplace, suggestions, speed),
    )
}


def on_page(page: str, measured: dict[str, dict[str, Table]]) -> str:
    """Return the page with its tables replaced by measured ones."""
    for part, tables in measured.items():
        for title, rows in tables.items():
            name = f"{part} {title}"
            head, start, rest = page.partition(START.format(name))
            _, end, tail = rest.partition(END.format(name))
            if start and end:
                page = f"{head}{start}\n{markdown(rows)}\n{end}{tail}"
    return page


def markdown(rows: Table) -> str:
    """Return a table in Markdown."""
    lines = [[str(name) for name in rows[0]], ["---", *["---:"] * (len(rows[0]) - 1)]]
    lines += [
        [f"{v:,}" if isinstance(v, int) else f"{v:g}" if isinstance(v, float) else v for v in row]
        for row in (list(row.values()) for row in rows)
    ]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


def main() -> None:
    """Measure, or render."""
    arguments = common.parser(__doc__)
    arguments.add_argument("--parts", nargs="+", choices=PARTS, default=list(PARTS))
    arguments.add_argument("--page", type=Path, help="JSON of an earlier run to render")
    options = arguments.parse_args()
    if options.page is not None:
        measured = json.loads(options.page.read_text("utf-8"))["tables"]
        PAGE.write_text(on_page(PAGE.read_text("utf-8"), measured), "utf-8")
        return
    found: dict[str, dict[str, Table]] = {}
    for part in options.parts:
        found[part] = PARTS[part](options.data)
        for title, rows in found[part].items():
            print(f"\n## {part}: {title}\n\n{markdown(rows)}", flush=True)
        if options.json is not None:
            content = {"machine": common.machine(), "tables": found}
            options.json.write_text(json.dumps(content, indent=1, ensure_ascii=False), "utf-8")


if __name__ == "__main__":
    main()
