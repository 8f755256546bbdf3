"""Metadata that are copied, so that nobody else's changes reach them."""

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
        Owner of metadata to what an error calls it, such as ``"document 'a'"``.

    Returns
    -------
    callable
        Takes metadata and the object they are of, and returns a copy that shares nothing mutable
        with them; ValueError if a value cannot be copied.
    """

    def copied(metadata: Mapping[Any, Any], of: Owner) -> dict[Any, Any]:
        for value in metadata.values():
            if type(value) not in _IMMUTABLE:
                return _deeply(metadata, of, name)
        return dict(metadata)

    return copied


def _deeply(metadata: Mapping[Any, Any], of: Owner, name: Callable[[Owner], str]) -> dict[Any, Any]:
    copies = dict(metadata)
    memo: dict[int, Any] = {}  # what two of the values share, their copies share
    for key, value in metadata.items():
        if type(value) not in _IMMUTABLE:
            try:
                copies[key] = deepcopy(value, memo)
            except Exception as error:  # whatever a class of the user's raises
                raise ValueError(
                    f"metadata of {name(of)}: {key!r} holds a {type(value).__name__}, which "
                    f"cannot be copied ({error}): keep what names it in its place"
                ) from error
    return copies
