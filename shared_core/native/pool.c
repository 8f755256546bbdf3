/* The pool of a search: what either leg has found, scored by both. */

#include "kernels.h"

#include <math.h>
#include <stdlib.h>

/* Ascending rows that one leg has found, and their scores. */
typedef struct {
    const Py_ssize_t *rows;
    const double *scores;
    Py_ssize_t size;
} Found;

/* Unite what both legs have found; return how many rows that are. A leg's scores are NaN where only
 * the other one has found a row. */
static Py_ssize_t unite(Found dense, Found sparse, Py_ssize_t *rows, double *dense_scores,
                        double *sparse_scores)
{
    Py_ssize_t size = 0, i = 0, j = 0;
    for (; i < dense.size || j < sparse.size; size++) {
        int first = j == sparse.size || (i < dense.size && dense.rows[i] < sparse.rows[j]);
        Py_ssize_t row = rows[size] = first ? dense.rows[i] : sparse.rows[j];
        dense_scores[size] = sparse_scores[size] = NAN;
        if (i < dense.size && dense.rows[i] == row)
            dense_scores[size] = dense.scores[i++];
        if (j < sparse.size && sparse.rows[j] == row)
            sparse_scores[size] = sparse.scores[j++];
    }
    return size;
}

/* Scores that are wanting: their rows, where they belong, and room for them. */
typedef struct {
    Py_ssize_t *rows, *places, size;
    double *scores;
} Missing;

static void collect(Missing *missing, const double *scores, const Py_ssize_t *rows, Py_ssize_t n)
{
    missing->size = 0;
    for (Py_ssize_t i = 0; i < n; i++) {
        missing->rows[missing->size] = rows[i];
        missing->places[missing->size] = i;
        missing->size += isnan(scores[i]) != 0;
    }
}

static void fill_in(const Missing *missing, double *scores)
{
    for (Py_ssize_t i = 0; i < missing->size; i++)
        scores[missing->places[i]] = missing->scores[i];
}

PyObject *pool(PyObject *module, PyObject *args)
{
    enum { VECTORS, QUERY, NEAR, NEARNESS, MATCHING, WEIGHT, ARRAYS };
    static const char *names[] = {"vectors", "query", "near", "near", "matching", "matching"};
    static const char *kinds[] = {"f", "f", "lq", "d", "lq", "d"};
    PyObject *arrays[ARRAYS], *segments, *terms, *weights, *parts[3] = {NULL}, *found = NULL;
    Py_buffer views[ARRAYS] = {{0}};
    Missing missing = {0};
    Words words = {0};
    Norm norm;
    if (!PyArg_ParseTuple(args, "OO(OO)O!O!O!(dd)(OO)", arrays, arrays + QUERY, arrays + NEAR,
                          arrays + NEARNESS, &PyTuple_Type, &segments, &PyList_Type, &terms,
                          &PyList_Type, &weights, &norm.slope, &norm.base, arrays + MATCHING,
                          arrays + WEIGHT))
        return NULL;
    for (int i = 0; i < ARRAYS; i++)
        if (borrow(arrays[i], views + i, names[i], kinds[i], i < NEAR ? 4 : 8) < 0)
            goto done;
    Py_ssize_t dim = length(views + QUERY);
    Found dense = {views[NEAR].buf, views[NEARNESS].buf, length(views + NEAR)};
    Found sparse = {views[MATCHING].buf, views[WEIGHT].buf, length(views + MATCHING)};
    if (views[VECTORS].ndim != 2 || views[VECTORS].shape[1] != dim ||
        length(views + NEARNESS) != dense.size || length(views + WEIGHT) != sparse.size) {
        PyErr_SetString(PyExc_ValueError, "vectors and query, or rows and scores do not fit");
        goto done;
    }
    Py_ssize_t size = views[VECTORS].shape[0], n = dense.size + sparse.size;
    if (check_rows(views + NEAR, size) < 0 || check_rows(views + MATCHING, size) < 0 ||
        words_open(&words, segments, terms, weights, norm, size) < 0)
        goto done;
    for (int i = 0; i < 3; i++)
        if (!(parts[i] = PyByteArray_FromStringAndSize(NULL, n * (Py_ssize_t)sizeof(double))))
            goto done;
    missing.rows = malloc((size_t)n * sizeof *missing.rows + 1);
    missing.places = malloc((size_t)n * sizeof *missing.places + 1);
    missing.scores = malloc((size_t)n * sizeof *missing.scores + 1);
    if (!missing.rows || !missing.places || !missing.scores) {
        PyErr_NoMemory();
        goto done;
    }
    Py_ssize_t *rows = (Py_ssize_t *)PyByteArray_AsString(parts[0]);
    double *by_meaning = (double *)PyByteArray_AsString(parts[1]);
    double *by_words = (double *)PyByteArray_AsString(parts[2]);
    n = unite(dense, sparse, rows, by_meaning, by_words);
    collect(&missing, by_meaning, rows, n);
    vector_scores(views[VECTORS].buf, views[QUERY].buf, dim, missing.rows, missing.size,
                  missing.scores);
    fill_in(&missing, by_meaning);
    collect(&missing, by_words, rows, n);
    word_scores(&words, missing.rows, missing.size, missing.scores);
    fill_in(&missing, by_words);
    for (int i = 0; i < 3; i++)
        if (PyByteArray_Resize(parts[i], n * (Py_ssize_t)sizeof(double)) < 0)
            goto done;
    found = PyTuple_Pack(3, parts[0], parts[1], parts[2]);
done:
    for (int i = 0; i < 3; i++)
        Py_XDECREF(parts[i]);
    free(missing.scores);
    free(missing.places);
    free(missing.rows);
    words_close(&words);
    for (int i = ARRAYS - 1; i >= 0; i--)
        give_back(views + i);
    return found;
}
