"""The 52 questions of the CAUS benchmark, checked against the installed torch."""

from __future__ import annotations

import ast
import inspect
import pkgutil
import re
from collections import Counter
from typing import Any

import pytest

pytest.importorskip("torch")

from shared_core import Passage
from shared_core.corpora import TorchQuery, torch_api_passages, torch_queries
from shared_core.evaluation.graders import keywords, required_string
from shared_core.index.tokenize import tokenize

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


def signature_of(passage: Passage) -> inspect.Signature:
    """Return the signature as documented, defaults as source text."""
    documented = passage.metadata["signature"].partition("->")[0].strip()
    documented = re.sub(r"<.*?>", "...", documented)  # a default that has no source text
    function = ast.parse(f"def f{documented}: ...").body[0]
    assert isinstance(function, ast.FunctionDef)
    arguments, kind = function.args, inspect.Parameter
    positional = [*arguments.posonlyargs, *arguments.args]
    defaults: list[Any] = [kind.empty] * (len(positional) - len(arguments.defaults))
    defaults += [ast.unparse(default) for default in arguments.defaults]
    parameters = [
        kind(argument.arg, kind.POSITIONAL_OR_KEYWORD, default=default)
        for argument, default in zip(positional, defaults, strict=True)
    ]
    if arguments.vararg:
        parameters.append(kind(arguments.vararg.arg, kind.VAR_POSITIONAL))
    for argument, value in zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True):
        default = kind.empty if value is None else ast.unparse(value)
        parameters.append(kind(argument.arg, kind.KEYWORD_ONLY, default=default))
    return inspect.Signature(parameters)


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
def test_the_call_is_what_the_documented_signature_takes(
    query: TorchQuery, corpus: dict[str, Passage]
) -> None:
    """Required arguments by position, others by name and in order, none that has its default."""
    call, signature = call_of(query), signature_of(corpus[query.api])
    named = {keyword.arg: ast.unparse(keyword.value) for keyword in call.keywords}
    signature.bind(*call.args, **{str(name): value for name, value in named.items()})
    parameters = signature.parameters
    kinds = inspect.Parameter
    required = [
        parameter
        for parameter in parameters.values()
        if parameter.default is kinds.empty and parameter.kind is kinds.POSITIONAL_OR_KEYWORD
    ]
    takes_more = any(p.kind is kinds.VAR_POSITIONAL for p in parameters.values())
    assert len(call.args) == len(required) or takes_more
    assert list(named) == [name for name in parameters if name in named]
    assert all(parameters[str(name)].default != value for name, value in named.items())


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
def test_the_documentation_holds_every_name_that_the_call_uses(
    query: TorchQuery, corpus: dict[str, Passage]
) -> None:
    """A model that reads the gold passage can know the call; it need not have been told before."""
    text = corpus[query.api].text
    for keyword in call_of(query).keywords:
        assert re.search(rf"\b{keyword.arg}\b", text)
        value = keyword.value
        if isinstance(value, ast.Constant) and isinstance(value.value, str):
            assert value.value in text


@each_query
def test_the_question_names_the_variables_and_not_the_api(query: TorchQuery) -> None:
    """Else it is no task for retrieval, or the call cannot be known word for word."""
    name = query.api.rpartition(".")[2]
    assert not re.search(rf"(?<![\w.]){re.escape(name)}\b", query.query)
    assert query.api not in query.query
    variables = {node.id for node in ast.walk(call_of(query)) if isinstance(node, ast.Name)} - {
        "torch",
        "linalg",
        "parametrizations",
        "self",
    }
    callee = call_of(query).func
    if isinstance(callee, ast.Name):
        variables -= {callee.id}
    assert all(re.search(rf"\b{variable}\b", query.query) for variable in variables)


@each_query
def test_the_required_call_is_right_by_both_graders(query: TorchQuery) -> None:
    """Also under the names it may be imported by, and with the other quotes; less is not right."""
    for answer in (query.required, f"F.{query.required}", query.required.replace('"', "'")):
        assert required_string(answer, query.answers) == 1
        assert keywords(answer, query.keywords) == 1
    assert required_string(query.required[:-1], query.answers) == 0
    assert required_string(f"x{query.required}", query.answers) == 0


def test_the_questions_differ_in_wording() -> None:
    """Written one by one, not by a template: no two begin alike or share most of their words."""
    beginnings = [tuple(tokenize(query.query)[:4]) for query in QUERIES]
    assert len({*beginnings}) == len(QUERIES)
    words = [{*tokenize(query.query)} for query in QUERIES]
    for at, some in enumerate(words):
        for other in words[:at]:
            assert len(some & other) / len(some | other) < 0.4
