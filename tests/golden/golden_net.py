"""The sections of the golden net, computed one by one and kept in one file.

A case is one key of ``golden.json``, such as "texts/wordnet-gloss/tem/dict". A deliberate change of
an output is made visible by computing the file anew: ``python tests/golden/update.py``.
"""

import json
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any
from unittest import mock

import pyarrow as pa

from golden_cases import (
    KEY,
    SEED,
    Case,
    digest,
    guarantees,
    identities,
    measurements,
    names,
    options,
    peers,
    privatizer,
    samples_of,
    slots_of,
    texts_of,
    tokens_of,
)
from golden_files import artifacts, program, reloaded
from golden_spaces import Law, euclidean_space, laws, poincare_space, spaces, texts
from hf_dxprivacy import EmbeddingSpace
from hf_dxprivacy.distributed import privatize_ray

FILE = Path(__file__).with_name("golden.json")

# These are kept as they read, so that a change of theirs can be read too.
READABLE = ("guarantees", "names", "measurements")


def _of_spaces(cases: Callable[..., Iterator[Case]]) -> Callable[[Path], Iterator[Case]]:
    def section(folder: Path) -> Iterator[Case]:
        del folder
        for name, space in spaces():
            yield from cases(name, space)

    return section


def _alone(cases: Callable[[], Iterator[Case]]) -> Callable[[Path], Iterator[Case]]:
    def section(folder: Path) -> Iterator[Case]:
        del folder
        yield from cases()

    return section


class _Dataset:
    """As much of a Ray Data set as one table needs, without a cluster."""

    def __init__(self, table: pa.Table) -> None:
        self.table = table

    def __getattr__(self, name: str) -> Callable[..., "_Dataset"]:
        # A query over the ids: it is answered by `take`.
        return lambda *arguments, **named: self

    def schema(self) -> pa.Schema:
        return self.table.schema

    def take(self, limit: int = 20) -> list[Any]:
        del limit
        return []

    def map_batches(
        self, job: Any, *, fn_constructor_args: tuple[Any, ...] = (), **more: Any
    ) -> "_Dataset":
        del more
        return _Dataset(job(*fn_constructor_args)(self.table)) if fn_constructor_args else self


def jobs() -> Iterator[Case]:
    """Yield the releases of `privatize_ray`, without a cluster."""
    data = ModuleType("ray.data")
    ray = ModuleType("ray")
    vars(data).update(Dataset=_Dataset)
    vars(ray).update(data=data, cluster_resources=lambda: {"CPU": 1})
    with mock.patch.dict(sys.modules, {"ray": ray, "ray.data": data}):
        for name, space in (("euclidean", euclidean_space()), ("poincare", poincare_space())):
            for law in laws(space):
                for key, released in _jobs_of(space, law):
                    yield f"{name}/{law.label}/{key}", released.table.to_pydict()


def _jobs_of(space: EmbeddingSpace, law: Law) -> Iterator[tuple[str, Any]]:
    cells = texts(space)
    keys = [f"r{row}" for row in range(len(cells))]
    dataset: Any = _Dataset(pa.table({"key": keys, "n": range(len(cells)), "text": cells}))
    seeded = privatizer(space, law, seed=SEED)
    yield "whole-numbers", privatize_ray(dataset, seeded, id_column="n")
    yield "strings", privatize_ray(dataset, seeded, id_column="key")
    memoized = privatizer(space, law, memoize="row", key=KEY)
    yield "memoize-row", privatize_ray(dataset, memoized)


SECTIONS: dict[str, Callable[[Path], Iterator[Case]]] = {
    "texts": _of_spaces(texts_of),
    "samples": _of_spaces(samples_of),
    "tokens": _of_spaces(tokens_of),
    "slots": _of_spaces(slots_of),
    "options": _alone(options),
    "jobs": _alone(jobs),
    "identities": _alone(identities),
    "peers": _alone(peers),
    "program": program,
    "artifacts": artifacts,
    "reloaded": reloaded,
    "guarantees": guarantees,
    "measurements": _alone(measurements),
    "names": _alone(names),
}


def compute(section: str, folder: Path) -> dict[str, Any]:
    """Compute the cases of a section.

    Args:
        section: A key of `SECTIONS`.
        folder: An empty folder to work in.

    Returns:
        By key, what is kept: a digest, or in the readable sections the value.
    """
    keep = (lambda value: value) if section in READABLE else digest
    found = {f"{section}/{key}": keep(value) for key, value in SECTIONS[section](folder)}
    json_ready: dict[str, Any] = json.loads(json.dumps(found))
    return json_ready


def stored(section: str) -> dict[str, Any]:
    """Return the cases of a section as they are kept."""
    cases = json.loads(FILE.read_text(encoding="utf-8"))
    return {key: value for key, value in cases.items() if key.startswith(f"{section}/")}
