"""Objects that state a guarantee, and spaces, are read-only once they are made."""

import copy
import pickle
from collections.abc import Callable
from inspect import signature
from typing import TypeVar

import pytest
from tokenizers import Tokenizer
from tokenizers.models import WordLevel

from hf_dxprivacy import DxPrivatizer, EmbeddingSpace, SlotPrivatizer, TokenPrivatizer
from hf_dxprivacy.errors import ImmutableError
from hf_dxprivacy.mechanisms import MECHANISMS, create_mechanism
from hf_dxprivacy.slots import ContentWordSelector

T = TypeVar("T")
Maker = Callable[[EmbeddingSpace], object]


def of_words(space: EmbeddingSpace) -> DxPrivatizer:
    return DxPrivatizer(space, "tem", 2.0)


def of_slots(space: EmbeddingSpace) -> SlotPrivatizer:
    return SlotPrivatizer(space, "tem", 2.0, selector=ContentWordSelector())


def of_tokens(space: EmbeddingSpace) -> TokenPrivatizer:
    vocabulary = {word: at for at, word in enumerate((*space.words, "[UNK]"))}
    return TokenPrivatizer(space, Tokenizer(WordLevel(vocabulary, unk_token="[UNK]")), "tem", 2.0)


def mechanism(space: EmbeddingSpace) -> object:
    return create_mechanism("tem", space, 2.0)


def itself(made: T) -> T:
    return made


MAKERS = [of_words, of_slots, of_tokens, mechanism, itself]


def travelled(made: object) -> object:
    return pickle.loads(pickle.dumps(made))


@pytest.mark.parametrize("make", MAKERS)
@pytest.mark.parametrize("again", [itself, copy.copy, travelled])
def test_no_public_attribute_changes(
    euclidean_space: EmbeddingSpace, make: Maker, again: Callable[[object], object]
) -> None:
    made = again(make(euclidean_space))
    before = dict(vars(made))
    assert before
    properties = [name for name, value in vars(type(made)).items() if isinstance(value, property)]
    for name in (*before, *properties, "digest" if "words" in before else "guarantee"):
        if not name.startswith("_"):
            with pytest.raises(AttributeError, match=f"'{name}'"):
                setattr(made, name, 1000.0)
            with pytest.raises(AttributeError, match=f"'{name}'"):
                delattr(made, name)
    assert vars(made) == before


def test_the_guarantee_stays_that_of_the_mechanism(euclidean_space: EmbeddingSpace) -> None:
    privatizer = of_words(euclidean_space)
    assert privatizer.guarantee.epsilon == 2.0
    with pytest.raises(ImmutableError, match="'mechanism': a DxPrivatizer stays as it was made"):
        privatizer.mechanism = create_mechanism("tem", euclidean_space, 1000.0)
    with pytest.raises(ImmutableError, match="'epsilon': a TruncatedExponential stays"):
        privatizer.mechanism.epsilon = 1000.0
    assert privatizer.mechanism.epsilon == privatizer.guarantee.epsilon


def test_a_subclass_sets_what_it_has_more(euclidean_space: EmbeddingSpace) -> None:
    class Named(DxPrivatizer):
        def __init__(self, space: EmbeddingSpace, title: str) -> None:
            super().__init__(space, "tem", 2.0)
            self.title = title

    privatizer = Named(euclidean_space, title="mine")
    assert privatizer.title == "mine"
    with pytest.raises(ImmutableError, match="'title': a Named stays"):
        privatizer.title = "yours"


@pytest.mark.parametrize("name", MECHANISMS)
def test_constructors_show_their_arguments(name: str) -> None:
    assert list(signature(MECHANISMS[name]).parameters)[:2] == ["space", "epsilon"]
