"""What makes a promise does not change once it is made."""

from collections.abc import Callable
from functools import wraps
from typing import Any

from hf_dxprivacy.errors import ImmutableError

# Stands among the attributes of an `Immutable` while it is made, so that no copy ever has it.
_OPEN = "_open"


class Immutable:
    """A base of what makes a promise, and therefore does not change once it is made.

    `__init__`, and that of every subclass, sets attributes as usual. From then on public ones can
    neither be set nor deleted. A copy that is to differ is changed through `vars`, before anybody
    has it.
    """

    def __init_subclass__(cls, **arguments: Any) -> None:
        super().__init_subclass__(**arguments)
        if "__init__" in vars(cls):
            setattr(cls, "__init__", _opening(vars(cls)["__init__"]))  # noqa: B010

    def __setattr__(self, name: str, value: object) -> None:
        self._require_open(name)
        super().__setattr__(name, value)

    def __delattr__(self, name: str) -> None:
        self._require_open(name)
        super().__delattr__(name)

    def _require_open(self, name: str) -> None:
        if _OPEN not in vars(self) and not name.startswith("_"):
            raise ImmutableError(
                f"can not change {name!r}: a {type(self).__name__} stays as it was made, since its "
                "guarantee would not hold any more; make another one"
            )


def _opening(init: Callable[..., None]) -> Callable[..., None]:
    """Return an `__init__` that may set attributes."""

    @wraps(init)
    def opened(self: Immutable, *arguments: Any, **named: Any) -> None:
        outermost = _OPEN not in vars(self)
        vars(self)[_OPEN] = True
        init(self, *arguments, **named)
        if outermost:
            del vars(self)[_OPEN]

    return opened
