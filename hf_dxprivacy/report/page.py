"""The demo page: paste a text, choose, and see what a release of it would be.

Gradio serves it. Whatever Gradio would keep, log or send is turned off, and what it holds of a text
for the session is dropped as soon as the answer is out.
"""

import ipaddress
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

from hf_dxprivacy._optional import require
from hf_dxprivacy.errors import DxPrivacyError
from hf_dxprivacy.report.choices import Offer, ready_mechanism
from hf_dxprivacy.report.picture import EXTRA
from hf_dxprivacy.report.released import RUNS, release_text
from hf_dxprivacy.report.rendering import TEMPLATES, rendered
from hf_dxprivacy.spaces import EmbeddingSpace, builtin_names

if TYPE_CHECKING:
    from gradio import Blocks, Radio, Slider

TITLE = "Text under ε·d"
INTRODUCTION = f"""# {TITLE}

Each word of a text is replaced by a word drawn at random: near words are likely, far words are not,
and a smaller ε hides more (metric differential privacy). Your text goes to the program that serves
this page and nowhere else. It is not logged, and not kept once you have the answer.
"""
EPSILON = "ε, per unit of distance: the smaller, the more is hidden"
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
    offers = {name: Offer.of(EmbeddingSpace.from_pretrained(name)) for name in known}
    page: Blocks
    with gradio.Blocks(title=TITLE, analytics_enabled=False) as page:
        gradio.Markdown(INTRODUCTION)
        text = gradio.Textbox(label="Text", lines=6, max_lines=20, placeholder="Paste a text here.")
        space = gradio.Radio(list(offers), value=known[0], label="Space")
        mechanism, epsilon = _choices(offers[known[0]])
        button = gradio.Button("Privatize", variant="primary")
        result = gradio.HTML(js_on_load=None)

    def choose(name: str, chosen: str) -> "tuple[Radio, Slider]":
        return _choices(offers[name], chosen)

    def answer(
        text: str, name: str, chosen: str, epsilon: float, request: gradio.Request
    ) -> Iterator[str]:
        yield answered(text, offers[name].space, chosen, epsilon)
        forget(page, request.session_hash)

    with page:
        for control in (space, mechanism):
            control.input(
                choose, [space, mechanism], [mechanism, epsilon], api_visibility="private"
            )
        inputs = [text, space, mechanism, epsilon]
        button.click(answer, inputs, result, api_visibility="private")
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
        # Gradio would print it with its traceback, and an error that nobody foresaw may quote text.
        shown["problem"] = f"unexpected {type(error).__name__}"
    return rendered("released.html", **shown)


def forget(page: "Blocks", session: str | None) -> None:
    """Drop the values of a session, which Gradio keeps until it has seen 10,000 other sessions."""
    if session is not None and session in page.state_holder:
        for component in page.state_holder[session].components:
            component.get("props", {}).pop("value", None)


def serve(page: "Blocks", host: str = "127.0.0.1", port: int | None = None) -> str:
    """Serve the page in the background, on this machine only unless told otherwise.

    Args:
        page: What `demo_page` has built.
        host: Address to listen at.
        port: Port to listen at; by default the first free one from 7860 on.

    Returns:
        Where it is found.

    Raises:
        OSError: If the port is in use.
    """
    from gradio.themes import Default, Font

    theme = Default(
        primary_hue="blue", font=map(Font, FONTS), font_mono=map(Font, FIXED_FONTS)
    ).set(
        # Letters on the button are to be told from it by everybody.
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
    )
    return url


def is_loopback(host: str) -> bool:
    """Tell whether only this machine can reach a host name or address."""
    try:
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def _choices(offer: Offer, chosen: str = "") -> "tuple[Radio, Slider]":
    """Return the mechanisms of a space, one of which is chosen, and the values of ε for that."""
    from gradio import Radio, Slider

    name = chosen if chosen in offer.ranges else next(iter(offer.ranges))
    values = offer.ranges[name]
    return (
        Radio(list(offer.ranges), value=name, label="Mechanism"),
        Slider(values.low, values.high, values.start, step=values.step, label=EPSILON),
    )
