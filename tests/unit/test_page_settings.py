"""Who can reach the page, and what it says when something is wrong."""

import html
import json
import re
from typing import Any

import pytest

from hf_dxprivacy.page import demo
from hf_dxprivacy.page.demo import Source, answered, first_page, is_loopback, live
from hf_dxprivacy.page.page_release import Range
from hf_dxprivacy.spaces import EmbeddingSpace


@pytest.mark.parametrize("host", ["127.0.0.1", "127.8.8.8", "::1", "localhost"])
def test_only_this_machine_reaches_the_loopback_address(host: str) -> None:
    assert is_loopback(host)


@pytest.mark.parametrize(
    "host", ["0.0.0.0", "::", "192.168.1.4", "example.org", "127.0.0.1.example.org", ""]
)
def test_others_reach_every_other_address(host: str) -> None:
    assert not is_loopback(host)


@pytest.fixture(scope="module")
def sources(euclidean_space: EmbeddingSpace) -> dict[str, Source]:
    return {"space": Source(euclidean_space, None, {"tem": Range(1.0, 9.0, 0.1, 3.0)})}


def asked(text: Any = "waaa", **chosen: Any) -> dict[str, Any]:
    choice = {"source": "space", "mechanism": "tem", "epsilon": 2.0} | chosen
    return {"text": text, "choices": [choice], **choice}


@pytest.mark.parametrize(
    ("request_", "said"),
    [
        (asked(source="elsewhere"), "expected space to be one of"),
        (asked(mechanism="laplace"), "expected mechanism to be one of"),
        (asked(epsilon=0.5), "expected 1.0 &lt;= epsilon &lt;= 9.0, got epsilon=0.5"),
        (asked(epsilon="2"), "expected epsilon to be a number"),
        (asked(epsilon=None), "expected epsilon to be a number"),
        (asked(epsilon=[2]), "expected epsilon to be a number"),
        (asked(text=["waaa"]), "expected a text, got a list"),
        (asked(source=["space"]), "expected space to be one of"),
        (asked(mechanism={}), "expected mechanism to be one of"),
        ([], "expected an object with text, got a list"),
        (asked(text="  "), "There is no text yet."),
    ],
)
def test_what_is_wrong_is_said(sources: dict[str, Source], request_: Any, said: str) -> None:
    shown = answered(sources, request_)
    assert 'role="alert"' in shown
    assert said in html.unescape(shown) or said in shown
    assert "data-card" not in shown
    if "no text" not in said:
        assert live(sources, request_)["problem"] in html.unescape(shown) or "text" in said


@pytest.mark.parametrize(
    ("choices", "said"),
    [
        (None, "expected a list of choices, got a NoneType"),
        ({}, "expected a list of choices, got a dict"),
        (["x"], "expected an object with source, mechanism, epsilon, got a str"),
        ([[]], "expected an object with source, mechanism, epsilon, got a list"),
        ([{}], "expected space to be one of 'space'; got space=None"),
    ],
)
def test_a_choice_of_another_form_is_said(
    sources: dict[str, Source], choices: Any, said: str
) -> None:
    shown = html.unescape(answered(sources, {"text": "waaa", "choices": choices}))
    assert said in shown


def test_two_mechanisms_at_most_are_compared(sources: dict[str, Source]) -> None:
    many = asked()
    many["choices"] *= 3
    assert answered(sources, many).count("What is guaranteed") == 2


def test_an_error_that_nobody_foresaw_does_not_quote_the_text(
    sources: dict[str, Source], monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(text: str, *rest: object) -> None:
        raise RuntimeError(text)

    monkeypatch.setattr(demo, "release_text", fail)
    monkeypatch.setattr(demo, "shares_of_ten", fail)
    shown = answered(sources, asked("xylographer"))
    assert "unexpected RuntimeError" in shown
    assert "xylographer" not in shown
    assert live(sources, asked("xylographer")) == {"problem": "unexpected RuntimeError"}


def test_the_page_names_what_there_is_in_order(sources: dict[str, Source]) -> None:
    other = Source(
        sources["space"].space, None, {"tem": Range(1, 2, 1, 1), "krr": Range(1, 2, 1, 1)}
    )
    page = first_page({"other": other, "english": sources["space"]})
    config = json.loads(re.findall(r'id="config">(.*?)</script>', page)[0])
    assert [*config] == ["english", "other"]
    assert [*config["other"]["ranges"]] == ["tem", "krr"]
    assert config["english"] == {"unit": "words", "size": 500, "ranges": {"tem": [1, 9, 0.1, 3]}}
    # Nothing is fetched from elsewhere, and no script or style is in the page itself.
    assert not re.search(r'(?:src|href)="(?:https?:)?//', page)
    assert "<style" not in page
    assert re.findall(r"<script[^>]*>", page)[0] == '<script src="page.js" defer>'
