"""Objects of pydantic's models that are made without validating them.

``model_construct`` takes four times as long, which is most of what an answer costs beyond the
search.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

Model = TypeVar("Model")


def maker(base: type) -> Callable[[type[Model], dict[str, Any], set[str]], Model]:
    """Return a function that makes an object of a model.

    Parameters
    ----------
    base
        Pydantic's ``BaseModel``.

    Returns
    -------
    callable
        Takes the class, the values of all its fields and the names of those that were given, and
        returns what the constructor would. Both become the object's own. The class has no extra
        and no private fields.
    """
    new = object.__new__
    # Through the slots themselves: BaseModel's __setattr__ takes its time, and object's own
    # looks each of them up.
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
