"""The ``demo`` subcommand: its options, and the job from question to answer."""

from __future__ import annotations

import argparse
import re

from shared_core import CAUS, PLACEMENTS, Arrangement
from shared_core._extras import require
from shared_core.cli import filling, options
from shared_core.cli.console import Console
from shared_core.cli.demo import report
from shared_core.cli.demo.frameworks import framework_orders
from shared_core.cli.embedding import EmbeddingModel, default_model
from shared_core.cli.embedding_cache import EmbeddingCache, indexed
from shared_core.cli.installed import EMBEDDING, TABLES, check_installed
from shared_core.corpora import torch_api_passages
from shared_core.demo import DemoTask
from shared_core.engines import Engine
from shared_core.placement.order_gate import Psi, profile_of
from shared_core.types import Query

# Dense search alone ranks the right API, torch.nn.functional.interpolate, sixth.
DEFAULT_QUERY = 'How do I resize an image tensor with mode="bicubic"?'


def add_parser(subcommands: options.Subparsers, purpose: str) -> None:
    """Add ``demo`` and its options."""
    parser = subcommands.add_parser(
        "demo",
        help=purpose,
        description="Search the documentation of the installed PyTorch by meaning and by words, "
        "place the passages, and show why each is placed where it is; then do the same inside "
        "LangChain and LlamaIndex and compare.",
    )
    add = parser.add_argument
    add("--query", default=DEFAULT_QUERY, help=f"the question (default: {DEFAULT_QUERY})")
    add("-k", "--k", type=int, default=10, help="number of passages (default: 10)")
    add("--alpha", type=float, help="weight of the dense score, in [0, 1] (default: 0.85)")
    add("--fetch-k", type=int, default=50, help="candidates that each search fetches (default: 50)")
    add("--placement", default="auto", help=f"auto or one of: {', '.join(PLACEMENTS)} (default: "
        "auto)")  # fmt: skip
    options.add_psi(parser)
    add("--model", default=default_model(), help=options.EMBEDDING_HELP)
    options.add_cache(parser)
    add("--engine", metavar="URL", help=f"{filling.URL_HELP}: search the passages there, in the "
        "collection posrag_demo, and compare with memory")  # fmt: skip
    add("--rebuild", action="store_true", help="embed again, whatever is kept")
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Do the job; return 0, or 1 if a framework's order is not the core's."""
    check_installed({**TABLES, **EMBEDDING}, install="all")
    if not arguments.query.strip():
        raise ValueError(f"--query must not be blank, got {arguments.query!r}")
    _check_profile(arguments.placement, arguments.psi)
    caus = CAUS(
        k=arguments.k,
        alpha=arguments.alpha,
        fetch_k=arguments.fetch_k,
        placement=arguments.placement,
        psi=arguments.psi,
    )
    console = Console()
    version = require("torch", extra="models").__version__
    passages = torch_api_passages()
    console.say(f"{len(passages):,} documented entries in the API of torch {version}.")
    embed = EmbeddingCache(EmbeddingModel(arguments.model), arguments.cache, console)
    if arguments.rebuild:
        embed.clear()
    task = DemoTask(passages, embed, arguments.query, caus)
    index, query = indexed(passages, embed), Query(task.query, embed([task.query])[0])
    if arguments.engine is None:
        return _compare(console, task, _answer(console, caus, index, query), {})
    (found,) = caus.search(index, [query])
    memory = {"in memory": [passage.id for passage in found.passages]}
    collection = "posrag_demo_" + re.sub(r"\W", "_", version)  # whose API it is
    with filling.opened(arguments.engine, collection) as engine:
        filling.fill(engine, passages, embed, console)
        arrangement = _answer(console, caus, engine, query)
    return _compare(console, task, arrangement, memory)


def _check_profile(placement: str, psi: Psi) -> None:
    """Raise ValueError if a placement is made from a profile, and --psi names none."""
    kind = PLACEMENTS.get(placement)
    if kind is not None and kind.needs_profile and profile_of(psi) is None:
        raise ValueError(
            f"--placement {placement} is made from a position profile, and --psi {psi} is not one: "
            "give --psi the path or name of a saved one (`posrag probe MODEL` measures one)"
        )


def _answer(console: Console, caus: CAUS, engine: Engine, query: Query) -> Arrangement:
    (arrangement,) = caus.search(engine, [query])
    ((by_meaning, _),) = engine.search_leg("dense", query, 1)
    console.show(f"\nQuery: {query.text}")
    console.show(report.table(arrangement))
    console.show(report.FOOTNOTE)
    console.show(f"\n{report.gate_line(arrangement)}")
    console.show(report.why_line(arrangement, by_meaning.id))
    return arrangement


def _compare(
    console: Console, task: DemoTask, arrangement: Arrangement, memory: dict[str, list[str]]
) -> int:
    orders, absent = framework_orders(task)
    orders = memory | orders
    console.show("\nThe prompt's order, as fused ranks by slot:")
    for line in report.orders_lines(arrangement, orders):
        console.show(line)
    for title, reason in absent.items():
        console.show(f"  {title} is not installed: {reason}")
    identical, sentence = report.verdict(arrangement, orders)
    console.show(sentence)
    return 0 if identical else 1
