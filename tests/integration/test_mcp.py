"""The tools for language models, asked by the client of the package mcp."""

import asyncio
import logging
import os
import re
import signal
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from scipy.stats import binom

pytest.importorskip("mcp", reason="mcp is not installed (extra: mcp)")

from mcp import Client, StdioServerParameters
from mcp.client.stdio import stdio_client
from mcp_types import CallToolResult

from hf_dxprivacy import DxPrivatizer, EmbeddingSpace
from hf_dxprivacy.cli.main import main
from hf_dxprivacy.integrations import mcp
from hf_dxprivacy.integrations.mcp import BOUNDARY, TOOLS, mcp_server
from hf_dxprivacy.page.demo import Source, read_sources
from hf_dxprivacy.page.page_release import Range
from machine import PATIENCE

# Of the test of noise: how often it fails by chance.
FALSE_ALARM = 1e-6
# No word of the spaces here.
SECRET = "xylographer"
MODES = ("auto", "legacy")


@pytest.fixture(scope="module")
def sources(euclidean_space: EmbeddingSpace) -> dict[str, Source]:
    ranges = {"krr": Range(1.0, 9.0, 0.1, 3.0), "tem": Range(1.0, 9.0, 0.1, 3.0)}
    pool = read_sources(["wordnet-sentences"])
    return {"words": Source(euclidean_space, None, ranges), **pool}


def asked(text: Any = "waaa, waab!", **given: Any) -> dict[str, Any]:
    return {"text": text, "space": "words", "mechanism": "krr", "epsilon": 3.0} | given


def call(server: Any, tool: str, arguments: Any, mode: str = "auto") -> CallToolResult:
    async def ask() -> CallToolResult:
        async with Client(server, mode=mode) as client:
            found = await client.call_tool(tool, arguments)
            assert isinstance(found, CallToolResult)
            return found

    return asyncio.run(ask())


def texts(found: CallToolResult) -> list[str]:
    assert all(block.type == "text" for block in found.content)
    return [block.text for block in found.content if block.type == "text"]


def test_the_tools_say_what_there_is_and_who_sees_the_text(sources: dict[str, Source]) -> None:
    async def ask() -> Any:
        async with Client(mcp_server(sources)) as client:
            return client.instructions, (await client.list_tools()).tools

    instructions, tools = asyncio.run(ask())
    assert instructions == BOUNDARY
    assert [tool.name for tool in tools] == [*TOOLS] == ["privatize", "guarantee"]
    for tool in tools:
        assert "has the original text already" in tool.description
        given = tool.input_schema["properties"]
        assert tool.input_schema["required"] == ["text", "space", "mechanism", "epsilon"]
        assert given["space"]["enum"] == ["words", "wordnet-sentences"]
        assert {"krr", "tem", "hierarchical"} <= {*given["mechanism"]["enum"]}
        assert (
            "words: krr 1 to 9, tem 1 to 9; wordnet-sentences:" in given["epsilon"]["description"]
        )


@pytest.mark.parametrize("mode", MODES)
def test_a_release_comes_with_its_guarantee(sources: dict[str, Source], mode: str) -> None:
    found = call(mcp_server(sources), "privatize", asked(f"waaa, {SECRET}!"), mode)
    assert not found.is_error
    release, plain = texts(found)
    space = sources["words"].space
    assert re.fullmatch(r"\w+, \w+!", release)
    assert all(word in space for word in re.findall(r"\w+", release))
    lines = plain.splitlines()
    assert lines == [*DxPrivatizer(space, "krr", 3.0).guarantee.plain]
    # Of krr any word is as far from any other: e^3 = 20.1, rounded upward.
    assert "any two words change by a factor of at most 21 " in lines[1]
    assert found.structured_content == {
        "released": release,
        "unit": "word",
        "in_plain_words": lines,
    }
    assert SECRET not in found.model_dump_json()


def test_a_release_has_the_law_of_the_privatizer(sources: dict[str, Source]) -> None:
    server = mcp_server(sources)
    released = texts(call(server, "privatize", asked("waaa " * 2000)))[0].split()
    mechanism = DxPrivatizer(sources["words"].space, "krr", 3.0).mechanism
    stay = float(mechanism.probabilities(mechanism.space.ids(["waaa"]))[0][0])
    low, high = binom.ppf([FALSE_ALARM / 2, 1 - FALSE_ALARM / 2], 2000, stay)
    assert low <= released.count("waaa") <= high


def test_a_pool_releases_its_sentences(sources: dict[str, Source]) -> None:
    given = asked("The soup was cold.", space="wordnet-sentences", epsilon=2.0)
    found = call(mcp_server(sources), "privatize", given | {"mechanism": "hierarchical"})
    release, plain = texts(found)
    pool = sources["wordnet-sentences"].pool
    assert pool is not None
    assert release in pool.sentences
    assert "the odds of any two sentences change" in plain


def test_a_guarantee_releases_nothing(
    sources: dict[str, Source], monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*given: Any) -> Any:
        raise AssertionError("a release was made")

    monkeypatch.setattr(DxPrivatizer, "privatize", fail)
    monkeypatch.setattr(DxPrivatizer, "__call__", fail)
    found = call(mcp_server(sources), "guarantee", asked(f"waaa {SECRET}", mechanism="tem"))
    shares, full = texts(found)
    counts = [int(count) for count in re.findall(r"(\d+) (?:stay|become)", shares)]
    assert shares.startswith("Of ten words: ")
    assert (len(counts), sum(counts)) == (3, 10)
    assert full == str(DxPrivatizer(sources["words"].space, "tem", 3.0).guarantee)
    assert SECRET not in found.model_dump_json()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({}, "expected a text, got a NoneType"),
        (asked(5), "expected a text, got a int"),
        (asked(" \n"), "expected a text with a word at least, got an empty one"),
        (asked(space="english"), "expected space to be one of 'words', 'wordnet-sentences'; got"),
        (asked(space=None), "got space=None"),
        (asked(mechanism=["krr"]), r"expected mechanism to be one of 'krr', 'tem'; got"),
        (asked(epsilon=0.5), r"expected 1.0 <= epsilon <= 9.0, got epsilon=0.5"),
        (asked(epsilon="3"), r"expected epsilon to be a number, got epsilon='3' \(str\)"),
        (asked(epsilon=None), "expected epsilon to be a number"),
    ],
)
@pytest.mark.parametrize("tool", TOOLS)
def test_what_is_wrong_is_said(
    sources: dict[str, Source], tool: str, arguments: Any, message: str
) -> None:
    found = call(mcp_server(sources), tool, arguments)
    assert found.is_error
    assert found.structured_content is None
    assert re.search(message, texts(found)[0])


def test_other_tools_are_not_there(sources: dict[str, Source]) -> None:
    found = call(mcp_server(sources), "release", asked())
    assert found.is_error
    assert "expected tool to be one of 'privatize', 'guarantee'" in texts(found)[0]


@pytest.mark.parametrize("mode", MODES)
def test_an_unforeseen_error_shows_and_logs_no_text(
    sources: dict[str, Source],
    mode: str,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    def fail(sources: Any, asked: Any) -> Any:
        raise KeyError(SECRET)

    monkeypatch.setattr(mcp, "chosen", fail)
    with caplog.at_level(logging.DEBUG):
        found = call(mcp_server(sources), "privatize", asked(SECRET), mode)
    assert found.is_error
    assert texts(found) == ["unexpected KeyError"]
    logged = [record for record in caplog.records if record.name != "asyncio"]
    assert [record for record in logged if record.name.startswith("mcp.server")] == []
    assert SECRET not in "".join(map(str, (record.getMessage() for record in logged)))


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory, euclidean_space: EmbeddingSpace) -> Path:
    """Make a folder that holds a space, "words"."""
    made = tmp_path_factory.mktemp("mcp")
    euclidean_space.save_pretrained(made / "words")
    return made


PROGRAM = [sys.executable, "-X", "utf8", "-m", "hf_dxprivacy", "demo", "--space", "words", "--mcp"]


@pytest.fixture
def page(folder: Path) -> Iterator["subprocess.Popen[str]"]:
    """Start the page with its tools."""
    process = subprocess.Popen(
        PROGRAM, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, encoding="utf-8"
    )
    yield process
    process.kill()
    process.communicate()


@pytest.mark.slow
def test_the_tools_are_beside_the_page(page: "subprocess.Popen[str]") -> None:
    assert page.stdout is not None
    said = [page.stdout.readline() for _ in range(3)]
    assert BOUNDARY in said[0]
    url = re.fullmatch(r"Open (http://127\.0\.0\.1:\d+/)\n", said[1])
    assert url is not None
    assert said[2] == f"Tools for language models (MCP) at {url[1]}mcp\n"
    for mode in MODES:
        release, _ = texts(call(f"{url[1]}mcp", "privatize", asked(f"{SECRET} waaa"), mode))
        assert len(release.split()) == 2
        assert SECRET not in release
        assert call(f"{url[1]}mcp", "privatize", asked([SECRET]), mode).is_error
    with urllib.request.urlopen(url[1], timeout=PATIENCE) as shown:
        assert b"<html" in shown.read()
    # A web page of another site that has its name point here.
    request = urllib.request.Request(f"{url[1]}mcp", b"{}", {"Host": "example.org"})
    with pytest.raises(urllib.error.HTTPError, match="421"):
        urllib.request.urlopen(request, timeout=PATIENCE)
    page.send_signal(signal.SIGINT)
    rest, _ = page.communicate(timeout=PATIENCE)
    assert page.returncode == 130
    assert SECRET not in rest
    assert rest.count("\n") == 1


@pytest.mark.slow
def test_a_host_starts_the_tools_on_the_standard_streams(folder: Path) -> None:
    command = [*PROGRAM[1:], "stdio"]
    started = StdioServerParameters(
        command=PROGRAM[0], args=command, cwd=folder, env={**os.environ}
    )
    errors = folder / "stderr.txt"
    with errors.open("w", encoding="utf-8") as log:
        server = stdio_client(started, errlog=log)
        release, plain = texts(call(server, "privatize", asked(f"{SECRET}, waaa — 🙂")))
    assert re.fullmatch(r"\w+, \w+ — \w+", release)
    assert "Factors of several words and releases multiply." in plain
    assert SECRET not in errors.read_text("utf-8")


@pytest.mark.slow
def test_nothing_is_held_of_a_call(folder: Path) -> None:
    process = subprocess.Popen(
        [sys.executable, str(Path(__file__).with_name("page_server.py")), "0", "words"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        cwd=folder,
        text=True,
    )
    try:
        assert process.stdin is not None
        assert process.stdout is not None
        url = process.stdout.readline().strip()
        given = asked(f"{SECRET} waaa")
        for mode in MODES:
            for tool in TOOLS:
                assert not call(f"{url}mcp", tool, given, mode).is_error
        count = -1
        for _ in range(50):
            process.stdin.write(f"{SECRET}\n")
            process.stdin.flush()
            count = int(process.stdout.readline())
            if not count:
                break
        assert count == 0
    finally:
        process.kill()
        process.communicate()


def test_other_ways_of_serving_are_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["demo", "--mcp", "sse"]) == 2
    assert "invalid choice: 'sse'" in capsys.readouterr().err
