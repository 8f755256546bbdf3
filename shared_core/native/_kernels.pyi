# The compiled module; see kernels.py, which gives its functions arrays to return.

from shared_core.arrays import Bools, Rows, Scores, Vectors
from shared_core.native.kernels import Norm, Postings, Ranked, Scan, Words

INTERFACE: int

def pools(
    scan: Scan | None,
    vectors: Vectors | None,
    segments: tuple[Postings, ...],
    words: tuple[Words, ...],
    norm: Norm,
    size: int,
    k: int,
    allowed: Bools | None,
    /,
) -> list[tuple[bytearray, bytearray, bytearray, int]]: ...
def unit_vector(vector: Vectors, /) -> tuple[bytearray, float]: ...
def vectors_at(vectors: Vectors, query: Vectors, rows: Rows, /) -> bytearray: ...
def postings_at(
    segments: tuple[Postings, ...],
    terms: list[int],
    weights: list[float],
    norm: Norm,
    size: int,
    rows: Rows,
    /,
) -> bytearray: ...
def ranked(
    dense: Scores, sparse: Scores, weight: float, k: int, lows: tuple[float, float], /
) -> Ranked | None: ...
