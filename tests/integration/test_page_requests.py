"""Requests to the demo page: which are refused, and that nothing is kept of a text."""

import http.client
import json
import os
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

pytest.importorskip("uvicorn")

from machine import PATIENCE

SECRET = "xylographer"


class Page:
    """The demo page in a process of its own."""

    def __init__(self, folder: Path) -> None:
        with socket.socket() as listener:
            listener.bind(("127.0.0.1", 0))
            port = listener.getsockname()[1]
        self.folder = folder
        self.process = subprocess.Popen(
            [sys.executable, str(Path(__file__).with_name("page_server.py")), str(port)],
            env={**os.environ, "TMPDIR": str(folder)},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )
        assert self.process.stdout is not None
        self.url = urlsplit(self.process.stdout.readline().strip())

    def connection(self) -> http.client.HTTPConnection:
        """Return a connection to the page, not open yet."""
        return http.client.HTTPConnection("127.0.0.1", self.url.port, timeout=PATIENCE)

    def request(
        self, method: str, path: str, body: Any = None, host: str = "", **headers: str
    ) -> tuple[int, bytes]:
        """Return status and content of the answer to a request."""
        with closing(self.connection()) as connection:
            headers = {"Host": host or self.url.netloc, **headers}
            connection.request(method, path, body, headers)
            with connection.getresponse() as reply:
                return reply.status, reply.read()

    def event(self, text: str) -> bytes:
        """Return the body of a request to privatize a text."""
        choice = {"source": "wordnet-gloss", "mechanism": "tem", "epsilon": 2.0}
        return json.dumps({"text": text, "choices": [choice], **choice}).encode()

    def held(self, text: str) -> int:
        """Return in how many objects a text is held, waiting for work that is under way."""
        count = -1
        for _ in range(50):
            assert self.process.stdin is not None
            assert self.process.stdout is not None
            self.process.stdin.write(f"{text}\n")
            self.process.stdin.flush()
            count = int(self.process.stdout.readline())
            if count == 0:
                break
            time.sleep(0.2)
        return count


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Page]:
    served = Page(tmp_path_factory.mktemp("page"))
    yield served
    served.process.kill()
    served.process.communicate()


JSON = {"Content-Type": "application/json"}


@pytest.mark.parametrize("path", ["/release", "/shares"])
def test_nothing_is_held_after_an_answer(page: Page, path: str) -> None:
    for _ in range(2):
        status, content = page.request("POST", path, page.event(f"{SECRET} soup"), **JSON)
        assert status == 200
        assert (SECRET in content.decode()) == (path == "/release")
    assert page.held(SECRET) == 0


def test_nothing_is_held_of_a_client_that_leaves_before_the_answer(page: Page) -> None:
    word = "zymurgist"
    for number in range(3):
        connection = page.connection()
        connection.request("POST", "/release", page.event(f"{word} " * 3000), JSON)
        time.sleep(0.05 * number)
        connection.close()
    assert page.held(word) == 0


@pytest.mark.parametrize("body", [b"quidnunc", b'"quidnunc"', b'{"text": "quidnunc"}', b"\xff"])
def test_what_the_page_never_asks_is_answered_without_the_text(page: Page, body: bytes) -> None:
    for path in ("/release", "/shares"):
        status, content = page.request("POST", path, body, **JSON)
        assert status in (200, 400)
        assert b"quidnunc" not in content
    assert page.held("quidnunc") == 0


def test_values_that_are_nested_too_deeply_are_refused(page: Page) -> None:
    for path in ("/release", "/shares"):
        assert page.request("POST", path, b"[" * 200_000, **JSON) == (400, b"")


def test_texts_at_the_same_time_do_not_disturb_each_other(page: Page) -> None:
    found: dict[int, bytes] = {}

    def ask(number: int) -> None:
        body = page.event(f"clerihew{number} " * 50)
        found[number] = page.request("POST", "/release", body, **JSON)[1]

    threads = [threading.Thread(target=ask, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for number, content in found.items():
        assert f"clerihew{number}" in content.decode()
        assert f"clerihew{(number + 1) % 4}" not in content.decode()
    assert page.held("clerihew") == 0


@pytest.mark.parametrize("kind", ["text/plain", "application/x-www-form-urlencoded", ""])
def test_what_a_page_of_another_site_may_send_is_refused(page: Page, kind: str) -> None:
    headers = {"Content-Type": kind, "Origin": "http://evil.example"}
    assert page.request("POST", "/release", page.event("x"), **headers) == (403, b"")


def test_there_is_no_other_way_in(page: Page) -> None:
    for method in ("PUT", "DELETE", "GET"):
        assert page.request(method, "/release", page.event("x"), **JSON)[0] == 405
    assert page.request("GET", "/../page.html")[0] == 404


def test_the_browser_is_told_to_ask_nobody_else(page: Page) -> None:
    with closing(page.connection()) as connection:
        connection.request("GET", "/")
        with connection.getresponse() as reply:
            policy = reply.headers["Content-Security-Policy"]
            assert reply.headers["Cache-Control"] == "no-store"
    assert "default-src 'none'; script-src 'self'" in policy
    assert "unsafe" not in policy
    assert "http" not in policy


@pytest.mark.parametrize(
    "host", ["evil.example", "evil.example:80", "127.0.0.1.evil.example", "10.0.0.1"]
)
def test_other_hosts_are_refused(page: Page, host: str) -> None:
    for path in ("/", "/page.js", "/release"):
        method, body = ("POST", page.event(SECRET)) if path == "/release" else ("GET", None)
        status, content = page.request(method, path, body, host, **JSON)
        assert (status, content) == (421, b"")


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost", "localhost:1", "[::1]:7860"])
def test_names_of_this_machine_are_answered(page: Page, host: str) -> None:
    assert page.request("GET", "/", None, host)[0] == 200


def test_a_request_without_end_is_refused(page: Page) -> None:
    with closing(page.connection()) as connection:
        connection.putrequest("POST", "/release")
        connection.putheader("Content-Type", "application/json")
        connection.putheader("Content-Length", str(1 << 40))
        connection.endheaders()
        with connection.getresponse() as reply:
            assert reply.status == 413
