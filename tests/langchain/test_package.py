"""What the package is to its users."""

import subprocess
import sys

import langchain_posrag


def test_public_names() -> None:
    assert langchain_posrag.__all__ == [
        "AttentionPlacement",
        "CAUSRetriever",
        "ContextAwarenessGate",
        "GatedPrompt",
        "GatedRetriever",
        "HybridScoreCompressor",
        "LangChainModel",
        "NeighbourSpanTransformer",
        "PlacementTransformer",
        "TwoRoundChain",
    ]
    assert all(hasattr(langchain_posrag, name) for name in langchain_posrag.__all__)


def test_importing_needs_langchain_core_alone_and_warns_of_nothing() -> None:
    unwanted = ("torch", "langchain_community", "langchain_classic", "llama_index", "rank_bm25")
    program = (  # langchain-core 1.0.0 imports transformers for itself
        "import sys; from langchain_core.language_models import LLM; before = {*sys.modules}; "
        "import langchain_posrag; "
        f"print([name for name in {unwanted!r} if name in {{*sys.modules}} - before])"
    )

    run = subprocess.run(
        [sys.executable, "-W", "always", "-c", program], capture_output=True, text=True, check=True
    )

    assert run.stdout.strip() == "[]"
    assert "LangChain" not in run.stderr
