"""Late imports of optional dependencies, with an error that names the pip command."""

import importlib
from types import ModuleType

from hf_dxprivacy.errors import MissingExtraError


def require(module: str, extra: str) -> ModuleType:
    """Import an optional module.

    Args:
        module: Dotted name of the module.
        extra: The extra of this package that installs it.

    Returns:
        The imported module.

    Raises:
        MissingExtraError: If the module is not installed.
    """
    try:
        return importlib.import_module(module)
    except ModuleNotFoundError as error:
        raise MissingExtraError(
            f"this needs the package {module.partition('.')[0]!r}, which is not installed; "
            f"run: pip install 'hf-dxprivacy[{extra}]'",
            extra,
        ) from error
