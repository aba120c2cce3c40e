"""Paths to texts in lists of dicts: what they find, put back, refuse and promise."""

import copy
import json
import logging
import math
import pickle
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from hf_dxprivacy import DxPrivatizer, EmbeddingSpace, PrivacyBudget, SentencePrivatizer
from hf_dxprivacy import SlotPrivatizer as Slots
from hf_dxprivacy.errors import InvalidTypeError, InvalidValueError
from hf_dxprivacy.privatizers.nested import TextPath, left_in_clear
from hf_dxprivacy.slots import ContentWordSelector, TagColumnSelector
from small_pools import SENTENCES, SUBJECTS, small_pool

KEY = bytes(range(40, 72))
SECRET = "Kowalska"
CALL = {"id": "c1", "function": {"name": "weather", "arguments": {"city": SECRET}}}
CHAT: list[Any] = [
    {"role": "system", "content": "waab waac"},
    {"role": "user", "content": "Waab, waad!", "at": 5},
    {"role": "assistant", "content": None, "tool_calls": [CALL]},
    {"role": "assistant", "tool_calls": [CALL]},
    None,
    {
        "role": "user",
        "content": [
            {"type": "text", "text": "waae waaf"},
            {"type": "image_url", "image_url": {"url": SECRET}},
            None,
        ],
    },
]


def chats(space: EmbeddingSpace, **options: Any) -> DxPrivatizer:
    options = {"text_column": "messages[].content", "keep_calls": True, **options}
    return DxPrivatizer(space, "tem", 2.0, **options)


def upper(path: str, cell: Any, roles: tuple[str, ...] | None = None) -> Any:
    return TextPath(path, roles).replaced(cell, str.upper)


@pytest.mark.parametrize(
    ("path", "cell", "expected"),
    [
        ("m[].c", [{"c": "a", "d": "b"}, {"c": None}], [{"c": "A", "d": "b"}, {"c": None}]),
        ("m[].c", [], []),
        ("m[].c", None, None),
        ("m[]", ["a", None, ""], ["A", None, ""]),
        ("m.t[].v", {"t": [{"v": "a"}], "n": 1}, {"t": [{"v": "A"}], "n": 1}),
        ("m.v[]", {"v": ["a", "b"], "role": ["x", "y"]}, {"v": ["A", "B"], "role": ["x", "y"]}),
        ("m[][].v", [[{"v": "a"}], [], None], [[{"v": "A"}], [], None]),
        ("m[].a b", [{"a b": "é 日本"}], [{"a b": "É 日本"}]),
        (
            "m[].c",
            [{"c": [{"type": "text", "text": "a"}]}],
            [{"c": [{"type": "text", "text": "A"}]}],
        ),
        ("m[].c", [{"c": [{"text": None}, {"x": "a"}]}], [{"c": [{"text": None}, {"x": "a"}]}]),
        ("m[].c", [{"c": float("nan")}], [{"c": None}]),
    ],
)
def test_texts_at_a_path_are_replaced_in_a_copy(path: str, cell: Any, expected: Any) -> None:
    given = copy.deepcopy(cell)
    assert upper(path, given) == expected
    assert repr(given) == repr(cell)
    if cell:
        as_numpy = np.array([*cell, None], dtype=object)[:-1] if isinstance(cell, list) else cell
        assert upper(path, as_numpy) == expected


@pytest.mark.parametrize("path", ["[].c", "m[].", "m[0].c[]", "m[]c", "m[]..c", "m[", "", "m"])
def test_a_malformed_path_is_refused(path: str) -> None:
    with pytest.raises(InvalidValueError, match="expected a path such as"):
        TextPath(path)


BAD = [
    ("m[].c", SECRET, "expected a list for [], got a str; parse JSON first"),
    ("m[].c", {"c": SECRET, "d": 1}, "expected a list for [], got a dict: the keys are 'c', 'd'"),
    ("m[].c", [SECRET], "expected a dict with the key 'c', got a str"),
    ("m[].c", [{"C": SECRET, "role": "user"}], "there is no key 'c' in a dict: the keys are 'C'"),
    ("m[].c", [{SECRET: 1}], "there is one key, whose name is not shown"),
    ("m[].c", [{"c": 7}], "expected a text or a list of parts at the end of the path, got a int"),
    ("m[].c", [{"c": {"parts": [SECRET]}}], "list of parts at the end of the path, got a dict"),
    ("m[].c", [{"c": [SECRET]}], "got a str; for a list of texts end the path with []"),
    ("m[].c", [{"c": [{"type": "text", "value": SECRET}]}], "of type 'text' without a 'text'"),
    (
        "m[].c",
        [{"c": [{"type": "text", "text": [SECRET]}]}],
        "'text' of a part to be a string, got",
    ),
    (
        "m[].c",
        [{"c": [{"type": "output_text", "text": {"value": SECRET}}]}],
        "expected the 'text' of a part to be a string, got a dict: there is one key, whose name is "
        "not shown because it may be text; put the string itself under that key",
    ),
    (
        "m[].c",
        [{"c": [{"type": "text", "text": None, "value": SECRET}]}],
        "part of type 'text' without a 'text': the keys are",
    ),
    ("m[].c", b"bytes", "expected a list for [], got a bytes"),
    *(
        ("m[].c", [{"text": SECRET, "tool_calls": no_call}], "there is no key 'c' in a dict: the")
        for no_call in (None, [], float("nan"))
    ),
]


@pytest.mark.parametrize(("path", "cell", "message"), BAD)
def test_errors_name_path_and_row_and_no_text(
    path: str, cell: Any, message: str, euclidean_space: EmbeddingSpace
) -> None:
    where = re.escape(f"column '{path}', row 71: ")
    with pytest.raises(
        (InvalidTypeError, InvalidValueError), match=f"^{where}.*{re.escape(message)}"
    ) as caught:
        chats(euclidean_space, text_column=path)({"m": [None, cell], "n": [1, 2]}, [70, 71])
    assert SECRET not in str(caught.value)


def test_the_structure_stays_and_nothing_is_mutated(euclidean_space: EmbeddingSpace) -> None:
    given = copy.deepcopy(CHAT)
    (released,) = chats(euclidean_space)({"messages": [given]}, [0])["messages"]
    assert given == CHAT
    assert released[2:5] == CHAT[2:5]
    assert released[5]["content"][1:] == CHAT[5]["content"][1:]
    assert [message and message["role"] for message in released if message] == [
        message["role"] for message in CHAT if message
    ]
    first, second, third = (
        released[0]["content"], released[1]["content"], released[5]["content"][0]["text"],
    )  # fmt: skip
    assert all(word in euclidean_space for word in f"{first} {third}".split())
    assert second.endswith("!")
    assert ", " in second
    assert released[1]["at"] == 5


@pytest.mark.parametrize("roles", [("user",), "user", ["user", "nobody"]])
def test_other_roles_stay_as_they_are(roles: Any, euclidean_space: EmbeddingSpace) -> None:
    privatizer = chats(euclidean_space, roles=roles)
    batch = {"messages": [CHAT] * 30}
    released = privatizer(batch, range(30))["messages"]
    for chat in released:
        assert [chat[at] for at in (0, 2, 3, 4)] == [CHAT[at] for at in (0, 2, 3, 4)]
    assert len({chat[1]["content"] for chat in released}) > 1
    assert len({chat[5]["content"][0]["text"] for chat in released}) > 1
    text = str(privatizer.guarantee)
    assert "Only texts of the role 'user'" in text
    assert "calls of tools with their arguments" in text
    assert "Only texts of the role" not in str(chats(euclidean_space).guarantee)


def test_share_gpt_names_and_an_outer_role(euclidean_space: EmbeddingSpace) -> None:
    said = [{"from": "human", "value": "a b"}, {"from": "gpt", "value": "a b"}]
    assert upper("m[].value", said, ("human",)) == [{"from": "human", "value": "A B"}, said[1]]
    parts = [{"role": "user", "content": [{"text": "a"}]}, {"role": "tool", "content": []}]
    assert upper("m[].content[].text", parts, ("user",))[0]["content"] == [{"text": "A"}]


@pytest.mark.parametrize(
    ("named", "found", "message"),
    [
        ("user", "human", "leave texts of the role 'human' in clear, which is 'user' by another"),
        ("assistant", "gpt", "leave texts of the role 'gpt' in clear"),
        ("User", "user", "leave texts of the role 'user' in clear"),
        ("users", "user", "leave texts of the role 'user' in clear"),
        ("user", None, "every text needs a role"),
    ],
)
def test_roles_by_another_name_are_refused(named: str, found: Any, message: str) -> None:
    with pytest.raises(InvalidValueError, match=message):
        upper("m[].content", [{"role": found, "content": SECRET}], (named,))


def test_roles_that_never_occur_are_reported_once(
    euclidean_space: EmbeddingSpace, caplog: pytest.LogCaptureFixture
) -> None:
    privatizer = chats(euclidean_space, roles="customer")
    batch = {"messages": [[{"role": "user", "content": SECRET}] * 6]}
    with caplog.at_level(logging.WARNING):
        privatizer(batch)
        assert "RELEASED AS THEY ARE" not in caplog.text, "there were 6 texts"
        privatizer(batch)
        privatizer(batch)
    told = "the first 12 texts at 'messages[].content' are of none of the roles 'customer', and are"
    assert caplog.text.count(f"{told} RELEASED AS THEY ARE") == 1
    assert SECRET not in caplog.text


@pytest.mark.parametrize(
    ("content", "reported"),
    [
        ({"content": None, "text": SECRET}, True),
        ({"content": None, "text": " ", "id": "m1", "name": "ann"}, False),
        ({"content": None, "tool_calls": [{"arguments": SECRET}]}, False),
        ({"content": [{"type": "document", "source": {"type": "text", "data": SECRET}}]}, True),
        ({"content": [{"type": "thinking", "thinking": SECRET}]}, True),
        ({"content": [{"type": "image_url", "image_url": {"url": "https://x.org"}}]}, False),
    ],
)
@pytest.mark.parametrize("role", ["user", "system"])
def test_strings_without_a_text_are_reported_once(
    euclidean_space: EmbeddingSpace,
    caplog: pytest.LogCaptureFixture,
    content: dict[str, Any],
    reported: bool,
    role: str,
) -> None:
    """In rows of Arrow a text under another key stands beside the key of the path, with None."""
    privatizer, message = chats(euclidean_space, roles="user"), {"role": role, **content}
    batch = {"messages": [[{"role": "user", "content": "waaa"}, message]] * 2}
    assert [chat[1] for chat in privatizer(batch)["messages"]] == [message] * 2
    told = caplog.text.count("without a text, but with other strings")
    assert told == (reported and role == "user")
    assert SECRET not in caplog.text


def test_results_of_tools_in_parts_stay_in_clear_and_are_reported_once(
    euclidean_space: EmbeddingSpace, caplog: pytest.LogCaptureFixture
) -> None:
    parts = [
        {"type": "tool_result", "tool_use_id": "t1", "content": SECRET},
        {"type": "text", "text": "waab"},
    ]
    privatizer = chats(euclidean_space, roles="user")
    batch = {"messages": [[{"role": "user", "content": parts}]] * 3}
    for _ in range(2):
        for (message,) in privatizer(batch, range(3))["messages"]:
            assert message["content"][0] == parts[0]
            assert message["content"][1]["text"] in euclidean_space
    assert caplog.text.count("without a text, but with other strings") == 1
    assert SECRET not in caplog.text
    assert "results of tools in parts of their own" in str(privatizer.guarantee)


def test_arguments_that_do_not_fit(euclidean_space: EmbeddingSpace) -> None:
    for options, message in [
        ({"text_column": "text", "roles": "user"}, "is for texts within a column"),
        ({"roles": ()}, r"expected roles to be names such as \('user',\), got \(\)"),
        ({"roles": [1]}, "expected roles to be names"),
        ({"output_column": "released"}, "replaced in place, got output_column='released'"),
        ({"text_column": ["m[].a", "m[].a[].text"]}, "expected paths to different texts"),
        ({"text_column": ["m[].a", "m"]}, "to name the column 'm', or paths into it"),
        ({"text_column": "text"}, "keep_calls=True is for texts within a column"),
        ({"keep_calls": 1.5}, "expected keep_calls to be one of"),
        ({"role": "user"}, "did you mean roles="),
    ]:
        with pytest.raises((InvalidTypeError, InvalidValueError), match=message):
            chats(euclidean_space, **options)
    assert chats(euclidean_space, output_column="messages[].content").roles is None
    with pytest.raises(
        InvalidValueError, match=r"a path into lists of 'messages' as 'messages\[\]"
    ):
        chats(euclidean_space, text_column="messages.content", keep_calls=False)(
            {"messages": [[]], "n": [1]}
        )
    with pytest.raises(InvalidTypeError, match=r"as in text_column='messages\[\]\.content'"):
        chats(euclidean_space, text_column="messages", keep_calls=False)(
            {"messages": [CHAT[:2]], "n": [1]}
        )


SHAPES = [
    ("m[].c", [{"c": "a b"}, None], True),
    ("m[].c", [[{"c": "a b"}], None, []], False),
    ("m[].c", [None, [{"c": "a b"}]], False),
    ("m[].c", [], None),
    ("m[].c", [[]], False),
    ("m[]", ["a", "b"], True),
    ("m[]", [["a"], []], False),
    ("m.k[]", {"k": ["a"]}, True),
    ("m.k[]", [{"k": ["a"]}], False),
    ("m[][].c", [[{"c": "a"}]], True),
]


@pytest.mark.parametrize(("path", "value", "expected"), SHAPES)
def test_rows_are_told_from_batches_by_their_shape(
    path: str, value: Any, expected: bool | None, euclidean_space: EmbeddingSpace
) -> None:
    assert TextPath(path).is_cell(value) is expected
    # As streams hand them over: no index, and nothing beside.
    released = chats(euclidean_space, text_column=path, seed=1 << 70)({"m": value})["m"]
    assert type(released) is type(value)
    assert len(released) == len(value)


# Calls of tools, and texts of other roles

ARGUMENTS = "messages[].tool_calls[].function.arguments"
TOOLS: list[Any] = [
    {"role": "system", "content": "waab waac"},
    {"role": "user", "content": "waad waae waaf waag waah"},
    {"role": "assistant", "content": None, "tool_calls": [{"id": "c1", "function": {
        "name": "mail", "arguments": f'{{"to": "{SECRET}@x.org"}}'}}]},
    {"role": "tool", "content": f"{SECRET} lives there", "tool_call_id": "c1"},
    {"role": "assistant", "content": [{"type": "text", "text": f"I wrote to {SECRET}."}]},
]  # fmt: skip
OLD_CALL = {"role": "assistant", "function_call": {"name": "f", "arguments": SECRET}}
PART_CALL = {"role": "assistant", "content": [{"type": "tool_use", "input": {"to": [SECRET]}}]}
EMPTY = {
    "role": "assistant",
    "content": "waab",
    "tool_calls": [],
    "function_call": {"name": None, "arguments": None},
}


def counted(privatizer: Any, chats: list[Any]) -> tuple[Any, dict[str, Any]]:
    counts: list[Any] = []
    released = privatizer({"messages": chats}, range(len(chats)), on_counts=counts.append)
    return released["messages"], left_in_clear(counts[0].left)


@pytest.mark.parametrize("roles", [None, ("user",)])
@pytest.mark.parametrize("chat", [TOOLS, [OLD_CALL], [PART_CALL], [{**OLD_CALL, "content": ""}]])
def test_calls_that_hold_strings_are_refused_unless_asked_for(
    chat: Any, roles: Any, euclidean_space: EmbeddingSpace, caplog: pytest.LogCaptureFixture
) -> None:
    with pytest.raises(InvalidValueError, match="a call of a tool with strings") as told:
        chats(euclidean_space, roles=roles, keep_calls=False)({"messages": [chat]}, [0])
    privatizer = chats(euclidean_space, roles=roles)
    for _ in range(2):
        (released,), left = counted(privatizer, [chat])
        assert left["calls_of_tools"] == 1
    assert [{**new, "content": 0} for new in released] == [{**old, "content": 0} for old in chat]
    assert caplog.text.count("calls of tools with strings at 'messages[].content'; they are") == 1
    assert SECRET not in f"{told.value}{caplog.text}"


@pytest.mark.parametrize("arguments", ["{}", "", None, {}, {"n": 5}, {"type": "x", "id": SECRET}])
def test_calls_without_strings_pass(arguments: Any, euclidean_space: EmbeddingSpace) -> None:
    call = {"id": "c1", "function": {"name": "now", "arguments": arguments}}
    said = [{"role": "assistant", "content": "waab", "tool_calls": [call, call]}, EMPTY]
    _, left = counted(chats(euclidean_space, keep_calls=False), [said] * 3)
    assert left["calls_of_tools"] == 6


def test_texts_of_other_roles_are_counted(euclidean_space: EmbeddingSpace) -> None:
    (released, *_), left = counted(chats(euclidean_space, roles="user"), [TOOLS] * 70)
    assert released[3:] == TOOLS[3:]
    assert left == {
        "calls_of_tools": 70,
        "texts_of_roles": {"system": 70, "tool": 70, "assistant": 70},
        "words_of_these": 630,
        "other_strings": 0,
    }
    assert counted(chats(euclidean_space), [TOOLS])[1]["texts_of_roles"] == {}
    shared = [{"from": who, "value": "waab waac"} for who in ("human", "gpt", "Ann B", "gpt")]
    path: dict[str, Any] = {"text_column": "messages[].value", "roles": "human"}
    left = counted(chats(euclidean_space, **path), [shared])[1]
    assert left["texts_of_roles"] == {"gpt": 2, "others": 1}
    assert left["words_of_these"] == 6
    result = {"type": "tool_result", "content": SECRET}
    parts = [{"role": who, "content": [result]} for who in ("user", "system")]
    assert counted(chats(euclidean_space, roles="user"), [parts])[1]["other_strings"] == 2


@pytest.mark.parametrize("first", [False, True])
@pytest.mark.parametrize("arguments", [f'{{"to": "{SECRET}"}}', {"to": [SECRET, {"x": SECRET}]}])
def test_a_path_of_their_own_leads_to_arguments(
    arguments: Any, first: bool, euclidean_space: EmbeddingSpace, tmp_path: Path
) -> None:
    chat = copy.deepcopy([*TOOLS, None, EMPTY])
    chat[2]["tool_calls"][0]["function"]["arguments"] = arguments
    given = copy.deepcopy(chat)
    columns = ["messages[].content", ARGUMENTS][:: -1 if first else 1]
    options: dict[str, Any] = {"roles": "user", "keep_calls": False, "seed": 1 << 70}
    privatizer = chats(euclidean_space, text_column=columns, **options)
    (released,), left = counted(privatizer, [chat])
    assert chat == given
    new = released[2]["tool_calls"][0].pop("function")
    old = chat[2]["tool_calls"][0].pop("function")
    assert new["name"] == old["name"]
    assert SECRET not in str(new)
    assert len(str(new).split()) == len(str(old).split())
    assert [m for at, m in enumerate(released) if at != 1] == [
        m for at, m in enumerate(chat) if at != 1
    ]
    assert released[1] != chat[1]
    assert (left["calls_of_tools"], left["words_of_these"]) == (0, 10)
    assert privatizer.text_columns == ("messages",)
    both = " + ".join(["messages[].content", ARGUMENTS])
    assert privatizer.released_columns == {"messages": both}
    assert pickle.loads(pickle.dumps(privatizer)).text_paths == (both,)
    # Other strings of such a call, and calls under another key, are refused as before.
    call = {"function": {"name": "f", "arguments": "waab"}, "note": SECRET}
    for message in ({"role": "assistant", "tool_calls": [call]}, OLD_CALL):
        with pytest.raises(InvalidValueError, match="a call of a tool with strings"):
            privatizer({"messages": [[message]]}, [0])
    euclidean_space.save_pretrained(tmp_path / "space")
    space = EmbeddingSpace.from_pretrained(tmp_path / "space")
    chats(space, text_column=columns, **options).save_pretrained(tmp_path / "stored")
    again = DxPrivatizer.from_pretrained(tmp_path / "stored", seed=1 << 70)
    assert again({"messages": [given]}, [0]) == privatizer({"messages": [given]}, [0])
    bound = privatizer.guarantee.bound
    assert (
        0.0
        < bound(given, [given[0], {**given[1], "content": "waag waae waaf waag waah"}, *given[2:]])
        < math.inf
    )


# Noise


def test_texts_of_a_row_have_noise_of_their_own(euclidean_space: EmbeddingSpace) -> None:
    said = [{"role": "user", "content": "waab " * 20}] * 2
    for options in ({"seed": 1 << 70}, {"memoize": "row", "key": KEY}):
        privatizer = chats(euclidean_space, **options)
        (first,) = privatizer({"messages": [said]}, [3])["messages"]
        assert first[0]["content"] != first[1]["content"]
        (again,) = privatizer({"messages": [said]}, [3])["messages"]
        assert again == first
    (other,) = chats(euclidean_space, seed=1 << 70)({"messages": [said]}, [4])["messages"]
    assert other != first


def test_memoized_rows_are_equal_by_their_perturbed_texts(euclidean_space: EmbeddingSpace) -> None:
    privatizer = chats(euclidean_space, roles="user", memoize="row", key=KEY)

    def texts(*said: str, answer: str = "x") -> list[str]:
        chat = [{"role": "user", "content": text} for text in said]
        chat.append({"role": "assistant", "content": answer})
        return [m["content"] for m in privatizer({"messages": [chat]}, [0])["messages"][0][:-1]]

    many = "waab waac waad waae waaf waag waah waai"
    assert texts(many) == texts(many, answer="y")
    # Neither another division into messages nor another chat shares the noise.
    assert " ".join(texts(many, many)) != " ".join(texts(f"{many} {many}"))
    assert texts(many, many)[0] != texts(many)[0]
    assert "whatever else is in the column" in str(privatizer.guarantee)


def test_a_row_is_charged_once_and_a_user_by_words(euclidean_space: EmbeddingSpace) -> None:
    budget = PrivacyBudget(2.0)
    chats(euclidean_space, budget=budget)({"messages": [CHAT, CHAT]}, [0, 1])
    assert budget.spent == 2.0
    budget = PrivacyBudget(100.0, unit="user")
    privatizer = chats(euclidean_space, budget=budget, user_column="who")
    privatizer({"messages": [CHAT, CHAT[:1]], "who": ["a", "b"]}, [0, 1])
    assert budget.spent == 2.0 * 6


def test_bounds_add_up_over_texts_and_nothing_else_may_differ(
    euclidean_space: EmbeddingSpace,
) -> None:
    bound = chats(euclidean_space).guarantee.bound
    word = bound("waab", "waag")
    assert 0.0 < word < math.inf
    other = copy.deepcopy(CHAT)
    other[0]["content"] = "waag waac"
    assert bound(CHAT, other) == pytest.approx(word)
    other[5]["content"][0]["text"] = "waae waag"
    assert bound(CHAT, other) == pytest.approx(word + bound("waaf", "waag"))
    assert bound(CHAT, CHAT) == 0.0
    for at, change in [(1, {"at": 6}), (1, {"role": "tool"}), (2, {"content": ""})]:
        other = copy.deepcopy(CHAT)
        other[at].update(change)
        assert bound(CHAT, other) == math.inf
    assert bound(CHAT, CHAT[:-1]) == math.inf
    of_users = chats(euclidean_space, roles="user").guarantee.bound
    other = copy.deepcopy(CHAT)
    other[0]["content"] = "waag waac"
    assert of_users(CHAT, other) == math.inf


def test_pickles_and_folders_keep_path_and_roles(
    euclidean_space: EmbeddingSpace, tmp_path: Path
) -> None:
    euclidean_space.save_pretrained(tmp_path / "space")
    privatizer = chats(EmbeddingSpace.from_pretrained(tmp_path / "space"), roles="user", seed=5)
    before = pickle.dumps(privatizer)
    privatizer({"messages": [CHAT] * 3}, range(3))
    assert pickle.dumps(privatizer) == before, "what was seen changes no fingerprint"
    privatizer.save_pretrained(tmp_path / "stored")
    stored = json.loads((tmp_path / "stored" / "privatizer.json").read_text())
    assert (stored["text_column"], stored["roles"]) == (["messages[].content"], ["user"])
    for loaded in (
        DxPrivatizer.from_pretrained(tmp_path / "stored", seed=5, keep_calls=True),
        pickle.loads(before),
    ):
        assert (loaded.text_columns, loaded.text_paths) == (("messages",), ("messages[].content",))
        assert loaded.guarantee == privatizer.guarantee
        assert loaded({"messages": [CHAT]}, [0]) == privatizer({"messages": [CHAT]}, [0])
    everyone = DxPrivatizer.from_pretrained(tmp_path / "stored", roles=None)
    assert "Only texts of the role" not in str(everyone.guarantee)


# Sentences and slots


@pytest.mark.parametrize("unit", ["text", "sentence"])
def test_each_message_becomes_sentences(unit: Any) -> None:
    pytest.importorskip("sentencex")
    chat = [
        {"role": "user", "content": "The soup was cold. I liked it!"},
        {"role": "assistant", "content": None},
        {"role": "user", "content": "", "name": SECRET},
        {"role": "tool", "content": "kept"},
    ]
    privatizer = SentencePrivatizer(
        *(small_pool(), "hierarchical", 1.0), text_column="m[].content", unit=unit,
        roles="user", label_column="topic", seed=1 << 70,
    )  # fmt: skip
    batch = {"m": [chat, None, []], "topic": [SUBJECTS[0], SUBJECTS[1], SUBJECTS[0]]}
    counts: list[Any] = []
    released = privatizer(batch, [0, 1, 2], on_counts=counts.append)["m"]
    assert released[1:] == [None, []]
    first, none, empty, kept = released[0]
    assert (none, kept) == (chat[1], chat[3])
    assert empty["content"] in SENTENCES
    assert empty["name"] == SECRET
    size = 2 if unit == "sentence" else 1
    assert any(first["content"].startswith(sentence) for sentence in SENTENCES)
    assert (counts[0].texts, counts[0].total) == (2, size + 1)
    assert released == privatizer(batch, [0, 1, 2])["m"]
    row = {"m": chat, "topic": SUBJECTS[0]}
    other = {"m": [{**chat[0], "content": "A film. Late."}, *chat[1:]], "topic": SUBJECTS[0]}
    assert 0.0 <= privatizer.guarantee.bound(row, other) < math.inf
    other["m"] = [*chat[:3], {"role": "tool", "content": "changed"}]
    assert privatizer.guarantee.bound(row, other) == math.inf
    assert "Only texts of the role 'user'" in str(privatizer.guarantee)


def test_slots_of_each_text(euclidean_space: EmbeddingSpace) -> None:
    def slots(**options: Any) -> Slots:
        return Slots(
            *(euclidean_space, "tem", 0.01), **{"text_column": "m[].c", "seed": 1 << 70, **options}
        )

    privatizer = slots(selector=ContentWordSelector())
    said = [{"c": "waab is the waac"}, {"c": ""}, {"c": "the waad"}]
    (released,) = privatizer({"m": [said]}, [0])["m"]
    assert released[0]["c"].split()[1:3] == ["is", "the"]
    assert released[2]["c"].split()[0] == "the"
    assert [m["c"] for m in released] != [m["c"] for m in said]
    assert privatizer.guarantee.bound(said, [*said[:2], {"c": "the waae"}]) < math.inf
    for options in (
        {"selector": ContentWordSelector(), "mask_column": "mask"},
        {"selector": TagColumnSelector("tags")},
    ):
        with pytest.raises(InvalidValueError, match="no tags of words, and no mask_column="):
            slots(**options)
