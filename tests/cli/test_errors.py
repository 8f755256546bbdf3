"""Bad input and missing parts: one line on stderr that names the value, and exit status 2."""

from __future__ import annotations

import re
import sys
from importlib.metadata import entry_points

import pytest

from shared_core.cli import embedding, main

from .conftest import Demo, said


@pytest.mark.parametrize("command", [["reproduce", "caus"], ["compare"]])
def test_an_option_is_not_taken_for_one_that_it_begins(
    command: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    """Else ``--nam 3`` names the model 3, and ``--n`` would where a command has none."""
    with pytest.raises(SystemExit):
        main.main([*command, "--data", "q", "--model", "m", "--output", "o", "--nam", "3"])
    *_, error = capsys.readouterr().err.splitlines()
    assert error.startswith("posrag: error: unrecognized arguments: ")
    assert error.endswith("--nam 3")


@pytest.mark.parametrize(
    ("command", "groups"),
    [
        ("demo", ["passages and question", "embedding"]),
        ("attention", ["what is asked", "files", "how the model is asked"]),
        *((command, ["data", "embedding"]) for command in ("tune", "index")),
        *((command, ["data"]) for command in ("engine", "doctor")),
        *(
            (f"reproduce {paper}", ["data and model", "what is compared", "how the model is asked"])
            for paper in ("caus", "positionalbias", "goodpositions")
        ),
    ],
)
def test_help_begins_with_an_example_and_has_options_in_groups(
    command: str, groups: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit):
        main.main([*command.split(), "--help"])
    _, example, *sections = re.split(r"\n\n(?=\S)", capsys.readouterr().out)
    assert example.startswith(f"example: posrag {command}")
    titles = [section.partition(":\n")[0] for section in sections]
    assert titles[titles.index("options") :] == ["options", *groups]


def test_an_empty_path_is_not_the_working_directory(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main.main(["compare", "--data", "q", "--model", "m", "--output", ""])
    assert capsys.readouterr().err.endswith("argument --output: the path is empty\n")


def test_the_bare_command_says_what_to_do_first(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as stopped:
        main.main([])
    assert stopped.value.code == 0
    out, _ = said(capsys)
    assert "compare orders of the passages on your own questions" in out
    assert "what to do first: posrag demo --data FOLDER" in out


@pytest.mark.parametrize(
    ("arguments", "absent", "extra"),
    [
        (["demo"], "rich.console", "eval"),
        (["probe", "openai:m"], "langchain_openai", "openai"),
        (["probe", "openai:m"], "langchain_core", "openai"),
        (["attention", "m"], "transformers", "models"),
    ],
)
def test_what_is_not_installed_is_named_with_the_way_out(
    arguments: list[str],
    absent: str,
    extra: str,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    if arguments[1:2] == ["openai:m"] and not entry_points(group="posrag.endpoints"):
        pytest.skip("posrag is not installed")
    monkeypatch.setitem(sys.modules, absent, None)
    for module in ("langchain_posrag", "langchain_posrag.generation"):
        monkeypatch.delitem(sys.modules, module, raising=False)
    assert main.main(arguments) == 2
    error = capsys.readouterr().err
    package = absent.partition(".")[0]
    assert error == f"posrag: {package} is not installed; run: pip install 'posrag[{extra}]'\n"


def test_a_model_that_cannot_be_loaded_is_told_with_the_way_out(
    demo: Demo, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("shared_core.cli.demo.EmbeddingModel", embedding.EmbeddingModel)
    outcome = demo("--model", "no-such/embedding-model")
    assert outcome.status == 2
    line = outcome.err.splitlines()[-1]
    assert "posrag: cannot load the embedding model 'no-such/embedding-model'" in line
    assert "pip install" not in line
    assert "by --embedding (posrag demo: --model)" in line
    outcome = demo("--model", "./nofolder")
    assert "cannot load the embedding model './nofolder' (no such folder)" in outcome.err
    assert not demo.cache.exists()


def test_what_does_not_fit_on_the_disk_is_named_with_the_way_out(demo: Demo) -> None:
    """A limit on the size of files cuts one short, as a full disk does."""
    resource = pytest.importorskip("resource")
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (200, limits[1]))
    try:
        cut = demo()
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    (error,) = (line for line in cut.err.splitlines() if line.startswith("posrag:"))
    assert cut.status == 2
    assert str(next(demo.cache.iterdir())) in error
    assert "is the disk full?" in error
    assert demo().status == 0
    assert demo.embedded_passages() == len(demo.passages)
