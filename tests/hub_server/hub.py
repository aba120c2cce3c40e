"""What the Hub knows: its repositories, its accounts, and who may do what."""

from pathlib import Path

from hub_server.messages import Account, HubError, Request
from hub_server.storage import Blobs, Repo


class Hub:
    """Model repositories and accounts.

    Attributes:
        repos: The repositories by their names.
        token: Token of the account "me", which may write.
        read_token: Token of the same account, which may only read.
        other_token: Token of the account "other", which may write.
        page_size: How many files one page of a listing holds.
        url: What ``HF_ENDPOINT`` has to be.
        cdn_url: Where large files are.
        requests: Method and path of every request so far, as they were sent and without the query.
        bodies: Method, path and body of every request so far that had one; None, as at first, for
            none of them.
    """

    token = "hf_token_of_me"
    read_token = "hf_token_of_me_for_reading"
    other_token = "hf_token_of_other"
    page_size = 1000
    url: str
    cdn_url: str

    def __init__(self, folder: Path) -> None:
        self._accounts = {
            self.token: Account("me", can_write=True),
            self.read_token: Account("me", can_write=False),
            self.other_token: Account("other", can_write=True),
        }
        self.blobs = Blobs(folder / "blobs")
        self.requests: list[tuple[str, str]] = []
        self.bodies: list[tuple[str, str, bytes]] | None = None
        self.repos: dict[str, Repo] = {}

    def repo(self, repo_id: str) -> Repo:
        """Return a repository."""
        return self.repos[repo_id]

    def create(self, repo_id: str, private: bool = False) -> Repo:
        """Make a repository, with the first commit that every repository has, or return it."""
        return self.repos.setdefault(repo_id, Repo(repo_id, private, self.blobs))

    def account(self, request: Request) -> Account | None:
        """Return the account of a request, None for one without a token."""
        value = request.headers.get("Authorization")
        if value is None:
            return None
        try:
            return self._accounts[value.removeprefix("Bearer ")]
        except KeyError:
            # With this very message the client tells a bad token from a repository that is hidden.
            raise HubError(401, "Invalid credentials in Authorization header") from None

    def readable(self, request: Request, repo_id: str) -> Repo:
        """Return a repository that a request may read.

        One that is private and one that does not exist can not be told apart. The Hub answers 401
        without a code to requests without a token, and the client takes that for a repository that
        was not found if the address starts with https; the code here makes up for http.
        """
        account = self.account(request)
        repo = self.repos.get(repo_id)
        if repo is not None and (not repo.private or (account and account.name == repo.owner)):
            return repo
        if account is None:
            raise HubError(401, "Invalid username or password.", code="RepoNotFound")
        raise HubError(404, "Repository not found", code="RepoNotFound")

    def writable(self, request: Request, repo_id: str) -> Repo:
        """Return a repository that a request may write to; anybody may open a pull request."""
        repo = self.readable(request, repo_id)
        account = self.account(request)
        if account is None:
            raise HubError(401, "Invalid username or password.", code="RepoNotFound")
        if not account.can_write:
            raise HubError(403, "This token can not write; use one with the write role")
        if account.name != repo.owner and "create_pr" not in request.query:
            raise HubError(403, "Forbidden: pass `create_pr=1` to create a Pull Request")
        return repo

    def readable_files(self, request: Request, repo: Repo) -> None:
        """Refuse the files of a gated repository to all but its owner."""
        account = self.account(request)
        if repo.gated and (account is None or account.name != repo.owner):
            status = 401 if account is None else 403
            raise HubError(status, f"Access to {repo.id} is restricted.", code="GatedRepo")
