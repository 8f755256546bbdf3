"""Saved to a folder and read back."""

from pathlib import Path

import pytest
from langchain_core.documents import Document
from langchain_core.embeddings import DeterministicFakeEmbedding, Embeddings
from langchain_core.vectorstores import InMemoryVectorStore

from langchain_posrag import CAUSRetriever
from shared_core import (
    CorruptIndexError,
    EmbeddingMismatchError,
    IndexFormatError,
    PositionProfile,
)
from shared_core.placement import Shuffle, UShape

QUERIES = ["relu layer", "pool", ""]
PROFILE = PositionProfile(model="m", accuracy=(0.9, 0.2, 0.8), interval=(1.1, 4.0), n=7)


class OtherModel(DeterministicFakeEmbedding):
    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        return super().embed_documents([text + " of another model" for text in texts])


def test_a_loaded_retriever_answers_as_before(
    retriever: CAUSRetriever, embeddings: Embeddings, tmp_path: Path
) -> None:
    retriever.save(tmp_path / "index")
    loaded = CAUSRetriever.load(tmp_path / "index", embeddings)

    assert loaded.batch(QUERIES) == retriever.batch(QUERIES)
    assert loaded.get(["d3"]) == retriever.get(["d3"])


def test_nothing_is_pickled(retriever: CAUSRetriever, tmp_path: Path) -> None:
    retriever.save(tmp_path / "index")

    files = [path for path in (tmp_path / "index").rglob("*") if path.is_file()]

    assert files
    assert not [path for path in files if path.suffix in (".pkl", ".pickle")]
    assert not [path for path in files if path.read_bytes()[:1] == b"\x80"]


@pytest.mark.parametrize(
    "options",
    [
        {"k": 3, "alpha": "auto", "fetch_k": 20, "psi": "never"},
        {"fusion": "rrf", "psi": 1.5, "include_scores": False},
        {"placement": UShape("end"), "psi": PROFILE, "evidence": "interval"},
        {"placement": Shuffle(seed=7), "psi": "always"},
    ],
)
def test_options_come_back(
    documents: list[Document],
    embeddings: Embeddings,
    tmp_path: Path,
    options: dict[str, object],
) -> None:
    saved = CAUSRetriever.from_documents(documents, embeddings, **options)
    saved.save(tmp_path / "index")
    loaded = CAUSRetriever.load(tmp_path / "index", embeddings)

    assert loaded.caus == saved.caus
    assert loaded.include_scores == saved.include_scores
    assert loaded.batch(QUERIES) == saved.batch(QUERIES)


def test_a_profile_given_by_path_is_saved_by_path(
    documents: list[Document], embeddings: Embeddings, tmp_path: Path
) -> None:
    path = PROFILE.save(tmp_path / "profile.json")
    saved = CAUSRetriever.from_documents(documents, embeddings, psi=path)
    saved.save(tmp_path / "index")

    assert CAUSRetriever.load(tmp_path / "index", embeddings).caus.gate == saved.caus.gate


def test_given_options_win(
    retriever: CAUSRetriever, embeddings: Embeddings, tmp_path: Path
) -> None:
    retriever.save(tmp_path / "index")

    loaded = CAUSRetriever.load(tmp_path / "index", embeddings, k=2, psi=None)

    assert (loaded.k, loaded.psi, loaded.placement) == (2, None, "u_shape")
    with pytest.raises(ValueError, match="kk"):
        CAUSRetriever.load(tmp_path / "index", embeddings, kk=9)


def test_an_index_saved_by_the_core_loads(
    retriever: CAUSRetriever, embeddings: Embeddings, tmp_path: Path
) -> None:
    retriever.index.save(tmp_path / "index")

    loaded = CAUSRetriever.load(tmp_path / "index", embeddings, k=5, psi="always")

    assert loaded.batch(QUERIES) == retriever.batch(QUERIES)


def test_a_loaded_retriever_can_be_changed_and_saved_again(
    retriever: CAUSRetriever, embeddings: Embeddings, tmp_path: Path
) -> None:
    retriever.save(tmp_path / "index")
    loaded = CAUSRetriever.load(tmp_path / "index", embeddings)
    loaded.delete(["d0"])
    loaded.add_documents([Document("swish", id="new")])
    loaded.save(tmp_path / "index")

    again = CAUSRetriever.load(tmp_path / "index", embeddings)

    assert again.batch(QUERIES) == loaded.batch(QUERIES)
    assert [document.id for document in again.get(["d0", "new"])] == ["new"]


def test_another_embedding_model_is_noticed(retriever: CAUSRetriever, tmp_path: Path) -> None:
    retriever.save(tmp_path / "index")

    with pytest.raises(EmbeddingMismatchError):
        CAUSRetriever.load(tmp_path / "index", OtherModel(size=16))
    with pytest.raises(EmbeddingMismatchError, match="dimension"):
        CAUSRetriever.load(tmp_path / "index", DeterministicFakeEmbedding(size=8))
    unverified = CAUSRetriever.load(tmp_path / "index", OtherModel(size=16), verify=False)
    assert len(unverified.invoke("relu")) == 5


def test_a_folder_that_is_no_index(embeddings: Embeddings, tmp_path: Path) -> None:
    (tmp_path / "letter.txt").write_text("dear")

    with pytest.raises(IndexFormatError):
        CAUSRetriever.load(tmp_path, embeddings)


def test_a_truncated_file_is_noticed(
    retriever: CAUSRetriever, embeddings: Embeddings, tmp_path: Path
) -> None:
    folder = tmp_path / "index"
    retriever.save(folder)
    largest = max((p for p in folder.rglob("*") if p.is_file()), key=lambda p: p.stat().st_size)
    largest.write_bytes(largest.read_bytes()[:-7])

    with pytest.raises(CorruptIndexError):
        CAUSRetriever.load(folder, embeddings)


def test_metadata_that_is_not_json_is_refused_and_the_old_index_stays(
    retriever: CAUSRetriever, embeddings: Embeddings, tmp_path: Path
) -> None:
    retriever.save(tmp_path / "index")
    before = retriever.batch(QUERIES)
    retriever.add_documents([Document("swish", id="odd", metadata={"shape": {1, 2}})])

    with pytest.raises(ValueError, match="odd"):
        retriever.save(tmp_path / "index")

    assert CAUSRetriever.load(tmp_path / "index", embeddings).batch(QUERIES) == before


def test_a_vector_store_keeps_its_own_documents(
    documents: list[Document], embeddings: Embeddings, tmp_path: Path
) -> None:
    store = InMemoryVectorStore.from_documents(documents, embeddings)
    retriever = CAUSRetriever.from_vectorstore(store, documents)

    with pytest.raises(ValueError, match="InMemoryVectorStore keeps its own documents"):
        retriever.save(tmp_path / "index")
    assert list(tmp_path.iterdir()) == []


def test_loading_without_embeddings_says_so(retriever: CAUSRetriever, tmp_path: Path) -> None:
    retriever.save(tmp_path / "index")

    with pytest.raises(ValueError, match=r"needs embeddings=.* and embeddings=None"):
        CAUSRetriever.load(tmp_path / "index", None)
    with pytest.raises(ValueError, match=r"embeddings\n.*Embeddings"):
        CAUSRetriever.load(tmp_path / "index", "local")
