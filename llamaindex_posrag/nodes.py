"""Between LlamaIndex's nodes and the core's passages."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from copy import copy, deepcopy
from typing import Any

from llama_index.core.bridge.pydantic import Field
from llama_index.core.schema import BaseNode, NodeWithScore
from pydantic import SkipValidation

from llamaindex_posrag.embedding import embedded_text
from shared_core import CAUS, Arrangement, Passage

_IMMUTABLE = frozenset({str, int, float, bool, type(None)})
_CONTAINERS = ("relationships", "excluded_embed_metadata_keys", "excluded_llm_metadata_keys")


class ExplainedNode(NodeWithScore):
    """A node with its fused score and all that led to its slot.

    The explanation stands beside the node, not in its metadata: there it would change
    ``node.hash`` (by which LlamaIndex recognises the same node from two retrievers) and would
    have to be kept out of every prompt.

    Attributes
    ----------
    node
        The node; its id, text, metadata and hash are those of the one that came in.
    score
        Fused score in [0, 1], higher is better, a Python float.
    posrag
        JSON-able; the keys are those of `shared_core.Arrangement.explain`.
    """

    posrag: SkipValidation[dict[str, Any]] = Field(default_factory=dict)

    @classmethod
    def class_name(cls) -> str:
        """Name under which LlamaIndex serialises the class."""
        return "ExplainedNode"


def explained(nodes: Iterable[BaseNode], arrangement: Arrangement) -> list[NodeWithScore]:
    """Pair nodes, given slot by slot, with their scores and explanations."""
    return [
        ExplainedNode(node=node, score=why["score"], posrag=why)
        for node, why in zip(nodes, arrangement.explain(), strict=True)
    ]


def placed(nodes: Sequence[NodeWithScore], caus: CAUS) -> list[NodeWithScore]:
    """Place nodes in the order they come; what explained a node so far stays with it."""
    slots, gate = caus.placed(len(nodes))
    shared = {
        "placement": caus.applied.name,
        "psi": gate.psi,
        "gate": "open" if gate.opened else "shut",
        "reason": gate.reason,
    }
    return [
        ExplainedNode(
            node=nodes[rank].node,
            score=nodes[rank].score,
            posrag={**_explanation(nodes[rank]), "rank": rank, "slot": slot, **shared},
        )
        for slot, rank in enumerate(slots)
    ]


def _explanation(node: NodeWithScore) -> dict[str, Any]:
    return node.posrag if isinstance(node, ExplainedNode) else {}


def isolated(node: BaseNode) -> BaseNode:
    """Copy a node so that changing the copy leaves the original as it is."""
    copied = copy(node)
    fields = vars(copied)
    fields["metadata"] = {
        key: value if type(value) in _IMMUTABLE else deepcopy(value)
        for key, value in node.metadata.items()
    }
    for name in _CONTAINERS:
        fields[name] = fields[name].copy()
    return copied


def to_passage(node: BaseNode) -> Passage:
    """Make the passage that an index holds for a node; the vector is stored apart from it."""
    source = isolated(node)
    source.embedding = None
    return Passage(
        id=node.node_id, text=embedded_text(node), metadata=source.metadata, source=source
    )
