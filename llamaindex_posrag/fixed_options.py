"""Postprocessors whose options are fixed, so that another option makes another one."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Self

from llama_index.core.postprocessor.types import BaseNodePostprocessor


class FixedOptionsPostprocessor(BaseNodePostprocessor):
    """A postprocessor that is set up by its fields, once, when it is made."""

    def model_copy(self, *, update: Mapping[str, Any] | None = None, deep: bool = False) -> Self:
        """Return a copy, with the options in `update` in place of its own.

        Pydantic's own sets them unchecked, and leaves what was derived from the earlier ones.

        Raises
        ------
        ValueError, TypeError
            As the constructor: if an option is out of range or unknown.
        """
        copied = super().model_copy(deep=deep)
        return type(self)(**{**dict(copied), **update}) if update else copied
