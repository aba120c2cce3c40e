"""Comparison of mechanisms on a user's own texts: what each keeps, and what it hides."""

import hashlib
import json
import math
import secrets
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from tqdm import tqdm

from hf_dxprivacy._runtime import require
from hf_dxprivacy.calibration.measuring import Checkpoint
from hf_dxprivacy.errors import (
    ArtifactError,
    InvalidValueError,
    MissingExtraError,
    require_at_least,
)
from hf_dxprivacy.evaluation.candidates import Candidate, candidates, suiting
from hf_dxprivacy.evaluation.comparison import (
    BY_DRAWS,
    EXACT,
    FALSE,
    FIGURES,
    NOTHING_LEARNED,
    Compared,
    Comparison,
)
from hf_dxprivacy.evaluation.evaluation_data import prepare
from hf_dxprivacy.evaluation.perplexity import NgramModel
from hf_dxprivacy.evaluation.reconstruction_attack import reconstruction
from hf_dxprivacy.evaluation.scores import QUICK, Evaluator, SampleSizes, combined, create_learner
from hf_dxprivacy.hub.artifact import read_json, to_json
from hf_dxprivacy.hub.atomic import atomic_write
from hf_dxprivacy.hub.download import builtin_pools
from hf_dxprivacy.mechanisms import ExactMechanism
from hf_dxprivacy.randomness import keyed_generator
from hf_dxprivacy.results import EXTRA, ORIGINAL, Interval
from hf_dxprivacy.sentences import SentenceEncoder, SentencePool
from hf_dxprivacy.sentences.encoders import TransformersEncoder
from hf_dxprivacy.spaces import EmbeddingSpace
from hf_dxprivacy.verify import verify_claim, verify_guarantee

if TYPE_CHECKING:
    from datasets import Dataset

# Bounds of whole texts at which pools are taken.
BOUNDS, QUICK_BOUNDS = (8.0, 10.0, 12.0, 15.0), (10.0, 15.0)
# Probability, at most, with which draws accuse a claim that is true.
FALSE_ALARM = 1e-3
# Releases by which a claim is verified where there is no mechanism, at least.
LEAST_RUNS = 1000
# Draws from each word for the Bayes adversary, where no law is known.
DRAWS = 100
OPEN = "not checked"
# From here on the words of the texts are another language's.
UNKNOWN = 0.3

CAUTIONS = (
    "Computed from the private texts, and not protected: for their owner only. Do not publish "
    "them; an ε that was chosen by them tells a little of the texts too.",
    "An attack that fails is no proof; the guarantee is. A stronger attacker may do better.",
)


def compare(
    dataset: "Dataset",
    *,
    text_column: str = "text",
    label_column: str | None = None,
    user_column: str | None = None,
    space: EmbeddingSpace | str | Path = "english",
    mechanisms: Sequence[str] | None = None,
    epsilon: float | Sequence[float] | Mapping[str, Any] | None = None,
    pools: Iterable[SentencePool | str] | None = None,
    others: Mapping[str, Any] | Iterable[Any] = (),
    model: str | None = None,
    encoder: SentenceEncoder | str | Path | None = None,
    sample: int | None = None,
    quick: bool = False,
    releases: int = 1,
    resume: str | Path | None = None,
    progress: bool = True,
    seed: int | None = None,
) -> Comparison:
    """Compare mechanisms on texts: what each keeps for a task, what it hides, what of it is true.

    Every mechanism releases a sample of the texts at several ε. A classifier is trained on each
    release, attackers are set on it, and the claim is verified, exactly where the law is known. The
    texts that are released are thrown away.

    Without `epsilon` a mechanism is taken where about 10, 30, 50 and 80 % of running words stay as
    they are. That is worked out from the public space alone, by rank (`running_words`), so that the
    choice tells nothing of the texts.

    Args:
        dataset: A `datasets.Dataset`.
        text_column: Texts; a row without one is left out.
        label_column: Classes that a classifier is to learn. Without it there is no accuracy.
        user_column: Who wrote each text. Without it there is no author attack, and mechanisms are
            compared at the same success of the Bayes adversary.
        space: A public space or its name, for the mechanisms, near words and averaged vectors.
        mechanisms: Names; by default those that suit the space, of "hierarchical", "calibrated",
            "tem", "laplace" (not with `quick`) and "krr".
        epsilon: ε of all mechanisms, one or several; or of each by its name.
        pools: Pools of sentences or their names; by default the built-in one. They are taken at
            bounds of 8, 10, 12 and 15 for the whole text.
        others: Privatizers, or anything with ``privatize(texts)`` such as `External`; perhaps a
            mapping from names.
        model: "vectors", "tfidf", or a model of `transformers` to fine-tune; by default averaged
            vectors of a Euclidean space with logistic regression.
        encoder: For the similarity of texts; a `SentenceEncoder`, or a model of `transformers`.
        sample: Rows of the sample, at most; 5,000, or 1,000 with `quick`.
        quick: Look at fewer rows, words and pairs.
        releases: Releases of each; the figures are their means.
        resume: A folder that keeps each row of the result as it is done, and from which the same
            call goes on. It holds figures of single texts, and is as private as they are.
        progress: Show a bar on the standard error stream if that is a terminal.
        seed: Makes sample, noise and attackers reproducible; by default all are random.

    Raises:
        InvalidValueError: If a column is missing, no row has a text, a mechanism is unknown, or the
            folder belongs to another comparison.
        InvalidTypeError: If an argument is of the wrong type.
        MissingExtraError: If scikit-learn or SciPy is not installed (extra "audit").
    """
    require_at_least(1, releases=releases)
    require("sklearn", EXTRA)
    require("scipy", EXTRA)
    sizes = QUICK if quick else SampleSizes()
    if sample is not None:
        require_at_least(1, sample=sample)
        sizes = replace(sizes, rows=sample)
    # Noise of a seed costs more than fresh noise.
    noise, seed = seed, _seed(seed, resume)
    if not isinstance(space, EmbeddingSpace):
        space = EmbeddingSpace.from_pretrained(space)
    data = prepare(
        dataset,
        text_column,
        label_column,
        user_column,
        rows=sizes.rows,
        words=sizes.words,
        users=sizes.users,
        rng=keyed_generator(seed, "rows"),
    )
    notes = list(data.notes)
    if mechanisms is None:
        mechanisms, reasons = suiting(space, quick)
        notes += reasons
    if encoder is None:
        notes.append("no similarity: no encoder was named")
    named = encoder.digest if isinstance(encoder, SentenceEncoder) else str(encoder)
    if encoder is not None and not isinstance(encoder, SentenceEncoder):
        encoder = TransformersEncoder(encoder)
    learner = create_learner(model, space, len(data.labels), seed % (1 << 31))
    evaluator = Evaluator(
        data,
        space,
        sizes,
        learner if data.labels else None,
        encoder,
        NgramModel.load(),
        seed,
    )
    pools = builtin_pools() if pools is None else pools
    bounds = QUICK_BOUNDS if quick else BOUNDS
    chosen = list(candidates(space, mechanisms, epsilon, pools, others, seed, bounds))
    # What figures are is among them, so that none is kept beside others of the same name.
    settings = repr((FIGURES, sizes, model, named, releases))
    about = {"data": data.digest, "settings": settings, "seed": seed}
    kept = None if resume is None else Checkpoint(resume, about)
    found = []
    with tqdm(total=len(chosen), delay=1.0, disable=not progress or None) as bar:
        for candidate in chosen:
            title = "originals" if candidate.name == ORIGINAL else candidate.name
            epsilon_of = "" if candidate.epsilon is None else f", ε = {candidate.epsilon:.4g}"
            bar.set_description(f"Comparing {title}{epsilon_of}")
            measure = partial(_measured, candidate, evaluator, releases, noise, notes)
            found.append(measure() if kept is None else _kept(kept, candidate.identity, measure))
            bar.update()
    return _comparison(found, evaluator, notes, given=epsilon is not None)


def _seed(seed: int | None, resume: str | Path | None) -> int:
    """Return the seed; one that a folder keeps if none is given."""
    if seed is not None:
        require_at_least(0, seed=seed)
        return seed
    if resume is not None and (about := Path(resume) / "about.json").exists():
        return int(read_json(about, "expected a comparison")["seed"])
    return secrets.randbits(62)


def _measured(
    candidate: Candidate, evaluator: Evaluator, releases: int, seed: int | None, notes: list[str]
) -> Compared:
    """Release the texts, and measure."""
    texts, mechanism = evaluator.data.texts, candidate.mechanism
    runs, first = [], texts
    for number in range(releases if candidate.privatizer is not None else 1):
        release = partial(_release, candidate, seed, number)
        released = release(texts)
        first = first if number else released
        fresh = release if mechanism is not None else None
        runs.append(evaluator.scores(released, candidate.unit, fresh))
    figures, samples = combined(runs)
    if evaluator.sizes.members and evaluator.data.labels:
        try:
            figures["membership"] = evaluator.membership(first)
        except (MissingExtraError, InvalidValueError) as error:
            reason = f"no membership attack: {error}"
            notes += [] if reason in notes else [reason]
    if candidate.privatizer is None:
        figures |= dict.fromkeys(("b1", "b10"), Interval(1.0, 1.0, 1.0))
    elif mechanism is not None and candidate.unit == "word" and evaluator.frequencies:
        # The adversary knows the mechanism and how often each word occurs in the texts.
        rng = evaluator.rng("bayes")
        found = reconstruction(
            mechanism, evaluator.frequencies, bands=(), draws=DRAWS, rng=rng
        ).results
        # An adversary who learns the law from draws may be beaten by one who knows it.
        known = isinstance(mechanism, ExactMechanism)
        figures |= {
            name: Interval(r.value, r.low, r.high if known else 1.0)
            for name, r in zip(("b1", "b10"), found, strict=True)
        }
    state, how = _verified(candidate, evaluator)
    local, many = candidate.local, evaluator.median_words if candidate.unit == "word" else 1.0
    return Compared(
        mechanism=candidate.name,
        epsilon=candidate.epsilon,
        unit=candidate.unit,
        claim=candidate.claim,
        verified=state,
        verification=how,
        local=local,
        # How many sentences a text has is not known here.
        local_text=None if local is None or candidate.unit == "sentence" else local * many,
        in_clear=candidate.in_clear,
        figures=figures,
        samples=samples,
    )


def _verified(candidate: Candidate, evaluator: Evaluator) -> tuple[str, str]:
    """Return whether the claim of a candidate was verified, and how, in a sentence."""
    sizes, rng = evaluator.sizes, evaluator.rng("verification")
    # The law of a mechanism says nothing of what a class of another program makes of it.
    foreign = not type(candidate.privatizer).__module__.startswith("hf_dxprivacy.")
    if candidate.mechanism is None or foreign:
        state, how = _verified_by_runs(candidate, evaluator, rng)
        if candidate.mechanism is None or state != BY_DRAWS:
            return state, how
    looks: dict[str, Any] = {"inputs": sizes.inputs, "draws": sizes.draws, "rng": rng}
    check = partial(
        verify_guarantee, candidate.mechanism, alpha=FALSE_ALARM, progress=False, **looks
    )
    try:
        try:
            found = check()
        except InvalidValueError:
            if not isinstance(candidate.mechanism, ExactMechanism):
                raise
            found = check(method="sampling")  # a law without an exact check
    except InvalidValueError as error:
        return OPEN, str(error)
    if not found.passed:
        return FALSE, str(found)
    looked = f"{found.pairs:,} pairs of {found.inputs:,} inputs: {found.scope}"
    if found.method == "exact":
        return EXACT, looked
    alarm = f"a true claim is called false with probability {FALSE_ALARM:g} at most"
    return BY_DRAWS, f"{looked}, {found.draws:,} draws; {alarm}"


def _verified_by_runs(
    candidate: Candidate, evaluator: Evaluator, rng: np.random.Generator
) -> tuple[str, str]:
    """Verify what is claimed of a program by as many draws as it has time for."""
    sizes, inputs = evaluator.sizes, evaluator.inputs(candidate.unit)
    stated = getattr(candidate.privatizer, "guarantee", None)
    claim = getattr(candidate.privatizer, "claim", math.inf) if stated is None else stated.bound
    if not callable(claim) and not math.isfinite(claim):
        return OPEN, "nothing is claimed"
    start = time.perf_counter()
    candidate.release(inputs)
    runs = int(sizes.seconds * len(inputs) / max(time.perf_counter() - start, 1e-6))
    if runs < LEAST_RUNS or len(inputs) < 2:
        return OPEN, f"it is too slow for {LEAST_RUNS:,} releases in {sizes.seconds:g} seconds"
    runs = min(runs, sizes.draws)
    options: dict[str, Any] = {"runs": runs, "false_alarm": FALSE_ALARM, "rng": rng}
    try:
        found = verify_claim(candidate.privatizer, claim, inputs, **options)
    except InvalidValueError as error:  # nothing is claimed of any two of them
        return OPEN, str(error)
    if not found.holds:
        return FALSE, str(found)
    # Without sets of outputs to test, only gross faults would have shown.
    return (BY_DRAWS if found.evidence else OPEN), str(found)


def _release(
    candidate: Candidate, seed: int | None, number: int, texts: Sequence[str], part: int = -1
) -> list[str]:
    """Release texts with noise of their own for each release and part."""
    if seed is None:
        return candidate.release(texts)
    noise = keyed_generator(seed, candidate.key, number, part).bytes(16)
    return candidate.release(texts, int.from_bytes(noise, "little"))


def _kept(store: Checkpoint, key: str, measure: Callable[[], Compared]) -> Compared:
    """Return a row that the folder has, or measure it and keep it."""
    path = store.folder / f"row-{hashlib.sha256(key.encode()).hexdigest()[:16]}.json"
    if not path.exists():
        row = measure()
        samples = {name: values.tolist() for name, values in row.samples.items()}
        atomic_write(path, [to_json(row.to_dict() | {"samples": samples})])
    try:
        content = json.loads(path.read_text("utf-8"))
        for name in ("local", "local_text"):
            content[name] = math.inf if content[name] == "inf" else content[name]
        content["figures"] = {k: Interval(*v) for k, v in content["figures"].items()}
        content["samples"] = {k: np.array(v) for k, v in content["samples"].items()}
        return Compared(**content)
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise ArtifactError(f"{path} is damaged; delete it to have it measured again") from error


def _comparison(
    rows: Sequence[Compared], evaluator: Evaluator, notes: list[str], given: bool
) -> Comparison:
    """Choose what counts as use and as attack, and add the relative gain."""
    plain, data = rows[0].figures, evaluator.data
    utility = next(name for name in ("trained", "similarity", "kept") if name in plain)
    weak: tuple[str, ...] = ()
    size = f"{len(data.sample):,} texts of {evaluator.median_words:.0f} words in the median"
    about = [f"measured on {size}"]
    if data.labels:
        classes = data.classes[data.labelled]
        most = float(np.bincount(classes).max() / len(classes))
        about.append(
            f"{len(data.labels)} classes; always naming the commonest is right for {most:.3f}"
        )
        if plain["trained"].low <= most:
            notes.append(NOTHING_LEARNED)
    if "author" in plain:
        authors = {data.owners[k] for k in data.known}
        if plain["author"].low <= 1.0 / len(authors):
            weak = ("author",)
            notes.append(
                "the author attack fails on the originals already, so that its failure on a "
                "release says nothing"
            )
    if any("b1" in row.figures for row in rows[1:]):
        about.append(evaluator.guessed)
    if evaluator.unknown_share > UNKNOWN:
        notes.append(
            f"the space lacks {evaluator.unknown_share:.1%} of the words: is it of their language?"
        )
    if drawn := dict.fromkeys(row.mechanism for row in rows if row.is_lower_bound("b1")):
        notes.append(
            f"b1 and b10 of {', '.join(drawn)} are lower bounds: their laws are learned from "
            f"{DRAWS} draws of each word, so that they are not compared at the same success"
        )
    if not given:
        about.append(
            "taken at the ε where about 10, 30, 50 and 80 % of running words stay, worked out from "
            "the public space alone; pools at bounds for the whole text"
        )
    about += CAUTIONS
    bare = Comparison(
        tuple(rows), utility, weak, evaluator.parts(utility), tuple(about), tuple(notes)
    )
    return replace(bare, rows=tuple(_with_gain(bare, row) for row in rows))


def _with_gain(comparison: Comparison, row: Compared) -> Compared:
    """Add U/U₀ − P/P₀ by the attack of the headline, where all of it was measured."""
    if not comparison.attacks or NOTHING_LEARNED in comparison.notes:
        return row  # a classifier at chance would count as one that loses nothing
    attack, utility, original = comparison.attacks[0], comparison.utility, comparison.rows[0]
    leaked, reference = (comparison.leaked(each, attack) for each in (row, original))
    used, plain = row.value(utility), original.value(utility)
    if used is None or not plain or leaked is None or not reference or not reference.value:
        return row
    gain = used / plain - leaked.value / reference.value
    return replace(row, figures={**row.figures, "gain": Interval(gain, gain, gain)})
