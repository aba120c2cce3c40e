"""Names of a package that are imported when they are first asked for, and names that moved."""

import sys
import warnings
from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any

Find = Callable[[str], Any]


def lazy(module: str, names: Mapping[str, str], otherwise: Find | None = None) -> Find:
    """Return a module's ``__getattr__`` that imports a name when it is first asked for.

    Args:
        module: The module.
        names: For each name the module that it is in.
        otherwise: What finds other names.
    """

    def find(name: str) -> Any:
        if name in names:
            value = getattr(import_module(names[name]), name)
            setattr(sys.modules[module], name, value)
            return value
        if otherwise is not None:
            return otherwise(name)
        raise AttributeError(f"module {module!r} has no attribute {name!r}")

    return find


def moved(module: str, names: Mapping[str, str]) -> Find:
    """Return a module's ``__getattr__`` for names that moved: still there for one version.

    Args:
        module: The module they were in.
        names: For each of them the module that it is in now.
    """

    def find(name: str) -> Any:
        if name not in names:
            raise AttributeError(f"module {module!r} has no attribute {name!r}")
        warnings.warn(
            f"{module}.{name} moved to {names[name]}, and leaves {module} with version 0.5",
            FutureWarning,
            stacklevel=2,
        )
        return getattr(import_module(names[name]), name)

    return find
