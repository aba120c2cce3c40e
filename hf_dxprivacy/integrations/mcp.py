"""Tools for language models over the Model Context Protocol: what the demo page does."""

import logging
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from hf_dxprivacy._runtime import require
from hf_dxprivacy._version import __version__
from hf_dxprivacy.errors import DxPrivacyError, InvalidValueError, require_one_of
from hf_dxprivacy.page.demo import Source, asked_text, chosen
from hf_dxprivacy.page.page_release import sentence_unit, shares_of_ten
from hf_dxprivacy.privatizers.text_privatizer import DxPrivatizer
from hf_dxprivacy.sentences.sentence_privatizer import SentencePrivatizer

if TYPE_CHECKING:
    from mcp.server import Server
    from mcp_types import CallToolRequestParams, CallToolResult, ListToolsResult, Tool
    from starlette.applications import Starlette

EXTRA = "mcp"
PATH = "/mcp"

BOUNDARY = (
    "The model that calls a tool has the original text already, and so have its provider and its "
    "logs: the guarantee is about those who get the release and nothing else. Every call for the "
    "same text is one more release, and the bounds add up."
)
TOOLS = {
    "privatize": "Release a text under metric differential privacy: its words become other words, "
    "or its sentences public ones, drawn at random so that near ones are likely. The answer has "
    "the release and what is guaranteed.",
    "guarantee": "Say what a release of a text would guarantee, and how many of ten of its words "
    "would stay, become near ones and become others. Nothing is released.",
}


def mcp_server(sources: Mapping[str, Source]) -> "Server[Any]":
    """Build a server with the tools "privatize" and "guarantee".

    It logs nothing and keeps nothing of a call.

    Args:
        sources: The spaces and pools to choose from, as `report.demo.read_sources` loads them.

    Returns:
        A server of the package mcp.

    Raises:
        MissingExtraError: If mcp is not installed.
    """
    require("mcp", EXTRA)
    import anyio
    from mcp.server import Server
    from mcp_types import CallToolResult, ListToolsResult, TextContent

    # A traceback may quote text.
    logging.getLogger("mcp").setLevel(logging.CRITICAL + 1)

    async def list_tools(context: Any, params: Any) -> "ListToolsResult":
        del context, params
        return ListToolsResult(tools=[_tool(name, sources) for name in TOOLS])

    async def call_tool(context: Any, params: "CallToolRequestParams") -> "CallToolResult":
        del context
        found: dict[str, Any] | None = None
        try:
            found = await anyio.to_thread.run_sync(
                _answer, sources, params.name, params.arguments or {}
            )
            said = _blocks(found)
        except Exception as error:
            known = isinstance(error, DxPrivacyError)
            said = [str(error) if known else f"unexpected {type(error).__name__}"]
        return CallToolResult(
            content=[TextContent(text=block) for block in said],
            structured_content=found,
            is_error=found is None,
        )

    return Server(
        "hf-dxprivacy",
        version=__version__,
        instructions=BOUNDARY,
        on_list_tools=list_tools,
        on_call_tool=call_tool,
    )


def add_tools(page: "Starlette") -> None:
    """Serve the tools beside the demo page, at /mcp over streamable HTTP, without sessions.

    Args:
        page: What `report.demo.demo_page` has built. `report.demo.serve` checks who asks.

    Raises:
        MissingExtraError: If mcp is not installed.
    """
    server = mcp_server(page.state.sources)
    from mcp.server.transport_security import TransportSecuritySettings

    app = server.streamable_http_app(
        streamable_http_path=PATH,
        json_response=True,
        stateless_http=True,
        transport_security=TransportSecuritySettings(enable_dns_rebinding_protection=False),
    )
    page.router.routes.extend(app.routes)
    page.router.lifespan_context = app.router.lifespan_context


def serve_stdio(sources: Mapping[str, Source]) -> None:
    """Serve the tools on standard input and output, until the input ends.

    Args:
        sources: As for `mcp_server`.

    Raises:
        MissingExtraError: If mcp is not installed.
    """
    server = mcp_server(sources)
    import anyio
    from mcp.server.stdio import stdio_server

    async def run() -> None:
        async with stdio_server() as (read, write):
            await server.run(read, write, server.create_initialization_options())

    anyio.run(run)


def _tool(name: str, sources: Mapping[str, Source]) -> "Tool":
    from mcp_types import Tool, ToolAnnotations

    mechanisms = dict.fromkeys(each for source in sources.values() for each in source.ranges)
    ranges = "; ".join(
        f"{space}: " + ", ".join(f"{each} {r.low:g} to {r.high:g}" for each, r in s.ranges.items())
        for space, s in sources.items()
    )
    given = {
        "text": {"type": "string", "description": "the original text"},
        "space": {
            "type": "string",
            "enum": [*sources],
            "description": "what comes out: words of a space, or sentences of a pool",
        },
        "mechanism": {"type": "string", "enum": [*mechanisms]},
        "epsilon": {
            "type": "number",
            "description": "per unit of the mechanism's distance; smaller hides more. It is the "
            f"user's decision. What there is: {ranges}",
        },
    }
    return Tool(
        name=name,
        description=f"{TOOLS[name]} {BOUNDARY}",
        input_schema={"type": "object", "properties": given, "required": [*given]},
        annotations=ToolAnnotations(read_only_hint=True, open_world_hint=False),
    )


def _answer(sources: Mapping[str, Source], name: str, given: Mapping[str, Any]) -> dict[str, Any]:
    """Return the answer of a tool as JSON-ready values."""
    require_one_of(TOOLS, tool=name)
    text = asked_text({"text": given.get("text")})
    if not text.strip():
        raise InvalidValueError("expected a text with a word at least, got an empty one")
    choice = {"source": given.get("space")}
    choice |= {key: given.get(key) for key in ("mechanism", "epsilon")}
    source, mechanism = chosen(sources, choice)
    privatizer: DxPrivatizer | SentencePrivatizer
    if source.pool is None:
        privatizer = DxPrivatizer(source.space, mechanism)
    else:
        privatizer = SentencePrivatizer(source.pool, mechanism, unit=sentence_unit())
    guarantee = privatizer.guarantee
    found = {"unit": guarantee.unit, "in_plain_words": [*guarantee.plain]}
    if name == "privatize":
        return {"released": privatizer.privatize(text), **found}
    shares = shares_of_ten(text, mechanism, source.pool)
    of_ten = dict(zip(("stay", "become near ones", "become others"), shares, strict=True))
    return {"of_ten": of_ten, **found, "guarantee": str(guarantee)}


def _blocks(found: Mapping[str, Any]) -> list[str]:
    """Return an answer as texts, a release in one of its own."""
    shares = ", ".join(f"{count} {what}" for what, count in found.get("of_ten", {}).items())
    first = found.get("released", f"Of ten {found['unit']}s: {shares}.")
    return [first, found.get("guarantee", "\n".join(found["in_plain_words"]))]
