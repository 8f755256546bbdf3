"""``posrag doctor``, and a first run on one's own files."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("rich")

from shared_core import HybridIndex, Passage, PositionProfile
from shared_core.cli.doctor import EXTRAS
from shared_core.cli.main import main
from shared_core.corpora.own_files import folder_passages, questions_from
from tests.cli.conftest import said


def test_it_says_what_is_there_and_what_is_not(
    profiles: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in ("lancedb", "gguf"):
        monkeypatch.setitem(sys.modules, module, None)
    assert main(["doctor"]) == 0
    out = said(capsys)[0]
    assert "kernels" in out
    assert "lancedb passages in LanceDB pip install 'posrag[lancedb]' (lancedb missing)" in out
    assert "pip install 'posrag[gguf]' (gguf missing)" in out
    assert "qdrant passages in Qdrant yes" in out
    assert f"0 files in {profiles}" in out


def test_every_extra_is_known() -> None:
    """That of each package in pyproject.toml, and no other."""
    tomllib = pytest.importorskip("tomllib")
    project = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text())["project"]
    assert {*EXTRAS} == {*project["optional-dependencies"]} - {"all"}


def test_it_checks_what_was_saved(
    tmp_path: Path, profiles: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    index = HybridIndex()
    index.add([Passage("a", "one"), Passage("b", "two")], np.eye(2))
    index.save(tmp_path / "index")
    assert main(["doctor", str(tmp_path / "index")]) == 0
    assert "an index of 2 passages; its checksums hold" in said(capsys)[0]
    PositionProfile(model="m", accuracy=(0.8, 0.4, 0.6), n=50, source="me").save()
    assert main(["doctor", "m"]) == 0
    out = said(capsys)[0]
    assert "a profile of m: accuracy by 50 questions, k = 3" in out
    assert "position sensitivity index 1.750; me" in out
    PositionProfile(model="none", accuracy=(0, 0, 0), n=50).save()
    assert main(["doctor", "none"]) == 0
    assert "position sensitivity index undefined" in said(capsys)[0]
    (texts,) = (tmp_path / "index").glob("**/passages*")
    texts.write_bytes(texts.read_bytes()[:-3])
    assert main(["doctor", str(tmp_path / "index")]) == 2
    assert str(tmp_path / "index") in said(capsys)[1]


def test_each_profile_of_a_folder_is_checked(
    profiles: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    PositionProfile(model="m", accuracy=(0.8, 0.4, 0.6), n=50).save()
    assert main(["doctor", str(profiles)]) == 0
    (profiles / "broken.json").write_text('{"format": 1,\n')
    capsys.readouterr()
    assert main(["doctor", str(profiles)]) == 1
    broken, fine = capsys.readouterr().out.splitlines()
    assert f"{profiles / 'broken.json'} is not a position profile: " in broken
    assert fine == "m.json: a profile of m: accuracy by 50 questions, k = 3"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Return a handbook."""
    files = {
        "guide.md": "Before all.\n\n# How to resize an image\n\nCall resize.\n\n## Other things\n\n"
        + "\n\n".join(f"Paragraph {n} is about thing {n}. {'More. ' * 60}" for n in range(4)),
        "deep/notes.txt": "A checkpoint is loaded by load. It is fast.",
        ".hidden/secret.md": "# A secret of this house",
        "picture.png": "no text",
    }
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    return tmp_path


def test_a_folder_is_cut_at_headings_and_paragraphs(folder: Path) -> None:
    found = folder_passages(folder)
    assert {passage.metadata["doc_id"] for passage in found} == {"guide.md", "deep/notes.txt"}
    guide = [each for each in found if each.metadata["doc_id"] == "guide.md"]
    assert [each.metadata["chunk_id"] for each in guide] == [*range(len(guide))]
    assert guide[0].text == "Before all."
    assert guide[1].text == "How to resize an image\n\nCall resize."
    assert all(each.text.startswith("Other things\n\nParagraph") for each in guide[2:])
    assert sum(each.text.count("Paragraph") for each in guide) == 4
    assert len({each.id for each in found}) == len(found)
    with pytest.raises(ValueError, match="holds no text in files named"):
        folder_passages(folder / ".hidden" / "nothing")


def test_code_has_no_headings_and_one_without_text_goes_with_the_next(tmp_path: Path) -> None:
    """Nor does a byte order mark hide one."""
    code = "```bash\n# download the package first\npip install it\n```"
    text = f"# The whole guide\n\n## Install\n\n{code}\n\n## Usage\n\nCall it.\n"
    (tmp_path / "README.md").write_text(text, "utf-8-sig")
    install, usage = folder_passages(tmp_path)
    assert install.text == f"The whole guide\n\nInstall\n\n{code}"
    assert install.metadata["heading"] == "Install"
    assert usage.text == "Usage\n\nCall it."


def test_questions_are_headings_and_first_sentences(folder: Path) -> None:
    asked = questions_from(folder_passages(folder), 5)
    assert "How to resize an image" in asked
    assert "A checkpoint is loaded by load." in asked
    assert len(questions_from(folder_passages(folder), 1)) == 1


def test_the_demo_takes_ones_own_files(
    folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Questions are made from them."""
    pytest.importorskip("sentence_transformers")
    assert main(["demo", "--data", str(folder), "--k", "3", "--cache", str(folder / "cache")]) == 0
    out, err = said(capsys)
    assert out.count("Query: ") >= 2
    assert "Query: How to resize an image" in out
    assert "passages of" in err


@pytest.mark.parametrize("command", ["engine", "doctor"])
@pytest.mark.parametrize("address", ["lancedb://{}", "qdrant://{}", "milvus://{}.db"])
def test_looking_at_a_mistyped_folder_makes_none(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], command: str, address: str
) -> None:
    address = address.format(tmp_path / "mistyped")
    assert main([command, address]) == 2
    assert f"there is no database in {address}" in said(capsys)[1]
    assert [*tmp_path.iterdir()] == []
