"""A pytest plugin: one Hub for the whole run, and the fixture `hub` that empties it for a test.

`huggingface_hub` and `datasets` read their environment when they are imported, so the server starts
before any test module is: when pytest is configured, in each process of pytest-xdist anew. Code
under test then finds this Hub as it would find any other, with nothing passed to it.
"""

import os
import shutil
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import pytest

from hub_server.server import HubServer

_HUB = pytest.StashKey[HubServer]()


def pytest_configure(config: pytest.Config) -> None:
    """Start the server and let `huggingface_hub` find it."""
    folder = tempfile.TemporaryDirectory(prefix="hub-")
    config.add_cleanup(folder.cleanup)
    hub = config.stash[_HUB] = HubServer(Path(folder.name))
    hub.start()
    config.add_cleanup(hub.stop)
    patch = pytest.MonkeyPatch()
    config.add_cleanup(patch.undo)
    for name, value in hub.environment.items():
        patch.setenv(name, value)
    # The client uploads with `data=`, of which its own HTTP library warns.
    config.addinivalue_line(
        "filterwarnings", "ignore:Use 'content=<...>' to upload raw bytes:DeprecationWarning"
    )
    from huggingface_hub import constants, file_download
    from huggingface_hub.utils import _http

    if constants.ENDPOINT != hub.url:
        raise pytest.UsageError(
            "huggingface_hub was imported before the plugin hub_server.fixtures"
        )
    # The client tries again as often as ever, and waits a hundredth of its time in between.
    hasty = SimpleNamespace(**{**vars(time), "sleep": lambda seconds: time.sleep(seconds / 100)})
    for module in (_http, file_download):
        patch.setattr(module, "time", hasty)


@pytest.fixture
def hub(request: pytest.FixtureRequest) -> Iterator[HubServer]:
    """An empty Hub that the client in this process reaches, and the client's empty cache."""
    server = request.config.stash[_HUB]
    server.reset()
    shutil.rmtree(os.environ["HF_HUB_CACHE"], ignore_errors=True)
    yield server
    assert not server.errors
