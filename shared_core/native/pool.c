/* The pool of a search: what either leg has found, scored by both. */

#include "kernels.h"

/* Unite two lists of ascending rows; return how many rows there are in either. */
static Py_ssize_t unite(const Py_ssize_t *left, Py_ssize_t n, const Py_ssize_t *right, Py_ssize_t m,
                        Py_ssize_t *rows)
{
    Py_ssize_t size = 0, i = 0, j = 0;
    while (i < n || j < m) {
        Py_ssize_t row = j == m || (i < n && left[i] < right[j]) ? left[i] : right[j];
        i += i < n && left[i] == row;
        j += j < m && right[j] == row;
        rows[size++] = row;
    }
    return size;
}

PyObject *pool(PyObject *module, PyObject *args)
{
    enum { VECTORS, QUERY, NEAR, MATCHING };
    static const char *names[] = {"vectors", "query", "near", "matching"};
    static const char *kinds[] = {"f", "f", "lq", "lq"};
    PyObject *arrays[4], *segments, *terms, *weights, *parts[3] = {NULL}, *found = NULL;
    Py_buffer views[4] = {{0}};
    Words words = {0};
    Norm norm;
    if (!PyArg_ParseTuple(args, "OOOO!O!O!(dd)O", arrays, arrays + 1, arrays + 2, &PyTuple_Type,
                          &segments, &PyList_Type, &terms, &PyList_Type, &weights, &norm.slope,
                          &norm.base, arrays + 3))
        return NULL;
    for (int i = 0; i < 4; i++)
        if (borrow(arrays[i], views + i, names[i], kinds[i], i < NEAR ? 4 : 8) < 0)
            goto done;
    Py_ssize_t dim = length(views + QUERY), near = length(views + NEAR);
    if (views[VECTORS].ndim != 2 || views[VECTORS].shape[1] != dim) {
        PyErr_SetString(PyExc_ValueError, "vectors and query do not fit each other");
        goto done;
    }
    Py_ssize_t size = views[VECTORS].shape[0], n = near + length(views + MATCHING);
    if (check_rows(views + NEAR, size) < 0 || check_rows(views + MATCHING, size) < 0 ||
        words_open(&words, segments, terms, weights, norm, size) < 0 ||
        !(parts[0] = PyByteArray_FromStringAndSize(NULL, n * (Py_ssize_t)sizeof(Py_ssize_t))))
        goto done;
    Py_ssize_t *rows = (Py_ssize_t *)PyByteArray_AsString(parts[0]);
    n = unite(views[NEAR].buf, near, views[MATCHING].buf, n - near, rows);
    Py_ssize_t bytes = n * (Py_ssize_t)sizeof(double);
    if (PyByteArray_Resize(parts[0], bytes) < 0 ||
        !(parts[1] = PyByteArray_FromStringAndSize(NULL, bytes)) ||
        !(parts[2] = PyByteArray_FromStringAndSize(NULL, bytes)))
        goto done;
    rows = (Py_ssize_t *)PyByteArray_AsString(parts[0]);
    vector_scores(views[VECTORS].buf, views[QUERY].buf, dim, rows, n,
                  (double *)PyByteArray_AsString(parts[1]));
    word_scores(&words, rows, n, (double *)PyByteArray_AsString(parts[2]));
    found = PyTuple_Pack(3, parts[0], parts[1], parts[2]);
done:
    for (int i = 0; i < 3; i++)
        Py_XDECREF(parts[i]);
    words_close(&words);
    for (int i = 3; i >= 0; i--)
        give_back(views + i);
    return found;
}
