"""Texts within lists of dicts, such as the messages of chats: paths to them, out and back."""

import logging
import re
from collections.abc import Callable, Iterator, Mapping, Sequence, Sized
from dataclasses import dataclass
from itertools import accumulate, chain, islice, pairwise
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
# The keys whose strings name something, and say nothing.
_NAMING = {*_ROLE, "type", "name", "id", "tool_call_id", "media_type", "cache_control"}
# Names of one role in different data sets.
_TWINS = ({"user", "human"}, {"assistant", "gpt", "chatgpt", "bot", "model", "ai"})
# Types of values that are not missing.
_USUAL = (str, dict, list)
# Where texts are: a list or dict, and the index or key there.
Places = list[tuple[Any, Any]]
# So many texts of other roles, with none of a named one before them, are reported once.
NOTED_TEXTS = 10


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
        # Texts of named roles, and of others, that this copy has read, and the warnings it gave.
        self.covered = self.left = 0
        self._told: set[str] = set()

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
        root, places = self.copied(cell, count=True)
        texts = [read_text(into[key]) for into, key in places]
        self._note(len(texts))
        return NestedRow(self, cell, texts, [(root, places)])

    def replaced(self, cell: Any, new: Callable[[str], Any]) -> Any:
        """Return a copy of a cell with a new value in place of each text, and the rest as it is."""
        root, places = self.copied(cell)
        for into, key in places:
            into[key] = new(into[key])
        return root[0]

    def copied(self, cell: Any, count: bool = False) -> "tuple[list[Any], Places]":
        """Return a copy of a cell in a list, and the places of its texts.

        Args:
            cell: The cell.
            count: Whether its texts count, which they do once, when they are read.
        """
        root: list[Any] = [None]
        places: Places = []
        left = self.left
        self._copy(cell, 0, None, root, 0, places)
        if not count:
            self.left = left
        return root, places

    def is_cell(self, value: Any) -> bool | None:
        """Tell a cell from a column of cells by its shape; None if it may be either."""
        cell, column = _fits(value, self._steps), _fits(value, (EACH, *self._steps))
        return None if (cell is False) == (column is False) else column is False

    def _copy(
        self, value: Any, at: int, role: str | None, into: Any, key: Any, places: "Places"
    ) -> None:
        """Put a copy of a value, to which the steps before `at` led, into a list or dict."""
        if type(value) not in _USUAL and is_missing(value):
            return
        if at == len(self._steps):
            into[key] = self._text(value, role, into, key, places)
            return
        step = self._steps[at]
        if step == EACH:
            if not _is_list(value):
                json = "; parse JSON first" if isinstance(value, str) else ""
                raise InvalidTypeError(f"expected a list for {EACH}, got {_kind(value)}{json}")
            into[key] = self._entries(value, at, role, places)
            return
        if not isinstance(value, Mapping):
            raise InvalidTypeError(f"expected a dict with the key {step!r}, got {_kind(value)}")
        if step not in value:
            # Of no call ("tool_calls": None) the text has another key.
            if _calls(value):
                into[key] = value
                return
            raise InvalidValueError(
                f"there is no key {step!r} in a dict: {describe_columns([*value], step, 'key')}; "
                "name the one with the text in text_column=, or give it None where there is none"
            )
        if self.roles is not None:
            role = next((value[name] for name in _ROLE if isinstance(value.get(name), str)), role)
        into[key] = inner = {**value, step: None}
        self._copy(value[step], at + 1, role, inner, step, places)
        # Rows of Arrow have the keys of all rows, so that a text under another key shows here only.
        is_text = at + 1 == len(self._steps) and not _calls(value)
        if is_text and is_missing(value[step]) and (self.roles is None or role in self.roles):
            self._note_strings(value)

    def _entries(self, values: Any, at: int, role: str | None, places: "Places") -> list[Any]:
        """Copy the entries of a list."""
        made: list[Any] = [None] * len(values)
        last = self._steps[at + 1] if at + 2 == len(self._steps) else None
        for place, entry in enumerate(values):
            # A short way for most messages; all others go the one that is for any entry.
            if last is not None and type(entry) is dict and type(entry.get(last)) is str:
                if self.roles is None or entry.get("role") in self.roles:
                    made[place] = inner = entry.copy()
                    places.append((inner, last))
                    continue
            self._copy(entry, at + 1, role, made, place, places)
        return made

    def _text(self, value: Any, role: str | None, into: Any, key: Any, places: "Places") -> Any:
        """Return a text, or a copy of a list of parts, and note where texts are to be replaced."""
        if self.roles is not None and not self._covers(role):
            self.left += 1
            return value
        if isinstance(value, str):
            places.append((into, key))
            # NumPy has strings of its own, which seeded noise would tell from these.
            return str(value)
        if not _is_list(value):
            raise InvalidTypeError(
                f"expected a text or a list of parts at the end of the path, got {_kind(value)}"
            )
        return [self._part(part, places) for part in value]

    def _part(self, part: Any, places: "Places") -> Any:
        if part is None:
            return None
        if not isinstance(part, Mapping):
            hint = f"; for a list of texts end the path with {EACH}" * isinstance(part, str)
            raise InvalidTypeError(f"expected a part of a text, a dict, got {_kind(part)}{hint}")
        if isinstance(part.get("text"), str):
            made = {**part, "text": str(part["text"])}
            places.append((made, "text"))
            return made
        if not is_missing(part.get("text")):
            raise InvalidTypeError(
                "expected the 'text' of a part to be a string, got "
                f"{_kind(part['text'])}; put the string itself under that key"
            )
        kind = part.get("type")
        if kind == "text" and ("text" not in part or _says(part)):
            raise InvalidValueError(
                "there is a part of type 'text' without a 'text': "
                f"{describe_columns([*part], 'text', 'key')}; put its text under that key"
            )
        if not (isinstance(kind, str) and ("image" in kind or "video" in kind)):
            self._note_strings(part)
        return part

    def _note_strings(self, value: Mapping[str, Any]) -> None:
        """Warn once of strings beside a text that is missing."""
        if "parts" not in self._told and _says(value):
            self._told.add("parts")
            logger.warning(
                "there are messages or parts at %r without a text, but with other strings, such as "
                "results of tools, refusals, or a text under another key; they are RELEASED AS "
                "THEY ARE; remove them first, or put the text under the key of the path",
                self.path,
            )

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
            if plain in same or plain.rstrip("s") == named.strip().lower().rstrip("s"):
                raise InvalidValueError(
                    f"roles={roles} would leave texts of the role {plain!r} in clear, which is "
                    f"{named!r} by another name or in other letters; name the roles as the data do"
                )
        return role in roles

    def _note(self, covered: int) -> None:
        """Warn once if no text of a named role has occurred among many."""
        self.covered += covered
        silent = self.roles is None or self.covered or "roles" in self._told
        if not silent and self.left >= NOTED_TEXTS:
            self._told.add("roles")
            logger.warning(
                "the first %d texts at %r are of none of the roles %s, and are RELEASED AS THEY "
                "ARE; are the roles spelled as in the data?",
                self.left,
                self.path,
                listed(self.roles or ()),
            )


@dataclass(frozen=True, eq=False, repr=False, slots=True)
class NestedRow:
    """The texts of a cell that a path leads to, which are one row: one stream of noise, one use.

    Attributes:
        path: The path.
        cell: The cell as it came. It is never changed.
        texts: The words, or the sentences, of each text.
        copies: A copy of the cell and the places of its texts, for one use.
    """

    path: TextPath
    cell: Any
    texts: list[Any]
    copies: list[tuple[list[Any], Places]]

    @property
    def words(self) -> list[str]:
        """The words of all texts."""
        return [word for text in self.texts for word in text]

    def __iter__(self) -> Iterator[str]:
        return chain.from_iterable(self.texts)

    def __len__(self) -> int:
        return sum(map(len, self.texts))

    def detokenize(
        self,
        words: Sequence[str | None],
        join: Callable[[Any, Sequence[Any]], str] = TextRow.detokenize,
    ) -> Any:
        """Return the cell with other words in the places of its own; `join` makes each text."""
        root, places = self.copies.pop() if self.copies else self.path.copied(self.cell)
        start = 0
        for (into, key), text in zip(places, self.texts, strict=True):
            stop = start + len(text)
            into[key] = join(text, words[start:stop])
            start = stop
        return root[0]

    def cut(self, values: Sequence[Any]) -> Iterator[Sequence[Any]]:
        """Cut values of all words into those of each text."""
        ends = [*accumulate(map(len, self.texts), initial=0)]
        return (values[start:end] for start, end in pairwise(ends))


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


def none_covered(path: str, roles: Sequence[str], left: str) -> InvalidValueError:
    """Return the error that no text is of one of the roles."""
    return InvalidValueError(
        f"no text with a word at {path!r} is of the roles {listed(roles)}, in {left}, so that all "
        "would be released as they are; are the roles spelled as in the data?"
    )


def listed(roles: Sequence[str]) -> str:
    """Return the names of roles for a message."""
    return ", ".join(map(repr, roles))


def _is_list(value: Any) -> bool:
    return isinstance(value, (list, tuple)) or (isinstance(value, np.ndarray) and value.ndim > 0)


def _calls(value: Mapping[str, Any]) -> bool:
    """Tell whether a message makes a call, which stands for its text."""
    calls = [value.get(name) for name in _CALLS]
    return any(isinstance(call, Sized) and len(call) > 0 for call in calls)


def _says(value: Any) -> bool:
    """Tell whether a value holds strings, apart from names and ids."""
    if isinstance(value, Mapping):
        return any(_says(inner) for key, inner in value.items() if key not in _NAMING)
    if _is_list(value):
        return any(map(_says, value))
    return isinstance(value, str) and bool(value.strip())


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
