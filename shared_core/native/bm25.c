/* BM25: the postings of a query's words, and the scores of given rows. */

#include "kernels.h"

#include <stdlib.h>
#include <string.h>

#define SEGMENT 6 /* number of arrays in a segment */

Py_ssize_t seek(const int32_t *values, Py_ssize_t size, Py_ssize_t at, Py_ssize_t value)
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
    enum { TERMS, STARTS, ROWS, COUNTS, LENGTHS, EXTREMES };
    static const char *names[] = {"terms", "starts", "rows", "counts", "lengths", "extremes"};
    static const char *kinds[] = {"il", "lq", "il", "Hil", "Hil", "il"};
    static const int sizes[] = {4, 8, 4, 0, 0, 4};
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
    const int32_t *extremes = views[EXTREMES].buf;
    const int64_t *starts = views[STARTS].buf;
    const char *counts = views[COUNTS].buf, *lengths = views[LENGTHS].buf;
    Py_ssize_t known = length(views + TERMS), postings = length(views + ROWS);
    Py_ssize_t width = views[COUNTS].itemsize;
    if (length(views + STARTS) != known + 1 || length(views + COUNTS) != postings ||
        length(views + LENGTHS) != postings || views[LENGTHS].itemsize != width || width > 4 ||
        length(views + EXTREMES) != 2 * known)
        goto misfit;
    for (Py_ssize_t term = 0; term < words->terms; term++) {
        Py_ssize_t at = numbers[term]; /* its place in a segment that holds all terms */
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
        lists[term].most = extremes[2 * at];
        lists[term].least = extremes[2 * at + 1];
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
    int failed = -1;
    if (!numbers || !words->buffers || !words->lists) {
        PyErr_NoMemory();
        goto done;
    }
    words->prunes = 1;
    for (Py_ssize_t term = words->terms - 1; term >= 0; term--) {
        double weight = PyFloat_AsDouble(PyList_GetItem(weights, term));
        numbers[term] = PyLong_AsLong(PyList_GetItem(terms, term));
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
}

/* Add what a list gives to the scores of up to BLOCK rows. They are looked up side by side: one
 * alone would wait for each of its steps. */
VECTORISED static void add_scores(const List *list, const Py_ssize_t *rows, Py_ssize_t n, Norm norm,
                                  double *scores)
{
    int32_t places[BLOCK]; /* of the last posting up to the row */
    memset(places, 0, (size_t)n * sizeof *places);
    for (Py_ssize_t left = list->size; left > 1; left -= left / 2)
        for (Py_ssize_t i = 0; i < n; i++) {
            int32_t behind = list->rows[places[i] + left / 2] <= rows[i];
            places[i] += (int32_t)(left / 2) & -behind; /* a branch would be unpredictable */
        }
    for (Py_ssize_t i = 0; i < n; i++)
        if (list->size && list->rows[places[i]] == rows[i])
            scores[i] += posting_score(list, list->wide, places[i], norm);
}

void word_scores(const Words *words, const Py_ssize_t *rows, Py_ssize_t n, double *scores)
{
    memset(scores, 0, (size_t)n * sizeof *scores);
    for (Py_ssize_t at = 0; at < n; at += BLOCK) {
        Py_ssize_t size = n - at < BLOCK ? n - at : BLOCK;
        for (Py_ssize_t term = 0; term < words->terms; term++)
            for (Py_ssize_t segment = 0; segment < words->segments; segment++)
                add_scores(words->lists + segment * words->terms + term, rows + at, size,
                           words->norm, scores + at);
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
