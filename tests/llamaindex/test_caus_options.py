"""The options of a retriever, given, read, set on the retriever itself, or for one call."""

from __future__ import annotations

from typing import Any

import pytest
from llama_index.core import VectorStoreIndex
from llama_index.core.callbacks import CallbackManager
from llama_index.core.vector_stores.types import MetadataFilter, MetadataFilters

from llamaindex_posrag import CAUS, CAUSRetriever

from .doubles import QUERY, WordEmbedding, corpus

pytestmark = pytest.mark.filterwarnings("ignore:no passage says which chunk")

GERMAN = MetadataFilter(key="lang", value="de")


def made(kind: str, **options: Any) -> CAUSRetriever:
    """Return a retriever over an index of ours, or one whose dense leg is LlamaIndex's."""
    given = options if "caus" in options else {"k": 5, "psi": "always", **options}
    if kind == "own":
        own = CAUSRetriever.from_nodes(corpus(), WordEmbedding())
        return CAUSRetriever(own.index, WordEmbedding(), **given)
    return CAUSRetriever.from_index(
        VectorStoreIndex(corpus(), embed_model=WordEmbedding()), **given
    )


@pytest.fixture(params=["own", "fusing"])
def kind(request: pytest.FixtureRequest) -> str:
    found: str = request.param
    return found


def test_a_call_has_options_of_its_own(kind: str) -> None:
    """``filters=None`` searches without any."""
    retriever = made(kind, k=12, filters=MetadataFilters(filters=[GERMAN]))
    assert len(retriever.retrieve(QUERY)) == 6
    assert len(retriever.using(filters=None).retrieve(QUERY)) == 12
    with pytest.raises(TypeError, match="kk"):
        retriever.using(kk=9)  # type: ignore[call-arg]


def test_similarity_top_k_is_k(kind: str) -> None:
    """The name in LlamaIndex's own retrievers, which would otherwise be set in vain."""
    retriever = made(kind)
    retriever.similarity_top_k = 2
    assert (retriever.k, retriever.similarity_top_k, len(retriever.retrieve(QUERY))) == (2, 2, 2)
    with pytest.raises(TypeError, match="similarity_top_k"):
        made(kind, similarity_top_k=2)


@pytest.mark.parametrize("name", ["filter", "top_k", "psy"])
def test_an_option_that_is_none_is_not_set(kind: str, name: str) -> None:
    """It would be without effect: with ``filter`` another tenant's text is found."""
    retriever = made(kind)
    with pytest.raises(ValueError, match=f"no option '{name}': it has filters, k, "):
        setattr(retriever, name, None)
    retriever.callback_manager = CallbackManager()


def test_the_constructor_takes_the_options_of_caus_or_a_caus(kind: str) -> None:
    """And not both, of which one would be ignored."""
    assert made(kind, caus=CAUS(k=3)).caus == CAUS(k=3)
    with pytest.raises(ValueError, match=r"give caus= or k=, alpha=, not both"):
        made(kind, caus=CAUS(), k=3, alpha=1.0)
    told = r"caus must be a CAUS, as CAUS\(k=3\), got .*'u_shape'"
    with pytest.raises(ValueError, match=told):
        made(kind, caus="u_shape")
    with pytest.raises(ValueError, match=told):
        made(kind).caus = "u_shape"  # type: ignore[assignment]
