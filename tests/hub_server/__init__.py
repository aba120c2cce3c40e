"""A Hugging Face Hub on the loopback interface, for tests that drive the real client over HTTP.

It is written from what `huggingface_hub` 2.4 can be seen to send and to read. Nothing of the client
is replaced: `HF_ENDPOINT` points to this server, as it would point to any other Hub.

Files travel by plain Git LFS. Downloads follow the server here: without an ``X-Xet-Hash`` header
the client never asks Xet storage. Uploads do not: a client with `hf_xet` installed takes Xet for
every large file whatever the server answers, and only ``HF_HUB_DISABLE_XET=1`` stops it, which
`HubServer.environment` therefore sets.

Large files are redirected to the same server under the name ``localhost``. The client must see
another origin there, as it does with the Hub's CDN: a redirect within one origin it would follow,
and then look for the commit among the headers of the wrong answer.
"""

from hub_server.faults import Fault
from hub_server.server import HubServer

__all__ = ["Fault", "HubServer"]
