"""Schema metadata of a release: types of columns stay, what may hold or describe text goes."""

import json
from collections.abc import Collection
from typing import Any

# Of what pandas writes; its "attributes" are anything that the user has put there.
_PANDAS = ("index_columns", "column_indexes", "columns", "creator", "pandas_version")


def released_metadata(schema: Any, outputs: Collection[str]) -> dict[str, str] | None:
    """Return the metadata that the schema of a release keeps.

    These are the types that pandas and `datasets` restore, and no others: fingerprints, ``attrs``,
    and everything about the columns that are released, such as the number of distinct originals,
    are left out.

    Args:
        schema: A `pyarrow.Schema`.
        outputs: Columns that hold released text. Readers infer their types.
    """
    given = schema.metadata or {}
    kept: dict[str, str] = {}
    if isinstance(pandas := _parsed(given.get(b"pandas")), dict):
        pandas = {key: pandas[key] for key in _PANDAS if key in pandas}
        pandas["columns"] = [
            _plain(column) if column.get("name") in outputs else column
            for column in pandas.get("columns", [])
        ]
        kept["pandas"] = json.dumps(pandas)
    if isinstance(hub := _parsed(given.get(b"huggingface")), dict):
        features = (hub.get("info") or {}).get("features") or {}
        others = {name: kind for name, kind in features.items() if name not in outputs}
        kept["huggingface"] = json.dumps({"info": {"features": others}})
    return kept or None


def _plain(column: dict[str, Any]) -> dict[str, Any]:
    """Return what pandas says of a column of texts, whatever it said of the original."""
    names = {key: column.get(key) for key in ("name", "field_name")}
    return {**names, "pandas_type": "unicode", "numpy_type": "object", "metadata": None}


def _parsed(value: bytes | None) -> Any:
    try:
        return json.loads(value or b"null")
    except ValueError:
        return None
