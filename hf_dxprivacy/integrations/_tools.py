"""Selectors whose spans another program's object finds, which does not travel between processes.

An analyzer or a pipeline is large, pickles to other bytes in every process, and may hold threads. A
selector pickles to a digest of it and, if there is one, the function that makes it. A process looks
for an object of that digest among those it has: a forked worker has those of its parent. Otherwise
it calls the function, and refuses what has another digest.
"""

import json
import sys
from abc import abstractmethod
from collections.abc import Callable, Collection, Mapping, Sequence
from hashlib import sha256
from typing import Any, ClassVar

from hf_dxprivacy._runtime import in_worker, limit_in_worker
from hf_dxprivacy.errors import InvalidTypeError, InvalidValueError
from hf_dxprivacy.guarantee import Disclosure
from hf_dxprivacy.slots import SpanSelector
from hf_dxprivacy.slots.span_selectors import MISSED, LabelledSpan
from hf_dxprivacy.slots.tags import chosen_labels

# By digest. They stay for the life of the process, whose tasks unpickle a selector again and again.
_TOOLS: dict[str, Any] = {}


class ToolSelector(SpanSelector):
    """Selects the words that touch a span which an object of another program finds.

    Args:
        source: The object, or a function without arguments that makes it.
        labels: The labels to select; None for all.

    Raises:
        InvalidTypeError: If it is, or makes, something else.
        InvalidValueError: If there is no such label.
    """

    _kind: ClassVar[type]

    def __init__(self, source: Any, labels: Collection[str] | None) -> None:
        self._make: Callable[[], Any] | None = None
        tool = source
        if not isinstance(source, self._kind) and callable(source):
            self._make, tool = source, source()
        if not isinstance(tool, self._kind):
            raise InvalidTypeError(
                f"expected {_article(self._kind)}, or a function that makes one, got "
                f"{_article(type(tool))}"
            )
        self.labels = chosen_labels(labels, self._labels_of(tool))
        self.digest = self._digest(tool)
        _TOOLS[self.digest] = tool

    def __getstate__(self) -> dict[str, Any]:
        # A cached release of the object as it was is none of what it has become.
        tool = _TOOLS.get(self.digest)
        if self._make is None and tool is not None and self._digest(tool) != self.digest:
            raise InvalidValueError(
                f"the {self._kind.__name__} was changed after the selector was made; make the "
                "selector anew"
            )
        return dict(self.__dict__)

    @property
    def tool(self) -> Any:
        """The object, in this process.

        Raises:
            InvalidValueError: If this process has none and cannot make it, or makes another one.
        """
        if self.digest not in _TOOLS:
            name = self._kind.__name__
            if self._make is None:
                raise InvalidValueError(
                    f"this process was not forked from the one that has the {name}, so cannot use "
                    f"it; give {type(self).__name__} a function that makes one"
                )
            tool = self._make()
            if self._digest(tool) != self.digest:
                raise InvalidValueError(
                    f"the function that makes the {name} makes another one in this process than "
                    "where the selector was made; let it depend on nothing else"
                )
            _TOOLS[self.digest] = tool
        limit_in_worker()
        if in_worker() and "torch" in sys.modules:
            # A child of a fork waits for ever for the threads that only its parent has.
            sys.modules["torch"].set_num_threads(1)
        return _TOOLS[self.digest]

    def spans(self, texts: Sequence[str]) -> list[list[LabelledSpan]]:
        """See `SpanSelector.spans`."""
        return [self._chosen(found) for found in self._found(self.tool, texts)] if texts else []

    @property
    def disclosures(self) -> tuple[Disclosure, ...]:
        """See `Selector.disclosures`."""
        return (Disclosure(f"Slots are what {self._described}."), MISSED)

    @property
    @abstractmethod
    def _described(self) -> str:
        """What finds which spans, after "what"."""

    @abstractmethod
    def _labels_of(self, tool: Any) -> Collection[str] | None:
        """Return all labels that there may be; None if they are not known."""

    @abstractmethod
    def _found(self, tool: Any, texts: Sequence[str]) -> list[list[Any]]:
        """Return the spans of each text, as `SpanSelector` takes them."""

    @abstractmethod
    def _digest(self, tool: Any) -> str:
        """Return a digest of all that decides what is found, the same in every process."""


def digest(*values: Any) -> str:
    """Return a digest of plain values; the order of lists and sets does not matter."""
    return sha256(json.dumps([plain(value) for value in values]).encode()).hexdigest()


def plain(value: Any) -> Any:
    """Return settings as JSON-ready values, without what is loaded or compiled at the first use."""
    if isinstance(value, (str, int, float, bool)):
        return value
    if isinstance(value, Mapping):
        return sorted([str(key), plain(entry)] for key, entry in value.items())
    if isinstance(value, (list, tuple, set, frozenset)):
        return sorted((plain(entry) for entry in value), key=json.dumps)
    return plain(value.to_dict()) if hasattr(value, "to_dict") else None


def pipeline_digest(nlp: Any) -> str:
    """Return a digest of a pipeline's components and settings; its strings grow with every text."""
    written: bytes = nlp.to_bytes(exclude=["vocab"])
    return sha256(written).hexdigest()


def _article(kind: type) -> str:
    return f"{'an' if kind.__name__[:1] in 'AEIOUaeiou' else 'a'} {kind.__name__}"
