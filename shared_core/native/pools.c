/* What either leg finds for a query, scored by both. */

#include "kernels.h"

#include <stdlib.h>

/* Unite two ascending lists of rows in one, and return its size. */
static Py_ssize_t unite(const Near *near, const Best *best, Py_ssize_t *rows)
{
    Py_ssize_t size = 0, i = 0, j = 0;
    while (i < near->size || j < best->size) {
        Py_ssize_t one = i < near->size ? near->rows[i] : INT32_MAX;
        Py_ssize_t other = j < best->size ? best->rows[j] : INT32_MAX;
        rows[size++] = one < other ? one : other;
        i += one <= other;
        j += other <= one;
    }
    return size;
}

/* A tuple of bytearrays: the rows of a pool, and their scores by either leg. */
static PyObject *pool_of(const Dense *dense, const float *query, const Near *near,
                         const Search *search)
{
    Py_ssize_t room = (near->size + search->best.size) * (Py_ssize_t)sizeof(Py_ssize_t);
    PyObject *parts[3], *pool = NULL;
    for (int part = 0; part < 3; part++)
        parts[part] = PyByteArray_FromStringAndSize(NULL, room);
    if (parts[0] && parts[1] && parts[2]) {
        Py_ssize_t *rows = (Py_ssize_t *)PyByteArray_AsString(parts[0]);
        Py_ssize_t n = unite(near, &search->best, rows);
        vector_scores(dense->vectors, query, dense->dim, rows, n,
                      (double *)PyByteArray_AsString(parts[1]));
        word_scores(&search->words, rows, n, (double *)PyByteArray_AsString(parts[2]));
        pool = Py_BuildValue("OOOn", parts[0], parts[1], parts[2], n);
    }
    for (int part = 0; part < 3; part++)
        Py_XDECREF(parts[part]);
    return pool;
}

PyObject *pools(PyObject *module, PyObject *args)
{
    PyObject *scan, *query_array, *segments, *words, *marks, *found = NULL;
    Py_buffer queries = {0}, allowed = {0};
    Dense dense = {0};
    Norm norm;
    Py_ssize_t n, k;
    if (!PyArg_ParseTuple(args, "OOO!O!(dd)nnO", &scan, &query_array, &PyTuple_Type, &segments,
                          &PyTuple_Type, &words, &norm.slope, &norm.base, &n, &k, &marks) ||
        borrow_allowed(marks, &allowed, n) < 0)
        return NULL;
    Py_ssize_t m = PyTuple_Size(words);
    Near *nearest = calloc((size_t)m + 1, sizeof *nearest);
    Search *searches = calloc((size_t)m + 1, sizeof *searches);
    if (!nearest || !searches) {
        PyErr_NoMemory();
        goto done;
    }
    if (scan != Py_None) {
        if (dense_open(&dense, scan) < 0 ||
            borrow_matrix(query_array, &queries, "queries", "f", 4, dense.dim) < 0)
            goto done;
        dense.allowed = allowed.buf;
        if (dense.rows != n || queries.shape[0] != m) {
            PyErr_SetString(PyExc_ValueError, "vectors and words do not fit each other");
            goto done;
        }
        if (nearest_vectors(&dense, queries.buf, m, k, nearest) < 0)
            goto done;
    }
    for (Py_ssize_t i = 0; i < m; i++)
        if (search_open(searches + i, segments, PyTuple_GetItem(words, i), norm, n, k) < 0)
            goto done;
        else
            searches[i].allowed = allowed.buf;
    search_all(searches, m);
    found = PyList_New(m);
    for (Py_ssize_t i = 0; found && i < m; i++) {
        const float *query = (const float *)queries.buf + i * dense.dim;
        PyObject *pool = pool_of(&dense, query, nearest + i, searches + i);
        if (!pool || PyList_SetItem(found, i, pool) < 0)
            Py_CLEAR(found);
    }
done:
    for (Py_ssize_t i = 0; nearest && searches && i < m; i++) {
        near_close(nearest + i);
        search_close(searches + i);
    }
    free(nearest);
    free(searches);
    give_back(&queries);
    dense_close(&dense);
    give_back(&allowed);
    return found;
}
