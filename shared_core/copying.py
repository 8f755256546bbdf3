"""Copies of metadata, which later changes to the original do not reach."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from copy import deepcopy
from typing import Any, TypeVar

Owner = TypeVar("Owner")

_IMMUTABLE = frozenset({str, int, float, bool, type(None)})


def copier(name: Callable[[Owner], str]) -> Callable[[Mapping[Any, Any], Owner], dict[Any, Any]]:
    """Return a function that copies metadata.

    Parameters
    ----------
    name
        Maps the owner of the metadata to its name in errors, such as ``"document 'a'"``.

    Returns
    -------
    callable
        Takes metadata and their owner, and returns a copy that shares nothing mutable with them;
        raises ValueError if a value cannot be copied.
    """

    def copied(metadata: Mapping[Any, Any], of: Owner) -> dict[Any, Any]:
        for value in metadata.values():
            if type(value) not in _IMMUTABLE:
                return _deeply(metadata, of, name)
        return dict(metadata)

    return copied


def _deeply(metadata: Mapping[Any, Any], of: Owner, name: Callable[[Owner], str]) -> dict[Any, Any]:
    copies = dict(metadata)
    memo: dict[int, Any] = {}  # what two values share, their copies share
    for key, value in metadata.items():
        if type(value) not in _IMMUTABLE:
            try:
                copies[key] = deepcopy(value, memo)
            except Exception as error:  # a user's class may raise anything
                raise ValueError(
                    f"metadata of {name(of)}: {key!r} holds a {type(value).__name__}, which "
                    f"cannot be copied ({error}); store its name or id instead"
                ) from error
    return copies
