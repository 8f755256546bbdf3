/* What Python can call. */

#include "kernels.h"

static PyMethodDef functions[] = {
    {"unit_vector", unit_vector, METH_O, NULL},
    {"vectors_at", vectors_at, METH_VARARGS, NULL},
    {"pools", pools, METH_VARARGS, NULL},
    {"postings_at", postings_at, METH_VARARGS, NULL},
    {"ranked", ranked, METH_VARARGS, NULL},
    {NULL, NULL, 0, NULL},
};

static int prepare(PyObject *module)
{
    choose_products();
    return PyModule_AddIntConstant(module, "INTERFACE", INTERFACE);
}

static PyModuleDef_Slot slots[] = {{Py_mod_exec, prepare}, {0, NULL}};

static struct PyModuleDef definition = {
    PyModuleDef_HEAD_INIT, "_kernels", NULL, 0, functions, slots, NULL, NULL, NULL,
};

PyMODINIT_FUNC PyInit__kernels(void)
{
    return PyModuleDef_Init(&definition);
}
