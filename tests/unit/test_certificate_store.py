"""Certified levels are computed once, remembered with their space, and never taken on trust."""

import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from hf_dxprivacy.errors import ArtifactError
from hf_dxprivacy.hub import update_config
from hf_dxprivacy.hub.artifact import CONFIG_DIGEST, bind
from hf_dxprivacy.mechanisms import CalibratedExponential, certificate
from hf_dxprivacy.mechanisms.certificate import certify, is_certified
from hf_dxprivacy.mechanisms.levels import grid_value
from hf_dxprivacy.spaces import EmbeddingSpace

BETA = "beta=0.001"


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Give each test an empty cache."""
    monkeypatch.setenv("HF_DXPRIVACY_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


@pytest.fixture
def computed(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Note how many slopes are worked out, each time that some are."""
    calls: list[int] = []
    honest = certificate.privacy_curve

    def noted(space: EmbeddingSpace, steps: list[int], *rest: Any, **options: Any) -> Any:
        calls.append(len(steps))
        return honest(space, steps, *rest, **options)

    monkeypatch.setattr(certificate, "privacy_curve", noted)
    return calls


def make_space(seed: int = 0, scale: float = 1.0) -> EmbeddingSpace:
    vectors = np.random.default_rng(seed).normal(size=(30, 4)) * scale
    return EmbeddingSpace.from_vectors([f"w{k}" for k in range(30)], vectors.astype(np.float32))


def cache_file(cache: Path, space: EmbeddingSpace) -> Path:
    return cache / "certificates" / f"{space.digest}.json"


def test_a_long_calibration_is_announced(caplog: pytest.LogCaptureFixture) -> None:
    CalibratedExponential(make_space(), 2.0)
    assert not caplog.records
    points = np.random.default_rng(0).normal(size=(4000, 2)).astype(np.float32)
    space = EmbeddingSpace.from_vectors([f"w{k}" for k in range(len(points))], points)
    for _ in range(2):
        certify(space, 20.0, 20.0, progress=False)
    (record,) = caplog.records
    for part in ("calibrating ε = 20 for a space of 4000 words", "1 s of", "'tem' starts at once"):
        assert part in record.getMessage()


def test_levels_are_computed_once_for_a_space(computed: list[int]) -> None:
    space = make_space()
    first = CalibratedExponential(space, 2.0)
    again = CalibratedExponential(space, 2.0)
    assert again.inverse_temperature == first.inverse_temperature
    assert again.exact_epsilon() == first.exact_epsilon()
    assert computed == [34]
    # Another ε within the range knows nearly all of its slopes; another β none.
    CalibratedExponential(space, 2.1)
    assert computed == [34, 2]
    CalibratedExponential(space, 2.0, beta=0.01)
    assert computed == [34, 2, 34]


def test_levels_are_remembered_in_the_space_and_in_the_cache(cache: Path) -> None:
    space = make_space()
    mechanism = CalibratedExponential(space, 2.0)
    stored = json.loads(cache_file(cache, space).read_text())
    assert {**space.certificates, CONFIG_DIGEST: stored[CONFIG_DIGEST]} == stored
    assert stored["digest"] == space.digest
    levels = {int(k): level for k, level in stored[BETA].items()}
    assert len(levels) == 34
    assert all(grid_value(k) <= level <= 2 * grid_value(k) for k, level in levels.items())
    best = max(k for k, level in levels.items() if level <= 2.0)
    assert (mechanism.inverse_temperature, mechanism.exact_epsilon()) == (
        grid_value(best),
        levels[best],
    )


def test_cache_serves_the_same_vectors_in_another_space(computed: list[int]) -> None:
    first = CalibratedExponential(make_space(), 2.0)
    assert CalibratedExponential(make_space(), 2.0).inverse_temperature == first.inverse_temperature
    assert computed == [34]


def test_cache_keeps_what_other_spaces_and_betas_have_put_there(
    cache: Path, computed: list[int]
) -> None:
    for beta in (0.001, 0.01):
        CalibratedExponential(make_space(), 2.0, beta=beta)
    CalibratedExponential(make_space(), 3.0)
    stored = json.loads(cache_file(cache, make_space()).read_text())
    assert set(stored) == {"digest", BETA, "beta=0.01", CONFIG_DIGEST}
    assert len(stored[BETA]) > 34
    assert len(stored["beta=0.01"]) == 34
    calls = list(computed)
    for epsilon, beta in ((2.0, 0.001), (3.0, 0.001), (2.0, 0.01)):
        CalibratedExponential(make_space(), epsilon, beta=beta)
    assert computed == calls


def test_levels_survive_saving_and_loading(
    tmp_path: Path, computed: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    space = make_space()
    mechanism = CalibratedExponential(space, 2.0)
    assert computed == [34]
    # The card of so small a space shows more of them.
    space.save_pretrained(tmp_path / "artifact")
    before = list(computed)
    monkeypatch.setenv("HF_DXPRIVACY_CACHE", str(tmp_path / "other-cache"))
    loaded = EmbeddingSpace.from_pretrained(tmp_path / "artifact")
    assert CalibratedExponential(loaded, 2.0).inverse_temperature == mechanism.inverse_temperature
    assert computed == before
    assert not (tmp_path / "other-cache" / "certificates").exists()


def test_range_of_levels_serves_every_level_within(computed: list[int]) -> None:
    space = make_space()
    levels = certify(space, 0.5, 8.0)
    assert computed == [len(levels)]
    for epsilon in (0.5, 0.77, 1.0, 3.3, 8.0):
        mechanism = CalibratedExponential(space, epsilon)
        assert mechanism.exact_epsilon() <= epsilon
        assert mechanism.inverse_temperature >= epsilon / 2 * grid_value(-1)
    assert computed == [len(levels)]


def test_asking_what_is_certified_works_nothing_out(computed: list[int]) -> None:
    space = make_space()
    assert not is_certified(space, 2.0)
    assert computed == []
    CalibratedExponential(space, 2.0)
    assert is_certified(space, 2.0)
    assert not is_certified(space, 2.5)
    assert not is_certified(space, 2.0, beta=0.01)
    assert len(computed) == 1


def test_partly_known_levels_are_completed(cache: Path, computed: list[int]) -> None:
    space = make_space()
    expected = CalibratedExponential(space, 2.0).inverse_temperature
    path = cache_file(cache, space)
    stored = json.loads(path.read_text())
    kept = dict(list(stored[BETA].items())[::3])
    path.write_text(json.dumps(bind({**stored, BETA: kept})))
    assert CalibratedExponential(make_space(), 2.0).inverse_temperature == expected
    assert computed == [34, 34 - len(kept)]


def test_rescaled_vectors_are_another_space(computed: list[int], tmp_path: Path) -> None:
    space = make_space()
    mechanism = CalibratedExponential(space, 2.0)
    double = space.rescale(2.0)
    assert double.digest != space.digest
    assert double.certificates == {}
    # Twice as far apart, so the same curve at half the slope.
    assert CalibratedExponential(double, 1.0).inverse_temperature == pytest.approx(
        mechanism.inverse_temperature / 2
    )
    assert computed == [34, 34]
    double.save_pretrained(tmp_path)
    assert EmbeddingSpace.from_pretrained(tmp_path).digest == double.digest


def test_certificates_of_another_space_are_refused(tmp_path: Path, cache: Path) -> None:
    space, other = make_space(0), make_space(1)
    CalibratedExponential(space, 2.0)
    other.save_pretrained(tmp_path)
    update_config(tmp_path, {"certificates": space.certificates})
    loaded = EmbeddingSpace.from_pretrained(tmp_path)
    with pytest.raises(ArtifactError, match=r"config.json belong to another space \(digest"):
        CalibratedExponential(loaded, 2.0)
    cache_file(cache, other).write_bytes(cache_file(cache, space).read_bytes())
    with pytest.raises(ArtifactError, match=rf"{other.digest}.json belong to another space"):
        CalibratedExponential(other, 2.0)


def test_changed_scale_of_a_ball_voids_its_certificates(tmp_path: Path) -> None:
    vectors = make_space().vectors * 0.2
    ball = EmbeddingSpace.from_vectors([f"w{k}" for k in range(30)], vectors, "poincare")
    CalibratedExponential(ball, 2.0)
    ball.save_pretrained(tmp_path)
    update_config(tmp_path, {"scale": 3.0})
    with pytest.raises(ArtifactError, match="belong to another space"):
        CalibratedExponential(EmbeddingSpace.from_pretrained(tmp_path), 2.0)


@pytest.mark.parametrize("factor", [0.999, 2.01, -1.0, 0.0])
def test_impossible_levels_are_refused(cache: Path, factor: float) -> None:
    space = make_space()
    CalibratedExponential(space, 2.0)
    path = cache_file(cache, space)
    stored = json.loads(path.read_text())
    stored[BETA]["0"] = factor * grid_value(0)
    path.write_text(json.dumps(bind(stored)))
    with pytest.raises(ArtifactError, match=r"states a certified level .* which is impossible"):
        CalibratedExponential(make_space(), 2.0)


@pytest.mark.parametrize(
    "curve", [[1.0], None, 3, "0", {"zero": 1.5}, {"0": None}, {"0": [1.5]}, {str(10**6): 1.0}]
)
def test_malformed_levels_are_refused(tmp_path: Path, curve: Any) -> None:
    space = make_space()
    space.save_pretrained(tmp_path)
    update_config(tmp_path, {"certificates": {"digest": space.digest, BETA: curve}})
    loaded = EmbeddingSpace.from_pretrained(tmp_path)
    with pytest.raises(ArtifactError, match=r"config.json: expected certified levels"):
        CalibratedExponential(loaded, 2.0)


@pytest.mark.parametrize("content", [b"", b"{", b'{"beta=0.001": {"0": 1.5', b"\xff\xfe", b"{]}"])
def test_unreadable_cache_is_named(cache: Path, content: bytes) -> None:
    path = cache_file(cache, make_space())
    path.parent.mkdir(parents=True)
    path.write_bytes(content)
    with pytest.raises(ArtifactError, match=rf"{path.name} is not valid JSON .*; delete it"):
        CalibratedExponential(make_space(), 2.0)


@pytest.mark.parametrize("content", ["[]", "3", "null", '"x"'])
def test_cache_that_is_no_object_is_named(cache: Path, content: str) -> None:
    path = cache_file(cache, make_space())
    path.parent.mkdir(parents=True)
    path.write_text(content)
    with pytest.raises(ArtifactError, match=rf"{path.name}: expected a JSON object"):
        CalibratedExponential(make_space(), 2.0)


@pytest.mark.parametrize("blocked", [".", "certificates"])
def test_cache_that_can_not_be_written_costs_a_warning_only(cache: Path, blocked: str) -> None:
    expected = CalibratedExponential(make_space(), 2.0).inverse_temperature
    blocked_cache = cache.parent / "blocked"
    blocked_cache.parent.mkdir(exist_ok=True)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("HF_DXPRIVACY_CACHE", str(blocked_cache))
        if blocked != ".":
            blocked_cache.mkdir()
        # A file where a folder should be stops the administrator too.
        (blocked_cache / blocked).write_text("in the way")
        space = make_space()
        with pytest.warns(UserWarning, match="calibration could not be cached in"):
            mechanism = CalibratedExponential(space, 2.0)
        assert mechanism.inverse_temperature == expected
        # The space itself remembers.
        assert CalibratedExponential(space, 2.0).inverse_temperature == expected


def test_interrupted_writing_leaves_the_earlier_file(
    cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    CalibratedExponential(make_space(), 2.0)
    path = cache_file(cache, make_space())
    before = path.read_bytes()

    def fail(*_: Any) -> None:
        raise OSError("no space left on device")

    monkeypatch.setattr("os.replace", fail)
    with pytest.warns(UserWarning, match="no space left on device"):
        CalibratedExponential(make_space(), 4.0)
    assert path.read_bytes() == before
    assert [entry.name for entry in path.parent.iterdir()] == [path.name]


def damaged(text: str, entry: str, rng: np.random.Generator) -> str:
    """Return a JSON file with one digit of a number below an entry changed."""
    start = text.index(f'"{entry}": {{')
    end = text.index("\n  }", start)
    places = [m.start() for m in re.finditer(r"(?<=[\d.])\d(?=[\d,\n])", text[start:end])]
    place = start + int(rng.choice(places))
    digit = str((int(text[place]) + int(rng.integers(1, 10))) % 10)
    return text[:place] + digit + text[place + 1 :]


@pytest.mark.parametrize("entry", ["certificates", "neighbour_distances"])
def test_levels_and_distances_that_lost_a_digit_are_refused(tmp_path: Path, entry: str) -> None:
    space = make_space()
    certify(space, 0.5, 8.0)
    space.save_pretrained(tmp_path)
    path = tmp_path / "config.json"
    whole = path.read_text()
    rng = np.random.default_rng(0)
    refused = 0
    while refused < 60:
        text = damaged(whole, entry, rng)
        if json.loads(text) == json.loads(whole):
            # A seventeenth digit need not change a number.
            continue
        refused += 1
        path.write_text(text)
        with pytest.raises(ArtifactError, match=r"config\.json: an entry was changed"):
            EmbeddingSpace.from_pretrained(tmp_path)
    path.write_text(whole)
    assert EmbeddingSpace.from_pretrained(tmp_path).certificates == space.certificates


def test_levels_in_the_cache_that_lost_a_digit_are_refused(cache: Path) -> None:
    space = make_space()
    CalibratedExponential(space, 2.0)
    path = cache_file(cache, space)
    stored = json.loads(path.read_text())
    stored[BETA]["0"] *= 1.0 + 1e-6
    path.write_text(json.dumps(stored))
    with pytest.raises(ArtifactError, match=rf"{path.name}: an entry was changed"):
        CalibratedExponential(make_space(), 2.0)


def test_measurements_without_a_digest_are_not_trusted(
    tmp_path: Path,
    computed: list[int],
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    space = make_space()
    honest = CalibratedExponential(space, 2.0)
    space.save_pretrained(tmp_path / "artifact")
    path = tmp_path / "artifact" / "config.json"
    config = json.loads(path.read_text())
    del config[CONFIG_DIGEST]
    # Every level at its slope, the least that passes for one.
    config["certificates"][BETA] = {k: grid_value(int(k)) for k in config["certificates"][BETA]}
    config["neighbour_distances"]["1"] /= 1000
    path.write_text(json.dumps(config))
    monkeypatch.setenv("HF_DXPRIVACY_CACHE", str(tmp_path / "other-cache"))
    computed.clear()
    loaded = EmbeddingSpace.from_pretrained(tmp_path / "artifact")
    assert "computes them anew" in caplog.text
    assert loaded.neighbour_distances() == space.neighbour_distances()
    assert CalibratedExponential(loaded, 2.0).inverse_temperature == honest.inverse_temperature
    assert computed == [34]
    # Neither are those in a cache that version 0.2 wrote.
    cached = cache_file(tmp_path / "other-cache", space)
    levels = json.loads(cached.read_text())
    del levels[CONFIG_DIGEST]
    levels[BETA] = config["certificates"][BETA]
    cached.write_text(json.dumps(levels))
    assert (
        CalibratedExponential(make_space(), 2.0).inverse_temperature == honest.inverse_temperature
    )
    assert computed == [34, 34]


def test_levels_of_a_single_word_are_taken_back_from_the_cache() -> None:
    # The powers of NumPy and of Python differ in the last bit here and there; the check met both.
    vectors = np.ones((1, 8), dtype=np.float32)
    for epsilon in (0.05, 0.5, 1.5):
        for _ in range(2):
            space = EmbeddingSpace.from_vectors(["alone"], vectors)
            assert CalibratedExponential(space, epsilon).exact_epsilon() <= epsilon
