"""Exact match of the two readers behind real chains, by the order of the passages.

::

    python -m benchmarks.reading

Each reader is probed on held-out questions. Then it answers others behind a LangChain chain and a
LlamaIndex query engine over a retriever that ranks the gold passage imperfectly: all-MiniLM-L6-v2
alone, over documents that share their words. Every order answers the same questions; differences
are paired, with 95% intervals. The readers are test instruments; their bias is known because they
were trained to have it. ``--output`` keeps the figures as JSON.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from benchmarks.figures import add_output, figure, keep
from instruments.cases import probe_questions
from instruments.corpus import held_out_corpus
from instruments.frameworks import EmbedTexts, embedded_once, langchain_chain, llamaindex_engine
from shared_core import CAUS, HybridIndex, Passage, PositionProfile
from shared_core.evaluation import GRADERS, paired_difference_interval
from shared_core.generation import HuggingFaceModel
from shared_core.placement import Placement, Shuffle
from shared_core.probe import Probe
from shared_core.types import Query

READERS = Path(__file__).parents[1] / "instruments"
ORDERS: dict[str, str | Placement] = {
    "sequential": "sequential",
    "inverse": "inverse",
    "shuffle": Shuffle(seed=0),
    "u_shape": "u_shape",
    "max_relevance": "max_relevance",
}
K = 10


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--n", type=int, default=300, help="questions, to probe and to answer")
    parser.add_argument("--documents", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=11)
    add_output(parser)
    options = parser.parse_args()
    corpus = held_out_corpus(options.documents, seed=options.seed)
    asked = corpus[: options.n]
    texts = [each["text"] for each in corpus] + [each["question"] for each in asked]
    embed = embedded_once(texts)
    report_ranks(corpus, asked, embed)
    for name in ("biased", "uniform"):
        reader = HuggingFaceModel.from_pretrained(READERS / name, max_new_tokens=4)
        rows = report(reader, probed(reader, options), corpus, asked, embed)
        keep(options.output, {"benchmark": "reading", "reader": name}, rows)


def probed(reader: HuggingFaceModel, options: argparse.Namespace) -> PositionProfile:
    questions = probe_questions(options.n, k=K, seed=options.seed)
    return Probe(k=K, looks=1).run(reader, questions)


def report_ranks(corpus: list[dict], asked: list[dict], embed: EmbedTexts) -> None:
    index = HybridIndex()
    texts = [each["text"] for each in corpus]
    index.add(
        [Passage(each["id"], text) for each, text in zip(corpus, texts, strict=True)], embed(texts)
    )
    ranks = []
    for each in asked:
        asks = Query(each["question"], embed([each["question"]])[0])
        (found,) = CAUS(k=K, alpha=1.0).search(index, [asks])
        ids = [passage.id for passage in found.ranking.passages]
        ranks.append(ids.index(each["id"]) if each["id"] in ids else K)
    counts = np.bincount(ranks, minlength=K + 1)
    print(f"{len(asked)} questions over {len(corpus)} documents, k={K}, dense search alone")
    print(f"gold by rank: {' '.join(map(str, counts[:K]))}; not among the {K}: {counts[K]}")


def report(
    reader: HuggingFaceModel,
    profile: PositionProfile,
    corpus: list[dict],
    asked: list[dict],
    embed: EmbedTexts,
) -> list[dict[str, Any]]:
    """Print the exact match by order, and return it as rows."""
    lower, upper = profile.interval or (np.nan, np.nan)
    psi = figure(profile.psi, (lower, upper))
    rows = []
    curve = " ".join(f"{value:.2f}" for value in profile.accuracy or ())
    print(f"\n{reader.name}: EM by slot {curve}")
    print(f"position sensitivity {profile.psi:.3f}, 95% interval [{lower:.3f}, {upper:.3f}]")
    print(f"{'order':16}{'LangChain':>10}{'LlamaIndex':>12}{'same answers':>14}"
          f"{'less shuffle [95%]':>28}{'less sequential [95%]':>28}")  # fmt: skip
    results: dict[str, npt.NDArray[np.float64]] = {}
    for order, placement in ORDERS.items():
        # The order is forced, whatever the gate says, except where it is made from the profile.
        how = {"k": K, "alpha": 1.0, "fetch_k": K, "placement": placement}
        how["psi"] = profile if order == "max_relevance" else "always"
        chain = langchain_chain(reader, corpus, embed, **how)
        engine = llamaindex_engine(reader, corpus, embed, **how)
        ours = [chain.invoke(each["question"]) for each in asked]
        theirs = [str(engine.query(each["question"])) for each in asked]
        results[order] = graded(ours, asked)
        same = np.mean(
            [one.strip() == other.strip() for one, other in zip(ours, theirs, strict=True)]
        )
        match = {
            "LangChain": figure(results[order].mean()),
            "LlamaIndex": figure(graded(theirs, asked).mean()),
        }
        less = {
            f"less {other}": against(results, order, other)
            for other in ("shuffle", "sequential")
            if other in results and other != order
        }
        rows.append({"order": order, "position sensitivity": psi, **match, **less})
        print(
            f"{order:16}{match['LangChain'][0]:10.3f}{match['LlamaIndex'][0]:12.3f}{same:14.1%}"
            f"{shown(less, 'less shuffle'):>28}{shown(less, 'less sequential'):>28}",
            flush=True,
        )
    return rows


def graded(answers: list[str], asked: list[dict]) -> npt.NDArray[np.float64]:
    grade = GRADERS["exact"]
    return np.array([grade(a, each["answers"]) for a, each in zip(answers, asked, strict=True)])


def against(results: dict[str, npt.NDArray[np.float64]], order: str, other: str) -> list[float]:
    ends = paired_difference_interval(results[order], results[other])
    return figure(np.mean(results[order] - results[other]), ends)


def shown(less: dict[str, list[float]], name: str) -> str:
    return "{:+.3f} [{:+.3f}, {:+.3f}]".format(*less[name]) if name in less else ""


if __name__ == "__main__":
    main()
