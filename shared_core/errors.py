"""Errors of the package.

::

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
    """The folder is not a posrag index, or was written in a format this version cannot read."""


class CorruptIndexError(IndexFormatError):
    """A file of the index is missing, truncated or altered; nothing was loaded."""


class EmbeddingMismatchError(PosragError):
    """The given embedding model is not the one the index was built with."""


class ProfileNotFoundError(PosragError):
    """No position profile, or positional curve, has been saved under that name or path."""


class EngineError(PosragError):
    """The database of an engine did not answer, or not in time."""


class GenerationError(PosragError):
    """A language model failed, or returned something other than one text per prompt."""


class MissingExtraError(PosragError, ImportError):
    """An optional dependency is not installed; the message gives the pip command."""
