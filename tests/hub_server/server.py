"""The server: a `Hub` behind a socket."""

import io
import os
import subprocess
import sys
import textwrap
import threading
from collections.abc import Iterator, Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import parse_qsl

from hub_server import repositories, transfers  # noqa: F401  (they register their routes)
from hub_server.faults import Fault, Faults
from hub_server.hub import Hub
from hub_server.messages import Answer, HubError, Request
from hub_server.routes import respond
from machine import PATIENCE

CHUNK = 1 << 20


class HubServer(Hub):
    """A Hub that answers over HTTP on the loopback interface while it is started.

    Attributes:
        faults: What is to go wrong.
        errors: Failures of the server itself; there should be none.
        home: The client's folder, with its cache.
    """

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self.faults = Faults()
        self.errors: list[Exception] = []
        self.home = folder / "home"
        self.stopped = threading.Event()
        self._port = 0
        self._listener: _Listener | None = None

    def __enter__(self) -> "HubServer":
        self.start()
        return self

    def __exit__(self, *error: object) -> None:
        self.stop()

    def start(self) -> None:
        """Listen; on a free port the first time, and on the same one ever after."""
        if self._listener is None:
            self.stopped.clear()
            self._listener = _Listener(self, self._port)
            self._port = self._listener.server_address[1]
            self.url = f"http://127.0.0.1:{self._port}"
            self.cdn_url = f"http://localhost:{self._port}"
            loop = self._listener.serve_forever
            threading.Thread(target=loop, args=(0.02,), daemon=True).start()

    def stop(self) -> None:
        """Refuse connections from now on."""
        if self._listener is not None:
            self.stopped.set()
            self._listener.shutdown()
            self._listener.server_close()
            self._listener = None

    def reset(self) -> None:
        """Return to the state of a new server, on the same port."""
        self.start()
        self.faults.clear()
        self.errors.clear()
        self.repos.clear()
        self.blobs.clear()
        self.requests.clear()
        self.bodies = None

    @property
    def environment(self) -> dict[str, str]:
        """The variables with which a client reaches this server and nothing else.

        The client reads most of them when it is imported, so they have to be set before.
        """
        return {
            "HF_ENDPOINT": self.url,
            "HF_HOME": str(self.home),
            "HF_HUB_CACHE": str(self.home / "hub"),
            "HF_TOKEN_PATH": str(self.home / "token"),
            "HF_TOKEN": "",
            "HUGGING_FACE_HUB_TOKEN": "",
            "HF_HUB_OFFLINE": "0",
            "HF_HUB_DISABLE_XET": "1",
            "HF_HUB_DISABLE_TELEMETRY": "1",
            "HF_HUB_DISABLE_PROGRESS_BARS": "1",
            "HF_UPDATE_DOWNLOAD_COUNTS": "0",
            "no_proxy": "127.0.0.1,localhost",
        }

    def run(
        self, code: str, env: Mapping[str, str] | None = None
    ) -> subprocess.CompletedProcess[str]:
        """Run Python code in a process of its own that reaches this server.

        Args:
            code: The code; it may be indented as a whole.
            env: Variables beside those of `environment`, or other values for them.
        """
        return subprocess.run(
            [sys.executable, "-c", textwrap.dedent(code)],
            env={**os.environ, **self.environment, **(env or {})},
            capture_output=True,
            text=True,
            timeout=PATIENCE,
            check=False,
        )


def _failing(status: int) -> Answer:
    return HubError(status, "This answer is a fault").answer


class _Listener(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 64

    def __init__(self, hub: HubServer, port: int) -> None:
        self.hub = hub
        super().__init__(("127.0.0.1", port), _Handler)

    def handle_error(self, request: object, client_address: object) -> None:
        error = sys.exc_info()[1]
        # A client may leave whenever it likes, and some faults make it.
        if isinstance(error, Exception) and not isinstance(error, ConnectionError):
            self.hub.errors.append(error)


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: _Listener

    def handle_one_request(self) -> None:
        """Answer one request and hang up, so that no connection outlives the server."""
        self.raw_requestline = self.rfile.readline(65537)
        if self.raw_requestline and self.parse_request():
            self.close_connection = True
            self._answer(self.path.partition("?"))

    def _answer(self, target: tuple[str, str, str]) -> None:
        hub, (path, _, query) = self.server.hub, target
        hub.requests.append((self.command, path))
        fault = hub.faults.take(self.command, path)
        if fault.delay:
            hub.stopped.wait(fault.delay)
        body = self._body(fault.cut_upload_after)
        if hub.bodies is not None and int(self.headers.get("Content-Length", 0)):
            content = b"".join(body)
            hub.bodies.append((self.command, path, content))
            body = iter([content])
        request = Request(self.command, path, dict(parse_qsl(query)), self.headers, body)
        try:
            answer = respond(hub, request) if fault.status is None else _failing(fault.status)
        except Exception as error:
            if isinstance(error, ConnectionError):
                raise
            hub.errors.append(error)
            answer = _failing(501)
        for _ in body:
            pass
        self._send(answer, fault)

    def _body(self, cut_after: int | None) -> Iterator[bytes]:
        """Yield the body of the request; none of the client's ways to send one is chunked."""
        left = length = int(self.headers.get("Content-Length", 0))
        if cut_after is not None:
            left = min(length, cut_after)
        while left:
            chunk = self.rfile.read(min(CHUNK, left))
            if not chunk:
                raise ConnectionResetError("the client left")
            left -= len(chunk)
            yield chunk
        if cut_after is not None and cut_after < length:
            raise ConnectionAbortedError("cut as the test wants it")

    def _send(self, answer: Answer, fault: Fault) -> None:
        size = len(answer.body) if isinstance(answer.body, bytes) else answer.body.stat().st_size
        answer, start, stop = transfers.part_of(answer, self.headers.get("Range"), size)
        if fault.keep is not None:
            stop = min(stop, start + fault.keep)
        self.send_response_only(answer.status)
        for name, value in {**answer.headers, "Content-Length": stop - start}.items():
            self.send_header(name, str(value))
        self.send_header("Connection", "close")
        self.end_headers()
        if self.command != "HEAD":
            self._send_body(answer.body, start, stop, fault)

    def _send_body(self, body: bytes | Path, start: int, stop: int, fault: Fault) -> None:
        sent = stop if fault.cut_after is None else min(stop, start + fault.cut_after)
        with io.BytesIO(body) if isinstance(body, bytes) else body.open("rb") as file:
            file.seek(start)
            while start < sent:
                chunk = file.read(min(CHUNK, sent - start))
                start += len(chunk)
                if fault.alter and start == stop:
                    chunk = chunk[:-1] + bytes([chunk[-1] ^ 1])
                self.wfile.write(chunk)
