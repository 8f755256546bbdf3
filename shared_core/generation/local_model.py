"""A causal language model on this machine, in any form that a caller may give."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import cached_property
from pathlib import Path
from threading import Lock
from typing import Any, TypeAlias
from weakref import WeakKeyDictionary

from shared_core.generation.hugging_face import HuggingFaceModel
from shared_core.generation.loading import load_tokenizer
from shared_core.generation.tokens import PromptEncoder

_turns: WeakKeyDictionary[Any, Lock] = WeakKeyDictionary()
_turns_lock = Lock()


class LocalModel:
    """A model on this machine, loaded when it is first asked for, and then kept.

    Copies share it, since it is never modified. It is pickled as the name it was made from, or else
    as the model.

    Parameters
    ----------
    given
        A model, the folder or hub name of one, or a pair of a transformers model and its
        tokenizer.

    Raises
    ------
    ValueError
        If it is none of these.
    """

    def __init__(self, given: object) -> None:
        if isinstance(given, tuple) and len(given) == 2:
            given = HuggingFaceModel(*given)
        if not isinstance(given, HuggingFaceModel | str | Path):
            raise ValueError(
                "model must be a HuggingFaceModel, the folder or hub name of a causal model, or "
                f"a pair (model, tokenizer), got {type(given).__name__}"
            )
        self._given = given
        self._model = given if isinstance(given, HuggingFaceModel) else None
        self._lock = Lock()

    @classmethod
    def of(cls, given: object) -> LocalModel:
        """Return `given` itself if it is one already, so that what is loaded stays loaded."""
        return given if isinstance(given, LocalModel) else cls(given)

    @property
    def loaded(self) -> HuggingFaceModel:
        """The model.

        Raises
        ------
        GenerationError
            If there is no such model, or it cannot be loaded.
        MissingExtraError
            If torch or transformers is not installed.
        """
        with self._lock:  # threads that come first together must not load it twice
            if self._model is None:
                self._model = HuggingFaceModel.from_pretrained(self.location)
            return self._model

    @property
    def encoder(self) -> PromptEncoder:
        """How the model reads prompts: this takes its tokenizer, but not its weights.

        Nobody has to wait for it while the model is being loaded, or lent.

        Raises
        ------
        GenerationError
            If there is no such model, or its tokenizer cannot be loaded.
        MissingExtraError
            If transformers is not installed.
        """
        return self._encoder if self._model is None else self._model.encoder

    @cached_property
    def _encoder(self) -> PromptEncoder:
        return PromptEncoder.of(load_tokenizer(self.location), "auto")

    @contextmanager
    def alone(self) -> Iterator[HuggingFaceModel]:
        """Lend the model to one thread at a time, whoever else holds it (`concurrency` is 1).

        On one device several threads would save no time, and each would need its own memory.
        """
        model = self.loaded
        with _turns_lock:
            turn = _turns.setdefault(model.model, Lock())
        with turn:
            yield model

    @property
    def location(self) -> str:
        """Folder or hub name, by which it can be written down.

        Raises
        ------
        ValueError
            If it was not given by one.
        """
        if isinstance(self._given, HuggingFaceModel):
            raise ValueError(
                f"the loaded model {self._given.name!r} cannot be written as JSON; give its "
                "folder or hub name instead"
            )
        return str(self._given)

    def __deepcopy__(self, memo: object) -> LocalModel:
        return self

    def __reduce__(self) -> tuple[type[LocalModel], tuple[object]]:
        return LocalModel, (self._given,)

    def __repr__(self) -> str:
        given = self._given
        return f"LocalModel({given.name if isinstance(given, HuggingFaceModel) else str(given)!r})"


ModelLike: TypeAlias = HuggingFaceModel | LocalModel | str | Path | tuple[Any, Any]
"""A model, its folder or hub name, or a pair (model, tokenizer)."""
