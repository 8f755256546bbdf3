"""A clear error that names the value, before anything is embedded, changed or paid for."""

from threading import Lock
from typing import Any

import numpy as np
import pytest

from shared_core import CAUS, ProfileNotFoundError

from .drivers import Adapter, corpus, search
from .test_retriever import INDEX

CORPUS = corpus()
OPTIONS: list[tuple[dict[str, Any], str]] = [
    ({"k": "3"}, "k must be an integer >= 1, got '3'"),
    ({"alpha": 1.5}, "1.5"),
    ({"placement": "v_shape"}, "v_shape.*sequential"),
    ({"psi": -1.0}, "-1.0"),
]
OF_A_SEARCH: list[tuple[dict[str, Any], str]] = [
    ({"fetch_k": 0}, "fetch_k must be an integer >= 1, got 0"),
    ({"metric": "l1"}, "l1"),
    ({"expand": "wide"}, "expand"),
]


OF_A_PLACER = {"placement", "psi", "rule"}


@pytest.mark.parametrize(("options", "named"), [*OPTIONS, *OF_A_SEARCH], ids=repr)
def test_bad_options_are_named(adapter: Adapter, options: dict[str, Any], named: str) -> None:
    """By whatever takes them."""
    makers = [adapter.build]
    makers += [adapter.rescorer] if (options, named) in OPTIONS else []
    makers += [adapter.placer] if {*options} <= OF_A_PLACER else []
    for make in makers:
        with pytest.raises(ValueError, match=named):
            make(**options)


def test_unknown_options_and_profiles(adapter: Adapter) -> None:
    makers = [adapter.build, adapter.over_store, adapter.rescorer, adapter.placer]
    for make in makers:
        with pytest.raises((TypeError, ValueError), match="kk"):
            make(kk=9, **({"passages": CORPUS[:2]} if make == adapter.over_store else {}))
    with pytest.raises((TypeError, ValueError), match="kk"):
        adapter.rescorer_of([], kk=9)
    for make in (adapter.build, adapter.rescorer):
        with pytest.raises(ProfileNotFoundError, match="no-such-model"):
            make(psi="no-such-model")


def test_a_key_that_names_no_passage(adapter: Adapter) -> None:
    with pytest.raises(ValueError, match="no passage for BM25 has id_key='isbn' in its metadata"):
        adapter.over_store(CORPUS, id_key="isbn")


def test_an_option_set_later_is_checked_and_the_last_one_stays(adapter: Adapter) -> None:
    for retriever in (adapter.build(CORPUS), adapter.over_store(CORPUS)):
        expected = adapter.ask(retriever, "padding")
        for name, value in (("k", 0), ("alpha", 9), ("fetch_k", 1.5), ("placement", "v_shape")):
            with pytest.raises(ValueError, match=rf"{name}(.|\n)*{value}"):
                setattr(retriever, name, value)
        assert adapter.ask(retriever, "padding") == expected


def test_numbers_of_numpy_are_numbers(adapter: Adapter) -> None:
    given: dict[str, Any] = {"k": np.int64(3), "alpha": np.float32(0.5)}
    expected = search(INDEX, "padding", CAUS(k=3, alpha=0.5))
    assert adapter.ask(adapter.build(CORPUS, **given), "padding") == expected
    rescorer = adapter.rescorer(**given)
    assert [type(option) for option in (rescorer.k, rescorer.alpha)] == [int, float]


def test_what_is_no_embedding_model(adapter: Adapter) -> None:
    for model in ("local", 3):
        with pytest.raises(ValueError, match=f"mbed.*(.|\n)*{model!r}"):
            adapter.build(model=model)


async def test_what_cannot_be_added_is_refused_before_it_is_embedded(adapter: Adapter) -> None:
    """Embedding takes long, and often costs; the letters of one id may be the ids of others."""
    embedded: list[str] = []
    retriever = adapter.build(model=adapter.model(embedded.append))
    item = adapter.item("relu", "x")
    for given, told in (
        ([item, {"text": "x"}], rf"{adapter.many}\[1\] must be a {adapter.one}, got {{"),
        ([item, adapter.item("gelu", "x")], "id 'x' occurs twice"),
        ([item, adapter.item("gelu", "")], "id of passage 1 must be a non-empty string"),
        ([item, adapter.item("gelu", "b", guard=Lock())], r" 'b'.*: 'guard' holds a lock"),
    ):
        with pytest.raises(ValueError, match=told):
            adapter.add(retriever, given)
        with pytest.raises(ValueError, match=told):
            await adapter.aadd(retriever, given)
    assert embedded == []
    for ids in ("p1", None):
        with pytest.raises((ValueError, TypeError), match=r"ids|None"):
            adapter.delete(retriever, ids)
        with pytest.raises((ValueError, TypeError), match=r"ids|None"):
            await adapter.adelete(retriever, ids)
