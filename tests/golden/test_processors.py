"""Seeded releases and written files do not depend on the processor; `scripts/processors.py`."""

import json
from pathlib import Path

from machine import as_processor
from programs import PATH, ROOT, run_python
from small_pools import small_pool, small_words

PROGRAM = Path(__file__).with_name("processors_program.py")
SEARCHED = f"{PATH}:{ROOT / 'tests'}"


def test_releases_and_files_are_the_same_on_every_processor(tmp_path: Path) -> None:
    small_pool(small_words(tmp_path / "words")).save_pretrained(tmp_path / "pool")
    found = {}
    for name, settings in {
        "this": as_processor(),
        "Haswell": as_processor("Haswell", "AVX-512", "avx2", threads=2),
        "Nehalem": as_processor("Nehalem", "AVX2", "generic"),
    }.items():
        folder = tmp_path / name
        folder.mkdir()
        cache = str(tmp_path / f"{name}-cache")
        settings |= {"HF_DXPRIVACY_CACHE": cache, "PYTHONPATH": SEARCHED}
        found[name] = json.loads(run_python(PROGRAM, tmp_path / "pool", folder=folder, **settings))
    first = found["this"]
    assert len(first) > 130
    for name, others in found.items():
        assert [key for key in first if others.get(key) != first[key]] == [], name
