"""Errors of the package.

    PosragError
    ├── IndexFormatError            not a posrag index folder, or one of another format
    │   └── CorruptIndexError       a file is missing, truncated or altered
    ├── EmbeddingMismatchError      the index was built with another embedding model
    ├── ProfileNotFoundError        no saved profile or curve of that name or path
    ├── EngineError                 a database did not answer
    ├── GenerationError             a language model failed, or its answer is unusable
    └── MissingExtraError           an optional dependency is not installed (also ImportError)

A value out of range raises a plain ``ValueError`` that names the value.
"""

from __future__ import annotations


class PosragError(Exception):
    """Base class of the package's own errors."""


class IndexFormatError(PosragError):
    """The folder is not a posrag index, or was written in a format this version cannot read.

    Also of the file of a gate, and of a folder to save into that holds anything else. Give the
    folder that `save` wrote, or an empty one to save into; build an index of another format anew.
    """


class CorruptIndexError(IndexFormatError):
    """A file of the index is missing, truncated or altered; nothing was loaded.

    Also of the file of a gate. Restore it from a copy, or build it anew.
    """


class EmbeddingMismatchError(PosragError):
    """The given embedding model is not the one the index was built with.

    Also of a gate. `load` embeds a text again and compares. Give the model that embedded the
    passages, or build the index, or fit the gate, anew.
    """


class ProfileNotFoundError(PosragError):
    """No position profile, or positional curve, has been saved under that name or path.

    The message lists those that are there. ``posrag probe`` measures a profile, and
    ``posrag attention`` a curve; they are looked for in ``$POSRAG_PROFILES``, or else in
    ``~/.posrag/profiles``.
    """


class EngineError(PosragError):
    """The database of an engine did not answer, or not in time.

    The message names the address, without secrets. See that the server is up and reachable, give it
    longer by ``timeout=``, or the user its rights; then ask again.
    """


class GenerationError(PosragError):
    """A language model failed, or returned something other than one text per prompt.

    Also if it cannot be loaded, its attention cannot be read, or more questions failed than
    ``max_failed`` allows. The message quotes the model. Answers that were kept are not asked again.
    """


class MissingExtraError(PosragError, ImportError):
    """An optional dependency is not installed; the message gives the pip command.

    ``posrag doctor`` shows what is installed.
    """
