"""Texts within lists of dicts, such as the messages of chats: paths to them, out and back."""

import logging
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate, chain, islice, pairwise, permutations
from typing import Any

import numpy as np

from hf_dxprivacy.errors import (
    InvalidTypeError,
    InvalidValueError,
    describe_columns,
    is_plain,
    require_one_of,
)
from hf_dxprivacy.text import TextRow, is_missing

logger = logging.getLogger(__name__)

# What makes the name of a column a path, and a step into every entry of a list.
EACH = "[]"
# What stands between several paths into one column.
AND = " + "
_PATH = re.compile(r"([^.\[\]]+)((?:\[\]|\.[^.\[\]]+)+)")
# The keys that say who speaks, and those of calls, beside which a message needs no text.
_ROLE, _CALLS = ("role", "from"), ("tool_calls", "function_call")
# Types of parts that are calls.
_CALL_PARTS = ("tool_use", "server_tool_use", "tool_call", "function_call")
# The keys whose strings name something, and say nothing.
_NAMING = {*_ROLE, "type", "name", "id", "tool_call_id", "media_type", "cache_control"}
# Names of one role in different data sets.
_TWINS = ({"user", "human"}, {"assistant", "gpt", "chatgpt", "bot", "model", "ai"})
# Types of values that are not missing.
_USUAL = (str, dict, list)
# So many texts of other roles, with none of a named one before them, are reported once.
NOTED_TEXTS = 10
# So many roles are named, and those that may be text are not.
NAMED_ROLES, OTHER_ROLES = 20, "others"
# Numbers of what is left as it is: ("calls", ""), ("parts", ""), ("words", "") and texts by role.
Left = Counter[tuple[str, str]]
Steps = tuple[str, ...]


class Places(list[tuple[Any, Any]]):
    """Where the texts of a cell are, a list or dict and the index or key there, and what is left.

    Attributes:
        left: What of the cell is left as it is: "calls", "parts", or "texts" with role and text.
    """

    def __init__(self) -> None:
        super().__init__()
        self.left: list[tuple[str, str, str]] = []


class TextPath:
    """Where the texts of a column are, such as ``messages[].content``.

    ``[]`` stands for every entry of a list, ``.key`` for a value of a dict. At the end is a text,
    a list of parts of which those with a "text" are texts, or nothing. Within calls of tools all
    strings at the end are texts, for every role.

    Args:
        path: The path, or several into one column, with `AND` between them. Up to its first ``[]``
            or ``.`` it is the name of the column.
        roles: The roles whose texts are covered; None for all.
        keep_calls: Whether calls of tools that hold strings are left as they are, with a warning;
            None without one, for what was released. By default they are refused.

    Raises:
        InvalidValueError: If it is no path.
    """

    def __init__(
        self, path: str, roles: tuple[str, ...] | None = None, keep_calls: bool | None = False
    ) -> None:
        ways = path.split(AND)
        found = [*map(_PATH.fullmatch, ways)]
        if len({match and match[1] for match in found} - {None}) != 1 or None in found:
            raise InvalidValueError(
                f"expected a path such as 'messages[].content' (a column, [] for every entry of a "
                f"list, .key for a value of a dict), got {path!r}"
            )
        if any(f"{a}.".startswith((f"{b}.", f"{b}[")) for a, b in permutations(ways, 2)):
            raise InvalidValueError(f"expected paths to different texts, got {path!r}; leave one")
        self.path, self.keep_calls, self.column = path, keep_calls, _PATH.sub(r"\1", ways[0])
        self._steps = _steps(ways[0])
        self.of_calls = not {*_CALLS}.isdisjoint(self._steps)
        self.roles = None if self.of_calls else roles
        self._next = TextPath(AND.join(ways[1:]), roles, None) if ways[1:] else None
        # What is covered of each kind of call.
        self._covered = {
            name: [way[way.index(name) + 1 :] for way in map(_steps, ways) if name in way]
            for name in _CALLS
        }
        # Texts of named roles, and of others, that this copy has read, and the warnings it gave.
        self.covered = self.left = 0
        self._told: set[str] = set()

    def __reduce__(self) -> tuple[type["TextPath"], tuple[Any, ...]]:
        # Without what was seen, on which no fingerprint may depend.
        return type(self), (self.path, self.roles, self.keep_calls)

    def __str__(self) -> str:
        return self.path

    def read(self, read_text: Callable[[str], Any], cell: Any) -> "NestedRow | None":
        """Read the texts of a cell; None for a missing cell.

        Raises:
            InvalidTypeError: If a value on the way is of another type than the path says.
            InvalidValueError: If a key on the way is missing, `roles` does not fit the data, or a
                call of a tool holds strings that are not to be left.
        """
        if is_missing(cell):
            return None
        root, places = self.copied(cell)
        texts = [read_text(into[key]) for into, key in places]
        self._note(len(texts), places.left)
        left = places.left
        if self._next is not None and (more := self._next.read(read_text, cell)) is not None:
            texts += more.texts
            left = left + [each for each in more.left if each[0] != "calls"]
        return NestedRow(self, cell, texts, [(root, places)], left)

    def replaced(self, cell: Any, new: Callable[[str], Any]) -> Any:
        """Return a copy of a cell with a new value in place of each text, and the rest as it is."""
        return self.filled(*self.copied(cell), new)

    def filled(self, root: list[Any], places: Places, new: Callable[[str], Any]) -> Any:
        """Fill the places of a copied cell, and those of further paths, and return the cell."""
        for into, key in places:
            into[key] = new(into[key])
        return root[0] if self._next is None else self._next.replaced(root[0], new)

    def copied(self, cell: Any) -> tuple[list[Any], Places]:
        """Return a copy of a cell in a list, and the places of the texts of the first path."""
        root, places = [None], Places()
        self._copy(cell, 0, None, root, 0, places)
        return root, places

    def is_cell(self, value: Any) -> bool | None:
        """Tell a cell from a column of cells by its shape; None if it may be either."""
        cell, column = _fits(value, self._steps), _fits(value, (EACH, *self._steps))
        return None if (cell is False) == (column is False) else column is False

    def _copy(
        self, value: Any, at: int, role: str | None, into: Any, key: Any, places: Places
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
        calls = self._calls(value, places)
        if step not in value:
            # Of no call ("tool_calls": None) the text has another key.
            if calls or step in _CALLS:
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
        if at + 1 == len(self._steps) and not calls and is_missing(value[step]):
            self._note_strings(value, places, warn=self.roles is None or role in self.roles)

    def _entries(self, values: Any, at: int, role: str | None, places: Places) -> list[Any]:
        """Copy the entries of a list."""
        made: list[Any] = [None] * len(values)
        last = self._steps[at + 1] if at + 2 == len(self._steps) else None
        for place, entry in enumerate(values):
            # A short way for most messages; all others go the one that is for any entry.
            if last is not None and type(entry) is dict and type(entry.get(last)) is str:
                plain = entry.get("tool_calls") is entry.get("function_call") is None
                if plain and (self.roles is None or entry.get("role") in self.roles):
                    made[place] = inner = entry.copy()
                    places.append((inner, last))
                    continue
            self._copy(entry, at + 1, role, made, place, places)
        return made

    def _text(self, value: Any, role: str | None, into: Any, key: Any, places: Places) -> Any:
        """Return a text, or a copy of a list of parts, and note where texts are to be replaced."""
        if self.roles is not None and not self._covers(role):
            self._leave(value, str(role), places)
            return value
        if self.of_calls and not isinstance(value, str):
            return _strings(value, places)
        if isinstance(value, str):
            places.append((into, key))
            # NumPy has strings of its own, which seeded noise would tell from these.
            return str(value)
        if not _is_list(value):
            raise InvalidTypeError(
                f"expected a text or a list of parts at the end of the path, got {_kind(value)}"
            )
        return [self._part(part, places) for part in value]

    def _part(self, part: Any, places: Places) -> Any:
        if part is None:
            return None
        if not isinstance(part, Mapping):
            hint = f"; for a list of texts end the path with {EACH}" * isinstance(part, str)
            raise InvalidTypeError(f"expected a part of a text, a dict, got {_kind(part)}{hint}")
        if isinstance(part.get("text"), str):
            made = {**part, "text": str(part["text"])}
            places.append((made, "text"))
            return made
        if self._is_call(part, places):
            return part
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
            self._note_strings(part, places)
        return part

    def _leave(self, value: Any, role: str, places: Places) -> None:
        """Count the texts of a message of a role that is not covered."""
        for part in value if _is_list(value) else [value]:
            text = part.get("text") if isinstance(part, Mapping) else part
            if isinstance(text, str) and text and not text.isspace():
                places.left.append(("texts", role, text))
            elif isinstance(part, Mapping) and not self._is_call(part, places):
                self._note_strings(part, places, warn=False)

    def _is_call(self, part: Mapping[str, Any], places: Places) -> bool:
        """Tell whether a part of a text is a call, and count it then."""
        if part.get("type") not in _CALL_PARTS:
            return False
        self._count_call(part, places)
        return True

    def _calls(self, message: Mapping[str, Any], places: Places) -> bool:
        """Tell whether a message makes calls, which stand for its text, and count them."""
        found = False
        for name in _CALLS:
            calls: Any = message.get(name)
            covered = self._covered[name]
            if _is_list(calls):
                covered = [way[1:] for way in covered if way[0] == EACH]
            for call in calls if _is_list(calls) else [calls]:
                if not _is_empty(call):
                    found = True
                    self._count_call(call, places, covered)
        return found

    def _count_call(self, call: Any, places: Places, covered: Sequence[Steps] = ()) -> None:
        """Count a call that is left as it is, and refuse or report its strings, but covered ones.

        Raises:
            InvalidValueError: If it holds some and is not to be kept.
        """
        says = _says(call, covered)
        if says or not covered:
            places.left.append(("calls", "", ""))
        if says and self.keep_calls is False:
            raise InvalidValueError(
                "there is a call of a tool with strings, such as its arguments, which would be "
                "RELEASED AS THEY ARE; name a path to them too, as 'messages[].tool_calls[]"
                ".function.arguments', or remove them, or ask for that (keep_calls=True, "
                "--keep-calls)"
            )
        if says and self.keep_calls and "calls" not in self._told:
            self._told.add("calls")
            logger.warning(
                "there are calls of tools with strings at %r; they are RELEASED AS THEY ARE, "
                "as keep_calls=True says",
                self.path,
            )

    def _note_strings(self, value: Mapping[str, Any], places: Places, warn: bool = True) -> None:
        """Count strings beside a text that is missing, and warn of them once."""
        if not _says(value):
            return
        places.left.append(("parts", "", ""))
        if warn and self.keep_calls is not None and "parts" not in self._told:
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

    def _note(self, covered: int, left: Sequence[tuple[str, str, str]]) -> None:
        """Warn once if no text of a named role has occurred among many."""
        self.covered += covered
        self.left += sum(kind == "texts" for kind, _, _ in left)
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
        left: What of the cell is left as it is; see `Places`.
    """

    path: TextPath
    cell: Any
    texts: list[Any]
    copies: list[tuple[list[Any], Places]]
    left: list[tuple[str, str, str]]

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
        copy = self.copies.pop() if self.copies else self.path.copied(self.cell)
        made = map(join, self.texts, self.cut(words))
        return self.path.filled(*copy, lambda _: next(made))

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
    names: Sequence[str], roles: str | Sequence[str] | None, keep_calls: bool = False
) -> tuple[tuple[str, ...], dict[str, TextPath]]:
    """Return the columns that names of columns and paths are about, and the paths by column.

    Raises:
        InvalidTypeError: If `roles` is neither a string nor several.
        InvalidValueError: If a path is malformed, two lead to one text, or there is none for
            `roles` or `keep_calls`.
    """
    require_one_of((False, True), keep_calls=keep_calls)
    given: tuple[Any, ...] = ()
    if roles is not None:
        given = (roles,) if isinstance(roles, str) else tuple(roles)
        if not given or not all(isinstance(role, str) and role for role in given):
            raise InvalidTypeError(f"expected roles to be names such as ('user',), got {roles!r}")
    ways: dict[str, list[str]] = {}
    # Calls come last, since the roles are those of the first path of a column.
    found = [TextPath(name) for name in names if EACH in name]
    for path in sorted(found, key=lambda path: path.of_calls):
        ways.setdefault(path.column, []).append(path.path)
    paths = {name: TextPath(AND.join(p), given or None, keep_calls) for name, p in ways.items()}
    if both := sorted(paths.keys() & {*names}):
        raise InvalidValueError(
            f"expected text_column to name the column {both[0]!r}, or paths into it, got "
            f"{tuple(names)}; leave one out"
        )
    if (given or keep_calls) and not paths:
        what = f"roles={given}" if given else "keep_calls=True"
        raise InvalidValueError(
            f"{what} is for texts within a column, as in text_column='messages[].content', "
            f"got {tuple(names)}"
        )
    columns = (TextPath(name).column if EACH in name else name for name in names)
    return (*dict.fromkeys(columns),), paths


def count_left(rows: Iterable[Any]) -> Left:
    """Count what nested rows leave as it is; no other rows leave anything."""
    left: Left = Counter()
    for row in rows:
        for kind, role, text in row.left if isinstance(row, NestedRow) else ():
            left[kind, role] += 1
            left["words", ""] += len(text.split())
    return left


def left_in_clear(left: Left) -> dict[str, Any]:
    """Return what messages leave in clear, beside their other fields, as JSON values.

    Returns:
        Numbers of calls of tools, of texts by role with that of their words (by spaces), and of
        parts and messages without a text that hold other strings.
    """
    texts: Counter[str] = Counter()
    for (kind, role), count in left.items():
        if kind == "texts":
            named = is_plain(role) and len(texts) < NAMED_ROLES
            texts[role if named or role in texts else OTHER_ROLES] += count
    return {
        "calls_of_tools": left["calls", ""],
        "texts_of_roles": dict(texts),
        "words_of_these": left["words", ""],
        "other_strings": left["parts", ""],
    }


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


def _steps(path: str) -> Steps:
    return tuple(re.findall(r"\[\]|[^.\[\]]+", path))[1:]


def _is_empty(call: Any) -> bool:
    """Tell whether there is no call: in rows of Arrow one may have keys and no value."""
    if isinstance(call, Mapping):
        return all(map(_is_empty, call.values()))
    return is_missing(call) or (isinstance(call, str) and not call)


def _strings(value: Any, places: Places) -> Any:
    """Return a copy of a value all strings of which are texts."""
    if not isinstance(value, Mapping) and not _is_list(value):
        return value
    made: Any = {**value} if isinstance(value, Mapping) else [*value]
    for key, inner in [*made.items()] if isinstance(made, dict) else [*enumerate(made)]:
        if isinstance(inner, str):
            places.append((made, key))
        made[key] = str(inner) if isinstance(inner, str) else _strings(inner, places)
    return made


def _says(value: Any, covered: Sequence[Steps] = ()) -> bool:
    """Tell whether a value holds strings, apart from names, ids, and where steps lead."""
    if () in covered:
        return False
    if isinstance(value, Mapping):
        return any(
            _says(inner, [way[1:] for way in covered if way[0] == key])
            for key, inner in value.items()
            if key not in _NAMING
        )
    if _is_list(value):
        ways = [way[1:] for way in covered if way[0] == EACH]
        return any(_says(inner, ways) for inner in value)
    # The arguments of a call without any are "{}".
    return isinstance(value, str) and bool(value.strip(" \t\r\n{}[]"))


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
