"""Pydantic objects made without validation.

``model_construct`` takes four times as long, which is most of what an answer costs beyond the
search.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

Model = TypeVar("Model")


def maker(base: type) -> Callable[[type[Model], dict[str, Any], set[str]], Model]:
    """Return a function that makes objects of a model class.

    Parameters
    ----------
    base
        Pydantic's ``BaseModel``.

    Returns
    -------
    callable
        Takes the class, the values of all its fields and the names of those that were given, and
        returns what the constructor would. The object keeps both containers. The class must have no
        extra and no private fields.
    """
    new = object.__new__
    # Directly through the slots: BaseModel.__setattr__ is slow, and object.__setattr__ looks each
    # of them up.
    set_values, set_given, set_extra, set_private = (
        vars(base)[slot].__set__
        for slot in (
            "__dict__",
            "__pydantic_fields_set__",
            "__pydantic_extra__",
            "__pydantic_private__",
        )
    )

    def unvalidated(model: type[Model], values: dict[str, Any], given: set[str]) -> Model:
        made = new(model)
        set_values(made, values)
        set_given(made, given)
        set_extra(made, None)
        set_private(made, None)
        return made

    return unvalidated
