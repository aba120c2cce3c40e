"""Texts within lists of dicts, such as the messages of chats: paths to them, out and back."""

import logging
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, islice
from typing import Any

import numpy as np

from hf_dxprivacy.errors import InvalidTypeError, InvalidValueError, describe_columns
from hf_dxprivacy.text import TextRow, is_missing

logger = logging.getLogger(__name__)

# What makes the name of a column a path, and a step into every entry of a list.
EACH = "[]"
_PATH = re.compile(r"([^.\[\]]+)((?:\[\]|\.[^.\[\]]+)+)")
# The keys that say who speaks, and those beside which a message needs no text.
_ROLE, _CALLS = ("role", "from"), ("tool_calls", "function_call")
# Names of one role in different data sets.
_TWINS = ({"user", "human"}, {"assistant", "gpt", "chatgpt", "bot", "model", "ai"})
# So many texts of other roles, with none of a named one before them, are reported once.
NOTED_TEXTS = 100


class TextPath:
    """Where the texts of a column are, such as ``messages[].content``.

    ``[]`` stands for every entry of a list, ``.key`` for a value of a dict. At the end is a text,
    a list of parts of which those with a "text" are texts, or nothing.

    Args:
        path: The path. Up to its first ``[]`` or ``.`` it is the name of the column.
        roles: The roles whose texts are covered; None for all.

    Raises:
        InvalidValueError: If it is no path.
    """

    def __init__(self, path: str, roles: tuple[str, ...] | None = None) -> None:
        found = _PATH.fullmatch(path)
        if found is None:
            raise InvalidValueError(
                f"expected a path such as 'messages[].content' (a column, [] for every entry of a "
                f"list, .key for a value of a dict), got {path!r}"
            )
        self.path, self.roles = path, roles
        self.column = found[1]
        self._steps = tuple(re.findall(r"\[\]|[^.\[\]]+", found[2]))
        # Texts of named roles and of others that this copy has read, and whether a warning was
        # given.
        self._seen = [0, 0, False]

    def __reduce__(self) -> tuple[type["TextPath"], tuple[Any, ...]]:
        # Without what was seen, on which no fingerprint may depend.
        return type(self), (self.path, self.roles)

    def __str__(self) -> str:
        return self.path

    def read(self, read_text: Callable[[str], Any], cell: Any) -> "NestedRow | None":
        """Read the texts of a cell; None for a missing cell.

        Raises:
            InvalidTypeError: If a value on the way is of another type than the path says.
            InvalidValueError: If a key on the way is missing, or `roles` does not fit the data.
        """
        if is_missing(cell):
            return None
        texts: list[Any] = []

        def keep(text: str) -> str:
            texts.append(read_text(text))
            return text

        self._replaced(cell, self._steps, None, keep)
        self._note(len(texts))
        return NestedRow(self, cell, texts)

    def replaced(self, cell: Any, new: Callable[[str], Any]) -> Any:
        """Return a copy of a cell with a new value in place of each text, and the rest as it is."""
        left = self._seen[1]
        result = self._replaced(cell, self._steps, None, new)
        self._seen[1] = left  # a text is counted once, when it is read
        return result

    def is_cell(self, value: Any) -> bool | None:
        """Tell a cell from a column of cells by its shape; None if it may be either."""
        cell, column = _fits(value, self._steps), _fits(value, (EACH, *self._steps))
        return None if (cell is False) == (column is False) else column is False

    def _replaced(
        self, value: Any, steps: tuple[str, ...], role: str | None, new: Callable[[str], Any]
    ) -> Any:
        if is_missing(value):
            return None
        if not steps:
            return self._text(value, role, new)
        step, rest = steps[0], steps[1:]
        if step == EACH:
            if not _is_list(value):
                json = "; parse JSON first" if isinstance(value, str) else ""
                raise InvalidTypeError(f"expected a list for {EACH}, got {_kind(value)}{json}")
            return [self._replaced(entry, rest, role, new) for entry in value]
        if not isinstance(value, Mapping):
            raise InvalidTypeError(f"expected a dict with the key {step!r}, got {_kind(value)}")
        if step not in value:
            if any(key in value for key in _CALLS):
                return value
            raise InvalidValueError(
                f"there is no key {step!r} in a dict: {describe_columns([*value], step, 'key')}; "
                "name the one with the text in text_column=, or give it None where there is none"
            )
        if self.roles is not None:
            role = next((value[key] for key in _ROLE if isinstance(value.get(key), str)), role)
        return {**value, step: self._replaced(value[step], rest, role, new)}

    def _text(self, value: Any, role: str | None, new: Callable[[str], Any]) -> Any:
        """Replace a text, or the texts among its parts, unless it is of another role."""
        if self.roles is not None and not self._covers(role):
            self._seen[1] += 1
            return value
        if isinstance(value, str):
            # NumPy has strings of its own, which seeded noise would tell from these.
            return new(str(value))
        if not _is_list(value):
            raise InvalidTypeError(
                f"expected a text or a list of parts at the end of the path, got {_kind(value)}"
            )
        return [self._part(part, new) for part in value]

    def _part(self, part: Any, new: Callable[[str], Any]) -> Any:
        if part is None:
            return None
        if not isinstance(part, Mapping):
            hint = f"; for a list of texts end the path with {EACH}" * isinstance(part, str)
            raise InvalidTypeError(f"expected a part of a text, a dict, got {_kind(part)}{hint}")
        if isinstance(part.get("text"), str):
            return {**part, "text": new(str(part["text"]))}
        if part.get("type") == "text" and not is_missing(part.get("text", "")):
            raise InvalidValueError(
                "there is a part of type 'text' without a 'text': "
                f"{describe_columns([*part], 'text', 'key')}; put its text under that key"
            )
        return part

    def _covers(self, role: str | None) -> bool:
        roles = self.roles or ()
        if role is None:
            raise InvalidValueError(
                f"with roles={roles} every text needs a role, and the dict of one has no "
                "'role' or 'from' with a string; give it one, or leave roles= out to cover all"
            )
        plain = role.strip().lower()
        for named in () if role in roles else roles:
            same = {named.strip().lower()}
            same = next((twins for twins in _TWINS if twins & same), same)
            if plain in same:
                raise InvalidValueError(
                    f"roles={roles} would leave texts of the role {plain!r} in clear, which is "
                    f"{named!r} by another name or in other letters; name the roles as the data do"
                )
        return role in roles

    def _note(self, covered: int) -> None:
        """Warn once if no text of a named role has occurred among many."""
        self._seen[0] += covered
        if self.roles and not any(self._seen[::2]) and self._seen[1] >= NOTED_TEXTS:
            self._seen[2] = True
            logger.warning(
                "the first %d texts at %r are of none of the roles %s, and are RELEASED AS THEY "
                "ARE; are the roles spelled as in the data?",
                *(self._seen[1], self.path, ", ".join(map(repr, self.roles))),
            )


@dataclass(frozen=True, eq=False, repr=False)
class NestedRow:
    """The texts of a cell that a path leads to, which are one row: one stream of noise, one use.

    Attributes:
        path: The path.
        cell: The cell as it came. It is never changed.
        texts: The words, or the sentences, of each text.
    """

    path: TextPath
    cell: Any
    texts: list[Any]

    @property
    def words(self) -> list[str]:
        """The words of all texts."""
        return [*self]

    def __iter__(self) -> Iterator[str]:
        return chain.from_iterable(self.texts)

    def __len__(self) -> int:
        return sum(map(len, self.texts))

    def detokenize(
        self,
        words: Sequence[str | None],
        join: Callable[[Any, list[Any]], str] = TextRow.detokenize,
    ) -> Any:
        """Return the cell with other words in the places of its own; `join` makes each text."""
        runs = zip(self.texts, self.cut(words), strict=True)
        return self.path.replaced(self.cell, lambda _: join(*next(runs)))

    def cut(self, values: Sequence[Any]) -> Iterator[list[Any]]:
        """Cut values of all words into those of each text."""
        left = iter(values)
        return ([*islice(left, len(text))] for text in self.texts)


def agree(row: Any, other: Any) -> bool:
    """Tell whether all but the texts is the same in two nested rows, or they are none."""
    if not isinstance(row, NestedRow):
        return True
    rests = [each.path.replaced(each.cell, lambda _: ...) for each in (row, other)]
    return bool(rests[0] == rests[1])


def flat(rows: Sequence[Any]) -> list[Any]:
    """Return the rows with the texts of nested ones in their places."""
    return [*chain.from_iterable(r.texts if isinstance(r, NestedRow) else (r,) for r in rows)]


def joined_masks(rows: Sequence[Any], masks: Sequence[Any]) -> list[Any]:
    """Return one mask for each row, from those of `flat(rows)`."""
    left, none = iter(masks), np.zeros(0, dtype=np.bool_)
    return [
        np.concatenate([none, *islice(left, len(row.texts))])
        if isinstance(row, NestedRow)
        else next(left)
        for row in rows
    ]


def text_paths(
    names: Sequence[str], roles: str | Sequence[str] | None
) -> tuple[tuple[str, ...], dict[str, TextPath]]:
    """Return the columns that names of columns and paths are about, and the paths by column.

    Raises:
        InvalidTypeError: If `roles` is neither a string nor several.
        InvalidValueError: If a path is malformed, two are into one column, or `roles` is for none.
    """
    given: tuple[Any, ...] = ()
    if roles is not None:
        given = (roles,) if isinstance(roles, str) else tuple(roles)
        if not given or not all(isinstance(role, str) and role for role in given):
            raise InvalidTypeError(f"expected roles to be names such as ('user',), got {roles!r}")
    found = [TextPath(name, given or None) for name in names if EACH in name]
    paths = {path.column: path for path in found}
    if len(paths) < len(found) or paths.keys() & {*names}:
        raise InvalidValueError(
            f"expected text_column to have one path into a column, got {tuple(names)}; map a "
            "second privatizer for another one"
        )
    if given and not paths:
        raise InvalidValueError(
            f"roles={given} is for texts within a column, as in text_column='messages[].content', "
            f"got {tuple(names)}"
        )
    return (*[TextPath(n).column if EACH in n else n for n in names],), paths


def _is_list(value: Any) -> bool:
    return isinstance(value, (list, tuple)) or (isinstance(value, np.ndarray) and value.ndim > 0)


def _kind(value: Any) -> str:
    """Say what a value is, for a message."""
    if isinstance(value, Mapping):
        return f"a dict: {describe_columns([*value], '', 'key')}"
    return f"a {type(value).__name__}"


def _fits(value: Any, steps: tuple[str, ...]) -> bool | None:
    """Tell whether steps lead into a value; None if it is too empty to tell."""
    if value is None:
        return None
    if not steps:
        parts = value if _is_list(value) else ()
        return isinstance(value, str) or any(isinstance(part, Mapping) for part in parts)
    if steps[0] != EACH:
        return isinstance(value, Mapping)
    if not _is_list(value):
        return False
    found = (_fits(entry, steps[1:]) for entry in value)
    return next((fits for fits in found if fits is not None), None)
