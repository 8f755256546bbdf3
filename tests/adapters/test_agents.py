"""Retrieval as an agent's tool: what its model reads is in placed order, in real agents."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

import pytest
from langchain.agents import create_agent
from langchain_core.documents import Document
from langchain_core.embeddings import DeterministicFakeEmbedding
from langchain_core.language_models import GenericFakeChatModel
from langchain_core.messages import AIMessage, HumanMessage, ToolCall, ToolMessage
from langchain_core.tools import create_retriever_tool
from llama_index.core import MockEmbedding, VectorStoreIndex
from llama_index.core.agent.workflow import FunctionAgent, ToolCallResult
from llama_index.core.base.llms.types import ChatMessage, TextBlock, ToolCallBlock
from llama_index.core.llms import MockLLM
from llama_index.core.llms.mock import MockFunctionCallingLLM
from llama_index.core.schema import TextNode
from llama_index.core.tools import QueryEngineTool, RetrieverTool, ToolOutput

import langchain_posrag
import llamaindex_posrag

TEXTS = ["mark 1", "mark 2", "mark 3", "mark 4", "mark 5"]
QUESTION = "mark 3"


class ScriptedModel(GenericFakeChatModel):
    """Says what it is given, one message after another."""

    def bind_tools(self, tools: Sequence[Any], **_: Any) -> ScriptedModel:
        return self


def test_a_langchain_agent_reads_the_documents_in_placed_order() -> None:
    """Its artifact are the documents, with their reasons."""
    docs = [Document(text, id=text) for text in TEXTS]
    embeddings = DeterministicFakeEmbedding(size=8)
    retriever = langchain_posrag.CAUSRetriever.from_documents(docs, embeddings, k=4, psi="always")
    placed = retriever.invoke(QUESTION)
    assert [each.metadata["posrag"]["rank"] for each in placed] == [0, 2, 3, 1]
    tool = create_retriever_tool(
        retriever, "search", "Searches.", response_format="content_and_artifact"
    )
    call = ToolCall(name="search", args={"query": QUESTION}, id="1")
    said = [AIMessage("", tool_calls=[call]), AIMessage("done")]
    agent = create_agent(ScriptedModel(messages=iter(said)), tools=[tool])
    messages = agent.invoke({"messages": [HumanMessage(QUESTION)]})["messages"]
    (read,) = [each for each in messages if isinstance(each, ToolMessage)]
    assert read.content == "\n\n".join(each.page_content for each in placed)
    assert read.artifact == placed


@pytest.mark.parametrize("kind", ["retriever", "query engine"])
def test_a_llamaindex_agent_reads_the_nodes_in_placed_order(kind: str) -> None:
    """By a tool of a retriever with the postprocessor behind it, and of a query engine with it."""
    nodes = [TextNode(text=text, id_=text) for text in TEXTS]
    index = VectorStoreIndex(nodes, embed_model=MockEmbedding(embed_dim=8))
    placing = llamaindex_posrag.CAUSPostprocessor(k=4, psi="always")
    tool: RetrieverTool | QueryEngineTool
    if kind == "retriever":
        found = index.as_retriever(similarity_top_k=5)
        tool = RetrieverTool.from_defaults(found, [placing], name="search")
    else:
        engine = index.as_query_engine(
            llm=MockLLM(), similarity_top_k=5, node_postprocessors=[placing]
        )
        tool = QueryEngineTool.from_defaults(engine, name="search")
    output = _output_for_an_agent(tool)
    read = output.raw_output if kind == "retriever" else output.raw_output.source_nodes
    assert [each.posrag["rank"] for each in read] == [0, 2, 3, 1]
    if kind == "retriever":
        assert output.content.split() == " ".join(each.text for each in read).split()


def _scripted(messages: Sequence[ChatMessage], **_: Any) -> ChatMessage:
    """Call the tool, then answer."""
    if messages[-1].role == "tool":
        return ChatMessage(role="assistant", content="done")
    call = ToolCallBlock(tool_call_id="1", tool_name="search", tool_kwargs={"input": QUESTION})
    return ChatMessage(role="assistant", blocks=[TextBlock(text=""), call])


def _output_for_an_agent(tool: Any) -> ToolOutput:
    """Return what an agent of LlamaIndex gets from a tool."""

    async def run() -> ToolOutput:
        llm = MockFunctionCallingLLM(response_generator=_scripted, is_chat_model=True)
        running = FunctionAgent(tools=[tool], llm=llm).run(QUESTION)
        events = [event async for event in running.stream_events()]
        await running
        (found,) = [each.tool_output for each in events if isinstance(each, ToolCallResult)]
        return found

    return asyncio.run(run())
