"""Pools over an encoder of `transformers`."""

import json
import pickle
from pathlib import Path

import numpy as np
import pytest
from tiny_models import minilm

from hf_dxprivacy import SentencePool, SentencePrivatizer
from hf_dxprivacy.errors import ArtifactError, InvalidValueError
from hf_dxprivacy.hub.artifact import CONFIG_DIGEST, bind
from hf_dxprivacy.sentences import TransformersEncoder

pytestmark = pytest.mark.slow

SENTENCES = [
    "The soup was cold and the waiter was rude.",
    "A wonderful film with a great cast.",
    "The patient complains about pain in the chest.",
    "Please cancel my subscription at once.",
    "The train to the city was late again.",
    "He planted roses behind the old house.",
]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a pool of sentences over MiniLM."""
    encoder = TransformersEncoder(minilm())
    pool = SentencePool.from_sentences(SENTENCES, encoder, dimensions=5, progress=False)
    path = tmp_path_factory.mktemp("pool")
    pool.save_pretrained(path)
    return path


def test_near_texts_find_their_sentence(folder: Path) -> None:
    pool = SentencePool.from_pretrained(folder)
    texts = ["My dinner was not warm at all.", "What a fantastic movie!", "My heart hurts.", " "]
    assert pool.look_up(texts).tolist() == [0, 1, 2, -1]
    alone = np.concatenate([pool.points([text]) for text in texts])
    np.testing.assert_array_equal(pool.points(texts), alone)
    again = pickle.loads(pickle.dumps(pool))
    assert again.digest == pool.digest
    assert again.look_up(texts).tolist() == [0, 1, 2, -1]
    released = SentencePrivatizer(pool, epsilon=1.0).privatize(texts)
    assert set(released) <= set(SENTENCES)


def test_private_texts_are_encoded_one_by_one() -> None:
    encoder, sizes = TransformersEncoder(minilm()), []
    encoder._model.register_forward_pre_hook(
        lambda _module, _args, given: sizes.append(len(given["input_ids"])), with_kwargs=True
    )
    texts = ["One soup.", "Two films.", "Half \ud83d of it.", "My heart."]
    vectors = encoder.encode(texts)
    assert sizes == [1] * len(texts)
    # Together, products of matrices round otherwise, with two threads or on a GPU.
    np.testing.assert_allclose(encoder.encode_public(texts), vectors, atol=1e-6)
    assert max(sizes) > 1


def _bound(record: str) -> str:
    """Return an edited record with the digest of its entries made right."""
    entries = json.loads(record)
    del entries[CONFIG_DIGEST]
    return json.dumps(bind(entries))


def test_another_model_is_refused(folder: Path, tmp_path: Path) -> None:
    record = (folder / "encoder.json").read_text("utf-8")
    digest = SentencePool.from_pretrained(folder).encoder.digest
    assert digest in record
    changed = tmp_path / "changed"
    changed.mkdir()
    for file in folder.iterdir():
        (changed / file.name).write_bytes(file.read_bytes())
    (changed / "encoder.json").write_text(_bound(record.replace(digest, "0" * 64)), "utf-8")
    with pytest.raises(ArtifactError, match="has changed since the pool was made"):
        SentencePool.from_pretrained(changed)
    elsewhere = _bound(record.replace(str(minilm()), str(tmp_path)))
    (changed / "encoder.json").write_text(elsewhere, "utf-8")
    with pytest.raises(InvalidValueError, match="transformers cannot load"):
        SentencePool.from_pretrained(changed)
