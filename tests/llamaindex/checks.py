"""The checks behind the contract, each of which says what is wrong."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from llama_index.core.schema import BaseNode, MetadataMode, NodeWithScore, TextNode

from llamaindex_posrag import ExplainedNode


class BrokenNode(TextNode):
    """A node whose content cannot be read."""

    def get_content(self, metadata_mode: MetadataMode = MetadataMode.NONE) -> str:
        """Raise."""
        raise RuntimeError("unreadable node")


def ids(nodes: Sequence[NodeWithScore]) -> list[str]:
    """Return the node ids in order."""
    return [node.node.node_id for node in nodes]


def facts(nodes: Sequence[NodeWithScore]) -> list[tuple[str, float | None]]:
    """Return ids and scores in order."""
    return [(node.node.node_id, node.score) for node in nodes]


def why(node: NodeWithScore) -> dict[str, Any]:
    """Return the explanation of a node that was found."""
    assert isinstance(node, ExplainedNode)
    return node.posrag


def check_same_nodes(out: Sequence[NodeWithScore], given: Sequence[BaseNode]) -> None:
    """Every node that comes out is one that went in: id, class, hash, text in every mode."""
    known = {node.node_id: node for node in given}
    assert len(set(ids(out))) == len(out), f"a node came back twice: {ids(out)}"
    for hit in out:
        node = known.get(hit.node.node_id)
        assert node is not None, f"unknown node id {hit.node.node_id}"
        assert type(hit.node) is type(node), f"{hit.node.node_id} changed its class"
        assert hit.node.hash == node.hash, f"{hit.node.node_id} changed its hash"
        assert hit.node.relationships == node.relationships
        for mode in MetadataMode:
            assert hit.node.get_content(mode) == node.get_content(mode), f"text differs in {mode}"


def check_scores(out: Sequence[NodeWithScore]) -> None:
    """Scores are None or Python floats, and every node serialises to JSON."""
    for hit in out:
        assert hit.score is None or type(hit.score) is float, f"score is {type(hit.score)}"
        assert json.loads(hit.model_dump_json())["node"]["id_"] == hit.node.node_id
