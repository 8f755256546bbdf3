/* The sparse leg: BM25 over postings. */

#include "kernels.h"

#include <stdlib.h>
#include <string.h>

#define WINDOW 512 /* rows whose scores are added up together */

typedef struct {
    const int32_t *rows; /* ascending */
    const void *counts;  /* uint16_t, or int32_t where `wide` */
    Py_ssize_t size, at;
    int wide;
    double weight;
} List;

/* A query against the postings: the lists of its terms, segment by segment. */
typedef struct {
    Py_buffer *buffers;
    Py_ssize_t borrowed, segments, terms;
    List *lists; /* segments x terms; empty where a term does not occur */
    double *rest; /* by term: what it and those after it add to a score at most */
    int prunes;   /* whether each weight is positive */
    Py_buffer norms;
} Query;

static void query_close(Query *query)
{
    while (query->borrowed > 0)
        give_back(query->buffers + --query->borrowed);
    give_back(&query->norms);
    free(query->buffers);
    free(query->lists);
    free(query->rest);
}

typedef struct {
    double score;
    Py_ssize_t row;
} Hit;

/* Find the place of `value` among ascending `values`, or where it would stand, from `at` on. */
static Py_ssize_t seek(const int32_t *values, Py_ssize_t size, Py_ssize_t at, Py_ssize_t value)
{
    Py_ssize_t step = 1, end = at;
    while (end < size && values[end] < value) {
        at = end + 1;
        end += step;
        step *= 2;
    }
    end = end < size ? end : size;
    while (at < end) {
        Py_ssize_t middle = at + (end - at) / 2;
        if (values[middle] < value)
            at = middle + 1;
        else
            end = middle;
    }
    return at;
}

static int borrow_segment(Query *query, PyObject *segment, const long *numbers, List *lists)
{
    static const char *names[] = {"terms", "starts", "rows", "counts"};
    static const char *kinds[] = {"il", "lq", "il", "H"};
    static const int sizes[] = {4, 8, 4, 2};
    Py_buffer *views = query->buffers + query->borrowed;
    int wide = 0;
    if (!PyTuple_Check(segment) || PyTuple_Size(segment) != 4) {
        PyErr_SetString(PyExc_TypeError, "a segment is a tuple of four arrays");
        return -1;
    }
    for (int part = 0; part < 4; part++) {
        PyObject *array = PyTuple_GetItem(segment, part);
        if (borrow(array, views + part, names[part], kinds[part], sizes[part]) < 0) {
            if (part < 3)
                return -1;
            PyErr_Clear();
            if (borrow(array, views + part, names[part], "il", 4) < 0)
                return -1;
            wide = 1;
        }
        query->borrowed++;
    }
    const int32_t *terms = views[0].buf, *rows = views[2].buf;
    const int64_t *starts = views[1].buf;
    Py_ssize_t known = length(views), postings = length(views + 2), n = length(&query->norms);
    if (length(views + 1) != known + 1 || length(views + 3) != postings)
        goto misfit;
    for (Py_ssize_t term = 0; term < query->terms; term++) {
        Py_ssize_t at = seek(terms, known, 0, numbers[term]);
        if (at == known || terms[at] != numbers[term])
            continue;
        int64_t start = starts[at], end = starts[at + 1];
        if (start < 0 || end <= start || end > postings || rows[start] < 0 || rows[end - 1] >= n)
            goto misfit;
        lists[term].rows = rows + start;
        lists[term].counts = (const char *)views[3].buf + start * (wide ? 4 : 2);
        lists[term].size = end - start;
        lists[term].wide = wide;
    }
    return 0;
misfit:
    PyErr_SetString(PyExc_ValueError, "the arrays of a segment do not fit each other");
    return -1;
}

/* Borrow (segments, terms, weights, norms); see `best_postings` in kernels.py. */
static int query_open(Query *query, PyObject *segments, PyObject *terms, PyObject *weights,
                      PyObject *norms)
{
    *query = (Query){0};
    query->segments = PyTuple_Size(segments);
    query->terms = PyList_Size(terms);
    if (PyList_Size(weights) != query->terms) {
        PyErr_SetString(PyExc_ValueError, "terms and weights do not fit each other");
        return -1;
    }
    if (borrow(norms, &query->norms, "norms", "d", 8) < 0)
        return -1;
    size_t lists = (size_t)(query->segments * query->terms);
    long *numbers = malloc((size_t)(query->terms + 1) * sizeof(long));
    query->buffers = malloc((size_t)(query->segments * 4 + 1) * sizeof(Py_buffer));
    query->lists = calloc(lists + 1, sizeof(List));
    query->rest = calloc((size_t)query->terms + 1, sizeof(double));
    int failed = -1;
    if (!numbers || !query->buffers || !query->lists || !query->rest) {
        PyErr_NoMemory();
        goto done;
    }
    query->prunes = 1;
    for (Py_ssize_t term = query->terms - 1; term >= 0; term--) {
        double weight = PyFloat_AsDouble(PyList_GetItem(weights, term));
        numbers[term] = PyLong_AsLong(PyList_GetItem(terms, term));
        query->rest[term] = query->rest[term + 1] + weight;
        query->prunes = query->prunes && weight > 0.0;
        for (Py_ssize_t segment = 0; segment < query->segments; segment++)
            query->lists[segment * query->terms + term].weight = weight;
    }
    if (PyErr_Occurred())
        goto done;
    for (Py_ssize_t segment = 0; segment < query->segments; segment++)
        if (borrow_segment(query, PyTuple_GetItem(segments, segment), numbers,
                           query->lists + segment * query->terms) < 0)
            goto done;
    failed = 0;
done:
    free(numbers);
    return failed;
}

static double posting_score(const List *list, Py_ssize_t at, const double *norms)
{
    double count = list->wide ? ((const int32_t *)list->counts)[at]
                              : ((const uint16_t *)list->counts)[at];
    return list->weight * (count / (count + norms[list->rows[at]]));
}

/* Whether `left` is the better of two hits: by score, then by row. */
static int better(Hit left, Hit right)
{
    return left.score > right.score || (left.score == right.score && left.row < right.row);
}

/* The best k hits: a heap, the least of them first. */
typedef struct {
    Hit *hits;
    Py_ssize_t size, k;
} Best;

static void best_sift(Hit *hits, Py_ssize_t size, Hit hit)
{
    Py_ssize_t at = 0, child;
    while ((child = 2 * at + 1) < size) {
        if (child + 1 < size && better(hits[child], hits[child + 1]))
            child++;
        if (!better(hit, hits[child]))
            break;
        hits[at] = hits[child];
        at = child;
    }
    hits[at] = hit;
}

static void best_offer(Best *best, Hit hit)
{
    if (best->size == best->k) {
        if (better(hit, best->hits[0]))
            best_sift(best->hits, best->size, hit);
        return;
    }
    Py_ssize_t at = best->size++;
    while (at > 0 && better(best->hits[(at - 1) / 2], hit)) {
        best->hits[at] = best->hits[(at - 1) / 2];
        at = (at - 1) / 2;
    }
    best->hits[at] = hit;
}

/* Add a list's postings in a window of rows to their scores; one copy of this for either width. */
static inline __attribute__((always_inline)) void add_window(List *list, int wide, int32_t first,
                                                             const double *restrict norms,
                                                             double *restrict scores,
                                                             uint64_t *restrict touched)
{
    const int32_t *restrict rows = list->rows;
    const int32_t *restrict wides = list->counts;
    const uint16_t *restrict narrows = list->counts;
    Py_ssize_t at = list->at, size = list->size;
    double weight = list->weight;
    for (; at < size; at++) {
        uint32_t place = (uint32_t)(rows[at] - first);
        if (place >= WINDOW)
            break;
        double count = wide ? wides[at] : narrows[at];
        scores[place] += weight * (count / (count + norms[rows[at]]));
        touched[place / 64] |= (uint64_t)1 << place % 64;
    }
    list->at = at;
}

/* Go through one segment, window by window of rows (as Lucene's BooleanScorer does). The first
 * `*needed` terms are gone through; the others only looked up for rows that they can lift to the
 * best k, for rows without one of the first cannot come there (MaxScore: Turtle and Flood,
 * Information Processing & Management 31(6), 1995). */
static void search_segment(const Query *query, List *lists, Py_ssize_t *needed, const char *allowed,
                           Best *best, double *scores)
{
    const double *norms = query->norms.buf;
    uint64_t touched[WINDOW / 64] = {0};
    for (;;) {
        int32_t first = INT32_MAX;
        for (Py_ssize_t term = 0; term < *needed; term++)
            if (lists[term].at < lists[term].size && lists[term].rows[lists[term].at] < first)
                first = lists[term].rows[lists[term].at];
        if (first == INT32_MAX)
            return;
        memset(scores, 0, WINDOW * sizeof *scores);
        for (Py_ssize_t term = 0; term < *needed; term++)
            if (lists[term].wide)
                add_window(lists + term, 1, first, norms, scores, touched);
            else
                add_window(lists + term, 0, first, norms, scores, touched);
        for (int32_t word = 0; word < WINDOW / 64; word++)
            for (; touched[word]; touched[word] &= touched[word] - 1) {
                int32_t place = word * 64 + __builtin_ctzll(touched[word]);
                Hit hit = {scores[place], first + place};
                if (allowed && !allowed[hit.row])
                    continue;
                int full = best->size == best->k;
                Py_ssize_t term = *needed;
                for (; term < query->terms; term++) {
                    if (full && (hit.score + query->rest[term]) * SAFETY < best->hits[0].score)
                        break;
                    List *list = lists + term;
                    list->at = seek(list->rows, list->size, list->at, hit.row);
                    if (list->at < list->size && list->rows[list->at] == hit.row)
                        hit.score += posting_score(list, list->at, norms);
                }
                if (term == query->terms)
                    best_offer(best, hit);
            }
        while (query->prunes && *needed > 1 && best->size == best->k &&
               query->rest[*needed - 1] * SAFETY < best->hits[0].score)
            --*needed;
    }
}

PyObject *best_postings(PyObject *module, PyObject *args)
{
    PyObject *segments, *terms, *weights, *norms, *allowed_array, *found = NULL;
    Py_buffer allowed = {0};
    Query query;
    Best best = {NULL, 0, 0};
    double scores[WINDOW];
    if (!PyArg_ParseTuple(args, "O!O!O!OnO", &PyTuple_Type, &segments, &PyList_Type, &terms,
                          &PyList_Type, &weights, &norms, &best.k, &allowed_array) ||
        check_k(best.k) < 0)
        return NULL;
    if (query_open(&query, segments, terms, weights, norms) < 0)
        goto done;
    if (allowed_array != Py_None && borrow(allowed_array, &allowed, "allowed", "?", 1) < 0)
        goto done;
    Py_ssize_t n = length(&query.norms), needed = query.terms;
    if (allowed.obj && length(&allowed) != n) {
        PyErr_SetString(PyExc_ValueError, "norms and allowed do not fit each other");
        goto done;
    }
    best.k = best.k < n ? best.k : n + 1;
    best.hits = malloc((size_t)best.k * sizeof(Hit));
    if (!best.hits) {
        PyErr_NoMemory();
        goto done;
    }
    for (Py_ssize_t segment = 0; segment < query.segments; segment++)
        search_segment(&query, query.lists + segment * query.terms, &needed,
                       allowed.obj ? allowed.buf : NULL, &best, scores);
    found = PyByteArray_FromStringAndSize(NULL, best.size * (Py_ssize_t)sizeof(Py_ssize_t));
    if (found)
        for (Py_ssize_t i = 0; i < best.size; i++)
            ((Py_ssize_t *)PyByteArray_AsString(found))[i] = best.hits[i].row;
done:
    free(best.hits);
    give_back(&allowed);
    query_close(&query);
    return found;
}

PyObject *postings_at(PyObject *module, PyObject *args)
{
    PyObject *segments, *terms, *weights, *norms, *row_array, *found = NULL;
    Py_buffer rows = {0};
    Query query;
    if (!PyArg_ParseTuple(args, "O!O!O!OO", &PyTuple_Type, &segments, &PyList_Type, &terms,
                          &PyList_Type, &weights, &norms, &row_array))
        return NULL;
    if (query_open(&query, segments, terms, weights, norms) < 0 ||
        borrow(row_array, &rows, "rows", "lq", 8) < 0)
        goto done;
    Py_ssize_t n = length(&rows);
    const Py_ssize_t *row = rows.buf;
    for (Py_ssize_t i = 0; i < n; i++)
        if (row[i] < 0 || row[i] >= length(&query.norms)) {
            PyErr_Format(PyExc_IndexError, "there is no row %zd", row[i]);
            goto done;
        }
    found = PyByteArray_FromStringAndSize(NULL, n * (Py_ssize_t)sizeof(double));
    if (!found)
        goto done;
    double *scores = (double *)PyByteArray_AsString(found);
    memset(scores, 0, (size_t)n * sizeof *scores);
    for (Py_ssize_t term = 0; term < query.terms; term++)
        for (Py_ssize_t segment = 0; segment < query.segments; segment++) {
            List *list = query.lists + segment * query.terms + term;
            for (Py_ssize_t i = 0; list->size && i < n; i++) {
                if (i > 0 && row[i] < row[i - 1])
                    list->at = 0;
                list->at = seek(list->rows, list->size, list->at, row[i]);
                if (list->at < list->size && list->rows[list->at] == row[i])
                    scores[i] += posting_score(list, list->at, query.norms.buf);
            }
        }
done:
    give_back(&rows);
    query_close(&query);
    return found;
}
