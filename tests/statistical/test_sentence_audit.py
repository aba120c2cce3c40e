"""Audits of releases of whole sentences: planted faults are caught, honest ones pass."""

from collections.abc import Sequence
from functools import cache
from typing import Any

import numpy as np
import pytest

from hf_dxprivacy import EmbeddingSpace, SentencePool, SentencePrivatizer
from hf_dxprivacy.errors import InvalidTypeError, InvalidValueError
from hf_dxprivacy.randomness import keyed_generator, process_generator
from hf_dxprivacy.sentences import WordEncoder
from hf_dxprivacy.spaces.hierarchy import Hierarchy
from hf_dxprivacy.verify import GuaranteeCheck, verify_companions, verify_guarantee
from small_pools import SENTENCES, small_pool, small_words

# At most this share of honest releases would fail, over all seeds.
ALPHA = 1e-6
# The share of texts whose noise is lost, in the leaking one.
LEAK = 1e-3
TEXTS = ["", "日本語だけ", "x", "the soup was cold", "I liked THE film a lot!", "soup " * 30]
TEXTS += ["a very old doctor", "nobody knew the doctor", "please bring me the train", "city"]


@cache
def large_pool() -> SentencePool:
    """Sentences of four words each, over vectors drawn at random, with a balanced binary tree."""
    rng = np.random.default_rng(8)
    known = [f"w{letter}{k}" for letter in "abcde" for k in range(40)]
    words = EmbeddingSpace.from_vectors(known, rng.normal(size=(len(known), 8)))
    drawn = rng.permuted(np.tile(known, (20_000, 1)), axis=1)[:, :4]
    sentences = [*dict.fromkeys(map(" ".join, drawn))][: 1 << 14]
    encoder = WordEncoder(words).fitted(sentences)
    space = EmbeddingSpace.from_vectors(sentences, encoder.encode(sentences).astype(np.float32))
    size = len(sentences)
    tree = Hierarchy.from_merges(np.arange(2 * size - 2).reshape(-1, 2), size)
    zeros, identity = np.zeros(8, dtype=np.float32), np.eye(8, dtype=np.float32)
    return SentencePool(space.with_hierarchy(tree), encoder, zeros, identity)


class Leaking(SentencePrivatizer):
    """Releases the entry of one text of a thousand without noise."""

    def _draw(self, column: Any) -> list[str]:
        drawn = super()._draw(column)
        lost = process_generator().random(len(drawn)) < LEAK
        entries = zip(column.ids.tolist(), lost, drawn, strict=True)
        return [self.pool.sentences[e] if bare and e >= 0 else new for e, bare, new in entries]


@pytest.mark.parametrize("mechanism", ["hierarchical", "tem", "krr"])
@pytest.mark.parametrize("unit", ["text", "sentence"])
def test_what_comes_out_of_texts_keeps_the_bound(mechanism: str, unit: Any) -> None:
    privatizer = SentencePrivatizer(small_pool(), mechanism, 0.8, unit=unit)
    found = verify_guarantee(
        privatizer, TEXTS, draws=30_000, alpha=ALPHA, rng=keyed_generator(1, mechanism)
    )
    assert found.passed
    assert found.inputs == len(TEXTS)


def audit_of_near_texts(kind: type[SentencePrivatizer], seed: int) -> GuaranteeCheck:
    """Audit at two texts whose entries are a cluster, at a rate of 1e-3."""
    pool = large_pool()
    texts = [f"{sentence.upper()}, unknown!" for sentence in pool.sentences[:2]]
    assert pool.look_up(texts).tolist() == [0, 1]
    return verify_guarantee(
        *(kind(pool, "hierarchical", 0.05), texts),
        draws=300_000,
        alpha=1e-3,
        rng=keyed_generator(2, seed),
    )


def test_an_entry_that_leaks_once_in_a_thousand_is_caught() -> None:
    found = audit_of_near_texts(Leaking, 1)
    assert not found.passed
    assert found.allowed == pytest.approx(0.05 * np.log(2))
    assert audit_of_near_texts(SentencePrivatizer, 2).passed


def test_honest_releases_pass_whatever_the_seed() -> None:
    """200 audits at a rate at which twenty would be expected to fail if alpha were all there is."""
    privatizer = SentencePrivatizer(small_pool(), "hierarchical", 0.8)
    failed = [
        seed
        for seed in range(200)
        if not verify_guarantee(
            privatizer, TEXTS[:6], draws=480, alpha=0.1, rng=keyed_generator(3, seed)
        ).passed
    ]
    # Twenty and five standard deviations.
    assert len(failed) <= 41


# Companions


# Between two entries: which of them is nearer depends on the weights of the words.
TEXT = "the soup was in the garden of the doctor"
BESIDE = ([""], ["garden city doctor " * 4_000])


def of_private_encoder(texts: Sequence[str]) -> list[str | None]:
    """Release texts through an encoder whose weights were counted in them."""
    pool = small_pool()
    words = WordEncoder(small_words()).fitted(texts)
    fitted = SentencePool(pool.space, words, pool.offset, pool.projection)
    return SentencePrivatizer(fitted, "hierarchical", 1.5).privatize(texts)


def of_private_pool(texts: Sequence[str]) -> list[str | None]:
    """Release texts by a pool that the private texts are in."""
    sentences = [*SENTENCES, *(text[:60] for text in texts)]
    pool = SentencePool.from_sentences(sentences, small_words(), progress=False)
    return SentencePrivatizer(pool, "hierarchical", 1.5).privatize(texts)


@pytest.mark.parametrize("release", [of_private_encoder, of_private_pool])
def test_what_was_made_from_private_texts_is_caught(release: Any) -> None:
    found = verify_companions(
        release, TEXT, BESIDE, draws=12_000, alpha=ALPHA, rng=keyed_generator(4)
    )
    assert not found.passed
    assert found.allowed == 0.0
    assert {*found.worst} == {"beside companions[0]", "beside companions[1]"}


def test_companions_of_an_honest_release_never_matter() -> None:
    """None of 200 audits, at a rate of 1e-4 each: one or more with a probability below 0.02."""
    privatizer = SentencePrivatizer(small_pool(), "hierarchical", 1.5)
    beside = [[""], ["garden city doctor"] * 20, SENTENCES]
    for seed in range(200):
        found = verify_companions(
            privatizer.privatize, TEXT, beside, draws=600, copies=100, alpha=1e-4,
            rng=keyed_generator(5, seed),
        )  # fmt: skip
        assert found.passed


def test_refusals() -> None:
    pool = small_pool()
    seeded = SentencePrivatizer(pool, epsilon=1.0, seed=2**90)
    with pytest.raises(InvalidValueError, match="draws with a seed or a key are not independent"):
        verify_guarantee(seeded, TEXTS)
    honest = SentencePrivatizer(pool, epsilon=1.0)
    with pytest.raises(InvalidTypeError, match="a privatizer has its own bound"):
        verify_guarantee(honest, TEXTS, lambda a, b: 0.0)
    with pytest.raises(InvalidTypeError, match="a privatizer needs words= only"):
        verify_guarantee(honest)
    with pytest.raises(InvalidValueError, match="companions >= 2"):
        verify_companions(honest.privatize, "a", [[""]])
    with pytest.raises(InvalidValueError, match="expected 1001 releases of as many texts, got 1"):
        verify_companions(lambda texts: ["a"], "a", [["b"], ["c"]])
