"""The postprocessor that only places nodes.

Nothing in LlamaIndex sorts after a postprocessor, so the placed order reaches the prompt in the
response modes ``compact``, ``tree_summarize`` and ``simple_summarize`` while the context fits
one window. ``refine`` and ``accumulate`` call the model once per node: there the order of the
nodes means nothing. A postprocessor does not know the response mode.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from llama_index.core.bridge.pydantic import ConfigDict, Field, PrivateAttr
from llama_index.core.callbacks import CallbackManager
from llama_index.core.schema import NodeWithScore, QueryBundle

from llamaindex_posrag.fields import PlacementField, PsiField
from llamaindex_posrag.fixed_options import FixedOptionsPostprocessor
from llamaindex_posrag.nodes import placed
from shared_core import CAUS, Placement
from shared_core.sensitivity import Psi
from shared_core.types import Evidence


class PlacementPostprocessor(FixedOptionsPostprocessor):
    """Place nodes; their scores are ignored, and left as they are.

    The order in which the nodes come is their ranking, best first, so missing, NaN, negative and
    tied scores need no rule. Nodes that an earlier step has placed are placed by the ranks they
    carry. Every node comes back, as an `ExplainedNode`.

    Parameters
    ----------
    placement
        Name in `shared_core.PLACEMENTS`, or a placement.
    psi
        Position sensitivity of the model: a number, a profile, its path or name, ``"always"`` or
        ``"never"``. ``"always"`` by default, since naming a placement asks for it. None keeps the
        given order; each node's ``posrag`` says why.
    evidence
        ``"point"`` or ``"interval"``; see `shared_core.decide`.

    Raises
    ------
    ValueError
        If an option is out of range.
    TypeError
        If an option is unknown.
    ProfileNotFoundError
        If `psi` names a profile that does not exist.
    """

    model_config = ConfigDict(arbitrary_types_allowed=True, extra="forbid")

    placement: PlacementField = Field(default="u_shape", frozen=True)
    psi: PsiField = Field(default="always", frozen=True)
    evidence: Evidence = Field(default="point", frozen=True)
    _caus: CAUS = PrivateAttr()

    def __init__(
        self,
        placement: str | Placement = "u_shape",
        *,
        psi: Psi = "always",
        evidence: Evidence = "point",
        callback_manager: CallbackManager | None = None,
    ) -> None:
        super().__init__(
            placement=placement,
            psi=psi,
            evidence=evidence,
            callback_manager=callback_manager or CallbackManager(),
        )

    def model_post_init(self, context: Any) -> None:
        """Check the options and settle the gate."""
        self._caus = CAUS(placement=self.placement, psi=self.psi, evidence=self.evidence)

    def _processed(
        self, nodes: Sequence[NodeWithScore], query: QueryBundle | None
    ) -> list[NodeWithScore]:
        return placed(nodes, self._caus)
