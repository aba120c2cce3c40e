"""Which function answers which request."""

import re
from collections.abc import Callable
from typing import Literal
from urllib.parse import unquote

from hub_server.hub import Hub
from hub_server.messages import Answer, HubError, Request

# A repository of a data set is known as "datasets/namespace/name".
PAGE = r"/(?P<repo_id>(?:datasets/)?[^/]+(?:/[^/]+)?)"
REPO = "/api/models" + PAGE

Access = Literal["none", "read", "write"]
Endpoint = Callable[..., Answer]

_ROUTES: list[tuple[str, re.Pattern[str], Access, Endpoint]] = []


def route(method: str, pattern: str, access: Access = "none") -> Callable[[Endpoint], Endpoint]:
    """Let a function answer requests.

    The function is called with the hub, the request, the repository if the access is "read" or
    "write" and the request has that access, and the named groups of the pattern, unquoted.
    """

    def register(endpoint: Endpoint) -> Endpoint:
        _ROUTES.append((method, re.compile(pattern), access, endpoint))
        return endpoint

    return register


def respond(hub: Hub, request: Request) -> Answer:
    """Return the answer to a request."""
    method = "GET" if request.method == "HEAD" else request.method
    asked = re.sub("^/api/datasets/", "/api/models/datasets/", request.path)
    for expected, pattern, access, endpoint in _ROUTES:
        found = pattern.fullmatch(asked) if method == expected else None
        if found is not None:
            groups = {key: value and unquote(value) for key, value in found.groupdict().items()}
            try:
                return _call(hub, request, access, endpoint, groups)
            except HubError as error:
                return error.answer
    raise LookupError(
        f"the client asks what this Hub does not know: {request.method} {request.path}"
    )


def _call(
    hub: Hub, request: Request, access: Access, endpoint: Endpoint, groups: dict[str, str | None]
) -> Answer:
    if access == "none":
        return endpoint(hub, request, **groups)
    find = hub.writable if access == "write" else hub.readable
    return endpoint(hub, request, find(request, groups.pop("repo_id") or ""), **groups)
