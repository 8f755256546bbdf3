"""What LangChain asks of a Runnable: types that make schemas and tools, and no lost arguments."""

from pathlib import Path
from typing import Any

import pytest
from langchain_classic.retrievers import ContextualCompressionRetriever
from langchain_classic.retrievers.document_compressors import DocumentCompressorPipeline
from langchain_core.documents import Document
from langchain_core.runnables import ConfigurableField, RunnablePassthrough

from langchain_posrag import (
    CAUSRetriever,
    NeighbourSpanTransformer,
    PlacementTransformer,
    TwoRoundChain,
)

READER = Path(__file__).parents[2] / "instruments" / "biased"
QUESTION = {"question": "What is the code?", "documents": [Document("a"), Document("b")]}


def steps() -> list[tuple[Any, Any]]:
    """Every step whose calls take no options, and an input of it."""
    return [
        (PlacementTransformer("u_shape"), [Document("a")]),
        (NeighbourSpanTransformer(), [Document("a")]),
        (TwoRoundChain(READER), QUESTION),
    ]


@pytest.mark.parametrize(("step", "given"), steps(), ids=lambda each: type(each).__name__)
async def test_a_call_with_an_option_is_told_where_options_go(step: Any, given: Any) -> None:
    """It would be lost: LangChain's signatures take any."""
    named = rf"{type(step).__name__} takes no options, got placement=: .*configurable_fields"
    for call in (
        lambda: step.invoke(given, placement="inverse"),
        lambda: step.bind(placement="inverse").invoke(given),
        lambda: step.batch([given, given], placement="inverse"),
        lambda: step.with_retry(stop_after_attempt=1).invoke(given, placement="inverse"),
        lambda: [*step.stream(given, placement="inverse")],
    ):
        with pytest.raises(TypeError, match=named):
            call()
    with pytest.raises(TypeError, match=named):
        await step.ainvoke(given, placement="inverse")
    with pytest.raises(TypeError, match=named):
        await step.abatch([given, given], placement="inverse")


@pytest.mark.parametrize("step", [PlacementTransformer("u_shape"), NeighbourSpanTransformer()])
async def test_a_transformation_with_an_option_is_told_too(step: Any) -> None:
    with pytest.raises(TypeError, match="got a=, b="):
        step.transform_documents([Document("a")], a=1, b=2)
    with pytest.raises(TypeError, match="got a="):
        await step.atransform_documents([Document("a")], a=1)


async def test_options_for_the_retriever_pass_the_steps_behind_it(
    retriever: CAUSRetriever,
) -> None:
    """A sequence gives a call's arguments to its first step alone, and compressors get none."""
    step = PlacementTransformer("inverse")
    expected = [document.id for document in step.invoke(retriever.invoke("relu", k=3))]
    pipe = retriever | step
    compressing = ContextualCompressionRetriever(
        base_retriever=retriever.model_copy(update={"k": 3}),
        base_compressor=DocumentCompressorPipeline(transformers=[step]),
    )

    for found in (
        pipe.invoke("relu", k=3),
        pipe.bind(k=3).batch(["relu"])[0],
        await pipe.ainvoke("relu", k=3),
        compressing.invoke("relu"),
        await compressing.ainvoke("relu"),
    ):
        assert [document.id for document in found] == expected
    placed = RunnablePassthrough.assign(placed=lambda given: step.invoke(given["documents"]))
    assert placed.invoke({"documents": [Document("a")]}, unknown=1)["placed"]


def test_the_way_out_is_one() -> None:
    step = PlacementTransformer("u_shape").configurable_fields(placement=ConfigurableField("way"))
    found = step.invoke([Document("a"), Document("b")], {"configurable": {"way": "inverse"}})
    assert [document.page_content for document in found] == ["b", "a"]


def test_the_two_rounds_tell_their_input_and_output() -> None:
    chain = TwoRoundChain(READER)

    given = chain.get_input_jsonschema()["$defs"]["Asked"]
    assert given["properties"]["question"]["type"] == "string"
    assert given["properties"]["documents"]["items"] == {"$ref": "#/$defs/Document"}
    assert given["required"] == ["question", "documents"]
    made = chain.get_output_jsonschema()["$defs"]["Answered"]
    assert {name: each["type"] for name, each in made["properties"].items()} == {
        "answer": "string",
        "first_answer": "string",
        "documents": "array",
        "order": "array",
        "scores": "array",
        "rounds": "integer",
    }


@pytest.mark.filterwarnings("ignore:This API is in beta")
def test_the_two_rounds_make_a_tool() -> None:
    pytest.importorskip("torch")
    chain = TwoRoundChain(READER)

    tool = chain.as_tool(name="answer", description="Answers from documents.")

    assert [*tool.args] == ["question", "documents"]
    assert tool.invoke(QUESTION) == chain.invoke(QUESTION)
