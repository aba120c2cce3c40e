"""Demo page: paste a text, choose a mechanism and ε, and see what a release of it would be.

Gradio serves it. Whatever Gradio would keep, log or send is turned off: a request is answered at
once and in itself (no queue, whose messages wait for a client that may have left), and the values
that Gradio holds for a session are dropped when the request ends, whether it was answered or not.
"""

import ipaddress
from collections.abc import Collection, Iterable, Iterator, Mapping
from http import HTTPStatus
from itertools import chain
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from hf_dxprivacy._runtime import require
from hf_dxprivacy.calibration import privacy_statistics
from hf_dxprivacy.errors import DxPrivacyError, InvalidValueError
from hf_dxprivacy.mechanisms import MECHANISMS, PEERS, ExactMechanism, Mechanism
from hf_dxprivacy.privatizers.text_privatizer import DxPrivatizer
from hf_dxprivacy.randomness import process_generator
from hf_dxprivacy.report.card_measurements import epsilon_grid, ready_mechanism
from hf_dxprivacy.report.figures import EXTRA
from hf_dxprivacy.report.html import TEMPLATES, rendered
from hf_dxprivacy.spaces import EmbeddingSpace, builtin_names
from hf_dxprivacy.spaces.lookup import look_up_rows
from hf_dxprivacy.text import RowReader

# Positions of the slider between its ends.
POSITIONS = 60
# What is offered before the others.
FIRST = ("hierarchical", "calibrated")
# Words whose figures are shown, the first ones of a text; and the outputs shown for each.
WORDS, OUTPUTS = 20, 5
# Draws of each word where the law is not known.
RUNS = 500


class Range(NamedTuple):
    """Values of ε to choose from: the ends, the distance between two, and where to begin."""

    low: float
    high: float
    step: float
    start: float


def offered_ranges(space: EmbeddingSpace) -> dict[str, Range]:
    """Return the mechanisms that suit a space and start at once, the default one first.

    The values of ε are those on the grid of the model card: from where hardly a word stays to
    where nearly all do.
    """

    def fails(name: str, epsilon: float) -> bool:
        try:
            ready_mechanism(space, name, epsilon)
        except InvalidValueError:
            return True
        return False

    ranges = {}
    for name in dict.fromkeys((*FIRST, *MECHANISMS)):
        if name not in PEERS and MECHANISMS[name].suits(space):
            grid = epsilon_grid(name, space.unit_distance or 1.0)
            # Some noise exists from an ε on.
            while grid and fails(name, grid[0]):
                del grid[0]
            if grid:
                step = float(f"{(grid[-1] - grid[0]) / POSITIONS:.3g}")
                ranges[name] = Range(grid[0], grid[-1], step, grid[len(grid) // 2])
    return ranges


class Piece(NamedTuple):
    """A part of a release: what stands between two words, or a word, `changed` or not."""

    text: str
    changed: bool = False


class Output(NamedTuple):
    """A word that another one may become: its probability or share of the draws, and distance."""

    word: str
    probability: float
    distance: float


class WordFigures(NamedTuple):
    """Statistics and likeliest outputs of one word."""

    word: str
    kept: float | None  # N_w; None for a word out of vocabulary, which never stays
    spread: int | None  # S_w, or the number of different outputs in `RUNS` draws
    outputs: tuple[Output, ...]  # the likeliest but the word itself


class Released(NamedTuple):
    """One release of a text, for the owner of the text only."""

    pieces: tuple[Piece, ...]
    words: int  # how many there are
    changed: int  # how many of them are others now
    figures: tuple[WordFigures, ...]  # of the first `WORDS` different words
    different: int  # how many different words there are
    exact: bool  # whether the figures are exact, and not shares of draws
    guarantee: str  # as it prints


def release_text(text: str, mechanism: Mechanism) -> Released:
    """Privatize a text, and work out what its words may become.

    Args:
        text: The text.
        mechanism: What draws the words anew. Mechanisms remember what they have drawn from, so
            take a new one for each text that nothing is to be kept of.
    """
    privatizer = DxPrivatizer(mechanism.space, mechanism)
    row = RowReader().read_text(text)
    # A list of tokens comes back word for word, whatever the vocabulary has in its words.
    outputs = [str(token) for token in privatizer.privatize([row.words])[0] or ()]
    ids = look_up_rows([row], mechanism.space).tolist()
    before = [mechanism.space.words[i] if i >= 0 else None for i in ids]
    changed = [old != new for old, new in zip(before, outputs, strict=True)]
    parts = zip(map(Piece, outputs, changed), map(Piece, row.separators[1:]), strict=True)
    first = dict(zip([word.lower() for word in row.words], ids, strict=True))
    return Released(
        (Piece(row.separators[0]), *chain.from_iterable(parts)),
        len(outputs),
        sum(changed),
        tuple(_figures(mechanism, dict(list(first.items())[:WORDS]))),
        len(first),
        isinstance(mechanism, ExactMechanism),
        str(privatizer.guarantee),
    )


def _figures(mechanism: Mechanism, words: Mapping[str, int]) -> Iterator[WordFigures]:
    """Yield the figures of words, given with their rows."""
    space = mechanism.space
    ids = np.array([*words.values()], dtype=np.int64)
    statistics: dict[int, tuple[float, int]] = {}
    if known := ids[ids >= 0].tolist():
        found = privacy_statistics(mechanism, [space.words[i] for i in known], RUNS, progress=False)
        spread = (found.support if found.exact else found.distinct).astype(int).tolist()
        statistics = dict(zip(known, zip(found.kept.tolist(), spread, strict=True), strict=True))
    if isinstance(mechanism, ExactMechanism):
        laws = mechanism.probabilities(ids)
    else:
        drawn = mechanism.sample(np.repeat(ids, RUNS), process_generator()).reshape(-1, RUNS)
        counts = [np.bincount(row, minlength=len(space)) for row in drawn]
        laws = np.array(counts, dtype=np.float64) / RUNS
    for (word, i), law in zip(words.items(), laws, strict=True):
        order = np.argsort(-law, kind="stable")[: OUTPUTS + 1].tolist()
        rows = [row for row in order if row != i and law[row] > 0.0][:OUTPUTS]
        near = space.pair_distances(np.full(len(rows), i), np.array(rows, dtype=np.int64)).tolist()
        outputs = [
            Output(space.words[r], float(law[r]), d) for r, d in zip(rows, near, strict=True)
        ]
        kept, size = statistics.get(i, (None, None))
        yield WordFigures(word, kept, size, tuple(outputs))


if TYPE_CHECKING:
    from gradio import Blocks, Radio, Slider

TITLE = "Text under ε·d"
INTRODUCTION = f"""# {TITLE}

Each word of a text is replaced by a word drawn at random: near words are likely, far words are not,
and a smaller ε hides more (metric differential privacy). Your text goes to the program that serves
this page and nowhere else. It is neither logged nor kept.
"""
# The route of the page's own events; there is no other that changes or stores anything.
POSTS = ("/gradio_api/run/predict", "/gradio_api/api/predict")
# Bytes of a request.
LONGEST = 1 << 24

EPSILON = "ε, per unit of the mechanism's metric: the smaller, the more is hidden"
# Those of the system, so that none is fetched.
FONTS, FIXED_FONTS = ("system-ui", "sans-serif"), ("ui-monospace", "monospace")


def demo_page(names: Iterable[str] = ()) -> "Blocks":
    """Build the page.

    Args:
        names: Spaces to choose from: built-in names, folders or repositories; by default all
            that are built in.

    Returns:
        A Gradio app, which `serve` shows.

    Raises:
        InvalidValueError: If there is no such space.
        MissingExtraError: If gradio is not installed.
    """
    require("gradio", EXTRA)
    import gradio

    known = [*names] or builtin_names()
    spaces = {name: EmbeddingSpace.from_pretrained(name) for name in known}
    if pools := [name for name, space in spaces.items() if space.entries == "sentences"]:
        raise InvalidValueError(
            f"the page is for spaces of words, and {pools[0]} is a pool of sentences; for those "
            "there is hf-dxprivacy calibrate"
        )
    ranges = {name: offered_ranges(space) for name, space in spaces.items()}
    page: Blocks
    with gradio.Blocks(title=TITLE, analytics_enabled=False) as page:
        gradio.Markdown(INTRODUCTION)
        text = gradio.Textbox(label="Text", lines=6, max_lines=20, placeholder="Paste a text here.")
        space = gradio.Radio(list(spaces), value=known[0], label="Space")
        mechanism, epsilon = _choices(ranges[known[0]])
        button = gradio.Button("Privatize", variant="primary")
        result = gradio.HTML(js_on_load=None)

    def choose(name: str, chosen: str) -> "tuple[Radio, Slider]":
        return _choices(ranges[name], chosen)

    def answer(text: str, name: str, chosen: str, epsilon: float) -> str:
        return answered(text, spaces[name], chosen, epsilon)

    at_once: dict[str, Any] = {"api_visibility": "private", "queue": False}
    with page:
        for control in (space, mechanism):
            control.input(choose, [space, mechanism], [mechanism, epsilon], **at_once)
        button.click(answer, [text, space, mechanism, epsilon], result, **at_once)
    return page


def answered(text: str, space: EmbeddingSpace, mechanism: str, epsilon: float) -> str:
    """Return what the page shows of a release of a text, or what is wrong, as HTML."""
    shown: dict[str, Any] = {"release": None, "problem": None, "runs": RUNS}
    if not text.strip():
        return rendered("released.html", **shown | {"problem": "There is no text yet."})
    try:
        # A new one each time: mechanisms remember which words they have drawn from.
        shown["release"] = release_text(text, ready_mechanism(space, mechanism, epsilon))
    except DxPrivacyError as error:
        shown["problem"] = str(error)
    except Exception as error:
        # Gradio would print it with its traceback, and an unforeseen error may quote text.
        shown["problem"] = f"unexpected {type(error).__name__}"
    return rendered("released.html", **shown)


class Guard:
    """ASGI middleware that refuses other hosts and routes, and drops the texts of a request.

    Args:
        app: The application of Gradio.
        page: The page that it serves.
        hosts: Host names that it is known by; addresses are known anyway unless it is loopback.
        loopback: Whether only this machine may reach it.
    """

    def __init__(self, app: Any, page: "Blocks", hosts: Collection[str], loopback: bool) -> None:
        self._app, self._page, self._hosts, self._loopback = app, page, hosts, loopback

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        """Answer or pass on a request."""
        if scope["type"] == "lifespan":
            await self._app(scope, receive, send)
            return
        status = self._refusal(scope)
        if status and scope["type"] == "http":
            await send({"type": "http.response.start", "status": status, "headers": []})
            await send({"type": "http.response.body", "body": b""})
        if status or scope["type"] != "http":
            return
        try:
            await self._app(scope, receive, send)
        finally:
            # The values of all sessions, which Gradio keeps until it has seen 10,000 others.
            for session in list(self._page.state_holder.session_data.values()):
                for component in list(session.components):
                    component.get("props", {}).pop("value", None)

    def _refusal(self, scope: Any) -> int | None:
        """Return the status of a request that the page never makes; None for any other."""
        headers = dict(scope["headers"])
        if not self._is_known(headers.get(b"host", b"").decode("latin-1")):
            return HTTPStatus.MISDIRECTED_REQUEST
        if "deep_link" in scope["path"]:
            return HTTPStatus.FORBIDDEN
        if scope["type"] == "http" and scope["method"] not in ("GET", "HEAD", "OPTIONS"):
            if not scope["path"].startswith(POSTS):
                return HTTPStatus.FORBIDDEN
            length = headers.get(b"content-length", b"").decode("latin-1")
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
    page: "Blocks",
    host: str = "127.0.0.1",
    port: int | None = None,
    names: Iterable[str] = (),
) -> str:
    """Serve the page in the background, on this machine only unless told otherwise.

    Args:
        page: What `demo_page` has built.
        host: Address to listen at.
        port: Port to listen at; by default the first free one from 7860 on.
        names: Host names by which browsers may ask for it, beside `host` and those of loopback.
            Requests that name another host are refused: a web page could send them here.

    Returns:
        Where it is found.

    Raises:
        OSError: If the port is in use.
    """
    from gradio.themes import Default, Font
    from starlette.middleware import Middleware

    guard = Middleware(Guard, page=page, hosts={host, *names}, loopback=is_loopback(host))
    theme = Default(
        primary_hue="blue", font=map(Font, FONTS), font_mono=map(Font, FIXED_FONTS)
    ).set(
        # Letters on the button need a contrast of 4.5 to 1 (WCAG AA).
        button_primary_background_fill="*primary_700",
        button_primary_background_fill_hover="*primary_800",
    )
    _, url, _ = page.launch(
        server_name=host,
        server_port=port,
        theme=theme,
        css=(TEMPLATES / "page.css").read_text(encoding="utf-8"),
        prevent_thread_lock=True,
        share=False,
        ssr_mode=False,
        quiet=True,
        run_history=False,
        enable_monitoring=False,
        mcp_server=False,
        pwa=False,
        footer_links=[],
        max_file_size=1,
        app_kwargs={"middleware": [guard]},
    )
    return url


def is_loopback(host: str) -> bool:
    """Tell whether only this machine can reach a host name or address."""
    return host == "localhost" or (_is_address(host) and ipaddress.ip_address(host).is_loopback)


def _is_address(host: str) -> bool:
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return False
    return True


def _choices(ranges: Mapping[str, Range], chosen: str = "") -> "tuple[Radio, Slider]":
    """Return the mechanisms of a space, one of which is chosen, and the values of ε for that."""
    from gradio import Radio, Slider

    name = chosen if chosen in ranges else next(iter(ranges))
    low, high, step, start = ranges[name]
    slider = Slider(low, high, start, step=step, label=EPSILON)
    return Radio(list(ranges), value=name, label="Mechanism"), slider
