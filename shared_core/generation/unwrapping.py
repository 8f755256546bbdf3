"""Models of transformers without the wrappers of other libraries."""

from __future__ import annotations

from typing import Any

from shared_core._extras import require


def unwrapped(model: Any) -> Any:
    """Return a model without what ``torch.compile``, PEFT or another library wraps around it.

    A wrapper may hide which options its model takes, and its attention is that of the model. What
    such libraries add to the model's layers, as LoRA does, stays there.

    Parameters
    ----------
    model
        A ``PreTrainedModel``, or a module that holds one.

    Returns
    -------
    PreTrainedModel
        The outermost one.

    Raises
    ------
    ValueError
        If there is none, or the wrapper adds weights around it, such as learnt prompts.
    """
    package: Any = require("transformers", extra="models")
    name = type(model).__name__
    parts = model.modules() if hasattr(model, "modules") else ()
    inner = next((part for part in parts if isinstance(part, package.PreTrainedModel)), None)
    if inner is None:
        raise ValueError(f"model must be a PreTrainedModel of transformers, got a {name}")
    own = {id(weight) for weight in model.parameters()}
    if not own <= {id(weight) for weight in inner.parameters()}:
        raise ValueError(
            f"{name} has weights of its own around its {type(inner).__name__}, which would not be "
            "used; merge them into the model, or give the model inside"
        )
    return inner
