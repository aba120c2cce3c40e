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

pytest.importorskip("gradio")

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
            env={**os.environ, "TMPDIR": str(folder), "GRADIO_TEMP_DIR": str(folder)},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )
        assert self.process.stdout is not None
        self.url = urlsplit(self.process.stdout.readline().strip())
        config = json.loads(self.request("GET", "/config")[1])
        (self.answer,) = (e["id"] for e in config["dependencies"] if len(e["inputs"]) == 4)

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

    def event(self, text: str, session: str) -> bytes:
        """Return the body of a request to privatize a text."""
        data = [text, "wordnet-gloss", "tem", 2.0]
        content = {"data": data, "fn_index": self.answer, "session_hash": session}
        return json.dumps(content).encode()

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


def test_nothing_is_held_after_an_answer(page: Page) -> None:
    for session in ("first", "second"):
        status, content = page.request(
            "POST", "/gradio_api/run/predict", page.event(f"{SECRET} soup", session), **JSON
        )
        assert status == 200
        assert SECRET in content.decode()
    assert page.held(SECRET) == 0


def test_nothing_is_held_of_a_client_that_leaves_before_the_answer(page: Page) -> None:
    word = "zymurgist"
    for number in range(3):
        connection = page.connection()
        body = page.event(f"{word} " * 3000, f"leaves{number}")
        connection.request("POST", "/gradio_api/run/predict", body, JSON)
        time.sleep(0.05 * number)
        connection.close()
    assert page.held(word) == 0


def test_an_answer_that_is_never_fetched_can_not_be_ordered(page: Page) -> None:
    body = page.event("quidnunc", "never")
    for path in ("/gradio_api/queue/join", "/gradio_api/call/answer", "/gradio_api/call/v2/answer"):
        assert page.request("POST", path, body, **JSON)[0] == 403
    assert page.held("quidnunc") == 0


def test_texts_at_the_same_time_do_not_disturb_each_other(page: Page) -> None:
    found: dict[int, bytes] = {}

    def ask(number: int) -> None:
        body = page.event(f"clerihew{number} " * 50, f"same{number}")
        found[number] = page.request("POST", "/gradio_api/run/predict", body, **JSON)[1]

    threads = [threading.Thread(target=ask, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for number, content in found.items():
        assert f"clerihew{number}" in content.decode()
        assert f"clerihew{(number + 1) % 4}" not in content.decode()
    assert page.held("clerihew") == 0


@pytest.mark.parametrize("size", [10, 1 << 20])
def test_files_are_refused(page: Page, size: int) -> None:
    border = "XXX"
    body = (
        f"--{border}\r\nContent-Disposition: form-data; name=files; filename=a.txt\r\n\r\n"
        f"{'z' * size}\r\n--{border}--\r\n"
    )
    status, _ = page.request(
        "POST",
        "/gradio_api/upload",
        body,
        **{"Content-Type": f"multipart/form-data; boundary={border}"},
        Origin="http://evil.example",
    )
    assert status == 403
    assert not [path for path in page.folder.rglob("*") if path.is_file()]


@pytest.mark.parametrize(
    "host", ["evil.example", "evil.example:80", "127.0.0.1.evil.example", "10.0.0.1"]
)
def test_other_hosts_are_refused(page: Page, host: str) -> None:
    for path in ("/", "/config", "/gradio_api/run/predict"):
        method, body = ("POST", page.event(SECRET, "x")) if "run" in path else ("GET", None)
        status, content = page.request(method, path, body, host, **JSON)
        assert (status, content) == (421, b"")


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost", "localhost:1", "[::1]:7860"])
def test_names_of_this_machine_are_answered(page: Page, host: str) -> None:
    assert page.request("GET", "/config", None, host)[0] == 200


def test_links_that_store_a_session_are_refused(page: Page) -> None:
    assert page.request("GET", "/gradio_api/deep_link?session_hash=first")[0] == 403


def test_a_request_without_end_is_refused(page: Page) -> None:
    with closing(page.connection()) as connection:
        connection.putrequest("POST", "/gradio_api/run/predict")
        connection.putheader("Content-Length", str(1 << 40))
        connection.endheaders()
        with connection.getresponse() as reply:
            assert reply.status == 413
