/* The inner loops of building an index and of a search, in C. Arguments and results are described
 * in kernels.py, through which the functions are called; where this module was not built, its
 * callers do the same in numpy: with the same rows, and for BM25 and fused scores the same bits.
 * Therefore no multiplication may be contracted with an addition: compile with
 * -ffp-contract=off. */

#ifndef POSRAG_KERNELS_H
#define POSRAG_KERNELS_H

#define PY_SSIZE_T_CLEAN
#define Py_LIMITED_API 0x030B0000
#include <Python.h>

#include <stdint.h>

#define INTERFACE 14 /* as in kernels.py; goes up when a signature or a result changes */

_Static_assert(sizeof(Py_ssize_t) == 8, "rows are 64 bits wide");

#define SAFETY (1 + 1e-9) /* sums in another order differ by a smaller factor */

#define BLOCK 64 /* rows that are processed together */

/* A function that is compiled for each set of vector instructions; the loader chooses one. */
#if defined(__x86_64__) && defined(__GLIBC__) && !defined(__clang__) && __GNUC__ >= 12
#define VECTORISED __attribute__((target_clones("default", "avx2", "arch=x86-64-v4")))
#else
#define VECTORISED
#endif

#define INLINED inline __attribute__((always_inline))

/* ------------------------------------------------------------------------------------ arrays.c */

/* Borrow the memory of a C-contiguous array whose items have one of `kinds`, and `size` bytes or,
 * if that is 0, any size. */
int borrow(PyObject *array, Py_buffer *view, const char *name, const char *kinds, int size);

/* Give back borrowed memory, if there is any. */
void give_back(Py_buffer *view);

/* The number of items. */
Py_ssize_t length(const Py_buffer *view);

/* Raise IndexError unless each row of a buffer is in [0, rows). */
int check_rows(const Py_buffer *view, Py_ssize_t rows);

/* Borrow the marks of rows that may be found, or nothing if they are None: all may. */
int borrow_allowed(PyObject *array, Py_buffer *view, Py_ssize_t rows);

/* Borrow vectors, of `dim` components or, if that is 0, of any number. */
int borrow_matrix(PyObject *array, Py_buffer *view, const char *name, const char *kind, int size,
                  Py_ssize_t dim);

/* ----------------------------------------------------------------------------------- nearest.c */

/* Gathers rows whose keys reach the k-th best less a slack, as they are offered. */
typedef struct {
    Py_ssize_t k, size, room;
    int64_t slack;
    int32_t kth;   /* so far */
    int32_t bound; /* what reaches it is gathered */
    int32_t *keys;
    Py_ssize_t *rows; /* ascending */
} Near;

int near_open(Near *near, Py_ssize_t k, int64_t slack);
void near_close(Near *near);

/* Offer the keys of `size` <= BLOCK ascending rows: of `rows`, or of those from `first` on where it
 * is NULL; `allowed` by row, or NULL. */
int near_offer(Near *near, const int32_t *keys, Py_ssize_t size, Py_ssize_t first,
               const Py_ssize_t *rows, const char *allowed);

/* Find the k-th best so far, and drop rows that do not reach the bound. */
void near_drop(Near *near);

/* Keep the best k; of equal keys that compete for the last places, the first ones. */
void near_cut(Near *near);

/* ------------------------------------------------------------------------------------- dense.c */

void choose_products(void); /* once, before any search */

/* Vectors, and 8-bit copies of the first `copied` of them; see `Scan` in kernels.py. */
typedef struct {
    Py_buffer views[2];
    const float *vectors;
    const uint8_t *codes;
    Py_ssize_t rows, copied, dim;
    double scale, margin, longest, rounding;
    const char *allowed; /* by row, or NULL */
} Dense;

/* Borrow the arrays of a `Scan`. Close it in any case. */
int dense_open(Dense *dense, PyObject *scan);
void dense_close(Dense *dense);

/* Find the k rows nearest to each of m queries; other threads may run meanwhile if that takes long.
 * Close each result in any case. */
int nearest_vectors(const Dense *dense, const float *vectors, Py_ssize_t m, Py_ssize_t k,
                    Near *found);

/* The products of a query with some rows of vectors. */
void vector_scores(const float *vectors, const float *query, Py_ssize_t dim, const Py_ssize_t *rows,
                   Py_ssize_t n, double *scores);

/* -------------------------------------------------------------------------------------- bm25.c */

/* The length normalisation, positive. */
typedef struct {
    double slope, base;
} Norm;

/* The postings of a term in a segment. */
typedef struct {
    const int32_t *rows;          /* ascending */
    const void *counts, *lengths; /* uint16_t, or int32_t where `wide` */
    Py_ssize_t size, at, from;
    int32_t most, least; /* most occurrences, and the length of the shortest row */
    int wide;
    double weight;
} List;

/* The words of a query: their postings, segment by segment. */
typedef struct {
    Py_buffer *buffers;
    Py_ssize_t borrowed, segments, terms, rows;
    List *lists; /* segments x terms; empty where a term does not occur */
    int prunes;  /* whether each weight is positive */
    Norm norm;
} Words;

/* Borrow the postings; arguments as in `pools` of kernels.py. Close it in any case. */
int words_open(Words *words, PyObject *segments, PyObject *terms, PyObject *weights, Norm norm,
               Py_ssize_t rows);
void words_close(Words *words);

/* The scores of some rows, 0 without a term. */
void word_scores(const Words *words, const Py_ssize_t *rows, Py_ssize_t n, double *scores);

/* Find the place of `value` among ascending `values`, or where it would be, from `at` on. */
Py_ssize_t seek(const int32_t *values, Py_ssize_t size, Py_ssize_t at, Py_ssize_t value);

/* What a posting adds to the score of its row. Inlined, so that loops over postings are compiled
 * for either width. */
static INLINED double posting_score(const List *list, int wide, Py_ssize_t at, Norm norm)
{
    const int32_t *counts = list->counts, *lengths = list->lengths;
    const uint16_t *narrow_counts = list->counts, *narrow_lengths = list->lengths;
    double count = wide ? counts[at] : narrow_counts[at];
    double length = wide ? lengths[at] : narrow_lengths[at];
    return list->weight * (count / (count + (length * norm.slope + norm.base)));
}

/* ------------------------------------------------------------------------------- bm25_search.c */

/* The best k rows, and others that are yet to be dropped. */
typedef struct {
    Py_ssize_t k, size, room;
    double cut; /* later rows have to exceed it */
    double *scores;
    Py_ssize_t *rows; /* ascending */
} Best;

/* A search: its terms, the weightiest first, and its result. */
typedef struct {
    Words words;
    double *rest;        /* by term: the most that it and those after it add to a score */
    Py_ssize_t needed;   /* a row without one of this many terms cannot be among the best k */
    const char *allowed; /* by row, or NULL */
    Best best;
} Search;

/* Prepare a search for a query, a tuple of terms and weights. Close it in any case. */
int search_open(Search *search, PyObject *segments, PyObject *query, Norm norm, Py_ssize_t rows,
                Py_ssize_t k);
void search_close(Search *search);

/* Find the best of each search; other threads may run meanwhile if that takes long. */
void search_all(Search *searches, Py_ssize_t m);

/* ----------------------------------------------------------------------- what Python can call */

PyObject *unit_vector(PyObject *module, PyObject *array);
PyObject *vectors_at(PyObject *module, PyObject *args);
PyObject *pools(PyObject *module, PyObject *args);
PyObject *postings_at(PyObject *module, PyObject *args);
PyObject *ranked(PyObject *module, PyObject *args);

#endif
