#include "kernels.h"

static PyMethodDef functions[] = {
    {"floats", floats, METH_O, NULL},
    {"best_vectors", best_vectors, METH_VARARGS, NULL},
    {"vectors_at", vectors_at, METH_VARARGS, NULL},
    {"best_postings", best_postings, METH_VARARGS, NULL},
    {"postings_at", postings_at, METH_VARARGS, NULL},
    {"rank", rank, METH_VARARGS, NULL},
    {NULL, NULL, 0, NULL},
};

static struct PyModuleDef definition = {
    PyModuleDef_HEAD_INIT, "_kernels", NULL, 0, functions, NULL, NULL, NULL, NULL,
};

PyMODINIT_FUNC PyInit__kernels(void)
{
    choose_products();
    return PyModuleDef_Init(&definition);
}
