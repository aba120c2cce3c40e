"""The loopback Hub keeps to the protocol: everything here is seen through the real client."""

import os
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.request
from pathlib import Path

import numpy as np
import pytest
from huggingface_hub import CommitOperationAdd, HfApi, hf_hub_download, snapshot_download
from huggingface_hub.errors import (
    EntryNotFoundError,
    GatedRepoError,
    HfHubHTTPError,
    LocalEntryNotFoundError,
    RepositoryNotFoundError,
    RevisionNotFoundError,
)

from hub_server import Fault, HubServer
from machine import PATIENCE

SPACE = "me/space"
CARD = "---\nlicense: cc-by-4.0\nlanguage: en\ntags: [privacy]\n---\n# A card\n"
LARGE = np.random.default_rng(0).bytes(12_000_000)
FILES = {"README.md": CARD.encode(), "config.json": b"{}\n", "vectors.safetensors": LARGE}


@pytest.fixture
def api(hub: HubServer) -> HfApi:
    return HfApi(token=hub.token)


@pytest.fixture
def pushed(hub: HubServer) -> str:
    """The commit of a repository with `FILES`."""
    return hub.create(SPACE).put(FILES).oid


def write(folder: Path, files: dict[str, bytes]) -> Path:
    for name, content in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(content)
    return folder


def cached(folder: Path) -> list[str]:
    """Names of the files and links in the snapshots and contents of a cache."""
    paths = [path for path in folder.rglob("*") if {"snapshots", "blobs"} & set(path.parts)]
    return sorted(path.name for path in paths if not path.is_dir())


def test_what_is_pushed_is_stored_and_comes_back(
    hub: HubServer, api: HfApi, tmp_path: Path
) -> None:
    api.create_repo(SPACE, private=True)
    pushed = api.upload_folder(
        repo_id=SPACE, folder_path=write(tmp_path / "in", FILES), commit_message="First"
    )
    repo = hub.repo(SPACE)
    assert repo.files() == FILES
    assert repo.private
    assert [commit.title for commit in repo.history()] == ["First", "initial commit"]
    assert repo.find("main").oid == pushed.oid
    for name, content in FILES.items():
        assert Path(hf_hub_download(SPACE, name, token=hub.token)).read_bytes() == content
    folder = snapshot_download(SPACE, token=hub.token, cache_dir=tmp_path / "cache")
    assert Path(folder).name == pushed.oid
    assert (Path(folder) / "vectors.safetensors").read_bytes() == LARGE


def test_only_large_files_travel_apart(hub: HubServer, api: HfApi, tmp_path: Path) -> None:
    api.create_repo(SPACE)
    hub.requests.clear()
    files = {"a.json": b"{}", "b.png": b"b", "c.faiss": b"c", "d.txt": b"word\n" * 2_200_000}
    api.upload_folder(repo_id=SPACE, folder_path=write(tmp_path, files))
    entries = hub.repo(SPACE).find("main").files
    assert {name for name, entry in entries.items() if entry.lfs} == {"b.png", "c.faiss", "d.txt"}
    assert [method for method, _ in hub.requests].count("PUT") == 3
    assert hub.repo(SPACE).files() == files


def test_a_push_asks_in_this_order(hub: HubServer, api: HfApi) -> None:
    api.create_repo(SPACE)
    hub.requests.clear()
    api.upload_file(path_or_fileobj=LARGE, path_in_repo="vectors.safetensors", repo_id=SPACE)
    oid = hub.repo(SPACE).find("main").files["vectors.safetensors"].sha256
    assert hub.requests == [
        ("POST", f"/api/models/{SPACE}/preupload/main"),
        ("POST", f"/{SPACE}.git/info/lfs/objects/batch"),
        ("PUT", f"/lfs/{SPACE}/{oid}"),
        ("POST", f"/{SPACE}.git/info/lfs/verify"),
        ("POST", f"/api/models/{SPACE}/commit/main"),
    ]


def test_pushing_the_same_again_makes_no_commit(
    hub: HubServer, api: HfApi, pushed: str, tmp_path: Path
) -> None:
    again = api.upload_folder(repo_id=SPACE, folder_path=write(tmp_path, FILES))
    assert again.oid == pushed
    assert hub.repo(SPACE).find("main").oid == pushed
    assert "PUT" not in [method for method, _ in hub.requests]


def test_the_second_download_is_one_head_and_that_of_a_commit_is_nothing(
    hub: HubServer, pushed: str
) -> None:
    first = hf_hub_download(SPACE, "vectors.safetensors")
    head = ("HEAD", f"/{SPACE}/resolve/main/vectors.safetensors")
    assert [head[0], "GET"] == [method for method, _ in hub.requests]
    hub.requests.clear()
    assert hf_hub_download(SPACE, "vectors.safetensors") == first
    assert hub.requests == [head]
    hub.requests.clear()
    assert hf_hub_download(SPACE, "vectors.safetensors", revision=pushed) == first
    assert hub.requests == []


def test_a_stopped_server_is_down_and_returns_on_the_same_port(
    hub: HubServer, api: HfApi, pushed: str
) -> None:
    path = hf_hub_download(SPACE, "config.json")
    url = hub.url
    hub.stop()
    assert hf_hub_download(SPACE, "config.json", local_files_only=True) == path
    assert hf_hub_download(SPACE, "config.json") == path
    with pytest.raises(LocalEntryNotFoundError, match="outgoing traffic has been disabled"):
        hf_hub_download(SPACE, "README.md", local_files_only=True)
    with pytest.raises(Exception, match="refused") as caught:
        api.model_info(SPACE)
    assert type(caught.value).__name__ == "ConnectError"
    hub.start()
    assert hub.url == url
    assert api.model_info(SPACE).sha == pushed


@pytest.mark.parametrize("kind", ["branch", "tag", "commit"])
def test_a_revision_is_a_branch_a_tag_or_a_commit(
    hub: HubServer, api: HfApi, pushed: str, kind: str
) -> None:
    api.create_branch(SPACE, branch="older")
    api.create_tag(SPACE, tag="v1")
    hub.repo(SPACE).put({"config.json": b"newer"})
    revision = {"branch": "older", "tag": "v1", "commit": pushed}[kind]
    path = Path(hf_hub_download(SPACE, "config.json", revision=revision))
    assert path.read_bytes() == FILES["config.json"]
    assert path.parent.name == pushed
    assert Path(hf_hub_download(SPACE, "config.json")).read_bytes() == b"newer"


def test_references_are_listed_and_exist_once(api: HfApi, pushed: str) -> None:
    api.create_branch(SPACE, branch="b/1", revision=pushed)
    api.create_tag(SPACE, tag="v1", revision="b/1")
    refs = api.list_repo_refs(SPACE)
    assert {ref.name: ref.target_commit for ref in refs.branches} == {"main": pushed, "b/1": pushed}
    assert [ref.ref for ref in refs.tags] == ["refs/tags/v1"]
    with pytest.raises(HfHubHTTPError, match="Reference already exists: refs/heads/b/1"):
        api.create_branch(SPACE, branch="b/1")
    api.create_branch(SPACE, branch="b/1", exist_ok=True)
    with pytest.raises(RevisionNotFoundError, match="Invalid rev id: nothing"):
        api.create_tag(SPACE, tag="v2", revision="nothing")


def test_a_pull_request_leaves_the_branch_as_it_is(hub: HubServer, api: HfApi, pushed: str) -> None:
    operation = CommitOperationAdd("config.json", b"proposed")
    other = HfApi(token=hub.other_token)
    with pytest.raises(HfHubHTTPError, match="pass `create_pr=1`"):
        other.create_commit(SPACE, [operation], commit_message="m")
    info = other.create_commit(SPACE, [operation], commit_message="m", create_pr=True)
    assert info.pr_url == f"{hub.url}/{SPACE}/discussions/1"
    assert info.pr_revision == "refs/pr/1"
    assert hub.repo(SPACE).find("main").oid == pushed
    path = Path(hf_hub_download(SPACE, "config.json", revision="refs/pr/1"))
    assert path.read_bytes() == b"proposed"
    api.upload_file(
        path_or_fileobj=LARGE, path_in_repo="v.npy", repo_id=SPACE, revision="refs/pr/1"
    )
    assert set(hub.repo(SPACE).files("refs/pr/1")) == {*FILES, "v.npy"}


def test_what_does_not_exist_is_named(hub: HubServer, pushed: str, tmp_path: Path) -> None:
    with pytest.raises(RepositoryNotFoundError, match="Repository Not Found"):
        hf_hub_download("me/nothing", "config.json")
    with pytest.raises(RepositoryNotFoundError, match="Repository Not Found"):
        hf_hub_download("nothing", "config.json")
    with pytest.raises(RevisionNotFoundError, match="Revision Not Found"):
        hf_hub_download(SPACE, "config.json", revision="nothing")
    with pytest.raises(EntryNotFoundError, match="Entry Not Found"):
        hf_hub_download(SPACE, "nothing.json")
    assert cached(tmp_path) == []


def test_a_private_repository_exists_for_its_owner_only(hub: HubServer) -> None:
    hub.create(SPACE, private=True).put(FILES)
    for token, status in ((False, 401), (hub.other_token, 404)):
        with pytest.raises(RepositoryNotFoundError, match="Repository Not Found") as caught:
            hf_hub_download(SPACE, "config.json", token=token)
        assert caught.value.response.status_code == status
    assert Path(hf_hub_download(SPACE, "config.json", token=hub.read_token)).exists()
    assert HfApi(token=hub.token).model_info(SPACE).private


def test_a_gated_repository_shows_itself_but_not_its_files(hub: HubServer, pushed: str) -> None:
    hub.repo(SPACE).gated = True
    assert HfApi().model_info(SPACE).gated == "auto"
    for token in (False, hub.other_token):
        with pytest.raises(GatedRepoError, match="Access to me/space is restricted"):
            hf_hub_download(SPACE, "config.json", token=token)
    assert Path(hf_hub_download(SPACE, "config.json", token=hub.token)).exists()


def test_a_token_can_be_wrong_or_too_weak(hub: HubServer, api: HfApi, pushed: str) -> None:
    assert api.whoami()["name"] == "me"
    with pytest.raises(HfHubHTTPError, match="Invalid user token"):
        HfApi(token="hf_wrong").whoami()
    with pytest.raises(HfHubHTTPError, match="Invalid credentials in Authorization header") as bad:
        hf_hub_download(SPACE, "config.json", token="hf_wrong")
    assert not isinstance(bad.value, RepositoryNotFoundError)
    weak = HfApi(token=hub.read_token)
    with pytest.raises(HfHubHTTPError, match="403 Forbidden: This token can not write"):
        weak.upload_file(path_or_fileobj=b"", path_in_repo="a", repo_id=SPACE)
    with pytest.raises(HfHubHTTPError, match="403 Forbidden: You don't have the rights"):
        weak.create_repo("me/other")
    with pytest.raises(HfHubHTTPError, match="Invalid username or password"):
        HfApi(token=False).create_repo("me/other")
    with pytest.raises(RepositoryNotFoundError, match="401 Client Error"):
        HfApi(token=False).upload_file(path_or_fileobj=b"", path_in_repo="a", repo_id=SPACE)
    assert hub.repo(SPACE).find("main").oid == pushed


def test_repositories_are_made_once_and_deleted(hub: HubServer, api: HfApi) -> None:
    assert api.create_repo("space").repo_id == SPACE
    with pytest.raises(HfHubHTTPError, match="You already created this model repo"):
        api.create_repo(SPACE)
    assert api.create_repo(SPACE, exist_ok=True).repo_id == SPACE
    with pytest.raises(HfHubHTTPError, match="403 Forbidden"):
        HfApi(token=hub.other_token).delete_repo(SPACE)
    api.delete_repo(SPACE)
    assert hub.repos == {}
    with pytest.raises(RepositoryNotFoundError, match="404 Client Error"):
        api.delete_repo(SPACE)


def test_a_commit_on_a_stale_parent_is_refused(hub: HubServer, api: HfApi, pushed: str) -> None:
    def push(content: bytes) -> None:
        operation = CommitOperationAdd("config.json", content)
        api.create_commit(SPACE, [operation], commit_message="m", parent_commit=pushed)

    push(b"first")
    with pytest.raises(HfHubHTTPError, match="A commit has happened since"):
        push(b"second")
    assert hub.repo(SPACE).files()["config.json"] == b"first"


def test_files_are_deleted_with_the_push_that_leaves_them_out(
    hub: HubServer, api: HfApi, tmp_path: Path
) -> None:
    hub.create(SPACE).put({**FILES, "old/a.txt": b"a", "old/b.txt": b"b"})
    api.upload_folder(
        repo_id=SPACE, folder_path=write(tmp_path, FILES), delete_patterns=["*.safetensors", "*/a*"]
    )
    assert set(hub.repo(SPACE).files()) == {*FILES, "old/b.txt"}
    api.delete_folder("old", SPACE)
    assert hub.repo(SPACE).files() == FILES
    with pytest.raises(EntryNotFoundError, match="A file with this name doesn't exist"):
        api.delete_file("old/b.txt", SPACE)


def test_listings(hub: HubServer, api: HfApi, monkeypatch: pytest.MonkeyPatch) -> None:
    hub.create(SPACE).put({"a.txt": b"a", "sub/b.npy": b"bb", "sub/deep/c.txt": b"ccc"})
    monkeypatch.setattr(hub, "page_size", 2)
    everything = list(api.list_repo_tree(SPACE, recursive=True))
    names = [".gitattributes", "a.txt", "sub", "sub/b.npy", "sub/deep", "sub/deep/c.txt"]
    assert sorted(item.path for item in everything) == names
    pages = [path for _, path in hub.requests]
    assert pages == [f"/api/models/{SPACE}/tree/main"] * 3
    assert [item.path for item in api.list_repo_tree(SPACE, "sub")] == ["sub/b.npy", "sub/deep"]
    with pytest.raises(EntryNotFoundError, match="nothing does not exist"):
        list(api.list_repo_tree(SPACE, "nothing"))
    small, large = api.get_paths_info(SPACE, ["a.txt", "sub/b.npy", "nothing"])
    assert (small.size, small.lfs) == (1, None)
    assert (large.size, large.lfs.size) == (2, 2)
    siblings = {
        item.rfilename: item for item in api.model_info(SPACE, files_metadata=True).siblings
    }
    assert siblings["a.txt"].blob_id == small.blob_id
    assert siblings["sub/b.npy"].lfs == large.lfs


def test_git_itself_would_give_the_same_names(hub: HubServer, api: HfApi) -> None:
    hub.create(SPACE).put({"hello.txt": b"hello\n"})
    [file] = api.get_paths_info(SPACE, ["hello.txt"])
    assert file.blob_id == "ce013625030ba8dba906f756967f9e9ca394464a"


@pytest.mark.parametrize(
    ("header", "message"),
    [
        ("license: proprietary", r'"license" must be one of \[apache-2.0, mit, '),
        ("license: [mit, mine]", r'"license\[1\]" must be one of'),
        ("license: mit\nlanguage: English", '"language" with value "English" is not valid'),
        ("license: mit\nlanguage: [en, pt-BR]", r'"language\[1\]" with value "pt-BR" is not valid'),
        ("license: mit\ntags: privacy", '"tags" must be an array'),
        ("license: mit\ntags: [1]", r'"tags\[0\]" must be a string'),
        ("license: mit\ndatasets: the Bible", '"datasets" with value "the Bible" is not valid'),
        ("license: [mit", "YAML metadata error"),
        ("mit", '"metadata" must be of type object'),
    ],
)
def test_a_card_that_the_hub_would_refuse_is_refused(
    hub: HubServer, api: HfApi, tmp_path: Path, header: str, message: str
) -> None:
    api.create_repo(SPACE)
    write(tmp_path, {**FILES, "README.md": f"---\n{header}\n---\n# A card\n".encode()})
    with pytest.raises(ValueError, match=f"Invalid metadata in README.md.\n- {message}"):
        api.upload_folder(repo_id=SPACE, folder_path=tmp_path)
    assert hub.repo(SPACE).files() == {}


@pytest.mark.parametrize("card", ["# No header\n", "---\n\n---\n# An empty one\n"])
def test_a_card_without_metadata_is_pushed_with_a_warning(
    hub: HubServer, api: HfApi, card: str
) -> None:
    api.create_repo(SPACE)
    with pytest.warns(UserWarning, match="empty or missing yaml metadata"):
        api.upload_file(path_or_fileobj=card.encode(), path_in_repo="README.md", repo_id=SPACE)
    assert hub.repo(SPACE).files() == {"README.md": card.encode()}


def test_a_failure_that_passes_is_tried_again(hub: HubServer, api: HfApi, pushed: str) -> None:
    hub.faults.add(Fault("HEAD", "*", status=500))
    hub.faults.add(Fault("PUT", "*", status=503))
    assert Path(hf_hub_download(SPACE, "config.json")).read_bytes() == FILES["config.json"]
    api.upload_file(path_or_fileobj=b"1", path_in_repo="a.npy", repo_id=SPACE)
    assert hub.repo(SPACE).files()["a.npy"] == b"1"
    methods = [method for method, _ in hub.requests]
    assert methods[:3] == ["HEAD", "HEAD", "GET"]
    assert methods.count("PUT") == 2


@pytest.mark.parametrize("status", [400, 401, 403, 404, 416])
def test_a_failure_that_stays_is_raised_at_once(
    hub: HubServer, api: HfApi, pushed: str, status: int
) -> None:
    hub.faults.add(Fault("GET", "/api/*", times=None, status=status))
    for _ in range(2):
        with pytest.raises(HfHubHTTPError, match="This answer is a fault") as caught:
            api.model_info(SPACE)
        assert caught.value.response.status_code == status
    assert len(hub.requests) == 2
    hub.faults.clear()
    assert api.model_info(SPACE).sha == pushed


def test_a_fault_hits_what_it_names_and_as_often_as_it_says(hub: HubServer, pushed: str) -> None:
    hub.faults.add(Fault("GET", "*/vectors.safetensors", status=403, times=2))
    hf_hub_download(SPACE, "config.json")
    for _ in range(2):
        with pytest.raises(HfHubHTTPError, match="403 Forbidden"):
            hf_hub_download(SPACE, "vectors.safetensors")
    assert Path(hf_hub_download(SPACE, "vectors.safetensors")).read_bytes() == LARGE


def test_a_cut_download_goes_on_where_it_ended(hub: HubServer, pushed: str) -> None:
    hub.faults.add(Fault("GET", "*", cut_after=11_000_000))
    # What is left after the 10 MiB that the client has kept passes; more would not.
    hub.faults.add(Fault("GET", "*", cut_after=len(LARGE) - 10 * 1024 * 1024))
    path = hf_hub_download(SPACE, "vectors.safetensors")
    assert Path(path).read_bytes() == LARGE
    assert [method for method, _ in hub.requests] == ["HEAD", "GET", "GET"]


def test_a_short_file_is_refused_and_not_kept(hub: HubServer, pushed: str, tmp_path: Path) -> None:
    hub.faults.add(Fault("GET", "*", keep=1_000_000))
    with pytest.raises(OSError, match="should be of size 12000000 but has size 1000000"):
        hf_hub_download(SPACE, "vectors.safetensors", cache_dir=tmp_path)
    assert cached(tmp_path) == []


def test_altered_content_is_taken_for_what_its_etag_says(hub: HubServer, pushed: str) -> None:
    hub.faults.add(Fault("GET", "*", alter=True))
    found = Path(hf_hub_download(SPACE, "vectors.safetensors")).read_bytes()
    assert found[:-1] == LARGE[:-1]
    assert found[-1] == LARGE[-1] ^ 1
    # The cache keeps it under the name of the right content until it is told otherwise.
    again = Path(hf_hub_download(SPACE, "vectors.safetensors"))
    assert again.read_bytes() == found
    again = Path(hf_hub_download(SPACE, "vectors.safetensors", force_download=True))
    assert again.read_bytes() == LARGE


def test_a_cut_upload_leaves_nothing_behind(hub: HubServer, api: HfApi) -> None:
    api.create_repo(SPACE)
    hub.faults.add(Fault("PUT", "*", cut_upload_after=5_000_000))
    hub.faults.add(Fault("PUT", "*", status=403))
    with pytest.raises(RuntimeError, match=r"Error while uploading 'v\.npy'") as caught:
        api.upload_file(path_or_fileobj=LARGE, path_in_repo="v.npy", repo_id=SPACE)
    assert isinstance(caught.value.__cause__, HfHubHTTPError)
    assert hub.repo(SPACE).files() == {}
    assert len(list(hub.blobs.folder.iterdir())) == 1  # .gitattributes
    api.upload_file(path_or_fileobj=LARGE, path_in_repo="v.npy", repo_id=SPACE)
    assert hub.repo(SPACE).files() == {"v.npy": LARGE}


def test_a_push_whose_answer_is_lost_has_happened(hub: HubServer, api: HfApi) -> None:
    api.create_repo(SPACE)
    hub.faults.add(Fault("POST", "*/commit/main", cut_after=0))
    with pytest.raises(Exception, match="without sending complete message body"):
        api.upload_file(path_or_fileobj=b"1", path_in_repo="a.txt", repo_id=SPACE)
    assert hub.repo(SPACE).files() == {"a.txt": b"1"}


def test_a_slow_answer_is_released_by_stopping(hub: HubServer, pushed: str) -> None:
    hub.faults.add(Fault("GET", "*", delay=3600))
    statuses: list[int] = []

    def fetch() -> None:
        with urllib.request.urlopen(f"{hub.url}/{SPACE}/resolve/main/config.json") as answer:
            statuses.append(answer.status)

    thread = threading.Thread(target=fetch)
    thread.start()
    while not hub.requests:
        time.sleep(0.01)
    hub.stop()
    thread.join()
    assert statuses == [200]


@pytest.mark.parametrize(
    ("wanted", "found"), [("bytes=0-2", b"hel"), ("bytes=3-", b"lo"), ("bytes=1-99", b"ello")]
)
def test_ranges(hub: HubServer, wanted: str, found: bytes) -> None:
    hub.create(SPACE).put({"a.txt": b"hello"})
    url = f"{hub.url}/{SPACE}/resolve/main/a.txt"
    with urllib.request.urlopen(urllib.request.Request(url, headers={"Range": wanted})) as answer:
        assert answer.status == 206
        assert answer.headers["Content-Range"].endswith("/5")
        assert answer.read() == found
    beyond = urllib.request.Request(url, headers={"Range": "bytes=5-"})
    with pytest.raises(urllib.error.HTTPError, match="416"):
        urllib.request.urlopen(beyond).close()


def test_content_under_a_wrong_name_is_refused(hub: HubServer) -> None:
    url = f"{hub.cdn_url}/lfs/{SPACE}/{'0' * 64}"
    request = urllib.request.Request(url, data=b"content", method="PUT")
    with pytest.raises(urllib.error.HTTPError, match="400"):
        urllib.request.urlopen(request).close()
    assert list(hub.blobs.folder.iterdir()) == []


def test_a_request_that_the_server_does_not_know_is_reported(hub: HubServer, api: HfApi) -> None:
    with pytest.raises(HfHubHTTPError, match="501"):
        api.space_info(SPACE)
    assert [str(error) for error in hub.errors] == [
        f"the client asks what this Hub does not know: GET /api/spaces/{SPACE}"
    ]
    hub.errors.clear()


def test_a_process_of_its_own_has_its_own_settings(hub: HubServer, pushed: str) -> None:
    code = """
        from huggingface_hub import hf_hub_download
        print(hf_hub_download("me/space", "config.json"))
    """
    offline = hub.run(code, env={"HF_HUB_OFFLINE": "1"})
    assert "LocalEntryNotFoundError" in offline.stderr
    assert hub.requests == []
    online = hub.run(code)
    assert Path(online.stdout.strip()).read_bytes() == FILES["config.json"]
    again = hub.run(code, env={"HF_HUB_OFFLINE": "1"})
    assert again.stdout == online.stdout


def test_each_server_is_a_hub_of_its_own(hub: HubServer, tmp_path: Path) -> None:
    with HubServer(tmp_path) as second:
        HfApi(endpoint=second.url, token=second.token).create_repo(SPACE)
        assert set(second.repos) == {SPACE}
    assert hub.repos == {}


def test_the_plugin_refuses_to_come_too_late(tmp_path: Path) -> None:
    code = "import huggingface_hub.constants, pytest; pytest.main(['-p', 'hub_server.fixtures'])"
    run = subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[1])},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=False,
    )
    assert "huggingface_hub was imported before the plugin hub_server.fixtures" in run.stderr
