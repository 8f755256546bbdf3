"""Options that are checked whenever they are set, not only by the constructor."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Self

from pydantic import BaseModel
from typing_extensions import override


class CheckedOptions(BaseModel):
    """Fields that refuse by assignment and by ``model_copy`` what the constructor refuses.

    Pydantic's own ``validate_assignment`` keeps a value that only a check of the whole model
    refuses, and its ``model_copy`` checks nothing.

    Raises
    ------
    ValueError
        If a field is unknown or a value out of range; the options then stay as they were.
    """

    if not TYPE_CHECKING:  # type checkers would let a class with this set any attribute

        @override
        def __setattr__(self, name: str, value: Any) -> None:
            if name in type(self).model_fields:
                value = self._checked({name: value})[name]
            super().__setattr__(name, value)

    @override
    def model_copy(self, *, update: Mapping[str, Any] | None = None, deep: bool = False) -> Self:
        """Return a copy, with the options in `update` in place of its own."""
        return super().model_copy(update=self._checked(update) if update else None, deep=deep)

    def _checked(self, changed: Mapping[str, Any]) -> dict[str, Any]:
        """Return options as they come out of the checks next to the present ones."""
        made = type(self).__new__(type(self))
        BaseModel.__init__(made, **{**dict(self), **changed})  # a subclass may have its own
        return {name: getattr(made, name) for name in changed}
