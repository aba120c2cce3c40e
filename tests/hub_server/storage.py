"""Repositories, their commits and references, and the contents of their files."""

import hashlib
import secrets
import threading
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timezone
from fnmatch import fnmatchcase
from pathlib import Path

from hub_server.messages import HubError

LFS_SIZE = 10 * 1024 * 1024
LFS_NAMES = ("*.bin", "*.faiss", "*.npy", "*.npz", "*.parquet", "*.pkl", "*.png", "*.safetensors")
BRANCH, TAG, PULL = "refs/heads/", "refs/tags/", "refs/pr/"


def is_lfs(name: str, size: int) -> bool:
    """Say whether a file is kept out of Git, by its name or for its size."""
    return size > LFS_SIZE or any(fnmatchcase(name, pattern) for pattern in LFS_NAMES)


@dataclass(frozen=True)
class Entry:
    """A file of a commit: where its content is, and whether Git holds only a pointer to it."""

    content: Path
    lfs: bool

    @property
    def size(self) -> int:
        """The length of the content."""
        return self.content.stat().st_size

    @property
    def sha256(self) -> str:
        """The name of the content in LFS."""
        return self.content.name

    @property
    def pointer(self) -> bytes:
        """What Git holds in place of a large file."""
        version = "https://git-lfs.github.com/spec/v1"
        return f"version {version}\noid sha256:{self.sha256}\nsize {self.size}\n".encode()

    @property
    def oid(self) -> str:
        """The file's name in Git."""
        held = self.pointer if self.lfs else self.content.read_bytes()
        return hashlib.sha1(b"blob %d\0" % len(held) + held).hexdigest()

    @property
    def etag(self) -> str:
        """The name of the content that clients cache it under."""
        return self.sha256 if self.lfs else self.oid


@dataclass(frozen=True)
class Commit:
    """One state of a repository."""

    title: str
    files: Mapping[str, Entry]
    parent: str | None = None
    message: str = ""
    oid: str = field(default_factory=lambda: secrets.token_hex(20))
    date: datetime = field(default_factory=lambda: datetime.now(timezone.utc))


class Blobs:
    """Contents in a folder, each under its SHA-256."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        folder.mkdir(parents=True, exist_ok=True)

    def path(self, sha256: str) -> Path:
        """Return where the content with this name is, or would be."""
        return self.folder / sha256

    def add(self, chunks: Iterable[bytes], sha256: str | None = None) -> Path:
        """Keep a content, all of it or nothing; refuse one that is not what was announced."""
        partial = self.folder / f"{secrets.token_hex(8)}.partial"
        digest = hashlib.sha256()
        try:
            with partial.open("wb") as file:
                for chunk in chunks:
                    digest.update(chunk)
                    file.write(chunk)
            if sha256 not in (None, digest.hexdigest()):
                raise HubError(400, "BadDigest: the content does not match its name")
            return partial.replace(self.path(digest.hexdigest()))
        finally:
            partial.unlink(missing_ok=True)

    def clear(self) -> None:
        """Forget everything."""
        for path in self.folder.iterdir():
            path.unlink()


class Repo:
    """A repository; what a test asserts on, and what it uses to plant files no client would push.

    Attributes:
        id: "namespace/name", or "datasets/namespace/name".
        private: Whether it exists for its owner only.
        gated: Whether its files are for its owner only.
        refs: Full names of branches, tags and pull requests, each with a commit's oid.
    """

    def __init__(self, repo_id: str, private: bool, blobs: Blobs) -> None:
        self.id = repo_id
        self.private = private
        self.gated = False
        self.refs: dict[str, str] = {}
        self._commits: dict[str, Commit] = {}
        self._blobs = blobs
        self._lock = threading.RLock()
        rules = "".join(f"{name} filter=lfs diff=lfs merge=lfs -text\n" for name in LFS_NAMES)
        self.put({".gitattributes": rules.encode()}, title="initial commit")

    @property
    def owner(self) -> str:
        """The namespace."""
        return self.id.split("/")[-2]

    def find(self, revision: str) -> Commit:
        """Return the commit that a branch, a tag, a full reference or an oid stands for."""
        for name in (BRANCH + revision, TAG + revision, revision):
            if name in self.refs:
                return self._commits[self.refs[name]]
        if revision in self._commits:
            return self._commits[revision]
        raise HubError(404, f"Invalid rev id: {revision}", code="RevisionNotFound")

    def history(self, revision: str = "main") -> list[Commit]:
        """Return the commits behind a revision, the newest first."""
        found = [self.find(revision)]
        while (parent := found[-1].parent) is not None:
            found.append(self._commits[parent])
        return found

    def files(self, revision: str = "main") -> dict[str, bytes]:
        """Return the contents of a revision's files, without the one that every repository has."""
        entries = self.find(revision).files.items()
        return {
            name: entry.content.read_bytes() for name, entry in entries if name != ".gitattributes"
        }

    def put(self, files: Mapping[str, bytes], title: str = "put", revision: str = "main") -> Commit:
        """Commit files under any name, without the checks of a push."""
        entries = {
            name: Entry(self._blobs.add([content]), is_lfs(name, len(content)))
            for name, content in files.items()
        }
        with self._lock:
            head = self._commits.get(self.refs.get(BRANCH + revision, ""))
            present = head.files if head else {}
            return self.commit(BRANCH + revision, head, {**present, **entries}, title)

    def commit(
        self,
        ref: str,
        parent: Commit | None,
        files: Mapping[str, Entry],
        title: str,
        message: str = "",
    ) -> Commit:
        """Add a commit and let the reference point to it, unless another one came in between."""
        with self._lock:
            if parent is not None and self.refs.get(ref, parent.oid) != parent.oid:
                raise HubError(412, "A commit has happened since. Please refresh and try again.")
            new = Commit(title, files, parent.oid if parent else None, message)
            self._commits[new.oid] = new
            self.refs[ref] = new.oid
            return new

    def next_pull(self) -> str:
        """Return the reference of a new pull request."""
        return f"{PULL}{1 + sum(name.startswith(PULL) for name in self.refs)}"
