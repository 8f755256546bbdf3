"""The notebooks run from top to bottom as they stand."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import nbformat
import pytest
from nbclient import NotebookClient

FOLDER = Path(__file__).parents[2] / "notebooks"
SAID = {
    "01_probe_a_model": "gate: ",
    "02_see_where_it_looks": "end over middle",
    "03_neighbour_spans": "100% of the steps",
    "04_retrieve_or_not": "of 18 questions about the corpus",
}
NUMBER = re.compile(r"\d+(?:\.\d+)?")
NOTEBOOKS = [FOLDER / f"{name}.ipynb" for name in SAID]


def printed(notebook: nbformat.NotebookNode) -> str:
    """Return what the cells print."""
    outputs = [each for cell in notebook.cells for each in cell.get("outputs", [])]
    return "".join(each.text for each in outputs if each.get("name") == "stdout")


@pytest.mark.slow
@pytest.mark.parametrize("path", NOTEBOOKS, ids=[path.stem for path in NOTEBOOKS])
def test_a_notebook_runs(path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """In its own folder, with a home of its own; what it printed it prints again."""
    monkeypatch.setenv("POSRAG_PROFILES", str(tmp_path))
    notebook = nbformat.read(path, as_version=4)
    stored = printed(notebook)
    NotebookClient(notebook, timeout=600, resources={"metadata": {"path": str(FOLDER)}}).execute()
    again = printed(notebook)
    assert NUMBER.sub("#", again) == NUMBER.sub("#", stored)
    numbers, before = ([*map(float, NUMBER.findall(text))] for text in (again, stored))
    assert numbers == pytest.approx(before, rel=0.02, abs=0.02)
    assert SAID[path.stem] in again


@pytest.mark.parametrize("path", NOTEBOOKS, ids=[path.stem for path in NOTEBOOKS])
def test_a_notebook_is_small_and_clean_and_imports_from_an_adapter(path: Path) -> None:
    """It is read in a diff, too; of the core users need the commands' own embedding model."""
    text = path.read_text(encoding="utf-8")
    assert len(text) < 120_000
    assert not re.search(r"Traceback|/home/|\btests\b[/.]|shared_core(?!\.cli)", text)


def test_an_address_is_written_where_it_belongs(tmp_path: Path) -> None:
    """By what the release workflow runs; once more changes nothing, and the notebooks still run."""
    script, address = FOLDER.parent / ".github" / "address.py", "https://github.com/owner/name"
    for file in ("pyproject.toml", "CITATION.cff", "mkdocs.yml", "README.md"):
        shutil.copy(FOLDER.parent / file, tmp_path)
    shutil.copytree(FOLDER, tmp_path / "notebooks")
    command, written = [sys.executable, str(script), address], []
    for _ in range(2):
        subprocess.run(command, cwd=tmp_path, check=True)
        written.append(
            {path: path.read_bytes() for path in tmp_path.rglob("*.*") if path.is_file()}
        )
    assert written[0] == written[1]
    project = tomllib.loads((tmp_path / "pyproject.toml").read_text("utf-8"))["project"]
    assert project["urls"]["Issues"] == f"{address}/issues"
    readme = (tmp_path / "README.md").read_text("utf-8")
    assert f"]({address}/raw/main/docs/evidence/profile.png)" in readme
    assert {link[:4] for link in re.findall(r"\]\(([^#)]+)", readme)} == {"http"}
    notebook = nbformat.read(tmp_path / "notebooks" / "03_neighbour_spans.ipynb", as_version=4)
    assert "owner/name/blob/main/notebooks/03_neighbour_spans.ipynb" in notebook.cells[0].source
    NotebookClient(notebook, timeout=600).execute()
