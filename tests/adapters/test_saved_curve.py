"""A curve that ``posrag attention`` has saved places in both adapters, by path and by name."""

from __future__ import annotations

from pathlib import Path

import pytest

pytest.importorskip("torch")
pytest.importorskip("transformers")

from langchain_core.documents import Document
from llama_index.core.schema import NodeWithScore, TextNode

from langchain_posrag import AttentionPlacement
from llamaindex_posrag import AttentionPlacementPostprocessor
from shared_core import HuggingFaceModel, ProfileNotFoundError
from shared_core.sensitivity.curve import PositionalCurve

READER = Path(__file__).parents[2] / "instruments" / "uniform"
TEXTS = [f"The code of amber falcon is {word}." for word in ("violet", "pickle", "cargo", "lamp")]
CURVE = PositionalCurve(model="some/model", scores=(3.0, 1.0, 0.5, 1.0, 2.0), n=7)


@pytest.fixture(scope="module")
def model() -> HuggingFaceModel:
    return HuggingFaceModel.from_pretrained(READER, max_new_tokens=4)


@pytest.mark.parametrize("kind", [str, Path, "name"])
def test_both_place_by_what_is_saved(
    kind: object, model: HuggingFaceModel, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In the order of the curve itself."""
    monkeypatch.setenv("POSRAG_PROFILES", str(tmp_path))
    saved = CURVE.save()
    spec = CURVE.model if kind == "name" else kind(saved)  # type: ignore[operator]
    documents = [Document(text) for text in TEXTS]
    nodes = [NodeWithScore(node=TextNode(text=text)) for text in TEXTS]
    orders = []
    for curve in (CURVE, spec):
        placed = AttentionPlacement(model, curve=curve).compress_documents(documents, "x")
        orders.append([document.page_content for document in placed])
        found = AttentionPlacementPostprocessor(model, curve=curve).postprocess_nodes(nodes)
        orders.append([node.node.get_content() for node in found])
    assert orders == [[TEXTS[at] for at in (0, 2, 3, 1)]] * 4


@pytest.mark.parametrize("adapter", [AttentionPlacement, AttentionPlacementPostprocessor])
def test_a_curve_that_is_not_there_is_refused_at_once(
    adapter: type, model: HuggingFaceModel, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where it is given, not where it is used."""
    monkeypatch.setenv("POSRAG_PROFILES", str(tmp_path))
    with pytest.raises(ProfileNotFoundError, match="no positional curve 'absent'"):
        adapter(model, curve="absent")
    (tmp_path / "other.json").write_text("{}", encoding="utf-8")
    with pytest.raises(ValueError, match=r"other\.json is not a positional curve"):
        adapter(model, curve=tmp_path / "other.json")
    with pytest.raises(ValueError, match="PositionalCurve"):
        adapter(model, curve=5)
