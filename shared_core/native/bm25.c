/* The sparse leg: BM25 over postings. */

#include "kernels.h"

#include <stdlib.h>
#include <string.h>

#define WINDOW 512 /* rows whose scores are added up together */
#define SEGMENT 5  /* arrays of one */

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

static int borrow_segment(Words *words, PyObject *segment, const long *numbers, List *lists)
{
    enum { TERMS, STARTS, ROWS, COUNTS, LENGTHS };
    static const char *names[] = {"terms", "starts", "rows", "counts", "lengths"};
    static const char *kinds[] = {"il", "lq", "il", "Hil", "Hil"};
    static const int sizes[] = {4, 8, 4, 0, 0};
    Py_buffer *views = words->buffers + words->borrowed;
    if (!PyTuple_Check(segment) || PyTuple_Size(segment) != SEGMENT) {
        PyErr_Format(PyExc_TypeError, "a segment is a tuple of %d arrays", SEGMENT);
        return -1;
    }
    for (int part = 0; part < SEGMENT; part++, words->borrowed++)
        if (borrow(PyTuple_GetItem(segment, part), views + part, names[part], kinds[part],
                   sizes[part]) < 0)
            return -1;
    const int32_t *terms = views[TERMS].buf, *rows = views[ROWS].buf;
    const int64_t *starts = views[STARTS].buf;
    const char *counts = views[COUNTS].buf, *lengths = views[LENGTHS].buf;
    Py_ssize_t known = length(views + TERMS), postings = length(views + ROWS);
    Py_ssize_t width = views[COUNTS].itemsize;
    if (length(views + STARTS) != known + 1 || length(views + COUNTS) != postings ||
        length(views + LENGTHS) != postings || views[LENGTHS].itemsize != width || width > 4)
        goto misfit;
    for (Py_ssize_t term = 0; term < words->terms; term++) {
        Py_ssize_t at = numbers[term]; /* where it stands in a segment that holds all terms */
        if (at < 0 || at >= known || terms[at] != at)
            at = seek(terms, known, 0, numbers[term]);
        if (at == known || terms[at] != numbers[term])
            continue;
        int64_t start = starts[at], end = starts[at + 1];
        if (start < 0 || end <= start || end > postings || rows[start] < 0 ||
            rows[end - 1] >= words->rows)
            goto misfit;
        lists[term].rows = rows + start;
        lists[term].counts = counts + start * width;
        lists[term].lengths = lengths + start * width;
        lists[term].size = end - start;
        lists[term].wide = width == 4;
    }
    return 0;
misfit:
    PyErr_SetString(PyExc_ValueError, "the arrays of a segment do not fit each other");
    return -1;
}

int words_open(Words *words, PyObject *segments, PyObject *terms, PyObject *weights, Norm norm,
               Py_ssize_t rows)
{
    *words = (Words){.norm = norm, .rows = rows};
    words->segments = PyTuple_Size(segments);
    words->terms = PyList_Size(terms);
    if (PyList_Size(weights) != words->terms || rows < 0 || rows > INT32_MAX) {
        PyErr_SetString(PyExc_ValueError, "terms, weights and rows do not fit each other");
        return -1;
    }
    size_t lists = (size_t)(words->segments * words->terms);
    long *numbers = malloc((size_t)(words->terms + 1) * sizeof(long));
    words->buffers = malloc((size_t)(words->segments * SEGMENT + 1) * sizeof(Py_buffer));
    words->lists = calloc(lists + 1, sizeof(List));
    words->rest = calloc((size_t)words->terms + 1, sizeof(double));
    int failed = -1;
    if (!numbers || !words->buffers || !words->lists || !words->rest) {
        PyErr_NoMemory();
        goto done;
    }
    words->prunes = 1;
    for (Py_ssize_t term = words->terms - 1; term >= 0; term--) {
        double weight = PyFloat_AsDouble(PyList_GetItem(weights, term));
        numbers[term] = PyLong_AsLong(PyList_GetItem(terms, term));
        words->rest[term] = words->rest[term + 1] + weight;
        words->prunes = words->prunes && weight > 0.0;
        for (Py_ssize_t segment = 0; segment < words->segments; segment++)
            words->lists[segment * words->terms + term].weight = weight;
    }
    if (PyErr_Occurred())
        goto done;
    for (Py_ssize_t segment = 0; segment < words->segments; segment++)
        if (borrow_segment(words, PyTuple_GetItem(segments, segment), numbers,
                           words->lists + segment * words->terms) < 0)
            goto done;
    failed = 0;
done:
    free(numbers);
    return failed;
}

void words_close(Words *words)
{
    while (words->borrowed > 0)
        give_back(words->buffers + --words->borrowed);
    free(words->buffers);
    free(words->lists);
    free(words->rest);
}

typedef struct {
    double score;
    Py_ssize_t row;
} Hit;

static inline __attribute__((always_inline)) double
posting_score(const List *list, int wide, Py_ssize_t at, Norm norm)
{
    const int32_t *counts = list->counts, *lengths = list->lengths;
    const uint16_t *narrow_counts = list->counts, *narrow_lengths = list->lengths;
    double count = wide ? counts[at] : narrow_counts[at];
    double length = wide ? lengths[at] : narrow_lengths[at];
    return list->weight * (count / (count + (length * norm.slope + norm.base)));
}

/* Whether `left` is the better of two hits: by score, then by row. */
static int better(Hit left, Hit right)
{
    return left.score > right.score || (left.score == right.score && left.row < right.row);
}

static int by_row(const void *left, const void *right)
{
    const Hit *a = left, *b = right;
    return (a->row > b->row) - (a->row < b->row);
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
                                                             Norm norm, double *restrict scores,
                                                             uint64_t *restrict touched)
{
    const int32_t *restrict rows = list->rows;
    Py_ssize_t at = list->at, size = list->size;
    for (; at < size; at++) {
        uint32_t place = (uint32_t)(rows[at] - first);
        if (place >= WINDOW)
            break;
        scores[place] += posting_score(list, wide, at, norm);
        touched[place / 64] |= (uint64_t)1 << place % 64;
    }
    list->at = at;
}

/* Go through one segment, window by window of rows (as Lucene's BooleanScorer does). The first
 * `*needed` terms are gone through; the others only looked up for rows that they can lift to the
 * best k, for rows without one of the first cannot come there (MaxScore: Turtle and Flood,
 * Information Processing & Management 31(6), 1995). */
static void search_segment(const Words *words, List *lists, Py_ssize_t *needed, const char *allowed,
                           Best *best, double *scores)
{
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
                add_window(lists + term, 1, first, words->norm, scores, touched);
            else
                add_window(lists + term, 0, first, words->norm, scores, touched);
        for (int32_t word = 0; word < WINDOW / 64; word++)
            for (; touched[word]; touched[word] &= touched[word] - 1) {
                int32_t place = word * 64 + __builtin_ctzll(touched[word]);
                Hit hit = {scores[place], first + place};
                if (allowed && !allowed[hit.row])
                    continue;
                int full = best->size == best->k;
                Py_ssize_t term = *needed;
                for (; term < words->terms; term++) {
                    if (full && (hit.score + words->rest[term]) * SAFETY < best->hits[0].score)
                        break;
                    List *list = lists + term;
                    list->at = seek(list->rows, list->size, list->at, hit.row);
                    if (list->at < list->size && list->rows[list->at] == hit.row)
                        hit.score += posting_score(list, list->wide, list->at, words->norm);
                }
                if (term == words->terms)
                    best_offer(best, hit);
            }
        while (words->prunes && *needed > 1 && best->size == best->k &&
               words->rest[*needed - 1] * SAFETY < best->hits[0].score)
            --*needed;
    }
}

PyObject *best_postings(PyObject *module, PyObject *args)
{
    PyObject *segments, *terms, *weights, *allowed_array, *found = NULL;
    Py_buffer allowed = {0};
    Norm norm;
    Words words;
    Best best = {NULL, 0, 0};
    double scores[WINDOW];
    Py_ssize_t n;
    if (!PyArg_ParseTuple(args, "O!O!O!(dd)nnO", &PyTuple_Type, &segments, &PyList_Type, &terms,
                          &PyList_Type, &weights, &norm.slope, &norm.base, &n, &best.k,
                          &allowed_array) ||
        check_k(best.k) < 0)
        return NULL;
    if (words_open(&words, segments, terms, weights, norm, n) < 0)
        goto done;
    if (allowed_array != Py_None && borrow(allowed_array, &allowed, "allowed", "?", 1) < 0)
        goto done;
    Py_ssize_t needed = words.terms;
    if (allowed.obj && length(&allowed) != n) {
        PyErr_Format(PyExc_ValueError, "allowed: expected %zd rows", n);
        goto done;
    }
    best.k = best.k < n ? best.k : n + 1;
    best.hits = malloc((size_t)best.k * sizeof(Hit));
    if (!best.hits) {
        PyErr_NoMemory();
        goto done;
    }
    for (Py_ssize_t segment = 0; segment < words.segments; segment++)
        search_segment(&words, words.lists + segment * words.terms, &needed,
                       allowed.obj ? allowed.buf : NULL, &best, scores);
    qsort(best.hits, (size_t)best.size, sizeof(Hit), by_row);
    found = PyByteArray_FromStringAndSize(NULL, best.size * (Py_ssize_t)sizeof(Py_ssize_t));
    if (found)
        for (Py_ssize_t i = 0; i < best.size; i++)
            ((Py_ssize_t *)PyByteArray_AsString(found))[i] = best.hits[i].row;
done:
    free(best.hits);
    give_back(&allowed);
    words_close(&words);
    return found;
}

void word_scores(Words *words, const Py_ssize_t *rows, Py_ssize_t n, double *scores)
{
    memset(scores, 0, (size_t)n * sizeof *scores);
    for (Py_ssize_t term = 0; term < words->terms; term++)
        for (Py_ssize_t segment = 0; segment < words->segments; segment++) {
            List *list = words->lists + segment * words->terms + term;
            for (Py_ssize_t i = 0; list->size && i < n; i++) {
                if (i > 0 && rows[i] < rows[i - 1])
                    list->at = 0;
                list->at = seek(list->rows, list->size, list->at, rows[i]);
                if (list->at < list->size && list->rows[list->at] == rows[i])
                    scores[i] += posting_score(list, list->wide, list->at, words->norm);
            }
        }
}

PyObject *postings_at(PyObject *module, PyObject *args)
{
    PyObject *segments, *terms, *weights, *row_array, *found = NULL;
    Py_buffer view = {0};
    Words words;
    Norm norm;
    Py_ssize_t n;
    if (!PyArg_ParseTuple(args, "O!O!O!(dd)nO", &PyTuple_Type, &segments, &PyList_Type, &terms,
                          &PyList_Type, &weights, &norm.slope, &norm.base, &n, &row_array))
        return NULL;
    if (words_open(&words, segments, terms, weights, norm, n) == 0 &&
        borrow(row_array, &view, "rows", "lq", 8) == 0 && check_rows(&view, n) == 0 &&
        (found = PyByteArray_FromStringAndSize(NULL, length(&view) * (Py_ssize_t)sizeof(double))))
        word_scores(&words, view.buf, length(&view), (double *)PyByteArray_AsString(found));
    give_back(&view);
    words_close(&words);
    return found;
}
