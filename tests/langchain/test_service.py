"""A retriever in a service: the user's functions see the request, and no request waits for them."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from contextvars import ContextVar
from typing import Any

import pytest

from langchain_posrag import CAUSRetriever
from shared_core import Passage
from tests.adapters.drivers import LangChain

tenant: ContextVar[str] = ContextVar("tenant", default="nobody")

TENANTS = [
    Passage(str(n), f"mark {n}", {"tenant": "acme" if n % 2 else "other"}) for n in range(20)
]


@pytest.fixture(params=[LangChain().build, LangChain().over_store])
def retriever(request: pytest.FixtureRequest) -> CAUSRetriever:
    made: CAUSRetriever = request.param(TENANTS, k=100)
    return made


@pytest.mark.parametrize("method", ["invoke", "ainvoke", "batch", "abatch"])
def test_a_filter_sees_the_context_of_the_request(retriever: CAUSRetriever, method: str) -> None:
    seen = set()

    def mine(metadata: Mapping[str, Any]) -> bool:
        seen.add(tenant.get())
        return bool(metadata["tenant"] == tenant.get())

    ask = getattr(retriever, method)
    given = ["mark", "mark 3"] if "batch" in method else "mark"
    token = tenant.set("acme")
    try:
        found = ask(given, filter=mine)
        found = asyncio.run(found) if method.startswith("a") else found
    finally:
        tenant.reset(token)
    for documents in found if "batch" in method else [found]:
        assert len(documents) == 10
        assert {document.metadata["tenant"] for document in documents} == {"acme"}
    assert seen == {"acme"}
