"""The contents of files, in both directions."""

import re
from typing import Any
from urllib.parse import quote

from hub_server.hub import Hub
from hub_server.messages import Answer, HubError, Request
from hub_server.routes import PAGE, route
from hub_server.storage import Repo


@route("GET", PAGE + "/resolve/(?P<revision>[^/]+)/(?P<path>.+)", access="read")
def resolve(hub: Hub, request: Request, repo: Repo, revision: str, path: str) -> Answer:
    hub.readable_files(request, repo)
    commit = repo.find(revision)
    headers = {"X-Repo-Commit": commit.oid, "Accept-Ranges": "bytes"}
    if path not in commit.files:
        raise HubError(404, "Entry not found", code="EntryNotFound", headers=headers)
    entry = commit.files[path]
    if not entry.lfs:
        return Answer(200, entry.content, {**headers, "ETag": f'"{entry.etag}"'})
    linked = {"X-Linked-Etag": f'"{entry.etag}"', "X-Linked-Size": str(entry.size)}
    location = f"{hub.cdn_url}/cdn/{repo.id}/{entry.sha256}/{quote(path)}"
    return Answer(302, b"", {**headers, **linked, "Location": location})


@route("GET", "/cdn/.+/(?P<sha256>[0-9a-f]{64})/.+")
def fetch(hub: Hub, request: Request, sha256: str) -> Answer:
    return Answer(200, hub.blobs.path(sha256), {"ETag": f'"{sha256}"', "Accept-Ranges": "bytes"})


@route("POST", PAGE + r"\.git/info/lfs/objects/batch", access="read")
def batch(hub: Hub, request: Request, repo: Repo) -> Answer:
    objects = [_upload(hub, repo, wanted) for wanted in request.json()["objects"]]
    return Answer.json({"transfer": "basic", "objects": objects})


def _upload(hub: Hub, repo: Repo, wanted: dict[str, Any]) -> dict[str, Any]:
    """Say where to send an object; nowhere if its content is here."""
    if hub.blobs.path(wanted["oid"]).exists():
        return wanted
    target = {"href": f"{hub.cdn_url}/lfs/{repo.id}/{wanted['oid']}"}
    verify = {"href": f"{hub.url}/{repo.id}.git/info/lfs/verify"}
    return {**wanted, "actions": {"upload": target, "verify": verify}}


@route("PUT", "/lfs/.+/(?P<sha256>[0-9a-f]{64})")
def upload(hub: Hub, request: Request, sha256: str) -> Answer:
    hub.blobs.add(request.body, sha256)
    return Answer()


@route("POST", PAGE + r"\.git/info/lfs/verify", access="read")
def verify(hub: Hub, request: Request, repo: Repo) -> Answer:
    wanted = request.json()
    content = hub.blobs.path(wanted["oid"])
    if not content.exists() or content.stat().st_size != wanted["size"]:
        raise HubError(404, "Object does not exist")
    return Answer()


def part_of(answer: Answer, wanted: str | None, size: int) -> tuple[Answer, int, int]:
    """Return the answer to a request for a range, and which bytes of the body it holds.

    Args:
        answer: The answer with the whole body.
        wanted: The header ``Range`` of the request.
        size: The length of the body.
    """
    match = re.fullmatch(r"bytes=(\d+)-(\d*)", wanted or "")
    if match is None or answer.status != 200:
        return answer, 0, size
    start = int(match[1])
    stop = min(size, int(match[2] or size) + 1)
    if start >= size:
        return Answer(416, b"", {"Content-Range": f"bytes */{size}"}), 0, 0
    headers = {**answer.headers, "Content-Range": f"bytes {start}-{stop - 1}/{size}"}
    return Answer(206, answer.body, headers), start, stop
