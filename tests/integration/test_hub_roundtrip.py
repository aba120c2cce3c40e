"""The example that pushes a space and a privatizer to a Hub and pulls them back, run alone."""

import json
from pathlib import Path

import pytest
from example_runs import help_of, run

from hf_dxprivacy import EmbeddingSpace
from hub_server import HubServer

pytestmark = pytest.mark.slow

ARTIFACT = Path(__file__).parents[2] / "artifacts" / "hearst-poincare"


def test_the_trained_space_goes_to_the_hub_and_back(hub: HubServer) -> None:
    printed = run("hub_roundtrip.py", "--namespace", "me", "--blocks", 8, HF_TOKEN=hub.token)
    assert "the same: True" in printed
    space, privatizer = (hub.repo(f"me/hearst-poincare{end}") for end in ("", "-privatizer"))
    assert f"at commit {space.find('main').oid}" in printed
    assert f"at commit {privatizer.find('main').oid}" in printed
    files = space.files()
    assert {"vectors.safetensors", "hierarchy.safetensors", "neighbours.safetensors"} <= set(files)
    assert files["LICENSE"] == (ARTIFACT / "LICENSE").read_bytes()
    for repository in (space, privatizer):
        assert "\nlicense: cc-by-nc-4.0\n" in repository.files()["README.md"].decode()
    card = hub.repo("datasets/me/hearst-poincare-released").files()["README.md"].decode()
    assert "\nlicense: cc-by-nc-4.0\n" in card
    assert "under: cc-by-nc-4.0. **That licence forbids commercial use" in card
    reference = json.loads(privatizer.files()["privatizer.json"])["space"]
    stored = EmbeddingSpace.from_pretrained(ARTIFACT)
    assert reference == {
        "name": "me/hearst-poincare",
        "commit": space.find("main").oid,
        "digest": stored.digest,
    }


def test_a_euclidean_space_goes_with_an_index(hub: HubServer, tmp_path: Path) -> None:
    words = [f"w{row}" for row in range(300)]
    space = EmbeddingSpace.from_vectors(words, [[row % 17, row % 19] for row in range(300)])
    space.build_hierarchy(progress=False).save_pretrained(tmp_path / "tiny")
    arguments = ("--namespace", "me", "--space", tmp_path / "tiny", "--license", "cc0-1.0")
    assert "the same: True" in run("hub_roundtrip.py", *arguments, HF_TOKEN=hub.token)
    assert "index.faiss" in hub.repo("me/tiny").files()


def test_what_the_example_says_of_itself() -> None:
    assert "--namespace" in help_of("hub_roundtrip.py")
