"""`local_epsilon=` in place of ε, in every privatizer and over stored spaces."""

import math
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tokenizers import Tokenizer, models

from hf_dxprivacy import (
    DxPrivatizer,
    EmbeddingSpace,
    SentencePool,
    SentencePrivatizer,
    SlotPrivatizer,
    TokenPrivatizer,
)
from hf_dxprivacy.errors import InvalidTypeError, InvalidValueError
from hf_dxprivacy.mechanisms import create_mechanism
from hf_dxprivacy.slots import ContentWordSelector
from small_pools import small_pool

KEY = bytes(range(40))
Make = Callable[..., Any]
OWNERS = ("words", "slots", "tokens", "sentences")


@pytest.fixture(scope="module")
def space(euclidean_space: EmbeddingSpace) -> EmbeddingSpace:
    return euclidean_space.build_hierarchy(progress=False)


@pytest.fixture(scope="module")
def pool() -> SentencePool:
    return small_pool()


@pytest.fixture(scope="module")
def makers(space: EmbeddingSpace, pool: SentencePool) -> dict[str, Make]:
    words = {word: row for row, word in enumerate(["[UNK]", *space.words])}
    tokenizer = Tokenizer(models.WordLevel(words, unk_token="[UNK]"))
    return {
        "words": lambda *law, **o: DxPrivatizer(space, *law, **o),
        "slots": lambda *law, **o: SlotPrivatizer(space, *law, selector=ContentWordSelector(), **o),
        "tokens": lambda *law, **o: TokenPrivatizer(space, tokenizer, *law, **o),
        "sentences": lambda *law, **o: SentencePrivatizer(pool, *law, **o),
    }


@pytest.mark.parametrize("owner", OWNERS)
@pytest.mark.parametrize("mechanism", ["hierarchical", "krr", "laplace", "tem"])
@pytest.mark.parametrize("limit", [0.7, 2.9])
def test_the_guarantee_states_at_most_what_was_asked_for_and_hardly_less(
    makers: dict[str, Make], owner: str, mechanism: str, limit: float
) -> None:
    privatizer = makers[owner](mechanism, local_epsilon=limit)
    stated = privatizer.mechanism.guarantee.ldp_epsilon
    assert limit * (1 - 2e-5) <= stated <= limit
    assert privatizer.guarantee.ldp_epsilon == (math.inf if owner == "slots" else stated)
    # A slightly larger ε would not keep it.
    law = create_mechanism(mechanism, privatizer.space, privatizer.epsilon * (1 + 2e-5))
    assert law.local_epsilon > limit


def test_two_words_of_a_slot_are_within_the_bound(makers: dict[str, Make]) -> None:
    slots = makers["slots"]("hierarchical", local_epsilon=3.0)
    words = slots.space.words[:40]
    bounds = [slots.guarantee.bound(f"the {a}", f"the {b}") for a in words for b in words]
    assert 1.0 < max(bounds) <= 3.0


def test_the_texts_of_every_label_are_within_the_bound(pool: SentencePool) -> None:
    """The whole pool is larger than the part of any label, and would ask for a smaller ε."""
    by_label = SentencePrivatizer(pool, local_epsilon=2.0, label_column="topic")
    assert 2.0 * (1 - 2e-5) <= by_label.guarantee.ldp_epsilon <= 2.0
    assert by_label.epsilon > SentencePrivatizer(pool, local_epsilon=2.0).epsilon


def test_a_bound_of_a_stored_space(space: EmbeddingSpace, tmp_path: Path) -> None:
    space.save_pretrained(tmp_path / "space")
    folder = str(tmp_path / "space")
    stored = DxPrivatizer.from_pretrained(folder, mechanism="krr", local_epsilon=2.0)
    assert stored.epsilon == 2.0
    assert stored.config.epsilon == 2.0
    DxPrivatizer(folder, "krr", 2.0).save_pretrained(tmp_path / "privatizer")
    with pytest.raises(InvalidValueError, match="leave epsilon out"):
        DxPrivatizer.from_pretrained(tmp_path / "privatizer", local_epsilon=2.0)


@pytest.mark.parametrize("owner", OWNERS)
def test_exactly_one_of_the_two_is_given(makers: dict[str, Make], owner: str) -> None:
    make = makers[owner]
    with pytest.raises(InvalidValueError, match=r"local_epsilon=2\.0 finds .*; pass one of the"):
        make("krr", 1.0, local_epsilon=2.0)
    with pytest.raises(InvalidValueError, match=r"epsilon is missing: .* or local_epsilon=, the"):
        make("krr")
    with pytest.raises(InvalidTypeError, match="expected local_epsilon to be a number"):
        make("krr", local_epsilon="12")
    with pytest.raises(InvalidValueError, match="expected local_epsilon > 0 and finite"):
        make("krr", local_epsilon=0.0)
    if owner != "sentences":
        with pytest.raises(InvalidValueError, match="mechanism is missing"):
            make(local_epsilon=2.0)
    law = create_mechanism("krr", make("krr", 1.0).space, 1.0)
    with pytest.raises(InvalidValueError, match="or a ready-made mechanism brings one"):
        make(law, local_epsilon=2.0)


@pytest.mark.parametrize(
    ("owner", "options", "named"),
    [
        ("words", {"oov": "keep"}, 'stopwords=, oov="drop" or "keep", or case="preserve"'),
        ("words", {"case": "preserve"}, 'case="preserve"'),
        ("slots", {"stopwords": "english"}, "stopwords="),
        ("words", {"memoize": "user", "user_column": "u", "key": KEY}, 'memoize="user"'),
        ("sentences", {"memoize": "user", "user_column": "u", "key": KEY}, 'memoize="user"'),
    ],
)
def test_what_no_local_bound_covers_is_refused(
    makers: dict[str, Make], owner: str, options: dict[str, Any], named: str
) -> None:
    with pytest.raises(InvalidValueError, match=f"cannot hold with .*{re.escape(named)}"):
        makers[owner]("krr", local_epsilon=2.0, **options)
