"""Optional dependencies, imported where they are used."""

from __future__ import annotations

import importlib
from types import ModuleType

from shared_core.errors import MissingExtraError


def require(module: str, *, extra: str) -> ModuleType:
    """Import `module`, or raise an error that names the extra to install.

    Parameters
    ----------
    module
        Dotted module name.
    extra
        The extra of ``posrag`` that installs it.

    Raises
    ------
    MissingExtraError
        If the top-level package of `module` is not installed.
    """
    package = module.partition(".")[0]
    try:
        return importlib.import_module(module)
    except ModuleNotFoundError as error:
        if error.name is None or error.name.partition(".")[0] != package:
            raise
        raise MissingExtraError(
            f"{package} is not installed; run: pip install 'posrag[{extra}]'"
        ) from error
