"""Questions and documents from files: what is read, and what is refused by file and line."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from shared_core import ChunkKeys, Passage
from shared_core.comparison import ComparisonData, Question, read_comparison
from shared_core.comparison.reading import read_passages
from shared_core.comparison.retrieval import neighbours_of


def write(path: Path, *lines: Any) -> Path:
    texts = (line if isinstance(line, str) else json.dumps(line) for line in lines)
    path.write_text("\n".join(texts) + "\n", encoding="utf-8")
    return path


ASKED = {"question": "Who?", "answers": ["Ann"]}


def test_a_retrievers_own_list_keeps_its_order_and_its_ids(tmp_path: Path) -> None:
    """Texts and objects; gold by place or by id; one text is one passage in all questions."""
    path = write(
        tmp_path / "q.jsonl",
        {**ASKED, "documents": ["one", {"id": "b", "text": "two"}], "gold": 1, "id": 7},
        "",
        {"question": "Where?", "answers": "Oslo", "documents": ["three", "one"], "gold": ["b"]},
        {"question": "When?", "answers": ["1905"], "documents": ["one"]},
    )
    data = read_comparison(path)
    first, second, third = data.questions
    assert [data.by_id[id].text for id in first.ranking] == ["one", "two"]
    assert (first.gold, first.id, second.answers, second.gold) == (("b",), "7", ("Oslo",), ("b",))
    assert [data.by_id[id].text for id in second.ranking] == ["three", "one"]
    assert len(data.passages) == 3
    assert third.gold == ()


def test_langchains_own_dump_of_a_document_is_one(tmp_path: Path) -> None:
    """``Document.model_dump()``, whose id is often null, though not in a file of documents."""
    dumped = {"id": None, "metadata": {}, "page_content": "It was Ann.", "type": "Document"}
    questions = write(tmp_path / "q.jsonl", {**ASKED, "documents": [dumped, "other"]})
    assert [each.text for each in read_comparison(questions).passages] == ["It was Ann.", "other"]
    corpus = write(tmp_path / "d.jsonl", {**dumped, "id": "a"})
    (passage,) = read_comparison(write(tmp_path / "q.jsonl", ASKED), corpus).passages
    assert (passage.id, passage.text) == ("a", "It was Ann.")


def test_a_probes_file_makes_one_collection_of_all_passages(tmp_path: Path) -> None:
    """Hard distractors, too."""
    line = {**ASKED, "gold": "It was Ann.", "distractors": ["x"], "hard_distractor": "y"}
    other = {**ASKED, "answers": ["Ann", "Bea"], "gold": "Ann did it.", "distractors": ["y", "z"]}
    data = read_comparison(write(tmp_path / "q.jsonl", line, other))
    assert {passage.text for passage in data.passages} == {"It was Ann.", "Ann did it.", *"xyz"}
    assert [data.by_id[q.gold[0]].text for q in data.questions] == ["It was Ann.", "Ann did it."]
    assert data.questions[0].ranking == ()


def test_documents_of_a_file_are_named_by_id(tmp_path: Path) -> None:
    """Titles stand before texts; so many questions as asked for, but all the documents."""
    corpus = write(
        tmp_path / "d.jsonl", {"id": "a", "text": "T", "title": "Head"}, {"_id": "b", "text": "U"}
    )
    questions = write(
        tmp_path / "q.jsonl",
        {**ASKED, "gold": "b"},
        {**ASKED, "documents": ["b", "a"], "gold": ["a"]},
        ASKED,
    )
    data = read_comparison(questions, corpus, n=2)
    assert [passage.text for passage in data.passages] == ["Head\nT", "U"]
    assert [(q.gold, q.ranking) for q in data.questions] == [(("b",), ()), (("a",), ("b", "a"))]


def test_where_a_document_stands_is_read_as_the_retrievers_read_it(tmp_path: Path) -> None:
    """Out of its own fields, or out of its metadata."""
    fields, metadata = {"document": "guide", "number": 3}, {"doc_id": "guide", "chunk_id": 3}
    lines = ({"id": "a", "text": "T", **fields}, {"id": "b", "text": "U", "metadata": metadata})
    passages = read_passages(write(tmp_path / "d.jsonl", *lines))
    assert [ChunkKeys().numbered(passage) for passage in passages] == [("guide", 3)] * 2
    assert neighbours_of(passages)


@pytest.mark.parametrize(
    ("line", "message"),
    [
        (f"[{json.dumps(ASKED)}]", "expected one object per line (JSON Lines), not one array"),
        ({"_id": 1, "text": "Q"}, 'no field "question"; it has _id, text'),
        ({"question": " ", "answers": ["a"], "documents": ["x"]}, "question must not be blank"),
        ({"question": "Q", "answers": [" "], "documents": ["x"]}, "has a blank answer"),
        ({"question": "Q", "answer": "a", "documents": ["x"]}, 'the field "answers", not "answer"'),
        ({**ASKED, "documents": [" "]}, "a passage must not be blank"),
        ({**ASKED, "documents": [3]}, "with text (or page_content) and perhaps an id, all of them"),
        ({**ASKED, "documents": "one text"}, 'documents must be a list, got "one text"'),
        ({**ASKED, "documents": ["x"], "gold": 1}, "gold 1 is not a place in its 1 document,"),
        ({**ASKED, "documents": ["x"], "gold": "0"}, "; give an id, or its place among the"),
        (
            {**ASKED, "documents": [{"id": "a", "text": "x"}, {"id": "a", "text": "y"}]},
            "'a' stands for two different texts",
        ),
        ({**ASKED, "distractors": ["x"]}, "without the gold passage"),
        (ASKED, "no passages to answer from; give documents"),
    ],
)
def test_a_malformed_line_is_named(tmp_path: Path, line: Any, message: str) -> None:
    """By file and number, with what is wrong."""
    path = write(tmp_path / "q.jsonl", {**ASKED, "documents": ["fine"]}, line)
    with pytest.raises(ValueError, match=r"q\.jsonl, line 2: ") as caught:
        read_comparison(path)
    assert message in str(caught.value)


@pytest.mark.parametrize(
    ("document", "line", "message"),
    [
        (
            {"id": 1, "text": "x"},
            ASKED,
            r"d\.jsonl, line 2: a document has the strings id and text",
        ),
        (None, {**ASKED, "gold": [12]}, 'gold 12 is not an id: ids are strings, as in "12"'),
        (None, {**ASKED, "gold": "no"}, r"q\.jsonl, line 1: gold .*no"),
        (None, {**ASKED, "documents": ["no"]}, r"q\.jsonl, line 1: document 'no' is not in the"),
    ],
)
def test_what_does_not_fit_a_file_of_documents_is_named(
    tmp_path: Path, document: Any, line: Any, message: str
) -> None:
    """By file and line; numbers are places in a ranked list, and here is none."""
    documents = [{"id": "12", "text": "x"}, *([] if document is None else [document])]
    corpus = write(tmp_path / "d.jsonl", *documents)
    with pytest.raises(ValueError, match=message):
        read_comparison(write(tmp_path / "q.jsonl", line), corpus)


def test_a_file_without_enough_questions_is_refused(tmp_path: Path) -> None:
    """None, or fewer than asked for."""
    with pytest.raises(ValueError, match="holds no questions"):
        read_comparison(write(tmp_path / "q.jsonl", ""))
    path = write(tmp_path / "q.jsonl", {**ASKED, "documents": ["x"]})
    with pytest.raises(ValueError, match=r"n=2: .* holds 1 question$"):
        read_comparison(path, n=2)
    with pytest.raises(ValueError, match="n must be an integer >= 1, got 0"):
        read_comparison(path, n=0)


@pytest.mark.parametrize("name", ["answers", "keywords"])
def test_a_string_is_not_taken_for_a_list_of_its_letters(name: str) -> None:
    given: dict[str, Any] = {name: "C007"}
    with pytest.raises(ValueError, match=rf"{name} must be a list, got the string 'C007'; give"):
        Question(question="What code?", **given)


def test_data_made_by_hand_is_checked_too() -> None:
    """Ids twice, ids that are not there, no questions."""
    asked = Question(question="Q", answers=("a",), ranking=("x",))
    with pytest.raises(ValueError, match="names passage 'x', which is not there"):
        ComparisonData(questions=(asked,), passages=())
    with pytest.raises(ValueError, match="passage id 'x' occurs twice"):
        ComparisonData(questions=(asked,), passages=(Passage("x", "1"), Passage("x", "2")))
    with pytest.raises(ValueError, match="no questions"):
        ComparisonData(questions=(), passages=())


PASSAGES = (Passage("a", "one"), Passage("b", "two"), Passage("c", "three"), Passage("d", "one"))


def asked(answer: str = "x", **known: Any) -> Question:
    return Question(question="Who?", answers=(answer,), **known)


@pytest.mark.parametrize(
    ("first", "again"),
    [
        (asked(gold=("a",)), asked(gold=("b",))),
        (asked(ranking=("a", "b")), asked("y", ranking=("b", "a"))),
        (asked(ranking=("a", "b"), gold=("a",)), asked(ranking=("a", "b"), gold=("b",))),
        (asked(ranking=("a", "b")), asked(ranking=("d", "b"))),
    ],
    ids=["answers", "ranking", "ranking, other gold", "text"],
)
def test_a_question_that_is_there_twice_is_refused(first: Question, again: Question) -> None:
    """Its outcome would count as that of two, and the p-value would be too small."""
    between = Question(question="Where?", answers=("x",), ranking=("c",))
    with pytest.raises(
        ValueError, match=r"question 3 repeats question 1, 'Who\?'.*; leave one out"
    ):
        ComparisonData(questions=(first, between, again), passages=PASSAGES)


def test_one_text_over_other_passages_is_another_question() -> None:
    """What is asked of every contract has the answer of each."""
    rankings = (asked(ranking=("a", "b")), asked(ranking=("a", "c")))
    golds = (asked("x", gold=("a",)), asked("y", gold=("b",)), asked("z"))
    for questions in (rankings, golds):
        data = ComparisonData(questions=questions, passages=PASSAGES)
        assert [each.id for each in data.questions] == ["1", "2", "3"][: len(questions)]


@pytest.mark.parametrize("ids", [("7", None, "7"), ("3", None, None)], ids=["given", "by number"])
def test_two_questions_of_one_id_are_refused(ids: tuple[str | None, ...]) -> None:
    """Failures are reported by it; a question without one goes by its number."""
    questions = tuple(
        Question(question=f"Who is {number}?", answers=("x",), id=id)
        for number, id in enumerate(ids)
    )
    with pytest.raises(ValueError, match=f"questions 1 and 3 are both called '{ids[0]}' in report"):
        ComparisonData(questions=questions, passages=PASSAGES)
