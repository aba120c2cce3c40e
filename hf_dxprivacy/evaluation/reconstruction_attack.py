"""Attacks of the Bayes-optimal adversary on words, on texts, and on repeated releases of texts."""

import logging
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from hf_dxprivacy.errors import InvalidValueError, require_at_least
from hf_dxprivacy.evaluation.adversary import BayesAdversary, Ids, Reals, counted
from hf_dxprivacy.evaluation.bigrams import BigramModel
from hf_dxprivacy.evaluation.masked_words import MaskedWordModel
from hf_dxprivacy.evaluation.shadow import require_aligned
from hf_dxprivacy.mechanisms import Mechanism
from hf_dxprivacy.randomness import process_generator
from hf_dxprivacy.results import Interval, Result, Results, share_interval
from hf_dxprivacy.sentences.sentence_privatizer import SentencePrivatizer
from hf_dxprivacy.spaces import EmbeddingSpace
from hf_dxprivacy.spaces.lookup import look_up_rows
from hf_dxprivacy.text import Row, RowReader, TextRow, TokenRow, seems_name
from hf_dxprivacy.verify.inputs import blocks
from hf_dxprivacy.verify.posterior import largest

logger = logging.getLogger(__name__)

# Standard errors to either side of an estimate, for 95 %.
SPREAD = 1.96
# If more rows than this share do not fit their originals, they are not the same rows.
MISFITS = 0.1


@dataclass(frozen=True, eq=False)
class Reconstruction:
    """Success probabilities of the adversary for each of m words.

    Attributes:
        words: The candidates, the most frequent first.
        prior: (m,) float64 how likely each is.
        tops: How many guesses there are, for each column of `success`.
        success: (m, len(tops)) float64 probability that the word is among the guesses when it was
            released.
        exact: Whether these are the mechanism's true probabilities, or come from draws.
        results: "top-k" over all words and by frequency band, weighted by the prior.
    """

    words: tuple[str, ...]
    prior: Reals
    tops: tuple[int, ...]
    success: Reals
    exact: bool
    results: Results


def reconstruction(
    mechanism: Mechanism | SentencePrivatizer,
    prior: Mapping[str, float],
    *,
    tops: Sequence[int] = (1, 10),
    bands: Sequence[int] = (100, 1000),
    draws: int = 500,
    rng: np.random.Generator | None = None,
) -> Reconstruction:
    """Compute how often a word can be told from its release.

    The adversary knows the mechanism, ε and the prior, and takes each word for itself; see
    `BayesAdversary`. For exponential mechanisms the result is exact. For the others the adversary
    learns from draws and is tried on as many fresh ones: an unbiased estimate for this adversary,
    and so a lower bound of the best one, up to the interval.

    Args:
        mechanism: What privatizes the words; or a `SentencePrivatizer`, of whose pool the entries
            are told, and texts no nearer than by their entry.
        prior: Word → how often it occurs; for sentences public text → how often.
        tops: How many guesses the adversary has.
        bands: Ranks by frequency at which a band of words ends.
        draws: Draws from each word, twice.
        rng: Source of the draws; this process's own by default.

    Raises:
        InvalidValueError: If no word of the prior is in the space, or there are no tops.
        MissingExtraError: If SciPy, which draws need, is not installed.
    """
    require_at_least(1, tops=min(tops, default=0))
    rng = rng or process_generator()
    adversary = BayesAdversary(mechanism, prior, draws=draws, rng=rng)
    mechanism = adversary.mechanism
    counts = [min(top, len(adversary.prior)) for top in tops]
    if adversary.exact:
        success, trials = _success(adversary, counts, None), 1
        variances = np.zeros_like(success)
    else:
        fresh = counted(mechanism, adversary.candidates, draws, rng).tocsc() / draws
        success, trials = _success(adversary, counts, fresh), draws
        # One more success and one more failure: a share of 0 or 1 in the draws is not certain.
        chances = (success * draws + 1.0) / (draws + 2.0)
        variances = chances * (1.0 - chances) / draws
    results = Results()
    for name, band in _bands(len(success), bands):
        weights = adversary.prior[band] / adversary.prior[band].sum()
        values = np.clip(weights @ success[band], 0.0, 1.0)
        halves = SPREAD * np.sqrt(weights**2 @ variances[band])
        ends = values, np.maximum(0.0, values - halves), np.minimum(1.0, values + halves)
        results += [
            Result.of("reconstruction", f"top-{top}{name}", Interval(*found), len(weights) * trials)
            for top, found in zip(tops, np.transpose(ends).tolist(), strict=True)
        ]
    return Reconstruction(
        words=tuple(mechanism.space.words[i] for i in adversary.candidates.tolist()),
        prior=adversary.prior,
        tops=tuple(tops),
        success=success,
        exact=adversary.exact,
        results=results.replace(
            dataset="prior", mechanism=mechanism.name, epsilon=mechanism.epsilon
        ),
    )


def _success(adversary: BayesAdversary, counts: Sequence[int], fresh: Any) -> Reals:
    """Add up, over all outputs, how often each comes from a word that is guessed there.

    That is by the law of the adversary's words, or in draws that the adversary has not learned
    from: a sparse (m, V) table of their shares.
    """
    success = np.zeros((len(adversary.prior), len(counts)))
    size = len(adversary.mechanism.space)
    for outputs in blocks(np.arange(size), size):
        likelihoods = adversary.distribution.likelihoods(outputs)
        guesses = largest(likelihoods * adversary.prior, max(counts))
        law = likelihoods if fresh is None else fresh[:, outputs].toarray().T
        found = np.take_along_axis(law, guesses, axis=1)
        for column, count in enumerate(counts):
            np.add.at(success[:, column], guesses[:, :count], found[:, :count])
    return success


def _bands(size: int, ends: Sequence[int]) -> Iterator[tuple[str, slice]]:
    """Return the names of all words and of the bands, with their ranks."""
    yield "", slice(0, size)
    edges = [0, *sorted({end for end in ends if 0 < end < size}), size]
    if len(edges) > 2:
        for start, end in pairwise(edges):
            yield f", words {start + 1}–{end}", slice(start, end)


class _Marked(NamedTuple):
    """A number or a name, in lower case, with its input and output."""

    kind: str
    word: str
    input: int
    output: int


def reconstruct_texts(
    adversary: BayesAdversary,
    originals: Sequence[str],
    released: Sequence[str],
    *,
    tops: Sequence[int] = (1, 10),
    language_model: MaskedWordModel | BigramModel | None = None,
) -> Results:
    """Guess the words of texts from their release, and count how often that is right.

    Counted are the words that the space has, looked up as privatizers do; numbers and names that
    are drawn anew for their shape are left out, since to guess the shape is not to guess the word.
    One that the adversary's prior lacks is never guessed. Numbers and names have rows of their own,
    whether the space has them or not: words with a digit and all that are looked up by a shape, and
    words within sentences with a capital first but for "I". There the word itself is to be guessed,
    and each is taken for itself.
    For a release of whole sentences the entry of each text is guessed in the place of a word. A row
    that has other separators when it is split again, because words of the vocabulary joined or came
    apart, is left out; a warning says how many are.

    Args:
        adversary: Of the mechanism with which the texts were released.
        originals: (n,) texts as they were written, or lists of tokens, which always fit.
        released: (n,) the same texts or lists as released.
        tops: How many guesses the adversary has for each word.
        language_model: Expectations in context: a `BigramModel` of this adversary takes all other
            outputs into account, a `MaskedWordModel` the adversary's first guesses there.

    Returns:
        "top-k" for each of `tops`, "unchanged", the share of words that came out as they were, and
        "top-1, unchanged", the share of both, for the smallest of `tops`; "counted", the share of
        all running words that these are of; "top-k of numbers" and "top-k of names", where there
        are some. The intervals take words for independent, which words of one text are not quite.

    Raises:
        InvalidValueError: If lengths differ, more than a tenth of the releases do not fit their
            texts, no word is in the space, or there is a language model of words for whole
            sentences.
    """
    require_at_least(1, tops=min(tops, default=0))
    if language_model is not None and adversary.pool is not None:
        raise InvalidValueError("expected no language_model of words beside whole sentences")
    mechanism, prior = adversary.mechanism, adversary.prior
    names = [mechanism.space.words[i] for i in adversary.candidates.tolist()]
    positions = np.full(len(mechanism.space), -1)
    positions[adversary.candidates] = np.arange(len(names))
    both = f"top-{min(tops)}, unchanged"
    hits = dict.fromkeys([*(f"top-{top}" for top in tops), "unchanged", both], 0)
    pairs, marked, running = aligned(adversary, originals, released)
    fitting = [pair for pair in pairs if pair is not None]
    trials = sum(len(inputs) for inputs, _ in fitting)
    if not trials:
        raise InvalidValueError("expected words of the space in the texts, found not one")
    if language_model is None:
        before, after = (np.concatenate(each) for each in zip(*fitting, strict=True))
        fitting = [(before, after)]
    for inputs, outputs in fitting:
        expected, seen, at = None, outputs, np.arange(len(outputs))
        if isinstance(language_model, BigramModel):
            likelihoods = adversary.distribution.likelihoods(outputs)
            likelihoods[outputs < 0] = 1.0  # They say nothing of the word.
            expected = language_model.expectations(likelihoods)
        elif language_model is not None:
            first = [names[i] for i in adversary.guess(outputs)[:, 0].tolist()]
            expected = language_model.expectations(first, names, prior)
        else:
            seen, at = np.unique(outputs, return_inverse=True)
        guesses = adversary.guess(seen, max(tops), expected)[at]
        right = (guesses == positions[inputs][:, None]) & (outputs >= 0)[:, None]
        for top in tops:
            hits[f"top-{top}"] += int(right[:, :top].sum())
        hits["unchanged"] += int((inputs == outputs).sum())
        hits[both] += int((right[:, : min(tops)].any(axis=1) & (inputs == outputs)).sum())
    share = Interval(*[trials / running] * 3)
    of_all = Result.of("reconstruction", "counted", share, running)
    found = _shares("reconstruction", mechanism, hits, trials, of_all)
    for kind in ("numbers", "names"):
        if asked := [each for each in marked if each.kind == kind]:
            successes = _guessed(adversary, asked, positions, tops)
            found += _shares("reconstruction", mechanism, successes, len(asked))
    return found


def _guessed(
    adversary: BayesAdversary, asked: Sequence[_Marked], positions: Ids, tops: Sequence[int]
) -> dict[str, int]:
    """Count how often numbers or names are among the guesses of them."""
    hidden = {each: len(adversary.candidates) + at for at, each in enumerate(adversary.hidden)}
    right = np.full(len(asked), -1)
    for place, each in enumerate(asked):
        known = positions[each.input] if each.input >= 0 else -1
        right[place] = hidden.get((each.input, each.word), known)
    seen, at = np.unique([each.output for each in asked], return_inverse=True)
    guesses = adversary.guess_names(seen, max(tops))[at]
    found = (guesses == right[:, None]) & (right >= 0)[:, None]
    return {f"top-{top} of {asked[0].kind}": int(found[:, :top].sum()) for top in tops}


def _shares(
    task: str, mechanism: Mechanism, hits: Mapping[str, int], trials: int, *others: Result
) -> Results:
    found = [
        Result.of(task, metric, share_interval(count, trials), trials)
        for metric, count in hits.items()
    ]
    return Results([*found, *others]).replace(mechanism=mechanism.name, epsilon=mechanism.epsilon)


def aligned(
    adversary: BayesAdversary, originals: Sequence[Any], released: Sequence[Any]
) -> tuple[list[tuple[Ids, Ids] | None], list[_Marked], int]:
    """Return the ids of the words of each text and of their outputs, and the number of all words.

    Numbers and names come between, those that the space has and those that are drawn anew.

    Left out are words that the space lacks, and numbers and names that are drawn anew. The output
    is −1 where such a name or the like took the place of a word. None stands for a text whose
    release has other separators, so that its words are not known.

    Raises:
        InvalidValueError: If numbers of texts differ, more than a tenth of the releases do not fit,
            or one is no sentence of the pool.
    """
    require_aligned(originals=len(originals), released=len(released))
    space, pool = adversary.mechanism.space, adversary.pool
    if pool is not None:
        entries, outputs = pool.look_up(originals), space.ids(released)
        if (outputs < 0).any():
            row = int(np.argmax(outputs < 0))
            raise InvalidValueError(
                f"expected released sentences of the pool, got another one in row {row}; were the "
                "texts released with this pool, without refill=?"
            )
        return [(entries[entries >= 0], outputs[entries >= 0])], [], len(entries)
    reader, pairs, misfits = RowReader(), list[tuple[Ids, Ids] | None](), list[int]()
    marked, running = list[_Marked](), 0
    for at, (text, release) in enumerate(zip(originals, released, strict=True)):
        before = reader.read(text)
        after = _like(before, release, reader)
        if len(before or ()) != len(after or ()) or (before is None) != (after is None):
            misfits.append(at)
            pairs.append(None)
            continue
        inputs, outputs = (look_up_rows([row], space) for row in (before, after))
        evaluated = (inputs >= 0) & ~space.is_shape[inputs]
        pairs.append((inputs[evaluated], outputs[evaluated]))
        marked += _marked(before, inputs, outputs, space)
        running += len(inputs)
    if len(misfits) > MISFITS * len(pairs):
        raise InvalidValueError(
            f"expected the same separators, with as many words, in a release as in its original, "
            f"got others in {len(misfits)} of {len(pairs)} rows, first in row {misfits[0]}; are "
            "the rows in the same order, and was nothing dropped (oov='drop')? Lists of tokens, "
            "released as such, fit whatever the vocabulary has"
        )
    if misfits:
        logger.warning(
            "%d of %d releases have other words or separators when they are split again, and are "
            "left out",
            len(misfits),
            len(pairs),
        )
    return pairs, marked, running


def _marked(row: Row | None, inputs: Ids, outputs: Ids, space: EmbeddingSpace) -> Iterator[_Marked]:
    """Return the numbers and names of a row."""
    if row is None:
        return
    for at, (word, given, drawn) in enumerate(
        zip(row.words, inputs.tolist(), outputs.tolist(), strict=True)
    ):
        shape = space.words[given] if given >= 0 and space.is_shape[given] else "<name>"
        kind = "names" if seems_name(word, row.before(at), at == 0) else None
        kind = "numbers" if shape != "<name>" or any(map(str.isdigit, word)) else kind
        if kind:
            yield _Marked(kind, word.lower(), given, drawn)


def _like(row: Row | None, release: Any, reader: RowReader) -> Row | None:
    """Read the release of a row; None if it does not fit."""
    if isinstance(row, TokenRow) and len(release or ()) == len(row.tokens):
        words = [str(release[place]) for place in row.positions]
        return TokenRow(words, row.positions, [*release])
    after = reader.read(release)
    if isinstance(row, TextRow) and isinstance(after, TextRow):
        return after if row.separators == after.separators else None
    return None


def averaging(
    adversary: BayesAdversary,
    originals: Sequence[str],
    releases: Sequence[Sequence[str]],
    *,
    counts: Sequence[int] | None = None,
) -> Results:
    """Guess the words of texts from several releases of them, and count how often that is right.

    The adversary multiplies what the releases say of each word. That is the best one can do with
    independent releases, where the adversary knows the law; see `BayesAdversary`. A release that is
    equal to an earlier one in every word is the same release, and tells nothing new. Against
    ``memoize="user"`` a better adversary would also count how often a released word comes.

    Counted are the words that `reconstruct_texts` counts. One that the adversary's prior lacks is
    never guessed.

    Args:
        adversary: Of the mechanism with which the texts were released.
        originals: (n,) texts as they were written.
        releases: k releases of these texts, n texts each. A text of which one does not fit is
            left out, as by `reconstruct_texts`.
        counts: After how many releases to guess; after all of them by default.

    Returns:
        "top-1 of c" for each count c: the share of words guessed right from the first c releases.
        The intervals take words for independent, which words of one text, and equal words of a
        user under ``memoize="user"``, are not.

    Raises:
        InvalidValueError: If there is no release, a count is more than there are, lengths differ,
            more than a tenth of the rows of a release do not fit, or no word is in the space.
    """
    space = adversary.mechanism.space
    by_row = zip(*(aligned(adversary, originals, each)[0] for each in releases), strict=True)
    pairs = [*zip(*(row for row in by_row if all(row)), strict=True)]
    if not pairs or not any(len(before) for before, _ in pairs[0]):
        raise InvalidValueError(
            f"expected releases of texts with words of the space, got {len(pairs)} releases of "
            f"{len(originals)} texts without one"
        )
    inputs = np.concatenate([before for before, _ in pairs[0]])
    outputs = [np.concatenate([after for _, after in each]) for each in pairs]
    if any((each < 0).any() for each in outputs):
        raise InvalidValueError("expected releases whose words are all of the space")
    counts = [len(outputs)] if counts is None else list(counts)
    if not counts or not all(1 <= count <= len(outputs) for count in counts):
        raise InvalidValueError(
            f"expected counts from 1 to {len(outputs)}, as many as there are releases, got {counts}"
        )
    # Of the whole release: parts of two that are not the same may be equal.
    is_new = [
        not any(np.array_equal(each, earlier) for earlier in outputs[:place])
        for place, each in enumerate(outputs)
    ]
    hits = dict.fromkeys(counts, 0)
    for part in blocks(np.arange(len(inputs)), len(space)):
        belief = np.broadcast_to(adversary.prior, (len(part), len(adversary.prior)))
        for place, released in enumerate(outputs):
            if is_new[place]:
                belief = adversary.posterior(released[part], belief)
            if place + 1 in hits:
                guessed = adversary.candidates[belief.argmax(axis=1)]
                hits[place + 1] += int((guessed == inputs[part]).sum())
    shares = {f"top-1 of {count}": found for count, found in hits.items()}
    return _shares("averaging", adversary.mechanism, shares, len(inputs))
