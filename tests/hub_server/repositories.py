"""The API: accounts, repositories, listings, references and commits."""

import base64
import json
from collections.abc import Iterator
from pathlib import PurePosixPath
from typing import Any
from urllib.parse import parse_qs

from hub_server.cards import check_card
from hub_server.hub import Hub
from hub_server.messages import Answer, HubError, Request
from hub_server.routes import REPO, route
from hub_server.storage import BRANCH, PULL, TAG, Commit, Entry, Repo, is_lfs

DATE = "%Y-%m-%dT%H:%M:%S.%fZ"


@route("GET", "/api/whoami-v2")
def whoami(hub: Hub, request: Request) -> Answer:
    account = hub.account(request)
    if account is None:
        raise HubError(401, "Invalid username or password.")
    return Answer.json({"type": "user", "name": account.name, "orgs": []})


@route("POST", "/api/repos/create")
def create_repo(hub: Hub, request: Request) -> Answer:
    wanted = request.json()
    account = hub.account(request)
    if account is None:
        raise HubError(401, "Invalid username or password.")
    owner = wanted["organization"] or account.name
    if not account.can_write or owner != account.name:
        raise HubError(403, f"You don't have the rights to create a model under {owner!r}")
    name = f"{owner}/{wanted['name']}"
    repo_id = f"datasets/{name}" if wanted.get("type") == "dataset" else name
    created = {"url": f"{hub.url}/{repo_id}", "name": name}
    if repo_id in hub.repos:
        return Answer.json({"error": "You already created this model repo", **created}, status=409)
    private = wanted.get("visibility") == "private" or wanted.get("private", False)
    hub.create(repo_id, private)
    return Answer.json(created)


@route("DELETE", "/api/repos/delete")
def delete_repo(hub: Hub, request: Request) -> Answer:
    wanted = request.json()
    del hub.repos[hub.writable(request, f"{wanted['organization']}/{wanted['name']}").id]
    return Answer()


@route("POST", "/api/validate-yaml")
def validate_yaml(hub: Hub, request: Request) -> Answer:
    sent = request.json()
    errors, warnings = check_card(sent["content"], sent["repoType"])
    found = {
        "errors": [{"message": message} for message in errors],
        "warnings": [{"message": message} for message in warnings],
    }
    return Answer.json(found, status=400 if errors else 200)


@route("GET", REPO, access="read")
@route("GET", REPO + "/revision/(?P<revision>[^/]+)", access="read")
def repo_info(hub: Hub, request: Request, repo: Repo, revision: str = "main") -> Answer:
    commit = repo.find(revision)
    blobs = "blobs" in request.query
    siblings = [
        {"rfilename": name, **(_described(entry, "blobId", "sha256") if blobs else {})}
        for name, entry in sorted(commit.files.items())
    ]
    return Answer.json(
        {
            "id": repo.id.removeprefix("datasets/"),
            "author": repo.owner,
            "sha": commit.oid,
            "lastModified": commit.date.strftime(DATE),
            "private": repo.private,
            "gated": repo.gated and "auto",
            "siblings": siblings,
        }
    )


def _described(entry: Entry, oid: str, sha256: str) -> dict[str, Any]:
    """Describe a file, with the names that the two hashes have in this kind of listing."""
    pointer = {sha256: entry.sha256, "size": entry.size, "pointerSize": len(entry.pointer)}
    return {oid: entry.oid, "size": entry.size, **({"lfs": pointer} if entry.lfs else {})}


@route("GET", REPO + "/tree/(?P<revision>[^/]+)(?:/(?P<path>.+))?", access="read")
def tree(hub: Hub, request: Request, repo: Repo, revision: str, path: str | None) -> Answer:
    found = list(_tree(repo.find(revision), path or "", request.query["recursive"] == "true"))
    if path and not found:
        raise HubError(404, f"{path} does not exist on {revision!r}", code="EntryNotFound")
    start = int(request.query.get("cursor", "0"))
    stop = start + hub.page_size
    following = f"{hub.url}{request.path}?recursive={request.query['recursive']}&cursor={stop}"
    link = {"Link": f'<{following}>; rel="next"'} if stop < len(found) else {}
    return Answer.json(found[start:stop], headers=link)


def _tree(commit: Commit, path: str, recursive: bool) -> Iterator[dict[str, Any]]:
    """Yield the folders and files below a path, or only those right in it."""
    base, folders = PurePosixPath(path), set[PurePosixPath]()
    for name, entry in sorted(commit.files.items()):
        inside = [parent for parent in PurePosixPath(name).parents if base in parent.parents]
        for folder in sorted(set(inside) - folders):
            if recursive or folder.parent == base:
                yield {"type": "directory", "path": str(folder), "oid": commit.oid, "size": 0}
        folders.update(inside)
        if base in PurePosixPath(name).parents and (recursive or not inside):
            yield _listed(name, entry)


def _listed(name: str, entry: Entry) -> dict[str, Any]:
    return {"type": "file", "path": name, **_described(entry, "oid", "oid")}


@route("POST", REPO + "/paths-info/(?P<revision>[^/]+)", access="read")
def paths_info(hub: Hub, request: Request, repo: Repo, revision: str) -> Answer:
    names = parse_qs(request.read().decode()).get("paths", [])
    files = repo.find(revision).files
    return Answer.json([_listed(name, files[name]) for name in names if name in files])


@route("GET", REPO + "/refs", access="read")
def refs(hub: Hub, request: Request, repo: Repo) -> Answer:
    found: dict[str, list[dict[str, str]]] = {"converts": []}
    for kind, prefix in (("branches", BRANCH), ("tags", TAG), ("pullRequests", PULL)):
        found[kind] = [
            {"name": ref.removeprefix(prefix), "ref": ref, "targetCommit": oid}
            for ref, oid in repo.refs.items()
            if ref.startswith(prefix)
        ]
    return Answer.json(found)


@route("POST", REPO + "/branch/(?P<name>[^/]+)", access="write")
def create_branch(hub: Hub, request: Request, repo: Repo, name: str) -> Answer:
    start = request.json().get("startingPoint", "main")
    return _create_ref(repo, BRANCH + name, start)


@route("POST", REPO + "/tag/(?P<revision>[^/]+)", access="write")
def create_tag(hub: Hub, request: Request, repo: Repo, revision: str) -> Answer:
    return _create_ref(repo, TAG + request.json()["tag"], revision)


def _create_ref(repo: Repo, ref: str, revision: str) -> Answer:
    if ref in repo.refs:
        raise HubError(409, f"Reference already exists: {ref}")
    repo.refs[ref] = repo.find(revision).oid
    return Answer()


@route("POST", REPO + "/preupload/(?P<revision>[^/]+)", access="write")
def preupload(hub: Hub, request: Request, repo: Repo, revision: str) -> Answer:
    present = repo.find(revision).files
    found = []
    for file in request.json()["files"]:
        name, mode = file["path"], "lfs" if is_lfs(file["path"], file["size"]) else "regular"
        oid = present[name].etag if name in present else None
        found.append({"path": name, "uploadMode": mode, "shouldIgnore": False, "oid": oid})
    return Answer.json({"files": found})


@route("POST", REPO + "/commit/(?P<revision>[^/]+)", access="write")
def commit(hub: Hub, request: Request, repo: Repo, revision: str) -> Answer:
    lines = [json.loads(line) for line in request.read().splitlines()]
    header = lines[0]["value"]
    head = repo.find(revision)
    pull = "create_pr" in request.query
    ref = repo.next_pull() if pull else _branch(repo, revision)
    if not head.oid.startswith(header.get("parentCommit", "")):
        raise HubError(412, "A commit has happened since. Please refresh and try again.")
    files = dict(head.files)
    for line in lines[1:]:
        _apply(hub, files, line["key"], line["value"])
    new = repo.commit(ref, head, files, header["summary"], header.get("description", ""))
    page = f"{hub.url}/{repo.id}"
    opened = {"pullRequestUrl": f"{page}/discussions/{ref.removeprefix(PULL)}"} if pull else {}
    url = f"{page}/commit/{new.oid}"
    return Answer.json({"success": True, "commitOid": new.oid, "commitUrl": url, **opened})


def _branch(repo: Repo, revision: str) -> str:
    for ref in (BRANCH + revision, revision):
        if ref in repo.refs:
            return ref
    raise HubError(404, f"Invalid rev id: {revision}", code="RevisionNotFound")


def _apply(hub: Hub, files: dict[str, Entry], key: str, value: dict[str, Any]) -> None:
    """Apply one line of a commit to the files."""
    path = value["path"]
    if key == "file":
        content = hub.blobs.add([base64.b64decode(value["content"])])
        files[path] = Entry(content, lfs=False)
    elif key == "lfsFile":
        content = hub.blobs.path(value["oid"])
        if not content.exists():
            raise HubError(400, "Your push was rejected: an LFS pointer points to no file")
        files[path] = Entry(content, lfs=True)
    else:
        gone = [name for name in files if name == path or name.startswith(path.rstrip("/") + "/")]
        if not gone:
            raise HubError(404, "A file with this name doesn't exist", code="EntryNotFound")
        for name in gone:
            del files[name]
