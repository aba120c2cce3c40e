"""Who can reach the page, and what it says when something is wrong."""

import pytest

from hf_dxprivacy.report import demo
from hf_dxprivacy.report.demo import answered, is_loopback
from hf_dxprivacy.spaces import EmbeddingSpace


@pytest.mark.parametrize("host", ["127.0.0.1", "127.8.8.8", "::1", "localhost"])
def test_only_this_machine_reaches_the_loopback_address(host: str) -> None:
    assert is_loopback(host)


@pytest.mark.parametrize(
    "host", ["0.0.0.0", "::", "192.168.1.4", "example.org", "127.0.0.1.example.org", ""]
)
def test_others_reach_every_other_address(host: str) -> None:
    assert not is_loopback(host)


def test_what_a_mechanism_refuses_is_said(poincare_space: EmbeddingSpace) -> None:
    shown = answered("waaa", poincare_space, "hyperbolic", 0.5)
    assert 'role="alert"' in shown
    assert "the Riemannian Laplace noise exists only for epsilon &gt; (n-1)/scale = 6" in shown
    assert "<mark" not in shown


def test_an_error_that_nobody_foresaw_does_not_quote_the_text(
    euclidean_space: EmbeddingSpace, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(text: str, mechanism: object) -> None:
        raise RuntimeError(text)

    monkeypatch.setattr(demo, "release_text", fail)
    shown = answered("xylographer", euclidean_space, "tem", 1.0)
    assert "unexpected RuntimeError" in shown
    assert "xylographer" not in shown
