"""Tables 2, 3 and 5 of GoodPositions: in a terminal, next to the paper's figures, and as JSON."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, Self

from shared_core.cli.reproduce import failing
from shared_core.cli.reproduce.good_positions import ORDERS, Answers, GoodPositionsExperiment
from shared_core.cli.reproduce.published import METHODS, MODELS, NUMBERS, PLACED, PaperRows
from shared_core.cli.reproduce.tables import HERE, grid, measured, paper_rows, published, two_rows
from shared_core.comparison import Failure
from shared_core.comparison.text_report import failure_lines
from shared_core.evaluation import PairedComparison, compare_paired

if TYPE_CHECKING:
    from rich.console import RenderableType
    from rich.table import Table

FOOTNOTE = (
    "In percent, with 95% intervals over questions. An answer is right if it contains an accepted"
    " one. Ordered has the best document next to the question; Unordered is one random order per "
    "question, and 3 documents are the first 3 of either ranking. p: paired Wilcoxon test with "
    "Holm's correction, against Vanilla in Table 2 and Default, original in Table 3. The paper's "
    "figures are of other models on HotpotQA, Musique and 2WikiMHQA (H, M, W); next to Table 5 "
    "are those of Vicuna-7b (V-7b) and Qwen2.5-7b-ins (Q-in) on the last, with 3, 5 and 10 "
    "documents. The positional curve of U-shaped is measured on the same questions. Rounds whose "
    "attention is read are not kept: an interrupted run repeats them."
)


@dataclass(frozen=True, kw_only=True)
class Tables:
    """What the experiments came to. `ids` are those of all questions."""

    k: int
    numbers: tuple[int, ...]
    ids: tuple[str, ...]
    failures: tuple[Failure, ...]
    methods: Mapping[str, Mapping[str, Answers]]
    placed: Mapping[str, Answers]
    fewer: Mapping[str, Mapping[str, Mapping[int, Answers]]]

    @classmethod
    def of(cls, experiment: GoodPositionsExperiment) -> Self:
        """Run the experiments."""
        return cls(
            k=experiment.k,
            numbers=experiment.numbers,
            ids=tuple(str(number) for number, _ in enumerate(experiment.questions, start=1)),
            failures=experiment.failures,
            methods=experiment.table_2(),
            placed=experiment.table_3(),
            fewer=experiment.table_5(),
        )


def parts(found: Tables, label: str) -> Iterator[RenderableType]:
    """Yield the parts of the report; `label` is what the model is called."""
    yield f"\nTable 2: methods, {found.k} documents ({label})"
    for order in ORDERS:
        yield _table(order, found.methods[order], METHODS[order], "Vanilla")
    yield f"\nTable 3: placements of the ranked documents, {found.k} documents ({label})"
    yield _table("", found.placed, PLACED, "Default, original")
    yield f"\nTable 5: numbers of documents ({label})"
    for order in ORDERS:
        yield _by_number(order, found)
    yield from filter(None, failure_lines(found.failures, found.ids, "all tables"))
    yield FOOTNOTE


def _table(title: str, rows: Mapping[str, Answers], paper: PaperRows, baseline: str) -> Table:
    tests = _against(rows, baseline)
    cells = two_rows(HERE, [row.outcomes for row in rows.values()])
    cells.append(
        ["  p", *(f"{tests[name].adjusted:.2g}" if name in tests else "" for name in rows)]
    )
    names = [f"{model}, {dataset}" for model in MODELS for dataset in "HMW"]
    columns = [paper[name] for name in rows]
    transposed = dict(zip(names, zip(*columns, strict=True), strict=True))
    headings = [name.replace(", ", ",\n").replace("nSort", "n\nSort") for name in rows]
    return grid([title, *headings], [*cells, *paper_rows(transposed)])


def _by_number(order: str, found: Tables) -> Table:
    rows = []
    for name, by_number in found.fewer[order].items():
        ours = two_rows(name, [by_number[k].outcomes for k in found.numbers])
        ours[0] += published(NUMBERS[order][name])
        rows += ours
    paper = [f"{model}\n{k}" for model in ("V-7b", "Q-in") for k in (3, 5, 10)]
    return grid([order, *(f"here\n{k} docs" for k in found.numbers), *paper], rows)


def _against(rows: Mapping[str, Answers], baseline: str) -> dict[str, PairedComparison]:
    base = rows[baseline].outcomes
    pairs = {name: (row.outcomes, base) for name, row in rows.items() if name != baseline}
    return compare_paired(pairs) if len(base) > 1 else {}


def as_json(found: Tables, **settings: object) -> dict[str, Any]:
    """Return the settings and every outcome."""
    return {
        "experiment": "goodpositions",
        **settings,
        "k": found.k,
        "failures": failing.as_json(found.failures, found.ids),
        "table_2": {order: _rows(rows, "Vanilla") for order, rows in found.methods.items()},
        "table_3": _rows(found.placed, "Default, original"),
        "table_5": {
            order: {
                name: {str(k): _row(row) for k, row in by_number.items()}
                for name, by_number in rows.items()
            }
            for order, rows in found.fewer.items()
        },
        "published_percent": {"table_2": METHODS, "table_3": PLACED, "table_5": NUMBERS},
    }


def _rows(rows: Mapping[str, Answers], baseline: str) -> dict[str, Any]:
    tests = _against(rows, baseline)
    against = {name: {"against": asdict(test)} for name, test in tests.items()}
    return {name: _row(row) | against.get(name, {}) for name, row in rows.items()}


def _row(row: Answers) -> dict[str, Any]:
    return {**measured(row.outcomes), "answers": list(row.answers)}
