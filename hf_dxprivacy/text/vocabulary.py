"""The tokens of a tokenizer: which are special, and which are words on their own."""

import copy
import json
from dataclasses import dataclass
from typing import Any

from tokenizers import Tokenizer

from hf_dxprivacy.errors import InvalidTypeError
from hf_dxprivacy.text.words import Splitter

# What a word comes after in running text.
_BEFORE = "a"


@dataclass(frozen=True, eq=False)
class TokenVocabulary:
    """What there is to know about the tokens of a tokenizer.

    Attributes:
        strings: Each token as the tokenizer has it ("##ing", "Ġthe", "▁the"), by its id, in the
            order of the ids.
        special: Ids of the tokens that stand for no text (start, separator, padding, mask, …),
            and of the one for unknown words.
        unknown: Id of the token that unknown words become, if there is one.
    """

    strings: dict[int, str]
    special: frozenset[int]
    unknown: int | None
    _tokenizer: Any

    @classmethod
    def of(cls, tokenizer: Any) -> "TokenVocabulary":
        """Read the tokens of a tokenizer, which stays as it is.

        Args:
            tokenizer: A `tokenizers.Tokenizer`, or a tokenizer of `transformers` that is backed
                by one.

        Raises:
            InvalidTypeError: If it is neither.
        """
        own = tokenizer
        if not isinstance(own, Tokenizer):
            own = getattr(tokenizer, "backend_tokenizer", None)
        if not isinstance(own, Tokenizer):
            raise InvalidTypeError(
                "expected a tokenizers.Tokenizer, or a transformers tokenizer that is backed by "
                f"one, got a {type(tokenizer).__name__}; save a fast version of the tokenizer "
                "(tokenizer.json) and load that"
            )
        own = copy.deepcopy(own)
        own.no_padding()
        own.no_truncation()
        unknown = _unknown(own)
        special = set(getattr(tokenizer, "all_special_ids", ()))
        special |= {token for token, t in own.get_added_tokens_decoder().items() if t.special}
        if unknown is not None:
            special.add(unknown)
        strings = {token: string for string, token in own.get_vocab().items()}
        return cls(dict(sorted(strings.items())), frozenset(special), unknown, own)

    @property
    def ordinary(self) -> dict[str, int]:
        """Every token that is not special, with its id, in the order of the ids."""
        return {s: token for token, s in self.strings.items() if token not in self.special}

    def whole_words(self) -> dict[str, int]:
        """Return the words that are exactly one token each in running text, with the ids.

        Running text means after another word: "Ġthe", not "the", is the word "the" of a byte-level
        tokenizer. What is a word is up to `Splitter`. Every word has one id, whatever other tokens
        spell it.
        """
        split = Splitter()
        # One by one on purpose: the batch methods start threads, about which the library then
        # warns in every process that `Dataset.map` forks.
        encode, decode = self._tokenizer.encode, self._tokenizer.decode
        before = encode(_BEFORE, add_special_tokens=False).ids
        found = {}
        for token in self.ordinary.values():
            word = decode([token], skip_special_tokens=False).strip()
            if split.normalize(word) != word or [w for w, _ in split.split(word)] != [word]:
                continue
            if encode(f"{_BEFORE} {word}", add_special_tokens=False).ids == [*before, token]:
                found[word] = token
        return found


def _unknown(tokenizer: Tokenizer) -> int | None:
    model = tokenizer.model
    if hasattr(model, "unk_token"):
        return None if model.unk_token is None else tokenizer.token_to_id(model.unk_token)
    # A Unigram model has it, but does not show it.
    unknown: int | None = json.loads(tokenizer.to_str())["model"].get("unk_id")
    return unknown
