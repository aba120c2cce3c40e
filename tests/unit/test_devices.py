"""Mechanisms and privatizers on a device of torch: the same releases, and errors that help.

"cpu:0" is torch on the processor, which runs everywhere what "cuda" runs on a GPU.
"""

import pickle
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from datasets import Dataset
from tokenizers import Tokenizer, models

from hf_dxprivacy._devices import check_device, open_device
from hf_dxprivacy.errors import InvalidTypeError, InvalidValueError, MissingExtraError
from hf_dxprivacy.mechanisms import MultivariateLaplace, create_mechanism
from hf_dxprivacy.privatizers.text_privatizer import DxPrivatizer
from hf_dxprivacy.privatizers.token_privatizer import TokenPrivatizer
from hf_dxprivacy.randomness import keyed_generator
from hf_dxprivacy.slots import ContentWordSelector
from hf_dxprivacy.slots.slot_privatizer import SlotPrivatizer
from hf_dxprivacy.spaces import EmbeddingSpace

torch = pytest.importorskip("torch", reason="the extra gpu is not installed")

CUDA = torch.cuda.is_available()
DEVICES = [
    "cpu:0",
    pytest.param("cuda", marks=pytest.mark.skipif(not CUDA, reason="torch finds no CUDA here")),
]
NOISY = [
    ("laplace", {}),
    ("laplace", {"resample": 0.5}),
    ("mahalanobis", {"lam": 0.3}),
    ("hyperbolic", {"noise": "lebesgue"}),
]


def space_of(mechanism: str, request: pytest.FixtureRequest) -> EmbeddingSpace:
    name = "poincare_space" if mechanism == "hyperbolic" else "euclidean_space"
    space: EmbeddingSpace = request.getfixturevalue(name)
    return space


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize(("mechanism", "options"), NOISY)
def test_noise_of_one_source_gives_the_same_words(
    mechanism: str, options: dict[str, Any], device: str, request: pytest.FixtureRequest
) -> None:
    here = create_mechanism(mechanism, space_of(mechanism, request), 6.0, **options)
    there = here.to(device)
    ids = np.arange(-1, len(here.space)).repeat(4)
    expected = here.sample(ids, keyed_generator(1))
    np.testing.assert_array_equal(there.sample(ids, keyed_generator(1)), expected)
    assert len(np.unique(expected)) > 50


@pytest.mark.parametrize("mechanism", ["laplace", "calibrated"])
def test_the_device_is_no_part_of_the_law(
    mechanism: str, euclidean_space: EmbeddingSpace, tmp_path: Path
) -> None:
    euclidean_space.save_pretrained(tmp_path / "space")
    space = EmbeddingSpace.from_pretrained(tmp_path / "space")
    here = DxPrivatizer(space, mechanism, 6.0, seed=5)
    there = DxPrivatizer(space, mechanism, 6.0, seed=5, device="cpu:0")
    assert (here.device, there.device) == ("cpu", "cpu:0")
    assert here.mechanism.noise_parameters == there.mechanism.noise_parameters
    assert here.mechanism.parameters == there.mechanism.parameters
    assert here.config == there.config
    assert str(here.guarantee) == str(there.guarantee)
    there.save_pretrained(tmp_path / "stored")
    assert DxPrivatizer.from_pretrained(tmp_path / "stored").device == "cpu"
    assert DxPrivatizer.from_pretrained(tmp_path / "stored", device="cpu:0").device == "cpu:0"


@pytest.mark.parametrize("num_proc", [None, 2])
@pytest.mark.parametrize("device", DEVICES)
def test_a_seeded_map_releases_the_same(
    device: str, num_proc: int | None, euclidean_space: EmbeddingSpace
) -> None:
    if num_proc and CUDA:
        pytest.skip("other tests of this process have opened CUDA, which bars it to workers")
    words = euclidean_space.words
    data = Dataset.from_dict({"text": [" ".join(words[i : i + 7]) for i in range(0, 140, 7)]})
    releases = [
        data.map(
            DxPrivatizer(euclidean_space, "laplace", 6.0, seed=3, device=name),
            batched=True,
            batch_size=5,
            with_indices=True,
            num_proc=num_proc,
        )["text"]
        for name in ("cpu", device)
    ]
    assert list(releases[0]) == list(releases[1]) != list(data["text"])


def test_tokens_too(euclidean_space: EmbeddingSpace) -> None:
    tokens = {word: row for row, word in enumerate([*euclidean_space.words, "[UNK]"])}
    tokenizer = Tokenizer(models.WordLevel(tokens, unk_token="[UNK]"))
    rows = [list(range(start, start + 9)) for start in range(0, 90, 9)]
    released = [
        TokenPrivatizer(
            euclidean_space, tokenizer, "laplace", 5.0, seed=2, device=device
        ).privatize_ids(rows)
        for device in ("cpu", "cpu:0")
    ]
    assert released[0] == released[1] != rows


def test_slots_too(euclidean_space: EmbeddingSpace) -> None:
    text = " ".join(euclidean_space.words[:50])
    selector = ContentWordSelector(frozenset(euclidean_space.words[:9]))
    released = [
        SlotPrivatizer(
            euclidean_space, "laplace", 5.0, selector=selector, seed=2, device=device
        ).privatize(text)
        for device in ("cpu", "cpu:0")
    ]
    assert released[0] == released[1] != text


def test_the_device_travels_and_what_is_on_it_does_not(euclidean_space: EmbeddingSpace) -> None:
    mechanism = MultivariateLaplace(euclidean_space, 6.0).to("cpu:0")
    before = len(pickle.dumps(mechanism))
    mechanism.sample([0], keyed_generator(0))
    assert len(pickle.dumps(mechanism)) == before
    assert pickle.loads(pickle.dumps(mechanism)).device == "cpu:0"
    assert mechanism.to("cpu").device == "cpu"


def test_a_ready_made_mechanism_stays_where_it_is(euclidean_space: EmbeddingSpace) -> None:
    mechanism = MultivariateLaplace(euclidean_space, 6.0).to("cpu:0")
    assert DxPrivatizer(euclidean_space, mechanism).mechanism is mechanism
    moved = DxPrivatizer(euclidean_space, MultivariateLaplace(euclidean_space, 6.0), device="cpu:0")
    assert moved.device == moved.mechanism.device == "cpu:0"


@pytest.mark.parametrize("device", ["abacus", "mps", "meta", "", "cuda:x"])
def test_unknown_devices(device: str) -> None:
    with pytest.raises(InvalidValueError, match=f"device.*{device}"):
        check_device(device)


@pytest.mark.skipif(CUDA, reason="torch finds CUDA here")
@pytest.mark.parametrize("device", ["cuda", "cuda:1"])
def test_without_cuda(device: str, euclidean_space: EmbeddingSpace) -> None:
    expected = f"cannot compute on device='{device}': .*(CUDA|NVIDIA).*; take device='cpu'"
    with pytest.raises(InvalidValueError, match=expected):
        DxPrivatizer(euclidean_space, "laplace", 6.0, device=device)


def test_a_gpu_that_is_not_there() -> None:
    with pytest.raises(InvalidValueError, match="device='cuda:99'"):
        check_device("cuda:99")


def test_a_worker_that_was_forked_too_late(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise RuntimeError("Cannot re-initialize CUDA in forked subprocess. To use CUDA with ...")

    # What torch says there; a GPU is needed to hear it.
    monkeypatch.setattr(torch, "empty", refuse)
    with pytest.raises(InvalidValueError, match=r"forked subprocess.*in one process \(no num_proc"):
        open_device("cuda")


def test_no_string() -> None:
    with pytest.raises(InvalidTypeError, match="device to be a string such as 'cuda', got 1"):
        check_device(1)  # type: ignore[arg-type]


def test_without_torch(monkeypatch: pytest.MonkeyPatch, euclidean_space: EmbeddingSpace) -> None:
    monkeypatch.setitem(sys.modules, "torch", None)
    with pytest.raises(MissingExtraError, match=r"pip install 'hf-dxprivacy\[gpu\]'"):
        DxPrivatizer(euclidean_space, "laplace", 6.0, device="cuda")


def test_an_index_is_searched_on_the_processor(euclidean_space: EmbeddingSpace) -> None:
    with pytest.raises(InvalidValueError, match="index='ivf' is searched by faiss on"):
        DxPrivatizer(
            euclidean_space.build_index("ivf"), "laplace", 6.0, index="ivf", device="cpu:0"
        )
