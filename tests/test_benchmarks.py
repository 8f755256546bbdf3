"""The benchmarks that the documentation names can be started."""

from __future__ import annotations

import json
import re
from importlib import import_module
from pathlib import Path

import pytest

from benchmarks.verdicts import Gain, verdict

FOLDER = Path(__file__).parents[1] / "benchmarks"
DOCS = FOLDER.parent / "docs"


@pytest.mark.parametrize("name", sorted(file.stem for file in FOLDER.glob("[a-z]*.py")))
def test_it_finds_what_it_imports(name: str) -> None:
    """In this package; whoever runs one installs its peers."""
    try:
        import_module(f"benchmarks.{name}")
    except ImportError as error:
        if (error.name or "").partition(".")[0] in ("benchmarks", "instruments", "shared_core"):
            raise
        pytest.skip(str(error))


def test_the_evidence_is_what_its_parts_have_printed_and_kept() -> None:
    evidence = pytest.importorskip("benchmarks.evidence")
    assert (evidence.DOCS / "evidence.md").read_text("utf-8") == evidence.document()


def test_a_verdict_follows_from_interval_and_corrected_p_value() -> None:
    sure, broad, level = (0.02, 0.2), (0.1, 0.3), (-0.1, 0.1)
    gains = [Gain("A", 0.0, level), Gain("B", 0.2, broad, 0.06), Gain("C", 0.1, sure, 0.04)]
    nearest = "R: nothing is shown to be better than S; nearest is B by +0.200 [+0.100, +0.300]"
    assert verdict("R", "S", gains[:2]) == f"{nearest} (p = 0.06)."
    better = "R: better than S: C by +0.100 [+0.020, +0.200] (p = 0.04)"
    assert verdict("R", "S", gains) == f"{better}."
    harm = Gain("D", -0.2, (-0.3, -0.1))
    assert verdict("R", "S", [harm, *gains]) == (f"{better}; worse: D by -0.200 [-0.300, -0.100].")


def test_the_page_shows_the_figures_of_the_json_file() -> None:
    """Those of the default: for each collection, and what either embedding model loses by it."""
    rows = json.loads((DOCS / "benchmarks.json").read_text("utf-8"))
    page = (DOCS / "benchmarks.md").read_text("utf-8")
    cells = r"^\| (?:docs of )?([^|]+) \| [\d,]+ \|.*\| \*\*(\.\d+)\*\* \|"
    defaults = {
        (row["collection"], f"{row['nDCG@10'][0]:.3f}"[1:])
        for row in rows
        if (row.get("system"), row.get("embedding")) == ("default", "all-MiniLM-L6-v2")
    }
    shown = {*re.findall(cells, page, re.M)}
    assert shown == {(name, mean) for name, mean in defaults if name != "PyTorch API"}
    for embedding in ("all-MiniLM-L6-v2", "wordllama"):
        of = {"embedding": embedding, "system": "default less best min-max"}.items()
        lost = [row["nDCG@10"][0] for row in rows if of <= row.items()]
        said = f"{sum(lost) / len(lost):.3f} ({min(lost):.3f})".replace("0.", ".")
        assert re.search(rf"^\| {embedding}.*\*\*{re.escape(said)}\*\* \|$", page, re.M), said
