"""CAUS for LangChain: hybrid retrieval with explained scores, and placement in the prompt."""

from __future__ import annotations

from langchain_posrag.compressors import HybridScoreCompressor
from langchain_posrag.generation import LangChainModel
from langchain_posrag.retrievers import CAUSRetriever
from langchain_posrag.transformers import PlacementTransformer

__all__ = ["CAUSRetriever", "HybridScoreCompressor", "LangChainModel", "PlacementTransformer"]
