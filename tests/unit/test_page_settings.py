"""Who can reach the page."""

import pytest

from hf_dxprivacy.report.page import is_loopback


@pytest.mark.parametrize("host", ["127.0.0.1", "127.8.8.8", "::1", "localhost"])
def test_only_this_machine_reaches_the_loopback_address(host: str) -> None:
    assert is_loopback(host)


@pytest.mark.parametrize(
    "host", ["0.0.0.0", "::", "192.168.1.4", "example.org", "127.0.0.1.example.org", ""]
)
def test_others_reach_every_other_address(host: str) -> None:
    assert not is_loopback(host)
