"""The options of a retriever, given, read, set on the retriever itself, or for one call."""

from __future__ import annotations

from typing import Any

import pytest
from llama_index.core.callbacks import CallbackManager
from llama_index.core.vector_stores.types import MetadataFilter, MetadataFilters

from llamaindex_posrag import CAUS, CAUSRetriever

from .doubles import QUERY, WordEmbedding, corpus

GERMAN = MetadataFilter(key="lang", value="de")


def made(**options: Any) -> CAUSRetriever:
    return CAUSRetriever.from_nodes(corpus(), WordEmbedding(), **options)


def test_a_call_has_options_of_its_own() -> None:
    """``filters=None`` searches without any."""
    retriever = made(k=12, filters=MetadataFilters(filters=[GERMAN]))
    assert len(retriever.retrieve(QUERY)) == 6
    assert len(retriever.using(filters=None).retrieve(QUERY)) == 12
    with pytest.raises(TypeError, match="kk"):
        retriever.using(kk=9)  # type: ignore[call-arg]


def test_similarity_top_k_is_k() -> None:
    """The name in LlamaIndex's own retrievers, which would otherwise be set in vain."""
    retriever = made()
    retriever.similarity_top_k = 2
    assert (retriever.k, retriever.similarity_top_k, len(retriever.retrieve(QUERY))) == (2, 2, 2)
    with pytest.raises(TypeError, match=r"\[.similarity_top_k.\] .* is k="):
        made(similarity_top_k=2)


@pytest.mark.parametrize("name", ["filter", "top_k", "psy"])
def test_an_option_that_is_none_is_not_set(name: str) -> None:
    """It would be without effect: with ``filter`` another tenant's text is found."""
    retriever = made()
    with pytest.raises(ValueError, match=f"no option '{name}': it has filters, k, "):
        setattr(retriever, name, None)
    retriever.callback_manager = CallbackManager()


def test_the_constructor_takes_the_options_of_caus_or_a_caus() -> None:
    """And not both, of which one would be ignored."""
    assert made(caus=CAUS(k=3)).caus == CAUS(k=3)
    with pytest.raises(ValueError, match=r"give caus= or k=, alpha=, not both"):
        made(caus=CAUS(), k=3, alpha=1.0)
    told = r"caus must be a CAUS, as CAUS\(k=3\), got .*'u_shape'"
    with pytest.raises(ValueError, match=told):
        made(caus="u_shape")
    with pytest.raises(ValueError, match=told):
        made().caus = "u_shape"  # type: ignore[assignment]
