"""Spaces made from language models: which tokens are words, and whose vectors they get."""

import json
import shutil
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tiny_models
import torch
import transformers
from huggingface_hub import HfApi
from model2vec import StaticModel
from safetensors.numpy import load_file, save_file
from tokenizers import Tokenizer, models

from hf_dxprivacy.errors import (
    ArtifactError,
    HubError,
    InvalidTypeError,
    InvalidValueError,
    MissingExtraError,
)
from hf_dxprivacy.spaces import EmbeddingSpace
from hub_server import HubServer

pytestmark = pytest.mark.slow

REPOSITORY = "me/model"
FAMILIES = [
    tiny_models.byte_level,
    tiny_models.unigram,
    tiny_models.llama,
    tiny_models.word_pieces,
]
MAKERS = pytest.mark.parametrize("make", FAMILIES, ids=[make.__name__ for make in FAMILIES])


def weights(model: Any) -> np.ndarray:
    """Return the input embedding of a model in memory."""
    embedding: np.ndarray = model.get_input_embeddings().weight.detach().float().numpy()
    return embedding


def check_running_text(space: EmbeddingSpace, tokenizer: Any, embedding: np.ndarray) -> None:
    """Check that a text of all the words is, token for token, the rows of the space."""
    encoded = tokenizer.encode("a " + " ".join(space.words), add_special_tokens=False)
    tokens = list(getattr(encoded, "ids", encoded))[-len(space) :]
    np.testing.assert_array_equal(space.vectors, embedding[tokens])
    assert len(set(tokens)) == len(space)


# A real model


@pytest.fixture(scope="module")
def minilm_space() -> EmbeddingSpace:
    return EmbeddingSpace.from_transformers(tiny_models.minilm(), scripts=None)


def test_whole_words_of_a_real_model(minilm_space: EmbeddingSpace) -> None:
    folder = tiny_models.minilm()
    stored = load_file(folder / "model.safetensors")["embeddings.word_embeddings.weight"]
    tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
    tokenizer.no_truncation()
    tokenizer.no_padding()
    check_running_text(minilm_space, tokenizer, stored)
    plain = {word for word in tokenizer.get_vocab() if word.isascii() and word.isalnum()}
    assert plain < set(minilm_space.words)
    pieces = {"##ing", "[CLS]", "CLS", "[unused1]", "!", "."}
    assert not pieces & set(minilm_space.words)
    assert minilm_space.provenance == {
        "source": "model",
        "model": "BertModel",
        "tokens": {"all": 30522, "special": 5, "taken": 23544},
        "scripts": None,
    }


def test_neighbours_in_a_real_model(minilm_space: EmbeddingSpace) -> None:
    for word, near in [("doctor", "physician"), ("terrible", "awful"), ("king", "queen")]:
        assert near in [name for name, _ in minilm_space.neighbours(word, 5)]


def test_all_tokens_of_a_real_model() -> None:
    space = EmbeddingSpace.from_transformers(str(tiny_models.minilm()), subwords=True, scripts=None)
    tokens = (tiny_models.minilm() / "vocab.txt").read_text("utf-8").splitlines()
    special = {"[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"}
    assert list(space.words) == [token for token in tokens if token not in special]


# Kinds of tokenizers


@MAKERS
def test_whole_words_of_every_kind_of_tokenizer(
    make: Callable[[], Tokenizer], tmp_path: Path
) -> None:
    tokenizer = make()
    embedding = weights(tiny_models.save(tokenizer, tmp_path))
    space = EmbeddingSpace.from_transformers(tmp_path)
    check_running_text(space, tokenizer, embedding)
    assert {"the", "doctor", "guide"} < set(space.words)
    assert not {"unk", "UNK", "endoftext"} & set(space.words)
    assert space.provenance["tokens"]["all"] == tokenizer.get_vocab_size()


@MAKERS
def test_all_tokens_of_every_kind_of_tokenizer(
    make: Callable[[], Tokenizer], tmp_path: Path
) -> None:
    tokenizer = make()
    embedding = weights(tiny_models.save(tokenizer, tmp_path))
    space = EmbeddingSpace.from_transformers(tmp_path, subwords=True, scripts=None)
    special = {t.content for t in tokenizer.get_added_tokens_decoder().values()}
    assert set(space.words) == set(tokenizer.get_vocab()) - special
    ids = [tokenizer.token_to_id(token) for token in space.words]
    np.testing.assert_array_equal(space.vectors, embedding[ids])


def test_the_token_of_running_text_is_taken(tmp_path: Path) -> None:
    """Byte-level tokenizers have "the" at the start of a text and "Ġthe" after a word."""
    tokenizer = tiny_models.byte_level()
    tokenizer.add_tokens(["the"])
    embedding = weights(tiny_models.save(tokenizer, tmp_path))
    space = EmbeddingSpace.from_transformers(tmp_path)
    assert {"dog", "fox"} < set(space.words)
    np.testing.assert_array_equal(
        space.vectors[space.ids(["dog"])[0]], embedding[tokenizer.token_to_id("Ġdog")]
    )


def test_a_token_with_a_line_break_is_left_out(tmp_path: Path) -> None:
    tokenizer = tiny_models.unigram()
    tokenizer.add_tokens(["\n", "x\r"])
    tiny_models.save(tokenizer, tmp_path)
    space = EmbeddingSpace.from_transformers(tmp_path, subwords=True, scripts=None)
    assert len(space) == tokenizer.get_vocab_size() - 4 - 2
    space.save_pretrained(tmp_path / "space")
    assert EmbeddingSpace.from_pretrained(tmp_path / "space").words == space.words


@pytest.mark.parametrize("subwords", [False, True])
def test_words_of_foreign_scripts_are_left_out(tmp_path: Path, subwords: bool) -> None:
    tokenizer = tiny_models.word_pieces()
    tokenizer.add_tokens(["привет", "λογος", "日本"])
    tiny_models.save(tokenizer, tmp_path)

    def words(**options: Any) -> set[str]:
        made = EmbeddingSpace.from_transformers(tmp_path, subwords=subwords, **options)
        return set(made.words)

    everything = words(scripts=None)
    assert {"привет", "λογος"} < everything
    assert words() == words(scripts=["latin"])
    assert everything - words() >= {"привет", "λογος"}
    assert words(scripts=["Latin", "Greek"]) - words() == {"λογος"}
    assert words(scripts=["cyrillic"]) >= {"привет"}
    with pytest.raises(InvalidValueError, match="that the words of the model have, got klingon"):
        words(scripts=["klingon"])
    with pytest.raises(InvalidTypeError, match="a list of names, got 'latin'"):
        words(scripts="latin")


def test_truncation_and_padding_do_not_matter_and_stay(tmp_path: Path) -> None:
    tokenizer = tiny_models.word_pieces()
    tiny_models.save(tokenizer, tmp_path / "plain")
    tokenizer.enable_truncation(1)
    tokenizer.enable_padding(length=5)
    tiny_models.save(tokenizer, tmp_path / "cut")
    plain = EmbeddingSpace.from_transformers(tmp_path / "plain")
    assert EmbeddingSpace.from_transformers(tmp_path / "cut").words == plain.words
    model = StaticModel(np.ones((tokenizer.get_vocab_size(), 2)), tokenizer, max_length=1)
    assert EmbeddingSpace.from_static(model).words == plain.words
    assert model.tokenizer.truncation["max_length"] == 1


# Weights


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("base") / "model"
    tiny_models.save(tiny_models.word_pieces(), folder, "bert")
    return folder


@pytest.fixture
def folder(base: Path, tmp_path: Path) -> Path:
    """A copy of a small BERT, to be spoilt."""
    shutil.copytree(base, tmp_path / "model")
    return tmp_path / "model"


@pytest.mark.parametrize(
    ("kind", "head"),
    [
        ("bert", "AutoModelForMaskedLM"),
        ("bert", "AutoModelForSequenceClassification"),
        ("gpt2", "AutoModelForCausalLM"),
        ("llama", "AutoModelForCausalLM"),
        ("albert", "AutoModel"),
        ("distilbert", "AutoModelForMaskedLM"),
    ],
)
def test_models_with_and_without_a_head(kind: str, head: str, tmp_path: Path) -> None:
    tokenizer = tiny_models.word_pieces()
    model = tiny_models.save(tokenizer, tmp_path, kind, head=head)
    space = EmbeddingSpace.from_transformers(tmp_path)
    check_running_text(space, tokenizer, weights(model))
    assert space.provenance["model"] == type(model.base_model).__name__


def test_bfloat16_is_exact_in_float32(tmp_path: Path) -> None:
    tokenizer = tiny_models.unigram()
    model = tiny_models.save(tokenizer, tmp_path, dtype=torch.bfloat16)
    space = EmbeddingSpace.from_transformers(tmp_path)
    assert space.vectors.dtype == np.float32
    check_running_text(space, tokenizer, weights(model))


def test_only_the_part_with_the_embedding_is_read(tmp_path: Path) -> None:
    tokenizer = tiny_models.unigram()
    model = tiny_models.save(tokenizer, tmp_path, max_shard_size="10KB")
    index = json.loads((tmp_path / "model.safetensors.index.json").read_text())
    needed = index["weight_map"]["embed_tokens.weight"]
    others = set(index["weight_map"].values()) - {needed}
    assert others
    for name in others:
        (tmp_path / name).unlink()
    check_running_text(EmbeddingSpace.from_transformers(tmp_path), tokenizer, weights(model))


def test_a_prefix_of_an_older_checkpoint(folder: Path) -> None:
    expected = EmbeddingSpace.from_transformers(folder)
    stored = load_file(folder / "model.safetensors")
    name = "embeddings.word_embeddings.weight"
    save_file({f"old.{name.replace('embeddings.', 'e.', 1)}": stored[name]}, folder / "x")
    (folder / "x").replace(folder / "model.safetensors")
    assert EmbeddingSpace.from_transformers(folder).digest == expected.digest


def test_a_space_of_a_model_is_saved_like_any_other(folder: Path, tmp_path: Path) -> None:
    space = EmbeddingSpace.from_transformers(folder)
    space.save_pretrained(tmp_path / "space")
    again = EmbeddingSpace.from_pretrained(tmp_path / "space")
    assert (again.digest, again.provenance) == (space.digest, space.provenance)


# What can go wrong


def test_pickled_weights_are_never_read(folder: Path) -> None:
    (folder / "model.safetensors").rename(folder / "pytorch_model.bin")
    message = r"no model\.safetensors or model\.safetensors\.index\.json; only safetensors files"
    with pytest.raises(ArtifactError, match=message):
        EmbeddingSpace.from_transformers(folder)


def test_truncated_weights(folder: Path) -> None:
    file = folder / "model.safetensors"
    file.write_bytes(file.read_bytes()[:-1])
    with pytest.raises(ArtifactError, match=r"model\.safetensors: .*; fetch it again"):
        EmbeddingSpace.from_transformers(folder)


def test_weights_without_the_embedding(folder: Path) -> None:
    save_file({"other": np.ones(3, np.float32)}, folder / "model.safetensors")
    with pytest.raises(ArtifactError, match=r"no tensor 'embeddings\.word_embed.*weight'"):
        EmbeddingSpace.from_transformers(folder)


@pytest.mark.parametrize("change", [{"dtype": np.int8}, {"shape": (7, 16)}])
def test_weights_of_another_model(folder: Path, change: dict[str, Any]) -> None:
    file = folder / "model.safetensors"
    name = "embeddings.word_embeddings.weight"
    shape = change.get("shape", load_file(file)[name].shape)
    save_file({name: np.ones(shape, change.get("dtype", np.float32))}, file)
    with pytest.raises(ArtifactError, match=r"to be \(\d+, 16\) floating-point numbers, got \("):
        EmbeddingSpace.from_transformers(folder)


@pytest.mark.parametrize(
    ("index", "message"),
    [
        ("{", "expected an index of safetensors files"),
        ("{}", "expected an index of safetensors files"),
        ('{"weight_map": 5}', "expected an index of safetensors files"),
        ('{"weight_map": {}}', "no tensor 'embeddings.word_embeddings.weight'"),
        ('{"weight_map": {"embeddings.word_embeddings.weight": "a/b"}}', "a file, got 'a/b'"),
        ('{"weight_map": {"embeddings.word_embeddings.weight": 5}}', "a file, got 5"),
        ('{"weight_map": {"embeddings.word_embeddings.weight": "b"}}', "there is no b; only"),
    ],
)
def test_a_bad_index(folder: Path, index: str, message: str) -> None:
    (folder / "model.safetensors").unlink()
    (folder / "model.safetensors.index.json").write_text(index)
    with pytest.raises(ArtifactError, match=message):
        EmbeddingSpace.from_transformers(folder)


def test_a_tokenizer_of_another_model(folder: Path) -> None:
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    tokenizer.add_tokens(["something", "more"])
    tokenizer.save_pretrained(folder)
    with pytest.raises(InvalidValueError, match="they do not belong together"):
        EmbeddingSpace.from_transformers(folder)


def test_a_tokenizer_without_its_files(folder: Path) -> None:
    for name in ("tokenizer.json", "tokenizer_config.json"):
        (folder / name).unlink()
    with pytest.raises(InvalidValueError, match="nothing but special tokens and pieces of words"):
        EmbeddingSpace.from_transformers(folder)


def test_a_tokenizer_in_python(folder: Path) -> None:
    for name in ("tokenizer.json", "tokenizer_config.json"):
        (folder / name).unlink()
    transformers.ByT5Tokenizer().save_pretrained(folder)
    with pytest.raises(InvalidTypeError, match=r"got a ByT5Tokenizer; save a fast version"):
        EmbeddingSpace.from_transformers(folder)


@pytest.mark.parametrize(
    ("config", "message"),
    [
        ("{", "cannot load the tokenizer: .*not a valid JSON"),
        ('{"model_type": "nope"}', "cannot load the .*`nope`"),
        ('{"auto_map": {"AutoConfig": "evil.Config"}}', "cannot load the .*custom code"),
    ],
)
def test_a_config_that_transformers_refuses(folder: Path, config: str, message: str) -> None:
    (folder / "config.json").write_text(config)
    (folder / "tokenizer_config.json").unlink()
    (folder / "evil.py").write_text("raise SystemExit('executed')")
    with pytest.raises(InvalidValueError, match=message):
        EmbeddingSpace.from_transformers(folder)


@pytest.mark.parametrize("kind", ["vit", "clip"])
def test_a_model_without_a_token_embedding(folder: Path, kind: str) -> None:
    config = {"model_type": kind, "hidden_size": 16, "num_attention_heads": 2}
    (folder / "config.json").write_text(json.dumps(config))
    with pytest.raises(InvalidValueError, match="cannot load the model"):
        EmbeddingSpace.from_transformers(folder)


def test_names_that_lead_nowhere(hub: HubServer, base: Path, tmp_path: Path) -> None:
    with pytest.raises(InvalidValueError, match="expected a repository 'namespace/name'"):
        EmbeddingSpace.from_transformers(tmp_path / "missing")
    for read in (EmbeddingSpace.from_transformers, EmbeddingSpace.from_static):
        with pytest.raises(HubError, match=r"someone/model, 'config\.json'.*: no such repository"):
            read("someone/model")
    with pytest.raises(HubError, match=r"someone/model, .* local_files_only=True forbids"):
        EmbeddingSpace.from_transformers("someone/model", local_files_only=True)
    with pytest.raises(InvalidValueError, match="revision='main' is for repositories on the Hub"):
        EmbeddingSpace.from_transformers(base, revision="main")


@pytest.mark.parametrize("missing", ["torch", "transformers"])
def test_without_the_extra(base: Path, monkeypatch: pytest.MonkeyPatch, missing: str) -> None:
    monkeypatch.setitem(sys.modules, missing, None)
    with pytest.raises(MissingExtraError, match=rf"'{missing}'.*hf-dxprivacy\[models\]") as raised:
        EmbeddingSpace.from_transformers(base)
    assert raised.value.extra == "models"


def test_without_model2vec(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "model2vec", None)
    with pytest.raises(MissingExtraError, match=r"'model2vec'.*hf-dxprivacy\[models\]"):
        EmbeddingSpace.from_static("minishlab/potion-base-8M")


# Static models


@pytest.fixture
def static() -> StaticModel:
    tokenizer = tiny_models.word_pieces()
    vectors = np.random.default_rng(0).normal(size=(tokenizer.get_vocab_size(), 6))
    return StaticModel(vectors.astype(np.float32), tokenizer)


def check_static(model: StaticModel, space: EmbeddingSpace) -> None:
    """Check that each word has the vector into which the model encodes it."""
    assert {"the", "doctor", "guide"} < set(space.words)
    np.testing.assert_allclose(space.vectors, model.encode(list(space.words)), rtol=1e-3)


def test_a_static_model(static: StaticModel, tmp_path: Path) -> None:
    space = EmbeddingSpace.from_static(static)
    check_static(static, space)
    assert space.provenance["source"] == "model2vec"
    static.save_pretrained(tmp_path / "potion")
    for stored in (tmp_path / "potion", str(tmp_path / "potion")):
        again = EmbeddingSpace.from_static(stored)
        assert again.digest == space.digest
        assert again.provenance["source"] == "potion"


@pytest.mark.parametrize("dtype", [np.float16, np.float64, np.int8])
def test_a_static_model_of_weighted_clusters(static: StaticModel, dtype: type) -> None:
    size = len(static.tokens)
    rng = np.random.default_rng(1)
    model = StaticModel(
        (rng.normal(size=(20, 6)) * 50).astype(dtype),
        static.tokenizer,
        weights=rng.uniform(0.5, 2.0, size=size).astype(np.float32),
        token_mapping=rng.integers(20, size=size),
    )
    check_static(model, EmbeddingSpace.from_static(model))


@pytest.mark.parametrize(
    ("weights", "mapping", "message"),
    [
        ((3,), None, r"one vector and one weight for each .* shapes \(\d+,\) and \(3,\)"),
        (None, (3, 0), r"one vector and one weight for each .* shapes \(3,\) and"),
        (None, (None, 20), r"rows 0 … 19 of its embedding, got 20 … 20"),
        (None, (None, -1), r"rows 0 … 19 of its embedding, got -1 … -1"),
    ],
)
def test_parts_of_a_static_model_that_do_not_fit(
    static: StaticModel, weights: Any, mapping: Any, message: str
) -> None:
    size, row = mapping or (None, 0)
    model = StaticModel(
        np.ones((20, 6)),
        static.tokenizer,
        weights=None if weights is None else np.ones(weights),
        token_mapping=np.full(size or len(static.tokens), row),
    )
    with pytest.raises(InvalidValueError, match=message):
        EmbeddingSpace.from_static(model)


def test_a_folder_that_holds_no_static_model(base: Path, tmp_path: Path) -> None:
    with pytest.raises(InvalidValueError, match="model2vec cannot load it: Could not find"):
        EmbeddingSpace.from_static(tmp_path)
    with pytest.raises(InvalidValueError, match="model2vec cannot load it"):
        EmbeddingSpace.from_static(base)


@pytest.mark.parametrize("model", [None, 5, np.ones((2, 2))])
def test_what_is_no_static_model(model: Any) -> None:
    with pytest.raises(InvalidTypeError, match=f"StaticModel.*, got a {type(model).__name__}"):
        EmbeddingSpace.from_static(model)


def test_a_static_model_of_pieces_only() -> None:
    empty = Tokenizer(models.WordPiece({"[UNK]": 0, "##ing": 1}, unk_token="[UNK]"))
    with pytest.raises(InvalidValueError, match="nothing but special tokens and pieces"):
        EmbeddingSpace.from_static(StaticModel(np.ones((2, 3)), empty))


# From the Hub


@pytest.fixture
def push(hub: HubServer, monkeypatch: pytest.MonkeyPatch) -> Callable[[Path], str]:
    monkeypatch.setenv("HF_TOKEN", hub.token)
    HfApi().create_repo(REPOSITORY)

    def push(folder: Path) -> str:
        """Return the commit of a folder's content."""
        return HfApi().upload_folder(repo_id=REPOSITORY, folder_path=folder).oid

    return push


def test_a_model_on_the_hub(hub: HubServer, push: Callable[[Path], str], tmp_path: Path) -> None:
    tokenizer = tiny_models.unigram()
    model = tiny_models.save(tokenizer, tmp_path, max_shard_size="10KB")
    first = push(tmp_path)
    index = json.loads((tmp_path / "model.safetensors.index.json").read_text())
    hub.requests.clear()
    space = EmbeddingSpace.from_transformers(REPOSITORY)
    check_running_text(space, tokenizer, weights(model))
    assert space.provenance["source"] == REPOSITORY
    assert space.provenance["commit"] == first
    fetched = {path for method, path in hub.requests if method == "GET"}
    parts = {name for name in index["weight_map"].values() if any(name in p for p in fetched)}
    assert parts == {index["weight_map"]["embed_tokens.weight"]}
    tiny_models.save(tokenizer, tmp_path)
    second = push(tmp_path)
    assert EmbeddingSpace.from_transformers(REPOSITORY).provenance["commit"] == second
    assert EmbeddingSpace.from_transformers(REPOSITORY, revision=first).digest == space.digest
    hub.stop()
    again = EmbeddingSpace.from_transformers(
        REPOSITORY, revision=first, local_files_only=True, subwords=True
    )
    assert again.provenance["commit"] == first


def test_everything_is_read_from_one_commit(
    hub: HubServer, push: Callable[[Path], str], tmp_path: Path
) -> None:
    tiny_models.save(tiny_models.unigram(), tmp_path)
    commit = push(tmp_path)
    hub.requests.clear()
    EmbeddingSpace.from_transformers(REPOSITORY)
    resolved = [path for _, path in hub.requests if "/resolve/" in path]
    assert f"/{REPOSITORY}/resolve/{commit}/tokenizer.json" in resolved
    assert {p for p in resolved if f"/{commit}/" not in p} == {
        f"/{REPOSITORY}/resolve/main/config.json"
    }


def test_a_repository_without_safetensors(
    hub: HubServer, push: Callable[[Path], str], folder: Path
) -> None:
    (folder / "model.safetensors").rename(folder / "pytorch_model.bin")
    push(folder)
    with pytest.raises(ArtifactError, match=f"{REPOSITORY}: there is no model.*only safetensors"):
        EmbeddingSpace.from_transformers(REPOSITORY)


def test_a_static_model_on_the_hub(
    hub: HubServer, push: Callable[[Path], str], static: StaticModel, tmp_path: Path
) -> None:
    static.save_pretrained(tmp_path)
    commit = push(tmp_path)
    space = EmbeddingSpace.from_static(REPOSITORY)
    check_static(static, space)
    assert space.provenance["source"] == REPOSITORY
    assert space.provenance["commit"] == commit
