"""What the package releases, writes and promises stays as it is, unless it is meant to change."""

from pathlib import Path

import faiss
import pytest

from golden_net import SECTIONS, compute, stored

# An index has other bytes, and so another digest, from one version of faiss to the next.
FAISS = "1.15.1"
OF_AN_INDEX = ("artifacts/space/config.json", "artifacts/space/index.faiss")

UPDATE = "if that is meant: python tests/golden/update.py, and the reason in the commit"


@pytest.mark.parametrize("section", SECTIONS)
def test_nothing_changes_unnoticed(section: str, tmp_path: Path) -> None:
    before, after = stored(section), compute(section, tmp_path)
    changed = sorted(key for key in before.keys() & after.keys() if before[key] != after[key])
    if faiss.__version__ != FAISS:
        changed = [key for key in changed if key not in OF_AN_INDEX]
    shown = [f"changed {key}" for key in changed]
    shown += [f"gone    {key}" for key in sorted(before.keys() - after.keys())]
    shown += [f"new     {key}" for key in sorted(after.keys() - before.keys())]
    assert not shown, "\n".join([f"{len(shown)} golden cases; {UPDATE}", *shown])


def test_no_two_releases_share_their_noise() -> None:
    cases = stored("identities")
    by_law: dict[str, list[str]] = {}
    for key, value in cases.items():
        by_law.setdefault(key.rpartition("/")[0], []).append(value)
    assert len(by_law) == 16
    for law, values in by_law.items():
        assert len(set(values)) == len(values) > 10, f"two releases of {law} are one"
