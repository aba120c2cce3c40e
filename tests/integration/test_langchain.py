"""The middleware on docs/integrations.md, in agents of LangChain with a made-up model."""

import asyncio
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("langchain", reason="langchain is not installed (for development only)")

from langchain.agents import create_agent
from langchain_core.language_models.fake_chat_models import GenericFakeChatModel
from langchain_core.messages import AIMessage, HumanMessage, SystemMessage
from langgraph.checkpoint.memory import InMemorySaver

from hf_dxprivacy import DxPrivatizer

PAGE = Path(__file__).parents[2] / "docs" / "integrations.md"
# No word of the space.
SECRET = "xylographer"
IMAGE = {"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}}


@pytest.fixture(scope="module")
def middleware() -> Any:
    """Return the middleware as the page has it."""
    (code,) = re.findall(r"```python\n(from langchain.*?)^model = ", PAGE.read_text(), re.M | re.S)
    names: dict[str, Any] = {}
    exec(code, names)
    return names["privatize"]


@pytest.fixture
def released(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Return a list that grows by every text that is released."""
    seen: list[str] = []
    release = DxPrivatizer.privatize

    def privatize(self: DxPrivatizer, texts: list[str]) -> Any:
        seen.extend(texts)
        return release(self, texts)

    monkeypatch.setattr(DxPrivatizer, "privatize", privatize)
    return seen


class Model(GenericFakeChatModel):
    """A model that keeps what it reads."""

    read: list[list[Any]]

    def _generate(self, messages: list[Any], *given: Any, **named: Any) -> Any:
        self.read.append(messages)
        return super()._generate(messages, *given, **named)

    def bind_tools(self, tools: Any, **named: Any) -> Any:
        """Take any tools: what it calls is made up."""
        return self


def said(*answers: Any) -> Model:
    answering: Iterator[Any] = iter(answers)
    return Model(messages=answering, read=[])


def weather(city: str) -> str:
    """Say what the weather is."""
    return f"{SECRET} in {city}"


def test_the_model_reads_releases_only_and_each_text_is_released_once(
    middleware: Any, released: list[str]
) -> None:
    call = {"name": "weather", "args": {"city": "Ohio"}, "id": "1"}
    model = said(AIMessage("", tool_calls=[call]), "Rain.", "Bye.")
    agent = create_agent(model, [weather], middleware=[middleware], checkpointer=InMemorySaver())
    thread: Any = {"configurable": {"thread_id": "1"}}
    first, second = f"The {SECRET} was cold.", f"And the {SECRET} was rude."
    agent.invoke({"messages": [("user", first)]}, thread)
    state = agent.invoke({"messages": [("user", second)]}, thread)
    assert released == [first, second]
    assert len(model.read) == 3
    asked = [[m.text for m in read if isinstance(m, HumanMessage)] for read in model.read]
    assert asked[0] == asked[1] == asked[2][:1]
    assert [m.text for m in state["messages"] if isinstance(m, HumanMessage)] == asked[2]
    assert not any(SECRET in text for texts in asked for text in texts)
    assert all(text.endswith(".") and len(text.split()) in (4, 5) for text in asked[2])


def test_a_history_that_is_sent_along_is_released_too(middleware: Any, released: list[str]) -> None:
    model = said("Bye.")
    agent = create_agent(model, middleware=[middleware])
    history = [SystemMessage("Be kind."), HumanMessage(SECRET), AIMessage("What?")]
    parts = [{"type": "text", "text": f"{SECRET} soup"}, IMAGE]
    question = {"messages": [*history, HumanMessage(parts)]}
    asyncio.run(agent.ainvoke(question))
    assert released == [SECRET, f"{SECRET} soup"]
    (read,) = model.read
    assert [m.text for m in read if not isinstance(m, HumanMessage)] == ["Be kind.", "What?"]
    assert not any(SECRET in str(m.content) or "image" in str(m.content) for m in read)
    assert [type(m) for m in read] == [SystemMessage, HumanMessage, AIMessage, HumanMessage]
