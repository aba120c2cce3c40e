"""TokenPrivatizer: forms of ids, special and unknown tokens, seeds, and what it promises."""

import json
import math
import pickle
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
import torch
import transformers
from tokenizers import Tokenizer, models

from hf_dxprivacy.errors import (
    ArtifactError,
    BudgetExceededError,
    InvalidTypeError,
    InvalidValueError,
)
from hf_dxprivacy.mechanisms import MultivariateLaplace
from hf_dxprivacy.privatizers.budget import PrivacyBudget
from hf_dxprivacy.privatizers.text_privatizer import DxPrivatizer
from hf_dxprivacy.privatizers.token_privatizer import TokenPrivatizer
from hf_dxprivacy.spaces import EmbeddingSpace

SPECIAL = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
PAD, UNK, CLS, SEP, MASK = range(5)
# Tokens that the space lacks come between the special ones and those it has.
OTHERS = ["##a", "##b", "zzz"]
FIRST = len(SPECIAL) + len(OTHERS)
# So much that noise never reaches another word of the test space.
NOISELESS = 1e6


@pytest.fixture(scope="module")
def tokenizer(euclidean_space: EmbeddingSpace) -> Tokenizer:
    """A tokenizer whose tokens are the words of the space in reverse order, and others."""
    tokens = [*SPECIAL, *OTHERS, *reversed(euclidean_space.words)]
    vocabulary = {token: row for row, token in enumerate(tokens)}
    tokenizer = Tokenizer(models.WordLevel(vocabulary, unk_token="[UNK]"))
    tokenizer.add_special_tokens(SPECIAL)
    return tokenizer


@pytest.fixture(scope="module")
def size(tokenizer: Tokenizer) -> int:
    size: int = tokenizer.get_vocab_size()
    return size


@pytest.fixture(scope="module")
def noisy(euclidean_space: EmbeddingSpace, tokenizer: Tokenizer) -> TokenPrivatizer:
    return TokenPrivatizer(euclidean_space, tokenizer, "laplace", 2.0)


@pytest.fixture(scope="module")
def exact(euclidean_space: EmbeddingSpace, tokenizer: Tokenizer) -> TokenPrivatizer:
    """Releases every token of the space as it is."""
    return TokenPrivatizer(euclidean_space, tokenizer, "laplace", NOISELESS)


# Which tokens


def test_tokens_become_tokens_of_the_space(noisy: TokenPrivatizer, size: int) -> None:
    given = list(range(FIRST, size))
    released = noisy.privatize_ids(given)
    assert len(released) == len(given)
    assert set(released) <= set(given)
    assert sum(a != b for a, b in zip(given, released, strict=True)) > len(given) // 4


def test_ids_and_rows_of_the_space_are_told_apart(
    exact: TokenPrivatizer, tokenizer: Tokenizer, size: int
) -> None:
    """The tokenizer has the words in reverse order."""
    assert tokenizer.id_to_token(FIRST) == exact.space.words[-1]
    assert exact.privatize_ids(list(range(FIRST, size))) == list(range(FIRST, size))


def test_special_tokens_stay(noisy: TokenPrivatizer) -> None:
    for token in (PAD, CLS, SEP, MASK):
        assert noisy.privatize_ids([token] * 50) == [token] * 50


def test_the_unknown_token_and_tokens_outside_are_one_input(
    noisy: TokenPrivatizer, exact: TokenPrivatizer, size: int
) -> None:
    outside = [UNK, *range(len(SPECIAL), FIRST)]
    for token in outside:
        assert set(noisy.privatize_ids([token] * 50)) <= set(range(FIRST, size))
    nearest = int(np.argmin(exact.space.distances([-1])[0]))
    assert exact.privatize_ids(outside) == [size - 1 - nearest] * len(outside)


def test_padding_with_the_unknown_token_is_replaced(
    euclidean_space: EmbeddingSpace, tokenizer: Tokenizer, size: int
) -> None:
    fast = transformers.PreTrainedTokenizerFast(
        tokenizer_object=tokenizer, unk_token="[UNK]", pad_token="[UNK]", cls_token="[CLS]"
    )
    privatizer = TokenPrivatizer(euclidean_space, fast, "laplace", 2.0)
    released = privatizer.privatize_ids([CLS, FIRST, UNK, UNK])
    assert released[0] == CLS
    assert min(released[1:]) >= FIRST


def test_an_unknown_token_that_is_never_made_is_special(euclidean_space: EmbeddingSpace) -> None:
    """As GPT-2 has it: one token for everything special, and no word is unknown."""
    vocabulary = {word: row for row, word in enumerate(euclidean_space.words)}
    tokenizer = Tokenizer(models.BPE(vocabulary, []))
    tokenizer.add_special_tokens(["<|end|>"])
    fast = transformers.PreTrainedTokenizerFast(
        tokenizer_object=tokenizer, unk_token="<|end|>", eos_token="<|end|>"
    )
    privatizer = TokenPrivatizer(euclidean_space, fast, "laplace", 2.0)
    assert privatizer.privatize_ids([500] * 20) == [500] * 20


def test_both_kinds_of_tokenizers_are_the_same(
    noisy: TokenPrivatizer, euclidean_space: EmbeddingSpace, tokenizer: Tokenizer
) -> None:
    fast = transformers.PreTrainedTokenizerFast(tokenizer_object=tokenizer)
    again = TokenPrivatizer(euclidean_space, fast, "laplace", 2.0)
    assert pickle.dumps(again) == pickle.dumps(noisy)


def test_only_tokens_of_a_smaller_space_come_out(
    euclidean_space: EmbeddingSpace, tokenizer: Tokenizer, size: int
) -> None:
    few = EmbeddingSpace.from_vectors(euclidean_space.words[:3], euclidean_space.vectors[:3])
    privatizer = TokenPrivatizer(few, tokenizer, "laplace", 0.01)
    released = privatizer.privatize_ids(list(range(FIRST, size)))
    assert set(released) == {size - 1, size - 2, size - 3}


# Forms of ids


@pytest.mark.parametrize(
    "given",
    [
        [CLS, FIRST, SEP],
        [],
        [[CLS, FIRST, SEP], [CLS, SEP], [], None],
        [None, [FIRST]],
        [None, None],
        [[]],
    ],
)
def test_lists_keep_their_form(exact: TokenPrivatizer, given: Any) -> None:
    copy = json.loads(json.dumps(given))
    assert exact.privatize_ids(given) == given == copy


def test_a_missing_row_passes_through(exact: TokenPrivatizer) -> None:
    assert exact.privatize_ids(None) is None
    assert math.isnan(exact.privatize_ids([float("nan"), [FIRST]])[0])


@pytest.mark.parametrize("dtype", [np.int16, np.uint16, np.int32, np.int64, np.uint64])
@pytest.mark.parametrize("shape", [(6,), (2, 3), (6, 1), (0,), (0, 4), (3, 0)])
def test_arrays_keep_their_form(
    noisy: TokenPrivatizer, dtype: type, shape: tuple[int, ...]
) -> None:
    given = np.full(shape, FIRST, dtype)
    released = noisy.privatize_ids(given)
    assert isinstance(released, np.ndarray)
    assert (released.shape, released.dtype) == (shape, dtype)
    assert (given == FIRST).all()


@pytest.mark.parametrize("dtype", [torch.int16, torch.int32, torch.int64])
@pytest.mark.parametrize("shape", [(6,), (2, 3), (0,), (0, 4), (3, 0)])
def test_tensors_keep_their_form(
    noisy: TokenPrivatizer, dtype: torch.dtype, shape: tuple[int, ...]
) -> None:
    given = torch.full(shape, FIRST, dtype=dtype)
    released = noisy.privatize_ids(given)
    assert isinstance(released, torch.Tensor)
    assert (tuple(released.shape), released.dtype) == (shape, dtype)
    assert (given == FIRST).all()


def test_values_of_arrays_and_tensors(exact: TokenPrivatizer) -> None:
    rows = [[CLS, FIRST, FIRST + 7, SEP], [CLS, FIRST + 1, SEP, PAD]]
    for given in (np.array(rows), np.array(rows, dtype=np.uint16)):
        np.testing.assert_array_equal(exact.privatize_ids(given), given)
    assert torch.equal(exact.privatize_ids(torch.tensor(rows)), torch.tensor(rows))
    mixed = [np.array(rows[0]), torch.tensor(rows[1]), rows[0][:2], tuple(rows[1])]
    released = exact.privatize_ids(mixed)
    assert [type(row) for row in released] == [np.ndarray, torch.Tensor, list, list]
    assert [list(map(int, row)) for row in released] == [*rows, rows[0][:2], rows[1]]
    ragged = np.array([np.array(rows[0]), np.array(rows[1][:2])], dtype=object)
    assert [row.tolist() for row in exact.privatize_ids(ragged)] == [rows[0], rows[1][:2]]


@pytest.mark.parametrize(
    ("given", "error", "message"),
    [
        ("abc", InvalidTypeError, "expected token ids or a batch of them, got a str; a tokenizer"),
        (5, InvalidTypeError, "expected token ids or a batch of them, got a int"),
        (np.array(5), InvalidTypeError, "expected token ids or a batch of them, got a ndarray"),
        ({"input_ids": [5]}, InvalidTypeError, "got a dict"),
        (["abc"], InvalidTypeError, "expected a flat sequence of token ids .* got a list"),
        ([77.0], InvalidTypeError, "expected a flat sequence of token ids"),
        ([77, None], InvalidTypeError, "expected a flat sequence of token ids"),
        ([True, False], InvalidTypeError, "expected a flat sequence of token ids"),
        ([[[77]]], InvalidTypeError, "row 0 of the batch: expected a flat sequence"),
        ([[5], [77, [7]]], InvalidTypeError, "row 1 of the batch: expected a flat sequence"),
        ([[5], 77], InvalidTypeError, "row 1 of the batch: .* got a int"),
        (np.zeros((2, 2, 2), int), InvalidTypeError, "row 0 of the batch: .* got a ndarray"),
        (np.zeros(3), InvalidTypeError, "expected a flat sequence of token ids"),
        (torch.zeros(3), InvalidTypeError, "expected a flat sequence of token ids"),
        ([77, -1], InvalidValueError, "expected token ids from 0 to 507, got one that is outside"),
        ([[5], [77, 508]], InvalidValueError, "row 1 of the batch: .* from 0 to 507"),
        ([77, 2**70], InvalidTypeError, "expected a flat sequence of token ids"),
        (np.array([77], np.uint8), InvalidTypeError, "the ids of 508 tokens, got uint8; use int32"),
    ],
)
def test_what_is_no_ids_is_refused(
    noisy: TokenPrivatizer, given: Any, error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message) as raised:
        noisy.privatize_ids(given)
    assert "77" not in str(raised.value)


# Rows and batches of a data set


def test_a_row_and_a_batch(exact: TokenPrivatizer) -> None:
    row = {"input_ids": [CLS, FIRST, SEP], "attention_mask": [1, 1, 1], "text": "secret"}
    assert exact(row) == {"input_ids": [CLS, FIRST, SEP]}
    assert exact(row, 7) == {"input_ids": [CLS, FIRST, SEP]}
    batch = {"input_ids": [[CLS, FIRST], None], "attention_mask": [[1, 1], None]}
    assert exact(batch) == exact(batch, [3, 4]) == {"input_ids": [[CLS, FIRST], None]}
    assert exact({"input_ids": None}) == {"input_ids": None}
    assert exact({"input_ids": []}) == exact({"input_ids": []}, []) == {"input_ids": []}


def test_the_output_of_a_tokenizer(exact: TokenPrivatizer, tokenizer: Tokenizer) -> None:
    fast = transformers.PreTrainedTokenizerFast(
        tokenizer_object=tokenizer, pad_token="[PAD]", unk_token="[UNK]"
    )
    words = exact.space.words
    for form, kind in (("pt", torch.Tensor), ("np", np.ndarray), (None, list)):
        encoded = fast([words[3], words[4]], return_tensors=form)
        released = exact(encoded)["input_ids"]
        assert isinstance(released, kind)
        assert np.array_equal(np.asarray(released), np.asarray(encoded["input_ids"]))


def test_tables_come_back_whole(exact: TokenPrivatizer) -> None:
    rows = [[CLS, FIRST], None, []]
    for kind in (pa.list_(pa.int32()), pa.large_list(pa.int64())):
        table = pa.table({"input_ids": pa.array(rows, kind), "label": [0, 1, 0]})
        assert exact(table).equals(table)
    frame = pd.DataFrame({"input_ids": rows, "label": [0, 1, 0]})
    assert exact(frame).to_dict("list") == frame.to_dict("list")


def test_another_column(euclidean_space: EmbeddingSpace, tokenizer: Tokenizer) -> None:
    privatizer = TokenPrivatizer(
        euclidean_space, tokenizer, "laplace", NOISELESS, ids_column="decoder_input_ids"
    )
    assert privatizer({"decoder_input_ids": [FIRST]}) == {"decoder_input_ids": [FIRST]}
    message = "'decoder_input_ids' is not in the data: .*with ids_column="
    with pytest.raises(InvalidValueError, match=message):
        privatizer({"input_ids": [FIRST]})


def test_what_is_no_example_is_refused(noisy: TokenPrivatizer) -> None:
    with pytest.raises(InvalidTypeError, match=r"got a list; use privatize_ids\(\) for ids"):
        noisy([77])
    with pytest.raises(InvalidTypeError, match=r"column 'input_ids', row 41: expected a flat"):
        noisy({"input_ids": [[5], ["77"]]}, [40, 41])
    with pytest.raises(InvalidTypeError, match="2 row indices beside a batch of 2 rows"):
        noisy({"input_ids": [[5], [6]]}, [1])


# Seeds


def test_a_seed_makes_noise_of_row_and_index(
    euclidean_space: EmbeddingSpace, tokenizer: Tokenizer
) -> None:
    def release(seed: int | None, column: str = "input_ids", epsilon: float = 2.0) -> Any:
        privatizer = TokenPrivatizer(
            euclidean_space, tokenizer, "laplace", epsilon, ids_column=column, seed=seed
        )
        rows = [list(range(FIRST, FIRST + 40))] * 2
        return privatizer({column: rows}, [0, 1])[column]

    assert release(1) == release(1)
    assert release(1)[0] != release(1)[1]
    assert release(1) != release(2)
    assert release(1) != release(1, column="labels")
    assert release(1) != release(1, epsilon=2.1)
    assert release(None) != release(None)


def test_without_an_index_equal_rows_get_equal_noise(
    euclidean_space: EmbeddingSpace, tokenizer: Tokenizer
) -> None:
    seeded = TokenPrivatizer(euclidean_space, tokenizer, "laplace", 2.0, seed=3)
    row = list(range(FIRST, FIRST + 40))
    first, other, last = seeded.privatize_ids([row, row[1:], row])
    assert first == last == seeded.privatize_ids(row)
    assert first[1:] != other
    assert seeded.privatize_ids(np.array(row)).tolist() == first


def test_another_tokenizer_has_other_noise(euclidean_space: EmbeddingSpace) -> None:
    """Two releases of one text with the same noise would tell more than either."""
    released = []
    for words in (euclidean_space.words, euclidean_space.words[::-1]):
        vocabulary = {word: row for row, word in enumerate(words)}
        tokenizer = Tokenizer(models.WordLevel(vocabulary, unk_token="none"))
        privatizer = TokenPrivatizer(euclidean_space, tokenizer, "laplace", 0.01, seed=1)
        tokens = privatizer.privatize_ids([250] * 50)
        released.append([tokenizer.id_to_token(token) for token in tokens])
    assert sum(a == b for a, b in zip(*released, strict=True)) < 25


# What it is made of


def test_it_pickles_without_tokenizer_and_generator(noisy: TokenPrivatizer) -> None:
    noisy.privatize_ids([FIRST])
    str(noisy.guarantee)
    assert set(noisy.__getstate__()) == {
        *("mechanism", "ids_column", "budget", "_noise", "_rows", "_tokenizer", "fingerprint_tag")
    }
    clone = pickle.loads(pickle.dumps(noisy))
    assert clone.privatize_ids([CLS, SEP]) == [CLS, SEP]
    assert clone.space.digest == noisy.space.digest


def test_the_tokenizer_may_change_afterwards(
    euclidean_space: EmbeddingSpace, tokenizer: Tokenizer
) -> None:
    own = Tokenizer.from_str(tokenizer.to_str())
    privatizer = TokenPrivatizer(euclidean_space, own, "laplace", NOISELESS)
    own.enable_truncation(1)
    own.add_special_tokens([euclidean_space.words[0]])
    assert privatizer.privatize_ids([FIRST, FIRST + 499]) == [FIRST, FIRST + 499]


def test_repr_states_epsilon_and_never_the_seed(
    euclidean_space: EmbeddingSpace, tokenizer: Tokenizer
) -> None:
    privatizer = TokenPrivatizer(euclidean_space, tokenizer, "tem", 2.5, beta=0.1, seed=98765)
    for part in ("TokenPrivatizer", "500 words", "'tem'", "epsilon=2.5", "beta=0.1"):
        assert part in repr(privatizer)
    assert "98765" not in repr(privatizer) + str(privatizer.guarantee)


def test_a_ready_made_mechanism(euclidean_space: EmbeddingSpace, tokenizer: Tokenizer) -> None:
    mechanism = MultivariateLaplace(euclidean_space, 3.0)
    privatizer = TokenPrivatizer(euclidean_space, tokenizer, mechanism)
    assert privatizer.mechanism is mechanism
    assert privatizer.epsilon == 3.0


def test_the_space_may_be_a_name() -> None:
    words = EmbeddingSpace.from_pretrained("wordnet-gloss").words
    vocabulary = {word: row for row, word in enumerate(words)}
    tokenizer = Tokenizer(models.WordLevel(vocabulary, unk_token="[UNK]"))
    privatizer = TokenPrivatizer("wordnet-gloss", tokenizer, "laplace", NOISELESS)
    assert privatizer.privatize_ids([7, 0]) == [7, 0]
    assert "'wordnet-gloss'" in repr(privatizer)


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"epsilon": None}, InvalidValueError, "epsilon is missing"),
        ({"seed": -1}, InvalidValueError, "expected seed >= 0, got seed=-1"),
        ({"seed": 1.0}, InvalidTypeError, "expected seed to be an integer"),
        ({"ids_column": 5}, InvalidTypeError, "expected ids_column to be a column name"),
        ({"ids_column": ["a", "b"]}, InvalidValueError, "ids_column to name 1 different"),
        ({"lam": 0.5}, InvalidTypeError, "'laplace' has no option 'lam'"),
        ({"mechanism": "madlib"}, InvalidValueError, "got mechanism='madlib'"),
        ({"space": 5}, InvalidTypeError, "expected space to be an EmbeddingSpace, got an int"),
        ({"tokenizer": 5}, InvalidTypeError, "expected a tokenizers.Tokenizer.* got a int"),
        (
            {"tokenizer": transformers.ByT5Tokenizer()},
            InvalidTypeError,
            "got a ByT5Tokenizer; save a fast version",
        ),
        (
            {"tokenizer": Tokenizer(models.WordLevel({"waaa": 0, "waab": 1}, unk_token="?"))},
            InvalidValueError,
            "to be tokens of the tokenizer, but 498 of 500 are not; .* subwords=True",
        ),
    ],
)
def test_arguments_are_checked(
    euclidean_space: EmbeddingSpace,
    tokenizer: Tokenizer,
    arguments: dict[str, Any],
    error: type[Exception],
    message: str,
) -> None:
    usual = {"space": euclidean_space, "tokenizer": tokenizer, "mechanism": "laplace"}
    with pytest.raises(error, match=message):
        TokenPrivatizer(**{**usual, "epsilon": 2.0, **arguments})


# What it promises


def test_the_guarantee_is_per_token(noisy: TokenPrivatizer) -> None:
    guarantee, bare = noisy.guarantee, noisy.mechanism.guarantee
    assert guarantee.unit == "token"
    assert (guarantee.epsilon, guarantee.ldp_epsilon) == (bare.epsilon, bare.ldp_epsilon)
    shown = str(guarantee)
    assert shown.startswith("Near tokens: a release changes the odds of a token against its ")
    assert "  ε·d-private per token: ε = 2 per unit of Euclidean distance\n" in shown
    for part in (
        "the number of tokens, which special tokens",
        "the one for unknown words among them",
        "the sum over its tokens",
        "labels that hold token ids",
    ):
        assert part in shown
    assert "seed" not in shown


@pytest.mark.parametrize(
    ("mechanism", "unknown"),
    [("tem", "at the centroid of the space"), ("krr", "which becomes any token of the space with")],
)
def test_the_guarantee_says_where_unknown_tokens_are(
    euclidean_space: EmbeddingSpace, tokenizer: Tokenizer, mechanism: str, unknown: str
) -> None:
    privatizer = TokenPrivatizer(euclidean_space, tokenizer, mechanism, 2.0)
    assert f"all of them are one input, {unknown}" in str(privatizer.guarantee)


def test_a_seed_is_named_in_the_guarantee(
    euclidean_space: EmbeddingSpace, tokenizer: Tokenizer
) -> None:
    seeded = TokenPrivatizer(euclidean_space, tokenizer, "laplace", 2.0, seed=1)
    assert "only while the seed stays secret" in str(seeded.guarantee)


def test_the_bound_adds_up_over_tokens(noisy: TokenPrivatizer, size: int) -> None:
    bound = noisy.guarantee.bound
    rows = np.array([0, 3, -1])
    others = np.array([7, 3, 5])
    expected = 2.0 * noisy.mechanism.pair_distances(rows, others)
    a = [CLS, size - 1, size - 4, UNK, SEP]
    b = [CLS, size - 8, size - 4, size - 6, SEP]
    assert bound(a, b) == bound(b, a) == pytest.approx(expected.sum())
    assert bound(np.array(a), torch.tensor(a)) == 0.0
    assert bound([UNK], [len(SPECIAL)]) == 0.0


def test_the_bound_is_infinite_where_something_shows(noisy: TokenPrivatizer) -> None:
    bound = noisy.guarantee.bound
    assert bound([CLS, FIRST], [SEP, FIRST]) == math.inf
    assert bound([CLS, FIRST], [FIRST, CLS]) == math.inf
    assert bound([FIRST], [FIRST, FIRST]) == math.inf
    assert bound([FIRST], [MASK]) == math.inf
    assert bound([FIRST, PAD], [FIRST]) == math.inf


def test_the_bound_takes_ids(noisy: TokenPrivatizer) -> None:
    with pytest.raises(InvalidTypeError, match="expected a flat sequence of token ids"):
        noisy.guarantee.bound("waaa", "waab")
    with pytest.raises(InvalidTypeError, match="two sequences of token ids, got a missing one"):
        noisy.guarantee.bound([FIRST], None)
    with pytest.raises(InvalidValueError, match="expected token ids from 0 to 507"):
        noisy.guarantee.bound([FIRST], [508])


# Budgets


def test_a_budget_of_words_counts_tokens(
    euclidean_space: EmbeddingSpace, tokenizer: Tokenizer
) -> None:
    budget = PrivacyBudget(5)
    privatizer = TokenPrivatizer(euclidean_space, tokenizer, "laplace", 2.0, budget=budget)
    rows = {"input_ids": [[CLS, FIRST, FIRST + 1], None, [FIRST]]}
    privatizer(rows, [0, 1, 2])
    privatizer({"input_ids": [[FIRST]]}, [3])
    assert budget.spent == 2.0
    texts = DxPrivatizer(euclidean_space, "tem", 1.0, budget=budget)
    texts({"text": ["waaa"]}, [2])
    assert budget.spent == 3.0
    privatizer.privatize_ids([[FIRST], [FIRST]])
    with pytest.raises(BudgetExceededError, match=r"column 'input_ids' by 'laplace': 2 × 2 = 4"):
        privatizer.privatize_ids([FIRST])
    assert budget.spent == 5.0
    with pytest.raises(InvalidValueError, match="counts only where it was made"):
        pickle.loads(pickle.dumps(privatizer)).privatize_ids([FIRST])


def test_a_budget_of_users_is_refused(
    euclidean_space: EmbeddingSpace, tokenizer: Tokenizer
) -> None:
    law = (euclidean_space, tokenizer, "laplace", 2.0)
    with pytest.raises(InvalidValueError, match=r"budget_unit to be one of 'word'; got .*'user'"):
        TokenPrivatizer(*law, budget=PrivacyBudget(5, "user"))
    with pytest.raises(InvalidTypeError, match="budget to be a PrivacyBudget, got a float"):
        TokenPrivatizer(*law, budget=5.0)  # type: ignore[arg-type]


# Folders


class Named:
    """A tokenizer of transformers, as far as a privatizer looks at one."""

    def __init__(self, tokenizer: Tokenizer, folder: Path) -> None:
        self.backend_tokenizer = tokenizer
        self.name_or_path = str(folder)
        folder.mkdir(exist_ok=True)
        tokenizer.save(str(folder / "tokenizer.json"))


def word_level(words: Sequence[str]) -> Tokenizer:
    vocabulary = {word: at for at, word in enumerate((*words, "[UNK]"))}
    return Tokenizer(models.WordLevel(vocabulary, unk_token="[UNK]"))


@pytest.fixture
def stored_space(tmp_path: Path, euclidean_space: EmbeddingSpace) -> EmbeddingSpace:
    euclidean_space.save_pretrained(tmp_path / "space")
    return EmbeddingSpace.from_pretrained(tmp_path / "space")


def test_a_stored_privatizer_of_tokens_comes_back(
    tmp_path: Path, stored_space: EmbeddingSpace
) -> None:
    named = Named(word_level(stored_space.words), tmp_path / "tokenizer")
    privatizer = TokenPrivatizer(stored_space, named, "tem", 2.0, ids_column="ids", seed=2**70)
    privatizer.save_pretrained(tmp_path / "stored")
    assert str(2**70) not in (tmp_path / "stored" / "privatizer.json").read_text()
    loaded = TokenPrivatizer.from_pretrained(tmp_path / "stored", seed=2**70)
    assert loaded.config == privatizer.config
    assert loaded({"ids": [[1, 2, 500]]}) == privatizer({"ids": [[1, 2, 500]]})
    card = (tmp_path / "stored" / "README.md").read_text("utf-8")
    assert "TokenPrivatizer.from_pretrained" in card
    assert "tokens out of vocabulary" in card
    assert "| stop words" not in card
    with pytest.raises(ArtifactError, match=r"load it with TokenPrivatizer\.from_pretrained"):
        DxPrivatizer.from_pretrained(tmp_path / "stored")
    with pytest.raises(InvalidTypeError, match="brings its own settings, got mechanism"):
        TokenPrivatizer.from_pretrained(tmp_path / "stored", mechanism="laplace")
    with pytest.raises(InvalidValueError, match="its own ε: leave epsilon out"):
        TokenPrivatizer.from_pretrained(tmp_path / "stored", epsilon=9.0)
    with pytest.raises(InvalidTypeError, match="tokenizer is missing"):
        TokenPrivatizer.from_pretrained(tmp_path / "space")
    law = {"mechanism": "tem", "epsilon": 2.0, "ids_column": "ids", "seed": 2**70}
    over = TokenPrivatizer.from_pretrained(tmp_path / "space", tokenizer=named, **law)
    assert over({"ids": [[1, 2, 500]]}) == privatizer({"ids": [[1, 2, 500]]})
    with pytest.raises(InvalidValueError, match="where no other machine finds it"):
        loaded.push_to_hub("me/tokens", license="mit")


def test_another_tokenizer_is_refused(tmp_path: Path, stored_space: EmbeddingSpace) -> None:
    named = Named(word_level(stored_space.words), tmp_path / "tokenizer")
    TokenPrivatizer(stored_space, named, "tem", 2.0).save_pretrained(tmp_path / "stored")
    other = word_level(stored_space.words[::-1])
    with pytest.raises(ArtifactError, match="has another vocabulary"):
        TokenPrivatizer.from_pretrained(tmp_path / "stored", tokenizer=other)
    with pytest.raises(InvalidValueError, match="the tokenizer has no name or path"):
        TokenPrivatizer(stored_space, other, "tem", 2.0).save_pretrained(tmp_path / "other")
