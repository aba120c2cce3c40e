"""Demo page: paste a text, choose a mechanism and ε, and see what a release of it would be.

A request is answered in itself: there are no sessions, nothing of it is kept, logged or sent on.
"""

import asyncio
import ipaddress
import logging
import socket
import threading
import time
from collections.abc import Callable, Collection, Iterable, Mapping
from functools import partial
from http import HTTPStatus
from typing import TYPE_CHECKING, Any, NamedTuple

from hf_dxprivacy._runtime import require
from hf_dxprivacy.errors import (
    DxPrivacyError,
    InvalidValueError,
    a_kind,
    require_one_of,
    require_within,
)
from hf_dxprivacy.hub.download import builtin_names, builtin_pools
from hf_dxprivacy.mechanisms import Mechanism
from hf_dxprivacy.page.page_release import (
    RUNS,
    Range,
    offered_ranges,
    release_sentences,
    release_text,
    shares_of_ten,
)
from hf_dxprivacy.report.card_measurements import ready_mechanism
from hf_dxprivacy.report.figures import EXTRA
from hf_dxprivacy.report.html import TEMPLATES, rendered
from hf_dxprivacy.sentences import SentencePool, is_pool
from hf_dxprivacy.spaces import EmbeddingSpace

if TYPE_CHECKING:
    from starlette.applications import Starlette
    from starlette.responses import Response

TITLE = "See a private release of a text"
# Bytes of a request.
LONGEST = 1 << 24
# Connections at once, and seconds that one may take to ask.
CONNECTIONS, PATIENCE = 64, 60.0
# Mechanisms that are compared at once.
MOST = 2

EXAMPLES = {
    "A review": "A wonderful little restaurant: fresh fish, friendly waiters and a fair bill. "
    "But the soup was cold, and nobody said sorry.",
    "A doctor's note": "The blood test of patient 20391 shows low iron. Please repeat it in a "
    "month. Call Doctor Lindqvist, and tell her I will be late.",
    "A complaint": "Someone in Ohio used my credit card to buy a television. I called the bank "
    "twice on Monday, and nobody has answered yet.",
    "A question": "How do I change the address on my car insurance after moving to Chicago?",
}

# The page asks for nothing from elsewhere, and no other page may show it in a frame.
HEADERS = {
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; "
    "img-src data:; connect-src 'self'; form-action 'none'; frame-ancestors 'none'",
    "Cache-Control": "no-store",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
}
KINDS = {"page.css": "text/css", "page.js": "text/javascript"}


class Source(NamedTuple):
    """What words or sentences are drawn from."""

    space: EmbeddingSpace
    pool: SentencePool | None
    ranges: Mapping[str, Range]


def read_sources(names: Iterable[str] = ()) -> dict[str, Source]:
    """Load the spaces and pools to choose from.

    Raises:
        InvalidValueError: If there is no such space.
    """
    sources = {}
    for name in [*names] or [*builtin_names(), *builtin_pools()]:
        pool = SentencePool.from_pretrained(name) if is_pool(name) else None
        space = EmbeddingSpace.from_pretrained(name) if pool is None else pool.space
        sources[name] = Source(space, pool, offered_ranges(space))
    return sources


def demo_page(names: Iterable[str] = ()) -> "Starlette":
    """Build the page.

    Args:
        names: Spaces and pools of sentences to choose from: built-in names, folders or
            repositories; by default all that are built in.

    Returns:
        An ASGI application, which `serve` shows.

    Raises:
        InvalidValueError: If there is no such space.
        MissingExtraError: If starlette is not installed.
    """
    require("starlette", EXTRA)
    require("uvicorn", EXTRA)
    from starlette.applications import Starlette
    from starlette.concurrency import run_in_threadpool
    from starlette.requests import Request
    from starlette.responses import JSONResponse, Response
    from starlette.routing import Route

    sources = read_sources(names)
    page = first_page(sources)

    def static(content: str, kind: str) -> "Response":
        return Response(content, media_type=kind, headers=HEADERS)

    async def show(request: Request) -> "Response":
        del request
        return static(page, "text/html")

    async def part(request: Request) -> "Response":
        name = request.url.path[1:]
        return static((TEMPLATES / name).read_text(encoding="utf-8"), KINDS[name])

    def posted(answer: Callable[[Any], Any], respond: Callable[..., "Response"]) -> Any:
        async def reply(request: Request) -> "Response":
            try:
                asked = await request.json()
            except (ValueError, RecursionError):
                return Response(status_code=HTTPStatus.BAD_REQUEST, headers=HEADERS)
            return respond(await run_in_threadpool(answer, asked), headers=HEADERS)

        return reply

    release = partial(answered, sources)
    shares = partial(live, sources)
    html = partial(Response, media_type="text/html")
    app = Starlette(
        routes=[
            Route("/", show),
            *(Route(f"/{name}", part) for name in KINDS),
            Route("/release", posted(release, html), methods=["POST"]),
            Route("/shares", posted(shares, JSONResponse), methods=["POST"]),
        ]
    )
    app.state.sources = sources
    return app


def first_page(sources: Mapping[str, Source]) -> str:
    """Return the page before anything is asked of it."""
    config = {
        name: {
            "unit": "words" if source.pool is None else "sentences",
            "size": len(source.space),
            "ranges": {key: [*values] for key, values in source.ranges.items()},
        }
        for name, source in sources.items()
    }
    # The space of the example texts first.
    order = sorted(config, key=lambda name: (config[name]["unit"] != "words", name != "english"))
    return rendered(
        "page.html",
        title=TITLE,
        sources={name: config[name] for name in order},
        examples=EXAMPLES,
        config={name: config[name] for name in order},
    )


def answered(sources: Mapping[str, Source], asked: Any) -> str:
    """Return what the page shows of releases of a text, or what is wrong, as HTML.

    Args:
        sources: What may be chosen.
        asked: "text", and "choices": for each release its "source", "mechanism" and "epsilon".
    """
    shown: dict[str, Any] = {"releases": [], "problem": None, "runs": RUNS}
    try:
        text, (choices,) = asked_text(asked), _fields(asked, "choices")
        if not isinstance(choices, list):
            raise InvalidValueError(f"expected a list of choices, got {a_kind(choices)}")
        if not text.strip():
            return rendered("released.html", **shown | {"problem": "There is no text yet."})
        shown["releases"] = [
            _released(sources, text, choice)
            | {"name": choice["mechanism"], "epsilon": choice["epsilon"]}
            for choice in choices[:MOST]
        ]
    except Exception as error:
        shown["problem"] = _problem(error)
    return rendered("released.html", **shown)


def live(sources: Mapping[str, Source], asked: Any) -> dict[str, Any]:
    """Return how many of ten words of a text stay, become near ones, and others; or a problem."""
    try:
        source, mechanism = chosen(sources, asked)
        return {"shares": shares_of_ten(asked_text(asked), mechanism, source.pool)}
    except Exception as error:
        return {"problem": _problem(error)}


def _problem(error: Exception) -> str:
    # It would be printed with its traceback, and an unforeseen error may quote text.
    return str(error) if isinstance(error, DxPrivacyError) else f"unexpected {type(error).__name__}"


def asked_text(asked: Any) -> str:
    """Return the text of a request."""
    (text,) = _fields(asked, "text")
    if not isinstance(text, str):
        raise InvalidValueError(f"expected a text, got a {type(text).__name__}")
    return text


def _fields(asked: Any, *names: str) -> list[Any]:
    """Return what a request has under some names; None for what it lacks."""
    if not isinstance(asked, dict):
        raise InvalidValueError(f"expected an object with {', '.join(names)}, got {a_kind(asked)}")
    return [asked.get(name) for name in names]


def chosen(sources: Mapping[str, Source], choice: Any) -> tuple[Source, Mechanism]:
    """Return what was chosen; a new mechanism, since they remember what they have drawn from."""
    space, mechanism, epsilon = _fields(choice, "source", "mechanism", "epsilon")
    require_one_of(sources, space=space)
    source = sources[space]
    require_one_of(source.ranges, mechanism=mechanism)
    low, high, _, _ = source.ranges[mechanism]
    require_within(low, high, epsilon=epsilon)
    return source, ready_mechanism(source.space, mechanism, epsilon)


def _released(sources: Mapping[str, Source], text: str, choice: Any) -> dict[str, Any]:
    source, mechanism = chosen(sources, choice)
    if (pool := source.pool) is None:
        release = release_text(text, mechanism)
    else:
        release = release_sentences(text, pool, mechanism)
    cards = [each._asdict() for each in release.tooltips]
    return {"release": release, "cards": cards, "size": len(source.space)}


class Guard:
    """ASGI middleware that refuses requests which the page never makes.

    Args:
        app: The page.
        hosts: Host names that it is known by; addresses are known anyway unless it is loopback.
        loopback: Whether only this machine may reach it.
    """

    def __init__(self, app: Any, hosts: Collection[str], loopback: bool) -> None:
        self._app, self._hosts, self._loopback = app, hosts, loopback

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        """Answer or pass on a request."""
        if scope["type"] == "http" and (status := self._refusal(scope)):
            await send({"type": "http.response.start", "status": status, "headers": []})
            await send({"type": "http.response.body", "body": b""})
        elif scope["type"] in ("http", "lifespan"):
            await self._app(scope, receive, send)

    def _refusal(self, scope: Any) -> int | None:
        """Return the status of a request that the page never makes; None for any other."""
        headers = {name: value.decode("latin-1") for name, value in scope["headers"]}
        if not self._is_known(headers.get(b"host", "")):
            return HTTPStatus.MISDIRECTED_REQUEST
        if scope["method"] == "POST":
            # A page of another site cannot send this type without being refused by the browser.
            if headers.get(b"content-type", "").partition(";")[0] != "application/json":
                return HTTPStatus.FORBIDDEN
            length = headers.get(b"content-length", "")
            if not length.isdecimal() or int(length) > LONGEST:
                return HTTPStatus.REQUEST_ENTITY_TOO_LARGE
        return None

    def _is_known(self, host: str) -> bool:
        # The port is whatever leads here; a web page of another site can choose names, by DNS, but
        # no address.
        name = host.partition("]")[0].lstrip("[") if host.startswith("[") else host.split(":")[0]
        known = name in self._hosts or is_loopback(name)
        return known or (not self._loopback and _is_address(name))


def serve(
    page: "Starlette", host: str = "127.0.0.1", port: int | None = None, names: Iterable[str] = ()
) -> str:
    """Serve the page in the background, on this machine only unless told otherwise.

    Args:
        page: What `demo_page` has built.
        host: Address to listen at.
        port: Port to listen at; by default a free one.
        names: Host names by which browsers may ask for it, beside `host` and those of loopback.
            Requests that name another host are refused: a web page could send them here.

    Returns:
        Where it is found.

    Raises:
        OSError: If the port is in use.
    """
    import uvicorn

    # Few are accepted at a time, so that those that are too many are closed in between.
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    listener = socket.create_server((host, port or 0), family=family, backlog=CONNECTIONS // 4)
    guarded = Guard(page, {host, *names}, is_loopback(host))
    # Without a log: an access log would name who asked, and a traceback may quote text.
    server = uvicorn.Server(
        uvicorn.Config(
            guarded,
            http=_connection(),
            backlog=CONNECTIONS // 4,
            log_config=None,
            access_log=False,
            lifespan="on",
            ws="none",
        )
    )
    logging.getLogger("uvicorn").setLevel(logging.CRITICAL)

    async def run() -> None:
        # Where descriptors run out, asyncio would print a traceback for every attempt.
        asyncio.get_running_loop().set_exception_handler(lambda *_: None)
        await server.serve([listener])

    thread = threading.Thread(target=lambda: asyncio.run(run()), daemon=True)
    thread.start()
    while not server.started:
        if not thread.is_alive():
            raise OSError("the page did not start; build another one for every call of serve")
        time.sleep(0.01)
    shown = f"[{host}]" if ":" in host else host
    return f"http://{shown}:{listener.getsockname()[1]}/"


def _connection() -> type[asyncio.Protocol]:
    """Return connections that are closed if they take too long to ask, or are too many."""
    import h11
    from uvicorn.protocols.http.h11_impl import H11Protocol

    # Those whose request is not whole, the oldest first, with what will close them.
    waiting: dict[Any, asyncio.TimerHandle] = {}

    class Connection(H11Protocol):
        def connection_made(self, transport: Any) -> None:
            super().connection_made(transport)
            self.watch()
            if len(self.connections) > CONNECTIONS:
                oldest = next(iter(waiting))
                oldest.stop()
                oldest.transport.abort()

        def data_received(self, data: bytes) -> None:
            super().data_received(data)
            self.watch()

        def connection_lost(self, exc: Exception | None) -> None:
            super().connection_lost(exc)
            self.stop()

        def watch(self) -> None:
            if self.conn.their_state not in (h11.IDLE, h11.SEND_BODY):
                self.stop()
            elif self not in waiting:
                waiting[self] = self.loop.call_later(PATIENCE, self.transport.abort)

        def stop(self) -> None:
            if timer := waiting.pop(self, None):
                timer.cancel()

    return Connection


def is_loopback(host: str) -> bool:
    """Tell whether only this machine can reach a host name or address."""
    return host == "localhost" or (_is_address(host) and ipaddress.ip_address(host).is_loopback)


def _is_address(host: str) -> bool:
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return False
    return True
