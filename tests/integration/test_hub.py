"""Spaces and privatizers to and from a Hub, with the real client over HTTP."""

import os
import pickle
import re
import resource
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from huggingface_hub import HfApi, constants

from hf_dxprivacy import DxPrivatizer, EmbeddingSpace
from hf_dxprivacy.errors import (
    ArtifactError,
    DxPrivacyError,
    HubError,
    InvalidValueError,
)
from hf_dxprivacy.files import readers
from hf_dxprivacy.files.source import Columns, find_input
from hf_dxprivacy.spaces import space_artifact
from hub_server import Fault, HubServer, transfers
from hub_server.messages import Answer
from machine import PATIENCE

SPACE = "me/space"
FILES = ["config.json", "vectors.safetensors", "vocabulary.txt"]
TEXTS = ["waab waac, waad!"] * 20


@pytest.fixture(autouse=True)
def _token(hub: HubServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HF_TOKEN", hub.token)


@pytest.fixture
def pushed(hub: HubServer, euclidean_space: EmbeddingSpace) -> str:
    """The commit of a pushed space."""
    return euclidean_space.push_to_hub(SPACE, license="mit").oid


def _bytes(space: EmbeddingSpace) -> dict[str, bytes]:
    assert space.location is not None
    return {path.name: path.read_bytes() for path in Path(space.location).iterdir()}


def _seeded(space: EmbeddingSpace) -> list[object]:
    return list(DxPrivatizer(space, "laplace", 3.0, seed=9).privatize(TEXTS))


def _wait(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < deadline, "waited in vain"
        time.sleep(0.01)


def _cached_files(folder: Path) -> list[str]:
    """Names of whatever a cache would take for a complete file."""
    return sorted(path.name for path in folder.rglob("snapshots/*/*"))


def test_a_small_space_goes_to_the_hub_and_back(
    hub: HubServer, pushed: str, euclidean_space: EmbeddingSpace
) -> None:
    remote = hub.repo(SPACE).files()
    assert {*FILES, "README.md"} <= set(remote)
    assert re.search(rb"^license: mit$", remote["README.md"], re.MULTILINE)
    hub.requests.clear()
    space = EmbeddingSpace.from_pretrained(SPACE)
    # Nothing but the three files is asked for, whatever else the repository holds.
    assert {path.rpartition("/")[2] for _, path in hub.requests} == set(FILES)
    assert str(space.commit) == f"{SPACE}@{pushed}"
    assert repr(space).endswith(f"'{SPACE}@{pushed}')")
    assert _bytes(space) == {name: remote[name] for name in FILES}
    assert space.digest == euclidean_space.digest
    assert _seeded(space) == _seeded(euclidean_space)


def test_a_second_load_makes_no_request_but_heads_and_a_third_none(
    hub: HubServer, pushed: str
) -> None:
    first = EmbeddingSpace.from_pretrained(SPACE)
    hub.requests.clear()
    EmbeddingSpace.from_pretrained(SPACE)
    assert [method for method, _ in hub.requests] == ["HEAD"]
    hub.requests.clear()
    EmbeddingSpace.from_pretrained(SPACE, revision=pushed)
    assert hub.requests == []
    hub.stop()
    third = EmbeddingSpace.from_pretrained(SPACE, local_files_only=True)
    assert (third.digest, third.commit) == (first.digest, first.commit)


def test_a_space_of_several_pieces(hub: HubServer) -> None:
    vectors = np.random.default_rng(3).standard_normal((8_000, 1_000), dtype=np.float32)
    assert vectors.nbytes > 3 * constants.DOWNLOAD_CHUNK_SIZE
    space = EmbeddingSpace.from_vectors([f"w{row}" for row in range(8_000)], vectors)
    # What the card shows of so large a space takes a while; the test is about the bytes.
    space.figures.update(EmbeddingSpace.from_pretrained("wordnet-gloss").figures)
    space.figures["digest"] = space.digest
    space.push_to_hub(SPACE, license="mit")
    assert ("POST", f"/{SPACE}.git/info/lfs/objects/batch") in hub.requests
    loaded = EmbeddingSpace.from_pretrained(SPACE)
    assert _bytes(loaded).keys() == {*FILES}
    assert _bytes(loaded).items() <= hub.repo(SPACE).files().items()
    np.testing.assert_array_equal(loaded.vectors, vectors)
    hub.requests.clear()
    EmbeddingSpace.from_pretrained(SPACE)
    assert [method for method, _ in hub.requests] == ["HEAD"]
    hub.stop()
    assert EmbeddingSpace.from_pretrained(SPACE, local_files_only=True).digest == space.digest


def test_revisions_are_branches_tags_and_commits(
    hub: HubServer, pushed: str, euclidean_space: EmbeddingSpace
) -> None:
    larger = euclidean_space.rescale(2.0)
    second = larger.push_to_hub(SPACE, license="mit", revision="wide", commit_message="Wider").oid
    HfApi().create_tag(SPACE, tag="v1", revision=pushed)
    assert hub.repo(SPACE).history("wide")[0].title == "Wider"
    for revision, expected in {
        None: pushed, "main": pushed, "v1": pushed, pushed: pushed, "wide": second, second: second,
    }.items():  # fmt: skip
        space = EmbeddingSpace.from_pretrained(SPACE, revision=revision)
        assert space.commit is not None
        assert space.commit.sha == expected
        assert space.digest == (larger if expected == second else euclidean_space).digest


def test_everything_is_read_from_the_commit_that_was_resolved_first(
    hub: HubServer, pushed: str, euclidean_space: EmbeddingSpace
) -> None:
    code = (
        f"from hf_dxprivacy import EmbeddingSpace as E; print(E.from_pretrained({SPACE!r}).commit)"
    )
    hub.faults.add(Fault("HEAD", "*vectors.safetensors", delay=3.0))
    hub.requests.clear()
    command = [sys.executable, "-c", code]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as loading:
        _wait(lambda: any(path.endswith("vectors.safetensors") for _, path in hub.requests))
        # The vectors are asked for, and before they come somebody pushes others.
        euclidean_space.rescale(3.0).push_to_hub(SPACE, license="mit")
        read = loading.communicate(timeout=PATIENCE)[0]
    assert loading.returncode == 0
    assert read == f"{SPACE}@{pushed}\n"


def test_private_repositories_and_pull_requests(
    hub: HubServer, euclidean_space: EmbeddingSpace, monkeypatch: pytest.MonkeyPatch
) -> None:
    euclidean_space.push_to_hub(SPACE, license="mit", private=True)
    assert hub.repo(SPACE).private
    before = hub.repo(SPACE).files()
    info = euclidean_space.rescale(2.0).push_to_hub(SPACE, license="mit", create_pr=True)
    assert info.pr_url is not None
    assert hub.repo(SPACE).files() == before
    monkeypatch.setenv("HF_TOKEN", "")
    with pytest.raises(HubError, match="a private one that the token does not open"):
        EmbeddingSpace.from_pretrained(SPACE)
    assert EmbeddingSpace.from_pretrained(SPACE, token=hub.token).digest == euclidean_space.digest


def test_a_push_replaces_what_the_last_one_left(
    hub: HubServer, pushed: str, poincare_space: EmbeddingSpace
) -> None:
    hub.repo(SPACE).put({"index.faiss": b"of the old vectors", "notes.md": b"mine"})
    poincare_space.push_to_hub(SPACE, license="apache-2.0")
    files = hub.repo(SPACE).files()
    assert "index.faiss" not in files
    assert files["notes.md"] == b"mine"
    assert b"license: apache-2.0" in files["README.md"]
    assert EmbeddingSpace.from_pretrained(SPACE).metric == "poincare"


def test_a_licence_is_required_before_anything_is_sent(
    hub: HubServer, euclidean_space: EmbeddingSpace
) -> None:
    with pytest.raises(InvalidValueError, match="license="):
        euclidean_space.push_to_hub(SPACE)
    assert hub.requests == []


def test_a_privatizer_goes_to_the_hub_and_names_the_commit(hub: HubServer, pushed: str) -> None:
    space = EmbeddingSpace.from_pretrained(SPACE)
    privatizer = DxPrivatizer(space, "laplace", 3.0, text_column="review", seed=4)
    privatizer.push_to_hub("me/reviews", license="cc0-1.0")
    files = hub.repo("me/reviews").files()
    assert pushed.encode() in files["privatizer.json"]
    assert pushed in files["README.md"].decode()
    loaded = DxPrivatizer.from_pretrained("me/reviews")
    assert (loaded.epsilon, loaded.text_columns, loaded.seed) == (3.0, ("review",), None)
    assert loaded.space.commit == space.commit
    assert f"The space is {SPACE} at commit {pushed}." in loaded.guarantee.assumptions
    # The space moves on; the privatizer does not.
    space.rescale(2.0).push_to_hub(SPACE, license="mit")
    assert DxPrivatizer.from_pretrained("me/reviews").space.digest == space.digest


def test_a_space_on_the_hub_makes_a_privatizer(hub: HubServer, pushed: str) -> None:
    hub.requests.clear()
    privatizer = DxPrivatizer.from_pretrained(SPACE, revision=pushed, mechanism="tem", epsilon=2.0)
    assert privatizer.space.commit is not None
    assert {path.rpartition("/")[2] for _, path in hub.requests} == set(FILES)
    with pytest.raises(InvalidValueError, match="epsilon is missing"):
        DxPrivatizer.from_pretrained(SPACE)


def test_workers_find_a_space_of_the_hub_in_the_cache(
    hub: HubServer, pushed: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    space = EmbeddingSpace.from_pretrained(SPACE)
    pickled = pickle.dumps(space)
    hub.requests.clear()
    space_artifact._known.pop(space.digest)
    space_artifact._recent.clear()
    again = pickle.loads(pickled)
    assert (again.commit, again.digest) == (space.commit, space.digest)
    assert hub.requests == []
    # On a machine whose cache lacks it, it is fetched, at the same commit.
    del again
    space_artifact._known.pop(space.digest)
    space_artifact._recent.clear()
    assert space.location is not None
    shutil.rmtree(space.location)
    assert pickle.loads(pickled).commit == space.commit
    assert hub.requests


FAULTS = [
    (Fault("HEAD", "*config.json", None, status=401), "the token is not valid"),
    (Fault("HEAD", "*config.json", None, status=403), "the token may not do this"),
    (Fault("*", "*vectors.safetensors", None, status=403), "the token may not do this"),
    (Fault("*", "*config.json", None, status=500), "answered 500; try again later"),
    (Fault("GET", "*vectors.safetensors", None, cut_after=2000), "cannot be reached, or the conn"),
]


def test_an_etag_that_names_no_file_is_the_hubs_fault(
    hub: HubServer, pushed: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("hub_server.storage.Entry.etag", "x" * 5000)
    with pytest.raises(HubError, match=r"an ETag that is too long.*check HF_ENDPOINT") as error:
        EmbeddingSpace.from_pretrained(SPACE, cache_dir=tmp_path)
    assert len(str(error.value)) < 500


@pytest.mark.parametrize(("fault", "message"), FAULTS)
def test_what_the_hub_refuses_leaves_nothing_half_written(
    hub: HubServer, pushed: str, tmp_path: Path, fault: Fault, message: str
) -> None:
    hub.faults.add(fault)
    with pytest.raises(HubError, match=message):
        EmbeddingSpace.from_pretrained(SPACE, cache_dir=tmp_path)
    assert "vectors.safetensors" not in _cached_files(tmp_path)
    hub.faults.clear()
    assert len(EmbeddingSpace.from_pretrained(SPACE, cache_dir=tmp_path)) == 500


@pytest.mark.parametrize(
    ("name", "revision", "message"),
    [
        ("me/nothing", None, "me/nothing, .*: no such repository"),
        (SPACE, "nothing", "'config.json' of revision 'nothing'.*: no such branch, tag or commit"),
        ("me/empty", None, "'config.json' of revision 'main': there is no such file"),
    ],
)
def test_what_is_not_there_is_named(
    hub: HubServer, pushed: str, name: str, revision: str | None, message: str
) -> None:
    hub.create("me/empty")
    with pytest.raises(HubError, match=message):
        EmbeddingSpace.from_pretrained(name, revision=revision)


@pytest.mark.parametrize("name", ["me/spa..ce", "me/-space", "me/spa ce"])
def test_an_impossible_name_is_refused(hub: HubServer, name: str) -> None:
    with pytest.raises(InvalidValueError, match="expected a repository 'namespace/name'"):
        EmbeddingSpace.from_pretrained(name)
    assert hub.requests == []


def test_a_hub_that_cannot_be_reached_is_asked_once(
    hub: HubServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    hub.stop()
    waited: list[float] = []
    monkeypatch.setattr("time.sleep", waited.append)
    with pytest.raises(HubError, match=r"'config.json': not in the cache, .* cannot be reached"):
        EmbeddingSpace.from_pretrained(SPACE, cache_dir=tmp_path)
    source = find_input("me/data")
    columns = Columns(("text",), ("text",))
    with (
        pytest.raises(InvalidValueError, match=r"ConnectionError: .* cannot be reached"),
        readers.open_reader(source, columns),
    ):
        pass
    assert not waited


def test_a_server_that_is_down(hub: HubServer, pushed: str, tmp_path: Path) -> None:
    hub.stop()
    with pytest.raises(HubError, match=r"not in the cache, and .* cannot be reached"):
        EmbeddingSpace.from_pretrained(SPACE, cache_dir=tmp_path)
    with pytest.raises(HubError, match="local_files_only=True forbids"):
        EmbeddingSpace.from_pretrained(SPACE, cache_dir=tmp_path, local_files_only=True)
    with pytest.raises(HubError, match="cannot be reached"):
        EmbeddingSpace.from_vectors(["a"], [[1.0]]).push_to_hub(SPACE, license="mit")
    assert _cached_files(tmp_path) == []


def test_an_answer_that_the_client_refuses_is_not_taken_for_a_card(
    hub: HubServer, pushed: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def hostile(status: int, body: Any, headers: dict[str, str]) -> Answer:
        return Answer(status, body, {**headers, "X-Repo-Commit": "../../outside"})

    monkeypatch.setattr(transfers, "Answer", hostile)
    with pytest.raises(HubError, match=r"the client refuses the answer .*; check HF_ENDPOINT"):
        EmbeddingSpace.from_pretrained(SPACE)


def test_offline_mode_is_honoured(hub: HubServer, pushed: str) -> None:
    code = f"from hf_dxprivacy import EmbeddingSpace; EmbeddingSpace.from_pretrained({SPACE!r})"
    hub.requests.clear()
    offline = hub.run(code, {"HF_HUB_OFFLINE": "1", "HF_HUB_CACHE": "/nowhere"})
    assert "HF_HUB_OFFLINE is set" in offline.stderr
    assert hub.requests == []
    assert hub.run(code).returncode == 0
    assert hub.run(code, {"HF_HUB_OFFLINE": "1"}).returncode == 0


def test_a_passing_failure_is_tried_again(hub: HubServer, pushed: str) -> None:
    hub.faults.add(Fault("*", "*config.json", 1, status=500))
    hub.faults.add(Fault("GET", "*vectors.safetensors", 1, cut_after=2000))
    assert len(EmbeddingSpace.from_pretrained(SPACE)) == 500


@pytest.mark.parametrize(
    ("fault", "message"),
    [
        (Fault("GET", "*vectors.safetensors", alter=True), r"vectors\.safetensors: SHA-256 is"),
        (Fault("GET", "*vocabulary.txt", alter=True), r"vocabulary\.txt: SHA-256 is"),
    ],
)
def test_altered_content_is_refused_and_can_be_fetched_again(
    hub: HubServer, pushed: str, fault: Fault, message: str
) -> None:
    hub.faults.add(fault)
    with pytest.raises(ArtifactError, match=message):
        EmbeddingSpace.from_pretrained(SPACE)
    with pytest.raises(ArtifactError, match="force_download=True"):
        EmbeddingSpace.from_pretrained(SPACE)
    assert len(EmbeddingSpace.from_pretrained(SPACE, force_download=True)) == 500


class _Poison:
    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> tuple[object, ...]:
        return Path.touch, (self.path,)


def test_damaged_artifacts_are_refused_by_name(hub: HubServer, pushed: str, tmp_path: Path) -> None:
    repo = hub.repo(SPACE)
    good = repo.files()
    touched = tmp_path / "executed"
    newer = good["config.json"].replace(b'"format_version": 1', b'"format_version": 2')
    damaged = {
        "vectors.safetensors: SHA-256 is": {"vectors.safetensors": pickle.dumps(_Poison(touched))},
        "vectors.safetensors: SHA-256 is .* truncated": {
            "vectors.safetensors": good["vectors.safetensors"][:-100]
        },
        "config.json: format_version is 2": {"config.json": newer},
        "config.json: truncated or not JSON": {"config.json": good["config.json"][:50]},
        "vocabulary.txt: SHA-256": {"vocabulary.txt": good["vocabulary.txt"] + b"more\n"},
    }
    for message, files in damaged.items():
        repo.put(good)
        commit = repo.put(files).oid
        with pytest.raises(ArtifactError, match=message):
            EmbeddingSpace.from_pretrained(SPACE, revision=commit)
    assert not touched.exists()


def test_file_names_of_a_repository_are_never_followed(
    hub: HubServer, pushed: str, tmp_path: Path
) -> None:
    hub.repo(SPACE).put({"../../../../outside.txt": b"x", "../config.json": b"{}"})
    assert len(EmbeddingSpace.from_pretrained(SPACE, cache_dir=tmp_path / "cache")) == 500
    assert not list(tmp_path.rglob("outside.txt"))
    assert {path.name for path in tmp_path.iterdir()} == {"cache"}


def _no_room() -> None:
    # A process that may write no file of more than 4 kB meets the limit as it would a full disk.
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096))


def test_a_full_disk_leaves_no_file_that_looks_complete(
    hub: HubServer, pushed: str, euclidean_space: EmbeddingSpace, tmp_path: Path
) -> None:
    code = f"from hf_dxprivacy import EmbeddingSpace; EmbeddingSpace.from_pretrained({SPACE!r})"
    failed = subprocess.run(
        [sys.executable, "-c", code], preexec_fn=_no_room, capture_output=True, text=True
    )
    assert "OSError: [Errno 27]" in failed.stderr
    cache = Path(os.environ["HF_HUB_CACHE"])
    assert "vectors.safetensors" not in _cached_files(cache)
    assert EmbeddingSpace.from_pretrained(SPACE).digest == euclidean_space.digest

    save = "".join((
        "from hf_dxprivacy import EmbeddingSpace;",
        f"EmbeddingSpace.from_pretrained({SPACE!r}).save_pretrained({str(tmp_path / 'copy')!r})",
    ))  # fmt: skip
    failed = subprocess.run(
        [sys.executable, "-c", save], preexec_fn=_no_room, capture_output=True, text=True
    )
    assert "OSError: [Errno 27]" in failed.stderr
    assert "vectors.safetensors" in failed.stderr
    assert [*tmp_path.iterdir()] == []


def test_two_processes_fetch_the_same_space_at_once(hub: HubServer, pushed: str) -> None:
    hub.faults.add(Fault("GET", "*vectors.safetensors", None, delay=0.3))
    code = (
        "from hf_dxprivacy import EmbeddingSpace;"
        f"print(EmbeddingSpace.from_pretrained({SPACE!r}).digest)"
    )
    command = [sys.executable, "-c", code]
    both = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for _ in range(2)]
    digests = {process.communicate(timeout=PATIENCE)[0] for process in both}
    assert [process.returncode for process in both] == [0, 0]
    assert digests == {EmbeddingSpace.from_pretrained(SPACE).digest + "\n"}


@pytest.mark.parametrize(
    "fault",
    [
        Fault("PUT", "*", None, status=403),
        Fault("POST", "*/commit/main", None, status=500),
        Fault("POST", "*/preupload/main", None, status=403),
    ],
)
def test_a_push_that_breaks_leaves_the_repository_and_can_be_repeated(
    hub: HubServer, pushed: str, euclidean_space: EmbeddingSpace, fault: Fault
) -> None:
    before = hub.repo(SPACE).files()
    hub.faults.add(fault)
    with pytest.raises(DxPrivacyError, match=SPACE):
        euclidean_space.rescale(2.0).push_to_hub(SPACE, license="mit")
    assert hub.repo(SPACE).files() == before
    hub.faults.clear()
    euclidean_space.rescale(2.0).push_to_hub(SPACE, license="mit")
    assert EmbeddingSpace.from_pretrained(SPACE).digest == euclidean_space.rescale(2.0).digest


def test_a_push_that_is_killed_leaves_the_repository_and_can_be_repeated(
    hub: HubServer, pushed: str, euclidean_space: EmbeddingSpace, tmp_path: Path
) -> None:
    before = hub.repo(SPACE).files()
    other = euclidean_space.rescale(2.0)
    other.save_pretrained(tmp_path / "space")
    hub.faults.add(Fault("PUT", "*", delay=60.0))
    command = [sys.executable, "-m", "hf_dxprivacy", "push", "space", SPACE, "--license", "mit"]
    with subprocess.Popen(command, cwd=tmp_path) as pushing:
        _wait(lambda: any(method == "PUT" for method, _ in hub.requests))
        pushing.kill()
    assert hub.repo(SPACE).files() == before
    hub.faults.clear()
    assert subprocess.run(command, cwd=tmp_path, timeout=PATIENCE).returncode == 0
    assert EmbeddingSpace.from_pretrained(SPACE).digest == other.digest


def test_a_read_only_token_can_not_push(
    hub: HubServer, pushed: str, euclidean_space: EmbeddingSpace
) -> None:
    before = hub.repo(SPACE).files()
    with pytest.raises(HubError, match="the token may not do this"):
        euclidean_space.rescale(2.0).push_to_hub(SPACE, license="mit", token=hub.read_token)
    assert hub.repo(SPACE).files() == before


def test_the_program_pushes_and_uses_a_space(
    hub: HubServer, euclidean_space: EmbeddingSpace, tmp_path: Path
) -> None:
    euclidean_space.save_pretrained(tmp_path / "space")
    (tmp_path / "in.txt").write_text("waab waac\n")

    def run(*arguments: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", "hf_dxprivacy", *arguments]
        return subprocess.run(
            command, cwd=tmp_path, capture_output=True, text=True, timeout=PATIENCE
        )

    refused = run("push", "space", SPACE)
    assert (refused.returncode, refused.stdout) == (2, "")
    assert "license" in refused.stderr
    done = run("push", "space", SPACE, "--license", "mit", "--private", "--message", "First")
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip().endswith(hub.repo(SPACE).find("main").oid)
    assert hub.repo(SPACE).private
    used = run(
        "privatize", "in.txt", "--output", "out.txt", "--space", SPACE, "--epsilon", "2",
        "--mechanism", "tem",
    )  # fmt: skip
    assert used.returncode == 0, used.stderr
    assert hub.repo(SPACE).find("main").oid in used.stderr


def test_a_name_without_a_namespace_goes_to_the_repository_that_the_hub_makes(
    hub: HubServer, euclidean_space: EmbeddingSpace, tmp_path: Path
) -> None:
    repo_id = HfApi().create_repo("plain-space", exist_ok=True).repo_id
    euclidean_space.push_to_hub("plain-space", license="mit")
    assert EmbeddingSpace.from_pretrained(repo_id).digest == euclidean_space.digest
    euclidean_space.save_pretrained(
        tmp_path / "space", license="mit", push_to_hub=True, repo_id="saved-space"
    )
    saved_id = repo_id.replace("plain-space", "saved-space")
    assert EmbeddingSpace.from_pretrained(saved_id).digest == euclidean_space.digest


def test_a_repository_is_for_a_push(euclidean_space: EmbeddingSpace, tmp_path: Path) -> None:
    with pytest.raises(InvalidValueError, match="is for push_to_hub=True; add it"):
        euclidean_space.save_pretrained(tmp_path, repo_id="me/x")
