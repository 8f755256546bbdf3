"""The 52 questions of the CAUS benchmark, checked against the installed torch."""

from __future__ import annotations

import ast
import inspect
import pkgutil
import re
from collections import Counter

import pytest

pytest.importorskip("torch")

from shared_core import Passage
from shared_core.corpora import TorchQuery, torch_api_passages, torch_queries
from shared_core.evaluation.graders import keywords, required_string

QUERIES = torch_queries()
each_query = pytest.mark.parametrize("query", QUERIES, ids=lambda query: query.id)


@pytest.fixture(scope="module")
def corpus() -> dict[str, Passage]:
    return {passage.id: passage for passage in torch_api_passages()}


def call_of(query: TorchQuery) -> ast.Call:
    """Return the required string as Python reads it."""
    tree = ast.parse(query.required, mode="eval").body
    assert isinstance(tree, ast.Call)
    return tree


def test_there_are_52_in_three_levels_with_unique_ids() -> None:
    """As many as in the paper, and no API is asked for twice."""
    assert Counter(query.level for query in QUERIES) == {
        "basic": 18,
        "intermediate": 17,
        "signature": 17,
    }
    for name in ("id", "query", "api", "required"):
        assert len({getattr(query, name) for query in QUERIES}) == 52
    for query in QUERIES:
        assert re.fullmatch(rf"{query.level}-\d\d", query.id)
        assert (query.changed is not None) == (query.level == "signature")


@each_query
def test_the_api_is_in_the_corpus_under_that_name(
    query: TorchQuery, corpus: dict[str, Passage]
) -> None:
    """Else no retriever could find it; and the name of the call is its, and no other entry's."""
    gold = corpus[query.api]
    callee = ast.unparse(call_of(query).func)
    if gold.metadata["kind"] == "method":
        assert callee.partition(".")[2] == gold.metadata["name"]
        return
    ending = [
        id
        for id, passage in corpus.items()
        if f".{id}".endswith(f".{callee}") and passage.metadata["kind"] != "method"
    ]
    assert ending == [query.api]


@each_query
def test_the_installed_torch_takes_it_too(query: TorchQuery) -> None:
    """Where Python can say what the function takes; the builtin ones are known by their docs."""
    found = pkgutil.resolve_name(query.api)
    assert callable(found)
    try:
        signature = inspect.signature(found)
    except ValueError:
        return
    call = call_of(query)
    receiver = [None] if query.api.startswith(("torch.nn.Module.", "torch.Tensor.")) else []
    signature.bind(*receiver, *call.args, **{str(k.arg): k.value for k in call.keywords})


@each_query
def test_the_required_call_is_right_by_both_graders(query: TorchQuery) -> None:
    """Also under the names it may be imported by, and with the other quotes; less is not right."""
    for answer in (query.required, f"F.{query.required}", query.required.replace('"', "'")):
        assert required_string(answer, query.answers) == 1
        assert keywords(answer, query.keywords) == 1
    assert required_string(query.required[:-1], query.answers) == 0
    assert required_string(f"x{query.required}", query.answers) == 0
