"""Nodes as JSON and back, without pickle, and without imports that a file asks for."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any

from llama_index.core.schema import (
    BaseNode,
    MediaResource,
    NodeRelationship,
    RelatedNodeInfo,
    TextNode,
)
from pydantic_core import PydanticSerializationError

import shared_core
from shared_core import IndexFormatError, Passage
from shared_core.engines.collection import CollectionEngine
from shared_core.neighbour_spans.places import SOURCE, WITHOUT_SOURCE


def encode_node(node: BaseNode) -> dict[str, Any]:
    """Return a node as JSON, with the class that it is.

    Raises
    ------
    ValueError
        If it leads to an object that JSON cannot hold.
    """
    try:
        data = node.model_dump(mode="json")
    except PydanticSerializationError as error:
        raise ValueError(
            f"node {node.node_id!r} cannot be saved as JSON: {error}; leave the obj of an "
            "IndexNode out, and give the retriever, and load, object_map={index_id: obj}"
        ) from error
    data["metadata"] = node.metadata  # which keeps its NaN
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


@dataclass
class EncodedNode:
    """A node in a database, decoded when it is asked for: most of a pool never is."""

    data: Any

    @cached_property
    def node(self) -> BaseNode:
        """The node."""
        return decode_node(self.data)


def connect(url: str, collection: str = "posrag", **options: Any) -> CollectionEngine:
    """Return the engine that an address stands for, as `shared_core.connect`; it keeps whole nodes.

    Parameters, options and errors are those of `shared_core.connect`.
    """
    return shared_core.connect(
        url, collection, encode_source=encode_node, decode_source=EncodedNode, **options
    )


def node_of(passage: Passage) -> BaseNode:
    """Return the node of a passage, or a new one if another program has saved it without.

    The metadata are then no part of the text that is embedded, as they were not.
    """
    if isinstance(passage.source, BaseNode):
        return passage.source
    if isinstance(passage.source, EncodedNode):
        return passage.source.node
    metadata = {**passage.metadata}
    document = metadata.pop(SOURCE, WITHOUT_SOURCE)
    node = TextNode(
        id_=passage.id,
        text=passage.text,
        metadata=metadata,
        excluded_embed_metadata_keys=[*metadata],
    )
    if document != WITHOUT_SOURCE:
        node.relationships[NodeRelationship.SOURCE] = RelatedNodeInfo(node_id=document)
    return node


@lru_cache
def _class(name: str) -> type[BaseNode]:
    known: list[type[BaseNode]] = BaseNode.__subclasses__()
    for cls in known:
        if _name(cls) == name:
            return cls
        known.extend(cls.__subclasses__())  # their turn comes in this loop
    raise IndexFormatError(f"the node class {name} is not loaded; import it, then load the index")


def _name(cls: type) -> str:
    return f"{cls.__module__}.{cls.__qualname__}"
