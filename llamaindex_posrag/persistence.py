"""Nodes as JSON and back, without pickle, and without imports that a file asks for."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache
from typing import Any, cast

from llama_index.core.schema import BaseNode, IndexNode, MediaResource
from pydantic_core import PydanticSerializationError

from llamaindex_posrag.filters import filterable
from shared_core import Passage
from shared_core.errors import IndexFormatError


def encode_node(node: BaseNode) -> dict[str, Any]:
    """Return a node as JSON, with the class that it is.

    Raises
    ------
    ValueError
        If the metadata would not come back unchanged, since JSON has no tuples, no dates and no
        keys other than text, or the node holds anything else that JSON cannot represent.
    """
    metadata = _checked(node)
    try:
        data = node.model_dump(mode="json")
    except PydanticSerializationError as error:
        way_out = ""
        if isinstance(node, IndexNode) and node.obj is not None:
            way_out = (
                "; leave its obj out, and give the retriever, and load, "
                f"object_map={{{node.index_id!r}: ...}}"
            )
        message = f"node {node.node_id!r} cannot be saved as JSON: {error}{way_out}"
        raise ValueError(message) from error
    data["metadata"] = metadata
    for name, resource in vars(node).items():
        if isinstance(resource, MediaResource) and resource.data is not None:
            data[name]["data"] = resource.data.decode("ascii")  # LlamaIndex's own dump drops it
    return {"class": _name(type(node)), "node": data}


def decode_node(data: Any) -> BaseNode:
    """Return the node that `encode_node` described.

    Raises
    ------
    IndexFormatError
        If it was not written by `encode_node`, or the node's class is not loaded in this
        program: nothing is imported because a file names it.
    """
    if not isinstance(data, Mapping) or set(data) != {"class", "node"}:
        raise IndexFormatError("the index does not hold LlamaIndex nodes")
    return _class(data["class"]).from_dict(data["node"])


def complete(passages: Iterable[Passage]) -> None:
    """Add to loaded passages the metadata for filters that an earlier version did not save.

    Raises
    ------
    IndexFormatError
        If one has no node: a program that saves the folder without LlamaIndex drops them.
    """
    for passage in passages:
        if not isinstance(passage.source, BaseNode):
            raise IndexFormatError(
                f"passage {passage.id!r} has no LlamaIndex node: the index was saved again "
                "without LlamaIndex; load it with the program that saved it last"
            )
        # A dictionary, read from JSON, that nobody has seen yet.
        cast("dict[str, Any]", passage.metadata).update(filterable(passage.source))


def _checked(node: BaseNode) -> dict[str, Any]:
    # Compared as text, which goes into the prompt and the node's hash: np.float64(0.5) equals 0.5,
    # but a node that came back with the latter would be a different one.
    try:
        same = str(json.loads(json.dumps(node.metadata))) == str(node.metadata)
    except (TypeError, ValueError):
        same = False
    if not same:
        raise ValueError(
            f"the metadata of node {node.node_id!r} cannot be saved as JSON unchanged: "
            f"{node.metadata!r}"
        )
    return node.metadata


@lru_cache
def _class(name: str) -> type[BaseNode]:
    for cls in _descendants(BaseNode):
        if _name(cls) == name:
            return cast(type[BaseNode], cls)
    raise IndexFormatError(f"the node class {name} is not loaded; import it, then load the index")


def _descendants(cls: type) -> Iterator[type]:
    children: list[type] = cls.__subclasses__()
    for child in children:
        yield child
        yield from _descendants(child)


def _name(cls: type) -> str:
    return f"{cls.__module__}.{cls.__qualname__}"
