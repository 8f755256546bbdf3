/* Arrays from Python, through the buffer protocol. */

#include "kernels.h"

#include <string.h>

int borrow(PyObject *array, Py_buffer *view, const char *name, const char *kinds, int size)
{
    view->obj = NULL;
    if (PyObject_GetBuffer(array, view, PyBUF_FORMAT | PyBUF_C_CONTIGUOUS) < 0)
        return -1;
    const char *kind = view->format ? view->format : "B";
    if (strlen(kind) == 1 && strchr(kinds, *kind) && (!size || view->itemsize == size))
        return 0;
    PyErr_Format(PyExc_TypeError, "%s: items '%s' of %zd bytes", name, kind, view->itemsize);
    PyBuffer_Release(view);
    view->obj = NULL;
    return -1;
}

void give_back(Py_buffer *view)
{
    if (view->obj)
        PyBuffer_Release(view);
    view->obj = NULL;
}

Py_ssize_t length(const Py_buffer *view)
{
    return view->len / view->itemsize;
}

int check_rows(const Py_buffer *view, Py_ssize_t rows)
{
    const Py_ssize_t *values = view->buf;
    for (Py_ssize_t i = 0; i < length(view); i++)
        if (values[i] < 0 || values[i] >= rows) {
            PyErr_Format(PyExc_IndexError, "there is no row %zd", values[i]);
            return -1;
        }
    return 0;
}

int borrow_allowed(PyObject *array, Py_buffer *view, Py_ssize_t rows)
{
    *view = (Py_buffer){0};
    if (array == Py_None)
        return 0;
    if (borrow(array, view, "allowed", "?", 1) < 0)
        return -1;
    if (length(view) == rows)
        return 0;
    PyErr_Format(PyExc_ValueError, "allowed: expected %zd rows", rows);
    give_back(view);
    return -1;
}
